/* The size rules: how batch size and time limit change during a run.
 *
 * Here are the table, the helpers that rules share, and the rules that give every worker the same
 * number of samples. `auto`, `speed`, `stall` and `loss-target` have files of their own. The states
 * of size rules are part of checkpoints: a changed struct makes old ones unreadable.
 */
#include "step/rules/rules.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "step/hub.h"
#include "step/limits.h"

uint32_t at_size_clamp(const at_plan *plan, double samples)
{
    assert(plan->batch_min >= 1);
    assert(plan->batch_min <= plan->batch_max);
    if (!(samples > plan->batch_min)) return plan->batch_min;
    return samples < plan->batch_max ? (uint32_t)(samples + 0.5) : plan->batch_max;
}

void at_size_set_all(const at_plan *plan, at_share *shares, uint32_t samples)
{
    assert(samples >= 1);
    for (uint32_t i = 0; i < plan->workers_max; i++)
        shares[i] = (at_share){.samples = samples, .time_limit = plan->time_limit};
}

/* ---- limits and checks ---------------------------------------------------------------------- */

enum { RANGE_FACTOR = 16 }; /* default limits: batch / 16 .. batch x 16 */

int64_t at_size_least(const at_plan *plan)
{
    assert(plan->batch >= 1);
    return plan->batch >= RANGE_FACTOR ? plan->batch / RANGE_FACTOR : 1;
}

int64_t at_size_most(const at_plan *plan)
{
    assert(plan->batch >= 1);
    uint64_t most = (uint64_t)plan->batch * RANGE_FACTOR;
    return most < UINT32_MAX ? (int64_t)most : UINT32_MAX;
}

at_err at_size_settle_range(at_plan *plan, int min, int max, at_fail *fail)
{
    const at_value *arg = plan->arg[AT_SIZE];
    plan->batch_min = (uint32_t)(min >= 0 ? arg[min].whole : at_size_least(plan));
    plan->batch_max = (uint32_t)arg[max].whole;
    if (plan->batch >= plan->batch_min && plan->batch <= plan->batch_max) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "choose limits that include --batch",
                       "--size %s: --batch %u is not between MIN %u and MAX %u",
                       plan->size->rule.name, plan->batch, plan->batch_min, plan->batch_max);
}

/* Of rules without limits of their own: only those that change samples look at them. */
static at_err settle_wide(at_plan *plan, at_fail *fail)
{
    (void)fail;
    plan->batch_min = (uint32_t)at_size_least(plan);
    plan->batch_max = (uint32_t)at_size_most(plan);
    return AT_OK;
}

at_err at_size_check_fixed(const at_plan *plan, at_fail *fail)
{
    if (!plan->work->timed) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "use --work fixed",
                       "--size %s sets the samples per round, but timed work ends by time",
                       plan->size->rule.name);
}

static at_err check_static(const at_plan *plan, at_fail *fail)
{
    if (!plan->work->timed || plan->time_limit != AT_NEVER) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "give --time-limit, or --size auto",
                       "timed work with --size %s needs a time limit", plan->size->rule.name);
}

static at_err check_auto(const at_plan *plan, at_fail *fail)
{
    if (!plan->work->timed)
        return at_fail_set(fail, AT_ERR_USAGE, "use --work timed",
                           "--size %s sets the time limit, but fixed work has none",
                           plan->size->rule.name);
    if (plan->time_limit != AT_NEVER)
        return at_fail_set(fail, AT_ERR_USAGE, "leave one of them out",
                           "--size %s and an explicit time limit contradict each other",
                           plan->size->rule.name);
    return AT_OK;
}

static at_err check_speed(const at_plan *plan, at_fail *fail)
{
    AT_TRY(at_size_check_fixed(plan, fail));
    if (plan->release->holds) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "use --release barrier",
                       "--size %s balances workers that wait for each other; under --release %s "
                       "they do not",
                       plan->size->rule.name, plan->release->rule.name);
}

