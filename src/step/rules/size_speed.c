/* Size rule `speed`: each worker's share of the batch is proportional to its speed, so that all
 * workers finish together.
 *
 * The total B = workers x batch is kept exactly. The speed of a present worker i is
 *
 *     v_i = samples / (compute time + induced sleep)       over the rounds of one window,
 *
 * which excludes waiting and messages; an induced sleep stands for a slow machine. Its share is
 * B v_i / sum v, within batch_min .. batch_max; what a limit cuts off goes to the other workers in
 * proportion to their speeds. Shares are rounded down, and the rest of B goes, one sample each, to
 * the largest fractional parts (the lower worker first among equals).
 *
 *     speed:epoch   a window is an epoch (DBS, arXiv 2007.11831); v moves half-way to a new value
 *     speed:step    a window is a step (LB-BSP, arXiv 1806.02508); v moves by a fifth
 *
 * When a worker joins or leaves, all shares change after the current step. A worker without a
 * measurement gets the mean speed. When so few workers are present that B exceeds the sum of their
 * batch_max, each computes batch_max.
 */
#include "step/rules/rules.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "step/hub.h"

static const double MOVE_EPOCH = 0.5, MOVE_STEP = 0.2;

enum { BISECTIONS = 60 }; /* fractional parts closer than 2^-60 count as equal */

typedef struct worker_speed {
    double   samples, time_ns; /* of the window */
    double   speed;            /* samples per nanosecond, smoothed; 0: not measured yet */
    double   ideal;            /* share before rounding */
    bool     present, fixed;   /* fixed: at one of the limits */
    uint32_t share;
} worker_speed;

typedef struct speed_state {
    uint64_t     epochs; /* already evaluated */
    worker_speed worker[];
} speed_state;

enum { SPEED_WINDOW, SPEED_MIN, SPEED_MAX };

static bool is_each_step(const at_plan *plan)
{
    return plan->arg[AT_SIZE][SPEED_WINDOW].whole == 1;
}

at_err at_size_speed_settle(at_plan *plan, at_fail *fail)
{
    return at_size_settle_range(plan, SPEED_MIN, SPEED_MAX, fail);
}

size_t at_size_speed_state(const at_plan *plan)
{
    assert(plan->workers_max >= 1);
    return sizeof(speed_state) + plan->workers_max * sizeof(worker_speed);
}

/* No run has more samples or nanoseconds; sums of speeds stay finite. */
static const double MUCH = 1e18;

/* A byte read from a file may hold any value. */
static bool is_flag(const bool *flag)
{
    unsigned char byte;
    memcpy(&byte, flag, 1);
    return byte <= 1;
}

bool at_size_speed_valid(const void *state, const at_plan *plan, const at_progress *so_far)
{
    (void)so_far;
    const speed_state *s = state;
    for (uint32_t i = 0; i < plan->workers_max; i++) {
        const worker_speed *w = &s->worker[i];
        bool valid = w->samples >= 0 && w->samples < MUCH && w->time_ns >= 0 && w->time_ns < MUCH &&
                     w->speed >= 0 && w->speed < MUCH && isfinite(w->ideal) &&
                     at_size_batch_valid(plan, w->share) && is_flag(&w->present) &&
                     is_flag(&w->fixed);
        if (!valid) return false;
    }
    return true;
}

void at_size_speed_observe(void *state, const at_plan *plan, at_node worker, const at_work *work)
{
    speed_state *s = state;
    assert(worker >= 1);
    assert(worker <= plan->workers_max);
    if (work->samples == 0 || work->abandoned) return;
    s->worker[worker - 1].samples += work->samples;
    s->worker[worker - 1].time_ns += (double)(work->compute_ns + work->sleep_ns);
}

/* Ends the window and updates the speeds from it. */
static void update_speeds(speed_state *s, const at_plan *plan)
{
    double move = is_each_step(plan) ? MOVE_STEP : MOVE_EPOCH;
    for (uint32_t i = 0; i < plan->workers_max; i++) {
        worker_speed *w = &s->worker[i];
        if (w->samples > 0 && w->time_ns > 0) {
            double speed = w->samples / w->time_ns;
            w->speed = w->speed > 0 ? w->speed + move * (speed - w->speed) : speed;
        }
        w->samples = w->time_ns = 0;
    }
}

/* Records which workers are present; true when that has changed. */
static bool update_presence(speed_state *s, const at_plan *plan, const at_member *member)
{
    bool changed = false;
    for (uint32_t i = 0; i < plan->workers_max; i++) {
        bool present = member[i].state != AT_MEMBER_AWAY;
        changed = changed || present != s->worker[i].present;
        s->worker[i].present = present;
    }
    return changed;
}

static double mean_speed(const speed_state *s, const at_plan *plan)
{
    double   sum = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->workers_max; i++) {
        if (!s->worker[i].present || s->worker[i].speed <= 0) continue;
        sum += s->worker[i].speed;
        count++;
    }
    return count > 0 ? sum / count : 1;
}

/* Divides the batch, less the fixed shares, among the other workers in proportion to speed. Returns
 * by how much the results miss the limits: the excess over batch_max minus the deficit to
 * batch_min. */
