/* Size rule `speed`: a worker's share of the batch follows its speed, so that all end together.
 *
 * The total B = workers x batch is kept exactly. Worker i of those that are there has the speed
 *
 *     v_i = samples / (compute time + induced sleep)       over the rounds of one window,
 *
 * which leaves out waiting and messages: an induced sleep stands for a slow machine. Its share is
 * B v_i / sum v, within batch_min .. batch_max; what a limit cuts off goes to the others in
 * proportion to their speeds. Shares are rounded down, and what is left of B goes, one sample each,
 * to the largest fractional parts (the lower worker first among equals).
 *
 *     speed:epoch   a window is an epoch (DBS, arXiv 2007.11831); v moves half-way to a new value
 *     speed:step    a window is a step (LB-BSP, arXiv 1806.02508); v moves by a fifth
 *
 * A worker that comes or goes changes all shares after the step under way. Whoever has not been
 * measured counts as the mean of the others. When so few are there that B is beyond their
 * batch_max, each does batch_max.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "step/rules/sizes.h"

static const double MOVE_EPOCH = 0.5, MOVE_STEP = 0.2;

enum { BISECTIONS = 60 }; /* fractional parts closer than 2^-60 are equal */

typedef struct measured {
    double   samples, time_ns; /* of the window */
    double   speed;            /* samples a nanosecond, smoothed; 0: not measured yet */
    double   ideal;            /* share before rounding */
    bool     there, fixed;     /* fixed: at one of the limits */
    uint32_t share;
} measured;

typedef struct memory {
    uint64_t epochs; /* that have been looked at */
    measured worker[];
} memory;

at_err at_size_speed_read(const char *number, at_plan *plan, at_fail *fail)
{
    plan->size_each_step = number && strcmp(number, "step") == 0;
    if (!number || plan->size_each_step || strcmp(number, "epoch") == 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "known: speed:epoch speed:step",
                       "--size speed cannot be '%s'", number);
}

void at_size_speed_tell(const at_plan *plan, at_text *text)
{
    at_text_add(text, plan->size_each_step ? ":step" : ":epoch");
}

size_t at_size_speed_state(const at_plan *plan)
{
    return sizeof(memory) + plan->workers * sizeof(measured);
}

/* Bytes from a file need not be one of the two. */
static bool is_flag(const bool *flag)
{
    unsigned char byte;
    memcpy(&byte, flag, 1);
    return byte <= 1;
}

bool at_size_speed_sound(const void *state, const at_plan *plan, uint64_t samples_used)
{
    (void)samples_used;
    const memory *m = state;
    for (uint32_t i = 0; i < plan->workers; i++) {
        const measured *w = &m->worker[i];
        bool            fine = w->samples >= 0 && isfinite(w->samples) && w->time_ns >= 0 &&
                    isfinite(w->time_ns) && w->speed >= 0 && isfinite(w->speed) &&
                    isfinite(w->ideal) && at_size_is_batch(plan, w->share) && is_flag(&w->there) &&
                    is_flag(&w->fixed);
        if (!fine) return false;
    }
    return true;
}

void at_size_speed_observe(void *state, const at_plan *plan, at_node worker, const at_work *work)
{
    memory *m = state;
    assert(worker >= 1);
    assert(worker <= plan->workers);
    if (work->samples == 0 || work->abandoned) return;
    m->worker[worker - 1].samples += work->samples;
    m->worker[worker - 1].time_ns += (double)(work->compute_ns + work->sleep_ns);
}

/* Ends the window: what it measured goes into the speeds. */
static void learn(memory *m, const at_plan *plan)
{
    double move = plan->size_each_step ? MOVE_STEP : MOVE_EPOCH;
    for (uint32_t i = 0; i < plan->workers; i++) {
        measured *w = &m->worker[i];
        if (w->samples > 0 && w->time_ns > 0) {
            double speed = w->samples / w->time_ns;
            w->speed = w->speed > 0 ? w->speed + move * (speed - w->speed) : speed;
        }
        w->samples = w->time_ns = 0;
    }
}

/* Notes who is there; true when that has changed. */
static bool call_roll(memory *m, const at_plan *plan, const at_member *member)
{
    bool changed = false;
    for (uint32_t i = 0; i < plan->workers; i++) {
        bool there = member[i].state != AT_MEMBER_AWAY;
        changed = changed || there != m->worker[i].there;
        m->worker[i].there = there;
    }
    return changed;
}

static double mean_speed(const memory *m, const at_plan *plan)
{
    double   sum = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->workers; i++) {
        if (!m->worker[i].there || m->worker[i].speed <= 0) continue;
        sum += m->worker[i].speed;
        count++;
    }
    return count > 0 ? sum / count : 1;
}

