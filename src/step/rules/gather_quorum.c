/* Gather rule `quorum`: when K workers have reported, the step stays open for a grace, and closes
 * earlier when all are there. (Decoupled DiLoCo, 2026, gathers like this.)
 *
 * With grace `auto` the rule looks for the grace that maximises the samples used per second. A step
 * that was open for a grace G tells how it would have ended with any shorter one: the reports that
 * had come by then, and the time. So every step adds, for each grace g up to its own,
 *
 *     samples[g] += those of the reports that came within g        time[g] += until it had closed
 *
 * with older steps forgotten slowly, and the best grace is the one with the largest samples / time.
 * Graces are cells of a fixed geometric grid, so the rule needs no idea of how long rounds take.
 *
 * Only a step that waits for everybody tells about longer graces. The first steps do, and later one
 * does whenever that costs little: at most one percent of the time is spent on looking.
 */
#include "step/rules/rules.h"

#include <assert.h>
#include <math.h>

#include "step/hub.h"

enum {
    PER_DOUBLING = 8, /* cells: neighbors differ by 9 percent */
    DOUBLINGS = 42,   /* from a microsecond to 50 days */
    CELLS = 1 + PER_DOUBLING * DOUBLINGS,
    STEPS_LEARNING = 4, /* wait for everybody */
    STEPS_KEPT = 1024,  /* the memory, in steps */
    LOOKING_PART = 100, /* of the time */
    LOOKING_FACTOR = 2  /* a step that looks waits for at most twice the longest known wait */
};

static const double SHORTEST_NS = 1024; /* grace of cell 1; cell 0 has none */
static const double LONG_TIME = 1e18;   /* 30 years */

typedef struct auto_state {
    uint64_t steps;
    double   looking_ns; /* spent on waiting for longer than the best grace */
    double   longest_ns; /* from the quorum to the last report, when all were waited for */
    double   samples[CELLS], time_ns[CELLS];
} auto_state;

enum { K, GRACE }; /* the arguments */

static uint32_t k_of(const at_plan *plan)
{
    assert(plan->arg[AT_GATHER][K].whole >= 1);
    return (uint32_t)plan->arg[AT_GATHER][K].whole;
}

static bool is_auto(const at_plan *plan)
{
    return plan->arg[AT_GATHER][GRACE].whole == AT_NEVER;
}

int64_t at_gather_quorum_default(const at_plan *plan)
{
    assert(plan->workers >= 1);
    return plan->workers / 2 + 1;
}

at_err at_gather_quorum_check(const at_plan *plan, at_fail *fail)
{
    uint32_t k = k_of(plan);
    if (k > plan->workers)
        return at_fail_set(fail, AT_ERR_USAGE, "use a smaller K, or more workers",
                           "--gather quorum:%u needs at least %u workers (there are %u)", k, k,
                           plan->workers);
    if (plan->release->holds) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "use --release barrier, or --gather any:K",
                       "--gather quorum does not work with --release %s: workers that do not wait "
                       "for a step are never late for it",
                       plan->release->rule.name);
}

/* ---- the grid ------------------------------------------------------------------------------- */

static double grace_of(uint32_t cell)
{
    assert(cell < CELLS);
    return cell == 0 ? 0 : SHORTEST_NS * exp2((cell - 1.0) / PER_DOUBLING);
}

/* The shortest grace that a report needs which came this long after the quorum. */
static uint32_t cell_of(double late_ns)
{
    assert(late_ns >= 0);
    if (late_ns <= 0) return 0;
    if (late_ns <= SHORTEST_NS) return 1;
    double cell = 1 + ceil(PER_DOUBLING * log2(late_ns / SHORTEST_NS));
    return cell < CELLS ? (uint32_t)cell : CELLS - 1;
}

/* ---- grace `auto` --------------------------------------------------------------------------- */

size_t at_gather_quorum_state(const at_plan *plan)
{
    return is_auto(plan) ? sizeof(auto_state) : 0;
}

bool at_gather_quorum_valid(const void *state, const at_plan *plan)
{
    (void)plan;
    const auto_state *s = state;
    bool valid = s->looking_ns >= 0 && s->looking_ns < LONG_TIME && s->longest_ns >= 0 &&
                 s->longest_ns < LONG_TIME;
    for (uint32_t i = 0; valid && i < CELLS; i++)
        valid = s->samples[i] >= 0 && s->samples[i] < LONG_TIME && s->time_ns[i] >= 0 &&
                s->time_ns[i] < LONG_TIME;
    return valid;
}