static at_err check_noise(const at_plan *plan, at_fail *fail)
{
    AT_TRY(at_size_check_fixed(plan, fail));
    bool one = plan->gather->reports && plan->gather->reports(plan) == 1;
    if (plan->workers > 1 && !one) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "use more workers, or a larger K",
                       "--size %s compares the gradients of a step; with these settings each "
                       "step has only one",
                       plan->size->rule.name);
}

bool at_size_batch_valid(const at_plan *plan, uint32_t batch)
{
    assert(plan->batch_min <= plan->batch_max);
    return batch == 0 || (batch >= plan->batch_min && batch <= plan->batch_max);
}

uint64_t at_size_epochs(const at_plan *plan, uint64_t samples_used)
{
    return plan->samples_epoch > 0 ? samples_used / plan->samples_epoch : 0;
}

at_progress at_size_begin(const at_hub *hub, at_ns now)
{
    assert(hub->pieces == 0);
    return (at_progress){.member = hub->member,
                         .samples_used = hub->samples_used,
                         .elapsed = at_hub_elapsed(hub, now)};
}

at_progress at_size_progress(const at_hub *hub, const at_event *applied)
{
    at_progress progress = {.member = hub->member};
    assert(applied->kind == AT_EV_APPLIED);
    assert(hub->pieces > 0);
    assert(hub->samples_open >= hub->pieces);
    assert(hub->began_at != AT_NEVER);
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
    assert(progress.samples <= progress.samples_used);
    return progress;
}

size_t at_size_state_bytes(const at_plan *plan)
{
    assert(plan->size);
    return plan->size->state_size ? plan->size->state_size(plan) : 0;
}

double at_size_lr_factor(const at_hub *hub)
{
    const at_plan *plan = hub->plan;
    double         samples = 0, first = (double)plan->workers * plan->batch;
    uint32_t       present = 0;
    if (!plan->lr_linear && !plan->lr_inverse) return 1;
    assert(first > 0);
    for (uint32_t i = 0; i < plan->workers_max; i++) {
        if (hub->member[i].state == AT_MEMBER_AWAY) continue;
        samples += hub->share[i].samples;
        present++;
    }
    if (samples <= 0) return plan->lr_inverse ? 1.0 / plan->batch : 1;
    return plan->lr_inverse ? present / samples : samples / first;
}

bool at_size_epoch_add(at_size_epoch *epoch, const at_plan *plan, const at_progress *progress,
                       at_size_epoch_mean *mean)
{
    double loss_sum = epoch->loss_sum + progress->loss_sum;
    if (progress->steps == 0) epoch->began = progress->elapsed;
    if (isfinite(loss_sum)) { /* --nonfinite ignore: such a step says nothing */
        epoch->loss_sum = loss_sum;
        epoch->samples += (double)progress->samples;
    }
    uint64_t epochs = at_size_epochs(plan, progress->samples_used);
    bool     ended = epochs > epoch->epochs;
    epoch->epochs = epochs;
    if (!ended || epoch->samples == 0) return false;
    assert(progress->elapsed >= epoch->began);
    *mean = (at_size_epoch_mean){.loss = epoch->loss_sum / epoch->samples,
                                 .sample_ns =
                                     (double)(progress->elapsed - epoch->began) / epoch->samples};
    epoch->loss_sum = epoch->samples = 0;
    epoch->began = progress->elapsed;
    return true;
}

bool at_size_epoch_valid(const at_size_epoch *epoch, const at_progress *so_far)
{
    return isfinite(epoch->loss_sum) && isfinite(epoch->samples) &&
           (epoch->samples == 0 || epoch->samples >= 1) && epoch->began >= 0 &&
           epoch->began <= so_far->elapsed;
}

/* ---- static --------------------------------------------------------------------------------- */

static void decide_static(void *state, const at_plan *plan, at_share *shares,
                          const at_progress *progress)
{
    (void)state;
    if (progress->steps == 0) at_size_set_all(plan, shares, plan->batch);
}

/* ---- grow and shrink: the batch changes by a factor every few epochs ---------------------------
 *
 *     n = batch x FACTOR^k   or   batch / FACTOR^k,   k = number of times EPOCHS epochs have passed
 *
 * rounded to the nearest whole number, within batch_min .. batch_max. Smith et al. (arXiv
 * 1711.00489) grow the batch instead of lowering the learning rate. Default: 2,2.
 */

