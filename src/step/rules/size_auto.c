/* Size rule `auto`: finds the time limit T that gives a mean batch of plan->batch.
 *
 * A past round j had an induced sleep s_j and a time per sample c_j. With the time limit T it would
 * have finished
 *
 *     b_j(T) = clamp((T - s_j) / c_j, one micro-batch, cap)        samples,
 *
 * and half a micro-batch more under `--cut after`, which always ends late.
 *
 * The mean of b_j(T) over the recorded rounds grows with T, so bisection finds the T at which it
 * equals the requested batch. At first few rounds are recorded and T is solved for after each step;
 * later the record spans many rounds, so single stragglers hardly move T.
 *
 * Real rounds end between micro-batches, so the model is slightly off. The accumulated shortfall
 * or excess of samples is therefore compensated over the next STEPS_REPAY steps: the mean over a
 * whole run comes out right, and T moves by only a fraction of a micro-batch.
 */
#include "step/rules/rules.h"

#include <assert.h>
#include <math.h>

#include "step/plan.h"

enum {
    ROUNDS_MAX = 2048,  /* recorded; 200 rounds of 10 workers */
    STEPS_EAGER = 20,   /* solve for T after each of the first steps .. */
    STEPS_BETWEEN = 25, /* .. and then after every 25th */
    STEPS_REPAY = 100,
    REPAY_PART = 8, /* compensation is at most an eighth of the batch */
    BISECTIONS = 50 /* enough to reach rounding error */
};

static const double LONG_TIME = 1e18; /* 30 years */

typedef struct past_round {
    double sleep_ns;
    double sample_ns;
} past_round;

typedef struct auto_state {
    uint32_t   count, next;
    double     owed; /* samples by which all rounds so far fell short of plan->batch */
    past_round round[ROUNDS_MAX];
} auto_state;

size_t at_size_auto_state(const at_plan *plan)
{
    (void)plan;
    return sizeof(auto_state);
}

bool at_size_auto_valid(const void *state, const at_plan *plan, const at_progress *so_far)
{
    (void)plan;
    (void)so_far;
    const auto_state *s = state;
    bool              valid = s->count <= ROUNDS_MAX && s->next < ROUNDS_MAX && isfinite(s->owed);
    for (uint32_t i = 0; valid && i < s->count; i++)
        valid = s->round[i].sleep_ns >= 0 && s->round[i].sleep_ns < LONG_TIME &&
                s->round[i].sample_ns > 0 && s->round[i].sample_ns < LONG_TIME;
    return valid;
}

void at_size_auto_observe(void *state, const at_plan *plan, at_node worker, const at_work *work)
{
    (void)worker;
    auto_state *s = state;
    assert(s->next < ROUNDS_MAX);
    assert(s->count <= ROUNDS_MAX);
    if (work->samples == 0 || work->abandoned || work->compute_ns <= 0) return;
    s->owed += (double)plan->batch - work->samples;
    /* Installing parameters uses up part of the time limit, as a sleep does. */
    s->round[s->next] = (past_round){.sleep_ns = (double)(work->sleep_ns + work->install_ns),
                                     .sample_ns = (double)work->compute_ns / work->samples};
    s->next = (s->next + 1) % ROUNDS_MAX;
    if (s->count < ROUNDS_MAX) s->count++;
}

static double mean_batch(const auto_state *s, const at_plan *plan, double time_limit_ns)
{
    assert(s->count > 0);
    double sum = 0, late = plan->cut_after ? 0.5 * plan->micro_batch : 0;
    for (uint32_t j = 0; j < s->count; j++) {
        double batch = (time_limit_ns - s->round[j].sleep_ns) / s->round[j].sample_ns + late;
        if (batch < plan->micro_batch) batch = plan->micro_batch;
        if (batch > plan->cap) batch = plan->cap;
        sum += batch;
    }
    return sum / s->count;
}

/* The mean batch to aim for: the requested one plus a part of what is owed. */
static double mean_wanted(const auto_state *s, const at_plan *plan)
{
    assert(plan->workers >= 1);
    double batch = plan->batch, most = batch / REPAY_PART;
    double more = s->owed / STEPS_REPAY / plan->workers;
    if (more > most) more = most;
    if (more < -most) more = -most;
    return batch + more < plan->cap ? batch + more : plan->cap;
}

static at_ns solve(const auto_state *s, const at_plan *plan)
{
    double low = 0, high = 1, wanted = mean_wanted(s, plan);
    assert(s->count > 0);
    for (uint32_t j = 0; j < s->count; j++) { /* enough for every round to reach the cap */
        double enough = s->round[j].sleep_ns + s->round[j].sample_ns * plan->cap;
        if (enough > high) high = enough;
    }
    if (high > LONG_TIME) high = LONG_TIME;
    for (int i = 0; i < BISECTIONS; i++) {
        double middle = (low + high) / 2;
        if (mean_batch(s, plan, middle) < wanted)
            low = middle;
        else
            high = middle;
    }
    return (at_ns)high > 0 ? (at_ns)high : 1;
}

void at_size_auto_decide(void *state, const at_plan *plan, at_share *shares,
                         const at_progress *progress)
{
    assert(plan->work->timed);
    const auto_state *s = state;
    uint64_t          steps = progress->steps;
    assert(plan->cap >= plan->batch);
    bool due = steps <= STEPS_EAGER || steps % STEPS_BETWEEN == 0;
    if (!due) return;
    at_ns time_limit = s->count > 0 ? solve(s, plan) : AT_NEVER;
    for (uint32_t i = 0; i < plan->workers_max; i++)
        shares[i] = (at_share){.samples = plan->batch, .time_limit = time_limit};
}
