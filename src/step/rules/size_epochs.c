/* Size rules `stall` and `loss-target`: after each epoch the batch doubles or halves, depending on
 * the mean training loss. Both come from the dynamic batching project of COMS 6998.
 *
 *     stall          P = 1000 (mean of the last EPOCHS losses / their minimum - 1)
 *                    P < ALPHA, or an epoch takes longer than SLOW: double; otherwise halve
 *     loss-target    loss of the epoch > X: halve; < X: double
 *
 * P is Prechelt's measure of progress. The published program has the sum where P has the mean, so
 * that its P is never below 1000 (EPOCHS - 1): measure=sum does the same. Until EPOCHS losses are
 * known, `stall` keeps the batch.
 */
#include "step/rules/rules.h"

#include <assert.h>
#include <math.h>

#include "step/plan.h"

/* Twice or half the batch, within the limits of the plan. */
static uint32_t doubled(const at_plan *plan, uint32_t batch, bool larger)
{
    assert(batch >= 1);
    return at_size_clamp(plan, larger ? 2.0 * batch : 0.5 * batch);
}

/* ---- stall ----------------------------------------------------------------------------------- */

enum { STALL_ALPHA, STALL_EPOCHS, STALL_MEASURE, STALL_SLOW, STALL_MIN, STALL_MAX };

typedef struct stall_state {
    at_size_epoch epoch;
    uint32_t      batch;
    uint32_t      known, next; /* losses in `loss`, and where the next one goes */
    double        loss[];      /* EPOCHS of them, a ring */
} stall_state;

static uint32_t stall_epochs(const at_plan *plan)
{
    assert(plan->arg[AT_SIZE][STALL_EPOCHS].whole >= 2);
    return (uint32_t)plan->arg[AT_SIZE][STALL_EPOCHS].whole;
}

at_err at_size_stall_settle(at_plan *plan, at_fail *fail)
{
    return at_size_settle_range(plan, STALL_MIN, STALL_MAX, fail);
}

size_t at_size_stall_state(const at_plan *plan)
{
    return sizeof(stall_state) + stall_epochs(plan) * sizeof(double);
}

bool at_size_stall_valid(const void *state, const at_plan *plan, const at_progress *so_far)
{
    const stall_state *s = state;
    bool               valid = at_size_epoch_valid(&s->epoch, so_far) && s->batch > 0 &&
                 at_size_batch_valid(plan, s->batch) && s->known <= stall_epochs(plan) &&
                 s->next < stall_epochs(plan);
    for (uint32_t i = 0; valid && i < stall_epochs(plan); i++) valid = isfinite(s->loss[i]);
    return valid;
}

/* How much the recorded losses lie above the smallest of them, in thousandths. */
static double progress_measure(const stall_state *s, const at_plan *plan)
{
    assert(s->known >= 2);
    double sum = 0, least = s->loss[0];
    for (uint32_t i = 0; i < s->known; i++) {
        sum += s->loss[i];
        if (s->loss[i] < least) least = s->loss[i];
    }
    bool   as_published = plan->arg[AT_SIZE][STALL_MEASURE].whole == 1;
    double level = as_published ? sum : sum / s->known;
    if (least > 0) return 1000 * (level / least - 1);
    return level > least ? INFINITY : 0; /* a loss of 0 is the end of any progress */
}

static void stall_end_epoch(stall_state *s, const at_plan *plan, const at_size_epoch_mean *mean)
{
    const at_value *arg = plan->arg[AT_SIZE];
    uint32_t        epochs = stall_epochs(plan);
    assert(s->next < epochs);
    s->loss[s->next] = mean->loss;
    s->next = (s->next + 1) % epochs;
    if (s->known < epochs) s->known++;
    double epoch_ns = mean->sample_ns * (double)plan->samples_epoch;
    bool   slow = arg[STALL_SLOW].whole != AT_NEVER && epoch_ns > (double)arg[STALL_SLOW].whole;
    if (s->known < epochs && !slow) return;
    bool stalled = s->known == epochs && progress_measure(s, plan) < arg[STALL_ALPHA].real;
    s->batch = doubled(plan, s->batch, slow || stalled);
}

void at_size_stall_decide(void *state, const at_plan *plan, at_share *shares,
                          const at_progress *progress)
{
    stall_state       *s = state;
    at_size_epoch_mean mean;
    if (progress->steps == 0) s->batch = plan->batch;
    if (at_size_epoch_add(&s->epoch, plan, progress, &mean)) stall_end_epoch(s, plan, &mean);
    at_size_set_all(plan, shares, s->batch);
}

/* ---- loss-target ----------------------------------------------------------------------------- */

enum { TARGET_LOSS, TARGET_MIN, TARGET_MAX };

typedef struct target_state {
    at_size_epoch epoch;
    uint32_t      batch;
} target_state;

at_err at_size_target_settle(at_plan *plan, at_fail *fail)
{
    return at_size_settle_range(plan, TARGET_MIN, TARGET_MAX, fail);
}

size_t at_size_target_state(const at_plan *plan)
{
    (void)plan;
    return sizeof(target_state);
}

bool at_size_target_valid(const void *state, const at_plan *plan, const at_progress *so_far)
{
    const target_state *s = state;
    return at_size_epoch_valid(&s->epoch, so_far) && s->batch > 0 &&
           at_size_batch_valid(plan, s->batch);
}

void at_size_target_decide(void *state, const at_plan *plan, at_share *shares,
                           const at_progress *progress)
{
    target_state      *s = state;
    at_size_epoch_mean mean;
    double             target = plan->arg[AT_SIZE][TARGET_LOSS].real;
    assert(target > 0);
    if (progress->steps == 0) s->batch = plan->batch;
    bool ended = at_size_epoch_add(&s->epoch, plan, progress, &mean);
    if (ended && mean.loss != target) s->batch = doubled(plan, s->batch, mean.loss < target);
    at_size_set_all(plan, shares, s->batch);
}