enum { GROW_FACTOR, GROW_EPOCHS, GROW_MIN, GROW_MAX };

static at_err settle_grow(at_plan *plan, at_fail *fail)
{
    return at_size_settle_range(plan, GROW_MIN, GROW_MAX, fail);
}

/* FACTOR^k for the samples used so far. */
static double growth(const at_plan *plan, uint64_t samples_used)
{
    const at_value *arg = plan->arg[AT_SIZE];
    if (plan->samples_epoch == 0) return 1;
    assert(arg[GROW_FACTOR].real > 1);
    assert(arg[GROW_EPOCHS].real > 0);
    double epochs = (double)samples_used / (double)plan->samples_epoch;
    return pow(arg[GROW_FACTOR].real, floor(epochs / arg[GROW_EPOCHS].real));
}

static void grow_decide(void *state, const at_plan *plan, at_share *shares,
                        const at_progress *progress)
{
    (void)state;
    double factor = growth(plan, progress->samples_used);
    at_size_set_all(plan, shares, at_size_clamp(plan, plan->batch * factor));
}

static void shrink_decide(void *state, const at_plan *plan, at_share *shares,
                          const at_progress *progress)
{
    (void)state;
    double factor = growth(plan, progress->samples_used);
    at_size_set_all(plan, shares, at_size_clamp(plan, plan->batch / factor));
}

/* ---- loss: after each epoch the batch doubles, halves or stays ---------------------------------
 *
 *     score = 0.8 L/L' + 0.2 t/t'       L: mean loss over the epoch's samples, t: its duration,
 *                                       L', t': those of the previous epoch
 *     score < 0.9   n doubles           clearly better
 *     score > 1.1   n halves            clearly worse
 *
 * within batch_min .. batch_max. The original rule (COMS 6998) adds nats to seconds and compares
 * the sum with 10, so its outcome depends on the machine and on the length of an epoch; here both
 * terms are ratios and 10 means 10 %. Times are per sample, because the step that ends an epoch may
 * reach into the next one. The learning rate follows only with --lr-scale linear.
 */

static const double LOSS_WEIGHT = 0.8, TIME_WEIGHT = 0.2, BETTER = 0.9, WORSE = 1.1;

typedef struct loss_state {
    at_size_epoch epoch;
    double        loss_before, time_before;
    uint32_t      batch;
} loss_state;

static size_t loss_state_size(const at_plan *plan)
{
    (void)plan;
    return sizeof(loss_state);
}

static bool loss_valid(const void *state, const at_plan *plan, const at_progress *so_far)
{
    const loss_state *s = state;
    return at_size_epoch_valid(&s->epoch, so_far) && isfinite(s->loss_before) &&
           isfinite(s->time_before) && s->batch > 0 && at_size_batch_valid(plan, s->batch);
}

static double loss_score(const loss_state *s, const at_size_epoch_mean *mean)
{
    double loss_ratio = s->loss_before > 0 ? mean->loss / s->loss_before : 1;
    double time_ratio = s->time_before > 0 ? mean->sample_ns / s->time_before : 1;
    return LOSS_WEIGHT * loss_ratio + TIME_WEIGHT * time_ratio;
}

static void loss_end_epoch(loss_state *s, const at_plan *plan, const at_size_epoch_mean *mean)
{
    bool   first = s->time_before <= 0 && s->loss_before <= 0;
    double score = first ? 1 : loss_score(s, mean);
    if (score < BETTER) s->batch = at_size_clamp(plan, 2.0 * s->batch);
    if (score > WORSE) s->batch = at_size_clamp(plan, 0.5 * s->batch);
    s->loss_before = mean->loss;
    s->time_before = mean->sample_ns;
}

static void loss_decide(void *state, const at_plan *plan, at_share *shares,
                        const at_progress *progress)
{
    loss_state        *s = state;
    at_size_epoch_mean mean;
    if (progress->steps == 0) s->batch = plan->batch;
    if (at_size_epoch_add(&s->epoch, plan, progress, &mean)) loss_end_epoch(s, plan, &mean);
    at_size_set_all(plan, shares, s->batch);
}