/* Divides what the fixed ones leave among the others, in proportion to speed. Returns by how much
 * the results miss the limits: below 0 more is lacking at batch_min than is over at batch_max. */
static double divide(memory *m, const at_plan *plan, double unknown)
{
    double left = (double)plan->workers * plan->batch, speeds = 0, miss = 0;
    for (uint32_t i = 0; i < plan->workers; i++) {
        const measured *w = &m->worker[i];
        if (!w->there) continue;
        if (w->fixed) left -= w->ideal;
        if (!w->fixed) speeds += w->speed > 0 ? w->speed : unknown;
    }
    for (uint32_t i = 0; i < plan->workers; i++) {
        measured *w = &m->worker[i];
        if (!w->there || w->fixed) continue;
        w->ideal = left * ((w->speed > 0 ? w->speed : unknown) / speeds);
        if (w->ideal < plan->batch_min) miss -= plan->batch_min - w->ideal;
        if (w->ideal > plan->batch_max) miss += w->ideal - plan->batch_max;
    }
    return miss;
}

/* Fixes whoever is beyond the limit that is missed by more; false when nobody is. */
static bool fix(memory *m, const at_plan *plan, double miss)
{
    bool any = false;
    for (uint32_t i = 0; i < plan->workers; i++) {
        measured *w = &m->worker[i];
        if (!w->there || w->fixed) continue;
        bool low = miss <= 0 && w->ideal < plan->batch_min;
        bool high = miss >= 0 && w->ideal > plan->batch_max;
        if (low) w->ideal = plan->batch_min;
        if (high) w->ideal = plan->batch_max;
        w->fixed = low || high;
        any = any || w->fixed;
    }
    return any;
}

static double fraction(const measured *w)
{
    return w->ideal - floor(w->ideal);
}

static uint64_t count_from(const memory *m, const at_plan *plan, double least)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < plan->workers; i++)
        count += m->worker[i].there && !m->worker[i].fixed && fraction(&m->worker[i]) >= least;
    return count;
}

/* One sample more for each of the `rest` largest fractional parts. */
static void hand_out(memory *m, const at_plan *plan, uint64_t rest)
{
    double low = 0, high = 1; /* at least `rest` parts are from low on, fewer from high on */
    for (int i = 0; i < BISECTIONS; i++) {
        double middle = (low + high) / 2;
        if (count_from(m, plan, middle) >= rest)
            low = middle;
        else
            high = middle;
    }
    uint64_t ties = rest - count_from(m, plan, high);
    for (uint32_t i = 0; i < plan->workers; i++) {
        measured *w = &m->worker[i];
        if (!w->there || w->fixed || fraction(w) < low) continue;
        bool tie = fraction(w) < high;
        if (tie && ties == 0) continue;
        ties -= tie;
        w->share++;
    }
}

/* Whole numbers that add up to what is divided. Fixed ones are whole already. */
static void round_shares(memory *m, const at_plan *plan)
{
    double   ideal = 0;
    uint64_t whole = 0, loose = 0;
    for (uint32_t i = 0; i < plan->workers; i++) {
        measured *w = &m->worker[i];
        if (!w->there) continue;
        w->share = (uint32_t)w->ideal;
        ideal += w->ideal;
        whole += w->share;
        loose += !w->fixed;
    }
    uint64_t total = (uint64_t)(ideal + 0.5), rest = total > whole ? total - whole : 0;
    if (rest > loose) rest = loose; /* rounding errors of the sum only */
    if (rest > 0) hand_out(m, plan, rest);
}

static void share_out(memory *m, const at_plan *plan, at_share *shares)
{
    double unknown = mean_speed(m, plan);
    for (uint32_t i = 0; i < plan->workers; i++) m->worker[i].fixed = false;
    while (fix(m, plan, divide(m, plan, unknown))) continue; /* each pass fixes at least one */
    round_shares(m, plan);
    for (uint32_t i = 0; i < plan->workers; i++) {
        const measured *w = &m->worker[i];
        if (w->there) shares[i].samples = w->share;
        if (!w->there) shares[i].samples = plan->batch; /* in case it joins before the next step */
        assert(shares[i].samples >= plan->batch_min);
        assert(shares[i].samples <= plan->batch_max);
    }
}

void at_size_speed_decide(void *state, const at_plan *plan, at_share *shares,
                          const at_progress *progress)
{
    memory *m = state;
    if (progress->steps == 0) {
        at_size_all(plan, shares, plan->batch);
        for (uint32_t i = 0; i < plan->workers; i++) m->worker[i].there = true;
        return;
    }
    uint64_t epochs = at_size_epochs(plan, progress->samples_used);
    bool     ended = plan->size_each_step || epochs > m->epochs;
    m->epochs = epochs;
    if (ended) learn(m, plan);
    if (call_roll(m, plan, progress->member) || ended) share_out(m, plan, shares);
}
