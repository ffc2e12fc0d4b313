/* Size rule `auto`: the time limit T that gives a mean batch of plan->batch.
 *
 * A round j of the past had an induced sleep s_j and a time per sample c_j. Had it been given the
 * time T, it would have done
 *
 *     b_j(T) = clamp((T - s_j) / c_j, one micro-batch, cap)        samples,
 *
 * and half a micro-batch more under `--cut after`, which always ends late.
 *
 * The mean of b_j(T) over the remembered rounds grows with T, so bisection finds the T at which it
 * equals the batch asked for. The memory is short while little is known and T is looked up again
 * often; later it spans many rounds, so single stragglers do not shake it.
 *
 * Real rounds end between micro-batches, so the model is off by a little. What was done too little
 * or too much so far is therefore paid back over the next STEPS_REPAY steps: the mean over a whole
 * run comes out right, and T moves by a fraction of a micro-batch only.
 */
#include <assert.h>
#include <math.h>

#include "step/rules/sizes.h"

enum {
    ROUNDS_MAX = 2048,  /* remembered; 200 rounds of 10 workers */
    STEPS_EAGER = 20,   /* T is solved for after each of the first steps .. */
    STEPS_BETWEEN = 25, /* .. and after that every so often */
    STEPS_REPAY = 100,
    REPAY_PART = 8, /* never ask for more than an eighth beside the batch */
    BISECTIONS = 50 /* down to rounding error */
};

static const double LONG_TIME = 1e18; /* 30 years */

typedef struct seen {
    double sleep_ns;
    double sample_ns;
} seen;

typedef struct memory {
    uint32_t count, next;
    double   owed; /* samples that all rounds so far fell short of plan->batch */
    seen     round[ROUNDS_MAX];
} memory;

size_t at_size_auto_state(const at_plan *plan)
{
    (void)plan;
    return sizeof(memory);
}

bool at_size_auto_sound(const void *state, const at_plan *plan, uint64_t samples_used)
{
    (void)samples_used;
    const memory *m = state;
    (void)plan;
    bool fine = m->count <= ROUNDS_MAX && m->next < ROUNDS_MAX && isfinite(m->owed);
    for (uint32_t i = 0; fine && i < m->count; i++)
        fine = m->round[i].sleep_ns >= 0 && m->round[i].sleep_ns < LONG_TIME &&
               m->round[i].sample_ns >= 0 && m->round[i].sample_ns < LONG_TIME;
    return fine;
}

void at_size_auto_observe(void *state, const at_plan *plan, at_node worker, const at_work *work)
{
    (void)worker;
    memory *m = state;
    if (work->samples == 0 || work->abandoned || work->compute_ns <= 0) return;
    m->owed += (double)plan->batch - work->samples;
    /* Installing parameters eats into the time limit just as a sleep does. */
    m->round[m->next] = (seen){.sleep_ns = (double)(work->sleep_ns + work->install_ns),
                               .sample_ns = (double)work->compute_ns / work->samples};
    m->next = (m->next + 1) % ROUNDS_MAX;
    if (m->count < ROUNDS_MAX) m->count++;
}

static double mean_batch(const memory *m, const at_plan *plan, double time_limit_ns)
{
    double sum = 0, late = plan->cut_after ? 0.5 * plan->micro_batch : 0;
    for (uint32_t j = 0; j < m->count; j++) {
        double batch = (time_limit_ns - m->round[j].sleep_ns) / m->round[j].sample_ns + late;
        if (batch < plan->micro_batch) batch = plan->micro_batch;
        if (batch > plan->cap) batch = plan->cap;
        sum += batch;
    }
    return sum / m->count;
}

/* The mean batch to aim at: what was asked for, and part of what is owed. */
static double mean_wanted(const memory *m, const at_plan *plan)
{
    double batch = plan->batch, most = batch / REPAY_PART;
    double more = m->owed / STEPS_REPAY / plan->workers;
    if (more > most) more = most;
    if (more < -most) more = -most;
    return batch + more < plan->cap ? batch + more : plan->cap;
}

static at_ns solve(const memory *m, const at_plan *plan)
{
    double low = 0, high = 1, wanted = mean_wanted(m, plan);
    assert(m->count > 0);
    for (uint32_t j = 0; j < m->count; j++) { /* with this much time every round reaches its cap */
        double enough = m->round[j].sleep_ns + m->round[j].sample_ns * plan->cap;
        if (enough > high) high = enough;
    }
    if (high > LONG_TIME) high = LONG_TIME;
    for (int i = 0; i < BISECTIONS; i++) {
        double middle = (low + high) / 2;
        if (mean_batch(m, plan, middle) < wanted)
            low = middle;
        else
            high = middle;
    }
    return (at_ns)high > 0 ? (at_ns)high : 1;
}

void at_size_auto_decide(void *state, const at_plan *plan, at_share *shares,
                         const at_progress *progress)
{
    const memory *m = state;
    uint64_t      steps = progress->steps;
    assert(plan->cap >= plan->batch);
    bool due = steps <= STEPS_EAGER || steps % STEPS_BETWEEN == 0;
    if (!due) return;
    at_ns time_limit = m->count > 0 ? solve(m, plan) : AT_NEVER;
    for (uint32_t i = 0; i < plan->workers; i++)
        shares[i] = (at_share){.samples = plan->batch, .time_limit = time_limit};
}