/* ---- noise: the total batch follows the gradient noise scale -----------------------------------
 *
 * McCandlish et al. (arXiv 1812.06162). The mean gradient g_b over b samples has
 * E|g_b|^2 = |G|^2 + S / b: G is the true gradient, S the sum of the variances of a single sample's
 * gradient. Each step measures this twice, over its pieces of b_i samples and over all B of them:
 *
 *     small = mean of |g_i|^2,   1/b = mean of 1/b_i,   big = |g|^2
 *     S     = (small - big) / (1/b - 1/B)
 *     |G|^2 = big - S / B
 *
 * Both are unbiased but noisy, and a ratio of noisy numbers is biased, so each is first averaged
 * over about NOISE_AVERAGE_STEPS steps. B_simple = S / |G|^2 is the batch at which noise and
 * gradient are equally large: below it more samples pay off in full, above it hardly at all.
 *
 * Every NOISE_DECIDE_STEPS steps the batch of each worker becomes B_simple / present workers,
 * changed by at most a factor of two at a time, within batch_min .. batch_max. A step of one piece
 * cannot separate the two terms and is skipped. |G|^2 <= 0 means pure noise: the batch grows.
 */

enum { NOISE_AVERAGE_STEPS = 32, NOISE_DECIDE_STEPS = 16 };

typedef struct noise_state {
    uint64_t steps; /* averaged so far */
    double   noise, signal;
    uint32_t batch;
} noise_state;

static size_t noise_state_size(const at_plan *plan)
{
    (void)plan;
    return sizeof(noise_state);
}

static bool noise_valid(const void *state, const at_plan *plan, const at_progress *so_far)
{
    (void)so_far;
    const noise_state *s = state;
    return isfinite(s->noise) && isfinite(s->signal) && s->batch > 0 &&
           at_size_batch_valid(plan, s->batch);
}

static void noise_average(noise_state *s, const at_progress *p)
{
    assert(p->pieces >= 2);
    assert(p->samples >= p->pieces);
    double all = 1.0 / (double)p->samples;
    assert(p->inverse_mean > all); /* each piece is smaller than all */
    double noise = (p->norm2_piece - p->norm2_step) / (p->inverse_mean - all);
    double signal = p->norm2_step - noise * all;
    /* A plain mean at first, later an exponential moving average. */
    double move =
        s->steps < NOISE_AVERAGE_STEPS ? 1.0 / (double)(s->steps + 1) : 1.0 / NOISE_AVERAGE_STEPS;
    s->noise += move * (noise - s->noise);
    s->signal += move * (signal - s->signal);
    s->steps++;
}

static uint32_t workers_present(const at_plan *plan, const at_member *member)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->workers_max; i++) count += member[i].state != AT_MEMBER_AWAY;
    return count;
}

static uint32_t noise_batch(const noise_state *s, const at_plan *plan, uint32_t workers)
{
    assert(workers >= 1);
    assert(s->batch >= 1);
    double most = 2.0 * s->batch, least = 0.5 * s->batch, wanted = most;
    if (s->noise <= 0)
        wanted = least;
    else if (s->signal > 0)
        wanted = s->noise / s->signal / workers;
    if (wanted > most) wanted = most;
    if (wanted < least) wanted = least;
    return at_size_clamp(plan, wanted);
}

static void noise_decide(void *state, const at_plan *plan, at_share *shares,
                         const at_progress *progress)
{
    noise_state *s = state;
    if (progress->steps == 0) s->batch = plan->batch;
    uint32_t workers = workers_present(plan, progress->member);
    bool     finite = isfinite(progress->norm2_piece) && isfinite(progress->norm2_step);
    bool     usable = finite && progress->pieces > 1 && progress->norm2_piece > 0;
    if (usable) noise_average(s, progress);
    if (usable && workers > 0 && s->steps % NOISE_DECIDE_STEPS == 0)
        s->batch = noise_batch(s, plan, workers);
    at_size_set_all(plan, shares, s->batch);
}

