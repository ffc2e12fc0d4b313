/* How do the amounts change over time? The table, and what its rules share. */
#include <assert.h>
#include <math.h>

#include "step/rules/sizes.h"

uint32_t at_size_clamp(const at_plan *plan, double samples)
{
    assert(plan->batch_min >= 1);
    assert(plan->batch_min <= plan->batch_max);
    if (!(samples > plan->batch_min)) return plan->batch_min;
    return samples < plan->batch_max ? (uint32_t)(samples + 0.5) : plan->batch_max;
}

void at_size_all(const at_plan *plan, at_share *shares, uint32_t samples)
{
    assert(samples >= 1);
    for (uint32_t i = 0; i < plan->workers; i++)
        shares[i] = (at_share){.samples = samples, .time_limit = plan->time_limit};
}

bool at_size_is_batch(const at_plan *plan, uint32_t batch)
{
    return batch == 0 || (batch >= plan->batch_min && batch <= plan->batch_max);
}

uint64_t at_size_epochs(const at_plan *plan, uint64_t samples_used)
{
    return plan->samples_epoch > 0 ? samples_used / plan->samples_epoch : 0;
}

at_progress at_size_progress(const at_hub *hub, const at_event *applied)
{
    at_progress progress = {.member = hub->member};
    if (!applied) return progress;
    assert(applied->kind == AT_EV_APPLIED);
    assert(hub->pieces > 0);
    for (uint32_t i = 0; i < hub->pieces; i++)
        progress.inverse_mean += 1.0 / hub->piece[i].samples / hub->pieces;
    progress.steps = hub->version + 1;
    progress.samples_used = hub->samples_used;
    progress.elapsed = applied->now - hub->began_at;
    progress.samples = hub->samples_open;
    progress.pieces = hub->pieces;
    progress.loss_sum = hub->loss_open;
    progress.norm2_step = applied->as.applied.norm2_step;
    progress.norm2_piece = applied->as.applied.norm2_piece;
    return progress;
}

double at_size_lr_factor(const at_hub *hub)
{
    const at_plan *plan = hub->plan;
    double         samples = 0, first = (double)plan->workers * plan->batch;
    if (!plan->lr_linear) return 1;
    for (uint32_t i = 0; i < plan->workers; i++)
        if (hub->member[i].state != AT_MEMBER_AWAY) samples += hub->share[i].samples;
    return samples > 0 ? samples / first : 1;
}

static void decide_static(void *state, const at_plan *plan, at_share *shares,
                          const at_progress *progress)
{
    (void)state;
    if (progress->steps == 0) at_size_all(plan, shares, plan->batch);
}

const at_size_rule at_size_rules[] = {
    {.name = "static", .summary = "never", .decide = decide_static},
    {.name = "auto",
     .summary = "the time limit sets itself to the mean batch asked for",
     .state_size = at_size_auto_state,
     .sound = at_size_auto_sound,
     .observe = at_size_auto_observe,
     .decide = at_size_auto_decide,
     .finds_time_limit = true},
    {.name = "speed",
     .summary = "shares follow measured speed, after each epoch or step",
     .number = "epoch|step",
     .read = at_size_speed_read,
     .tell = at_size_speed_tell,
     .state_size = at_size_speed_state,
     .sound = at_size_speed_sound,
     .observe = at_size_speed_observe,
     .decide = at_size_speed_decide,
     .changes_samples = true,
     .balances = true},
    {.name = "grow",
     .summary = "larger by a factor every so many epochs",
     .number = "FACTOR,EPOCHS",
     .read = at_size_grow_read,
     .tell = at_size_grow_tell,
     .decide = at_size_grow_decide,
     .changes_samples = true,
     .by_factor = true},
    {.name = "shrink",
     .summary = "smaller by a factor every so many epochs",
     .number = "FACTOR,EPOCHS",
     .read = at_size_grow_read,
     .tell = at_size_grow_tell,
     .decide = at_size_shrink_decide,
     .changes_samples = true,
     .by_factor = true},
    {.name = "loss",
     .summary = "doubles after a good epoch, halves after a bad one",
     .state_size = at_size_loss_state,
     .sound = at_size_loss_sound,
     .decide = at_size_loss_decide,
     .changes_samples = true},
    {.name = "noise",
     .summary = "follows the gradient noise scale",
     .state_size = at_size_noise_state,
     .sound = at_size_noise_sound,
     .decide = at_size_noise_decide,
     .changes_samples = true,
     .wants_norms = true},
    {.name = "probe",
     .summary = "tries 1, 2, 4, 8 times the batch, keeps the fastest",
     .state_size = at_size_probe_state,
     .sound = at_size_probe_sound,
     .decide = at_size_probe_decide,
     .changes_samples = true},
    {0},
};