static double divide(speed_state *s, const at_plan *plan, double unknown)
{
    assert(unknown > 0);
    double left = (double)plan->workers * plan->batch, speeds = 0, miss = 0;
    for (uint32_t i = 0; i < plan->workers_max; i++) {
        const worker_speed *w = &s->worker[i];
        if (!w->present) continue;
        if (w->fixed) left -= w->ideal;
        if (!w->fixed) speeds += w->speed > 0 ? w->speed : unknown;
    }
    for (uint32_t i = 0; i < plan->workers_max; i++) {
        worker_speed *w = &s->worker[i];
        if (!w->present || w->fixed) continue;
        w->ideal = left * ((w->speed > 0 ? w->speed : unknown) / speeds);
        if (w->ideal < plan->batch_min) miss -= plan->batch_min - w->ideal;
        if (w->ideal > plan->batch_max) miss += w->ideal - plan->batch_max;
    }
    return miss;
}

/* Fixes the shares beyond the limit that is missed by more; false when there are none. */
static bool fix(speed_state *s, const at_plan *plan, double miss)
{
    assert(plan->batch_min <= plan->batch_max);
    bool any = false;
    for (uint32_t i = 0; i < plan->workers_max; i++) {
        worker_speed *w = &s->worker[i];
        if (!w->present || w->fixed) continue;
        bool low = miss <= 0 && w->ideal < plan->batch_min;
        bool high = miss >= 0 && w->ideal > plan->batch_max;
        if (low) w->ideal = plan->batch_min;
        if (high) w->ideal = plan->batch_max;
        w->fixed = low || high;
        any = any || w->fixed;
    }
    return any;
}

static double fraction(const worker_speed *w)
{
    return w->ideal - floor(w->ideal);
}

static uint64_t count_at_least(const speed_state *s, const at_plan *plan, double least)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < plan->workers_max; i++)
        count += s->worker[i].present && !s->worker[i].fixed && fraction(&s->worker[i]) >= least;
    return count;
}

/* Adds one sample to each of the `rest` largest fractional parts. */
static void distribute(speed_state *s, const at_plan *plan, uint64_t rest)
{
    assert(rest >= 1);
    assert(rest <= count_at_least(s, plan, 0));
    double low = 0, high = 1; /* at least `rest` parts are >= low, fewer are >= high */
    for (int i = 0; i < BISECTIONS; i++) {
        double middle = (low + high) / 2;
        if (count_at_least(s, plan, middle) >= rest)
            low = middle;
        else
            high = middle;
    }
    uint64_t ties = rest - count_at_least(s, plan, high);
    for (uint32_t i = 0; i < plan->workers_max; i++) {
        worker_speed *w = &s->worker[i];
        if (!w->present || w->fixed || fraction(w) < low) continue;
        bool tie = fraction(w) < high;
        if (tie && ties == 0) continue;
        ties -= tie;
        w->share++;
    }
    assert(ties == 0); /* all of `rest` was given away */
}

/* Rounds to whole numbers and keeps the total. Fixed shares are whole already. */
static void round_shares(speed_state *s, const at_plan *plan)
{
    double   ideal = 0;
    uint64_t whole = 0, loose = 0;
    for (uint32_t i = 0; i < plan->workers_max; i++) {
        worker_speed *w = &s->worker[i];
        if (!w->present) continue;
        w->share = (uint32_t)w->ideal;
        ideal += w->ideal;
        whole += w->share;
        loose += !w->fixed;
    }
    uint64_t total = (uint64_t)(ideal + 0.5), rest = total > whole ? total - whole : 0;
    if (rest > loose) rest = loose; /* only rounding errors of the sum get here */
    if (rest > 0) distribute(s, plan, rest);
}

static void set_shares(speed_state *s, const at_plan *plan, at_share *shares)
{
    double unknown = mean_speed(s, plan);
    for (uint32_t i = 0; i < plan->workers_max; i++) s->worker[i].fixed = false;
    while (fix(s, plan, divide(s, plan, unknown)))
        continue; /* each pass fixes at least one share */
    round_shares(s, plan);
    for (uint32_t i = 0; i < plan->workers_max; i++) {
        const worker_speed *w = &s->worker[i];
        if (w->present) shares[i].samples = w->share;
        if (!w->present)
            shares[i].samples = plan->batch; /* in case it joins before the next step */
        assert(shares[i].samples >= plan->batch_min);
        assert(shares[i].samples <= plan->batch_max);
    }
}

void at_size_speed_decide(void *state, const at_plan *plan, at_share *shares,
                          const at_progress *progress)
{
    assert(progress->member);
    speed_state *s = state;
    if (progress->steps == 0) {
        s->epochs = at_size_epochs(plan, progress->samples_used);
        at_size_set_all(plan, shares, plan->batch);
        for (uint32_t i = 0; i < plan->workers; i++) s->worker[i].present = true;
        return;
    }
    uint64_t epochs = at_size_epochs(plan, progress->samples_used);
    bool     ended = is_each_step(plan) || epochs > s->epochs;
    s->epochs = epochs;
    if (ended) update_speeds(s, plan);
    if (update_presence(s, plan, progress->member) || ended) set_shares(s, plan, shares);
}