/* ---- probe: tries 1, 2, 4 and 8 times the batch for an epoch each, keeps the fastest -----------
 *
 * The fastest has the smallest time per sample, the smaller batch among equals; the step that ends
 * an epoch may reach into the next one, so epochs are not compared as such. Sizes beyond batch_max
 * are not tried. The rule looks at speed alone, not at what the size does to the training.
 */

enum { PROBES = 4 };

typedef struct probe_state {
    uint64_t epochs;       /* completed */
    uint32_t probed;       /* sizes measured so far */
    at_ns    began;        /* start of the current probe, since the first order */
    uint64_t used;         /* samples used before the current probe */
    double   best_time_ns; /* per sample */
    uint32_t best_batch;   /* 0: none yet */
} probe_state;

static size_t probe_state_size(const at_plan *plan)
{
    (void)plan;
    return sizeof(probe_state);
}

static bool probe_valid(const void *state, const at_plan *plan, const at_progress *so_far)
{
    const probe_state *s = state;
    return s->probed <= PROBES && s->began >= 0 && s->began <= so_far->elapsed &&
           isfinite(s->best_time_ns) && s->used <= so_far->samples_used &&
           (s->best_batch > 0) == (s->probed > 0) && at_size_batch_valid(plan, s->best_batch);
}

/* The batch of a probe; 0 after the last one. */
static uint32_t probe_batch(const at_plan *plan, uint32_t index)
{
    assert(index <= PROBES);
    uint64_t batch = (uint64_t)plan->batch << index;
    return index < PROBES && batch <= plan->batch_max ? (uint32_t)batch : 0;
}

static void probe_end(probe_state *s, const at_plan *plan, const at_progress *progress)
{
    assert(s->probed < PROBES);
    uint64_t samples = progress->samples_used - s->used;
    assert(samples > 0);
    double time_ns = (double)(progress->elapsed - s->began) / (double)samples;
    if (s->best_batch == 0 || time_ns < s->best_time_ns) {
        s->best_time_ns = time_ns;
        s->best_batch = probe_batch(plan, s->probed);
    }
    s->probed++;
    s->began = progress->elapsed;
    s->used = progress->samples_used;
}

static void probe_decide(void *state, const at_plan *plan, at_share *shares,
                         const at_progress *progress)
{
    probe_state *s = state;
    uint64_t     epochs = at_size_epochs(plan, progress->samples_used);
    if (progress->steps == 0)
        *s = (probe_state){
            .epochs = epochs, .began = progress->elapsed, .used = progress->samples_used};
    if (epochs > s->epochs && probe_batch(plan, s->probed) > 0) probe_end(s, plan, progress);
    s->epochs = epochs;
    uint32_t next = probe_batch(plan, s->probed);
    at_size_set_all(plan, shares, next > 0 ? next : s->best_batch);
}

/* ---- the table ------------------------------------------------------------------------------ */

static at_err settle_range(at_plan *plan, at_fail *fail)
{
    return at_size_settle_range(plan, 0, 1, fail);
}

static at_err settle_probe(at_plan *plan, at_fail *fail)
{
    return at_size_settle_range(plan, -1, 0, fail);
}

#define GROW_ARGS             \
    {.name = "factor",        \
     .type = AT_ARG_REAL,     \
     .min = 1,                \
     .max = 1000,             \
     .above = true,           \
     .fallback = "2"},        \
        {.name = "epochs",    \
         .type = AT_ARG_REAL, \
         .min = 0,            \
         .max = 1e6,          \
         .above = true,       \
         .fallback = "2"},    \
        AT_SIZE_MIN_ARG, AT_SIZE_MAX_ARG

static const char *const windows[] = {"epoch", "step", NULL};
static const char *const measures[] = {"mean", "sum", NULL};