/* The shortest of those with the most samples per second. */
static double best_grace(const auto_state *s)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < CELLS; i++)
        if (s->samples[i] * s->time_ns[best] > s->samples[best] * s->time_ns[i]) best = i;
    return grace_of(best);
}

/* The grace of a step that waits for longer than the best one, to learn; 0: this step does not. */
static at_ns looking_grace(const auto_state *s, double best, at_ns elapsed)
{
    assert(elapsed >= 0);
    if (s->steps < STEPS_LEARNING) return AT_NEVER;
    double allowed = (double)elapsed / LOOKING_PART - s->looking_ns;
    bool   looks = s->longest_ns > best && allowed >= s->longest_ns - best;
    return looks ? (at_ns)(LOOKING_FACTOR * s->longest_ns) : 0;
}

/* Adds the samples of the open step's reports to the cells of the graces they needed; returns how
 * long after the quorum the last one came. */
static double count_by_grace(const at_hub *hub, double *samples)
{
    at_ns last = 0;
    for (uint32_t i = 0; i < hub->plan->workers_max; i++) {
        const at_member *member = &hub->member[i];
        if (member->pieces_held == 0) continue;
        at_ns  late = member->reported_at - hub->quorum.reached_at;
        double held = (double)at_hub_samples_held(hub, member);
        samples[cell_of(late > 0 ? (double)late : 0)] += held;
        if (late > last) last = late;
    }
    return (double)last;
}

/* Adds what the step would have been with each grace up to `known`. The others age, too: what a
 * longer grace gave long ago must not outweigh a new look at it. */
static void learn(auto_state *s, const double *samples, double quorum_ns, double last, double known)
{
    double keep = 1 - 1.0 / STEPS_KEPT, used = 0;
    for (uint32_t i = 0; i < CELLS; i++) {
        double grace = grace_of(i);
        s->samples[i] *= keep;
        s->time_ns[i] *= keep;
        if (grace > known) continue;
        used += samples[i];
        s->samples[i] += used;
        s->time_ns[i] += quorum_ns + (grace < last ? grace : last);
    }
    assert(used > 0);
}

void at_gather_quorum_closed(at_hub *hub, at_ns now)
{
    if (!is_auto(hub->plan) || hub->quorum.reached_at == AT_NEVER)
        return; /* fewer than K are alive */
    auto_state *s = hub->gather_state;
    bool        all = at_gather_coming(hub) == 0;
    double      samples[CELLS] = {0}, waited = (double)(now - hub->quorum.reached_at);
    double      last = count_by_grace(hub, samples);
    double      quorum_ns = (double)(hub->quorum.reached_at - hub->opened_at + hub->apply_ns);
    learn(s, samples, quorum_ns, all ? last : LONG_TIME, all ? LONG_TIME : waited);
    s->steps++;
    if (!hub->quorum.looks) return;
    double best = best_grace(s);
    s->longest_ns = all ? last : waited;
    if (waited > best) s->looking_ns += waited - best;
}

/* ---- the rule ------------------------------------------------------------------------------- */

bool at_gather_quorum_arrived(at_hub *hub, at_ns now)
{
    const at_plan *plan = hub->plan;
    if (hub->quorum.reached_at != AT_NEVER || at_gather_present(hub) < k_of(plan)) return false;
    at_ns grace = plan->arg[AT_GATHER][GRACE].whole;
    hub->quorum.reached_at = now;
    hub->quorum.looks = false;
    if (is_auto(plan)) {
        const auto_state *s = hub->gather_state;
        grace = looking_grace(s, best_grace(s), now - hub->began_at);
        hub->quorum.looks = grace > 0;
        if (!hub->quorum.looks) grace = (at_ns)best_grace(s);
    }
    hub->quorum.closes_at = grace == AT_NEVER ? AT_NEVER : now + grace;
    return true;
}

at_ns at_gather_quorum_closes_at(const at_hub *hub)
{
    return hub->quorum.closes_at;
}

/* To learn when reports come, the hub must see each of them. */
uint32_t at_gather_quorum_missing(const at_hub *hub, at_ns now)
{
    if (hub->quorum.reached_at == AT_NEVER) return at_gather_missing_of(hub, k_of(hub->plan));
    if (now >= hub->quorum.closes_at) return 0;
    uint32_t coming = at_gather_coming(hub);
    return is_auto(hub->plan) && coming > 1 ? 1 : coming;
}