const at_size_rule at_size_rules[] = {
    {.rule = {.name = "static", .summary = "never", .settle = settle_wide, .check = check_static},
     .decide = decide_static,
     .keeps_batch = true},
    {.rule = {.name = "auto",
              .summary = "the time limit adjusts to give the requested mean batch",
              .settle = settle_wide,
              .check = check_auto},
     .state_size = at_size_auto_state,
     .valid = at_size_auto_valid,
     .observe = at_size_auto_observe,
     .decide = at_size_auto_decide,
     .keeps_batch = true},
    {.rule =
         {.name = "speed",
          .summary = "shares follow measured speed, after each epoch or step",
          .arg = {{.name = "window", .type = AT_ARG_WORD, .words = windows, .fallback = "epoch"},
                  AT_SIZE_MIN_ARG,
                  AT_SIZE_MAX_ARG},
          .settle = at_size_speed_settle,
          .check = check_speed},
     .state_size = at_size_speed_state,
     .valid = at_size_speed_valid,
     .observe = at_size_speed_observe,
     .decide = at_size_speed_decide,
     .changes_samples = true,
     .keeps_batch = true},
    {.rule = {.name = "grow",
              .summary = "grows by a factor every few epochs",
              .arg = {GROW_ARGS},
              .settle = settle_grow,
              .check = at_size_check_fixed},
     .decide = grow_decide,
     .changes_samples = true},
    {.rule = {.name = "shrink",
              .summary = "shrinks by a factor every few epochs",
              .arg = {GROW_ARGS},
              .settle = settle_grow,
              .check = at_size_check_fixed},
     .decide = shrink_decide,
     .changes_samples = true},
    {.rule = {.name = "loss",
              .summary = "doubles after a good epoch, halves after a bad one",
              .arg = {AT_SIZE_MIN_ARG, AT_SIZE_MAX_ARG},
              .settle = settle_range,
              .check = at_size_check_fixed},
     .state_size = loss_state_size,
     .valid = loss_valid,
     .decide = loss_decide,
     .changes_samples = true},
    {.rule =
         {.name = "stall",
          .summary = "doubles when the losses of some epochs stall, otherwise halves",
          .arg =
              {{.name = "alpha",
                .type = AT_ARG_REAL,
                .min = 0,
                .max = 1e6,
                .above = true,
                .fallback = "10"},
               {.name = "epochs",
                .type = AT_ARG_WHOLE,
                .min = 2,
                .max = 1000,
                .unit = "epochs",
                .fallback = "5"},
               {.name = "measure", .type = AT_ARG_WORD, .words = measures, .fallback = "mean"},
               {.name = "slow", .type = AT_ARG_TIME, .unit = "s", .open = "never", .brief = true},
               AT_SIZE_MIN_ARG,
               AT_SIZE_MAX_ARG},
          .settle = at_size_stall_settle,
          .check = at_size_check_fixed},
     .state_size = at_size_stall_state,
     .valid = at_size_stall_valid,
     .decide = at_size_stall_decide,
     .changes_samples = true},
    {.rule = {.name = "loss-target",
              .summary = "halves after an epoch with a loss above X, doubles below",
              .arg = {{.name = "x",
                       .type = AT_ARG_REAL,
                       .min = 0,
                       .max = 1e6,
                       .above = true,
                       .fallback = "0.5"},
                      AT_SIZE_MIN_ARG,
                      AT_SIZE_MAX_ARG},
              .settle = at_size_target_settle,
              .check = at_size_check_fixed},
     .state_size = at_size_target_state,
     .valid = at_size_target_valid,
     .decide = at_size_target_decide,
     .changes_samples = true},
    {.rule = {.name = "noise",
              .summary = "follows the gradient noise scale",
              .arg = {AT_SIZE_MIN_ARG, AT_SIZE_MAX_ARG},
              .settle = settle_range,
              .check = check_noise},
     .state_size = noise_state_size,
     .valid = noise_valid,
     .decide = noise_decide,
     .changes_samples = true,
     .wants_norms = true},
    {.rule = {.name = "probe",
              .summary = "tries 1, 2, 4, 8 times the batch, keeps the fastest",
              .arg = {AT_SIZE_MAX_ARG},
              .settle = settle_probe,
              .check = at_size_check_fixed},
     .state_size = probe_state_size,
     .valid = probe_valid,
     .decide = probe_decide,
     .changes_samples = true},
    {.rule = {0}},
};
