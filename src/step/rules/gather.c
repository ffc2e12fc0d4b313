/* The gather rules: when does the hub close a step? */
#include <assert.h>
#include <math.h>

#include "step/hub.h"

/* ---- who is coming -------------------------------------------------------------------------- */

/* Will this member, which has no gradient in the open step, still contribute one? A working member
 * will: if a newer version overtakes it, it starts on that one after its report. An idle member
 * will if its release rule lets it start; only a barrier can keep it out of this step. */
static bool is_coming(const at_hub *hub, const at_member *member)
{
    if (member->pieces_held > 0) return false;
    if (member->state == AT_MEMBER_WORKING || member->state == AT_MEMBER_EVICTED) return true;
    const at_release_rule *release = hub->plan->release;
    return member->state == AT_MEMBER_IDLE && (!release->holds || release->may_start(hub, member));
}

uint32_t at_gather_coming(const at_hub *hub)
{
    uint32_t coming = 0;
    for (uint32_t i = 0; i < hub->plan->workers_max; i++) coming += is_coming(hub, &hub->member[i]);
    assert(coming <= hub->present);
    return coming;
}

uint32_t at_gather_present(const at_hub *hub)
{
    uint32_t distinct = 0;
    for (uint32_t i = 0; i < hub->plan->workers_max; i++)
        distinct += hub->member[i].pieces_held > 0;
    assert(distinct <= hub->pieces);
    return distinct;
}

size_t at_gather_state_bytes(const at_plan *plan)
{
    assert(plan->gather);
    return plan->gather->state_size ? plan->gather->state_size(plan) : 0;
}

/* ---- all ------------------------------------------------------------------------------------ */

/* Every worker that began this step reports or is lost. A step without any worker left waits for
 * the next one to join. */
static uint32_t missing_all(const at_hub *hub, at_ns now)
{
    (void)now;
    uint32_t coming = at_gather_coming(hub);
    return coming > 0 || hub->pieces > 0 ? coming : 1;
}

static at_err check_all(const at_plan *plan, at_fail *fail)
{
    if (plan->release->holds) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "use --release barrier, or --gather any:K",
                       "--gather all does not work with --release %s: workers that do not wait "
                       "for a step never all report to it",
                       plan->release->rule.name);
}

/* ---- first:K and any:K ---------------------------------------------------------------------- */

/* The hub reserves memory for K pieces. */
#define K_ARG(kind)                                                                   \
    {                                                                                 \
        .name = "k", .type = kind, .min = 1, .max = AT_PIECES_MAX, .unit = "reports", \
        .derive = k_default                                                           \
    }

static int64_t k_default(const at_plan *plan)
{
    assert(plan->workers >= 1);
    return plan->workers > 1 ? plan->workers - 1 : 1;
}

static uint32_t k_of(const at_plan *plan)
{
    int64_t k = plan->arg[AT_GATHER][0].whole;
    assert(k >= 1);
    return (uint32_t)k;
}

/* ---- first:K-MAX: K grows while the loss falls -------------------------------------------------
 *
 * AdaSync (Dutta et al. 2021): with few gradients per step the loss falls fast at first, with many
 * it gets lower in the end, and
 *
 *     K = K_first x sqrt(F_first / F)          F: the mean loss of recent steps
 *
 * follows the best trade-off between them. K never falls back. */

enum { LOSS_STEPS = 20 }; /* losses of single steps are noisy: F is over about this many */

typedef struct grow_state {
    uint64_t steps;
    double   loss_first, loss;
    uint32_t k;
    uint32_t unused; /* states are compared as bytes */
} grow_state;

static bool k_grows(const at_plan *plan)
{
    return plan->arg[AT_GATHER][0].last > plan->arg[AT_GATHER][0].whole;
}

/* A run that is resumed with fewer workers may have had a larger K. */
static uint32_t k_now(const at_hub *hub)
{
    const grow_state *s = hub->gather_state;
    uint32_t          most = (uint32_t)hub->plan->arg[AT_GATHER][0].last;
    if (!k_grows(hub->plan) || s->k == 0) return k_of(hub->plan);
    return s->k < most ? s->k : most;
}

static size_t state_first(const at_plan *plan)
{
    return k_grows(plan) ? sizeof(grow_state) : 0;
}

static bool valid_first(const void *state, const at_plan *plan)
{
    const grow_state *s = state;
    bool              k = s->k == 0 || (s->k >= k_of(plan) && s->k <= AT_PIECES_MAX);
    return k && isfinite(s->loss_first) && isfinite(s->loss);
}

static void closed_first(at_hub *hub, at_ns now)
{
    (void)now;
    grow_state *s = hub->gather_state;
    double      loss = hub->loss_open / (double)hub->samples_open;
    if (!k_grows(hub->plan) || !isfinite(loss)) return;
    s->steps++;
    s->loss += (loss - s->loss) / (double)(s->steps < LOSS_STEPS ? s->steps : LOSS_STEPS);
    if (s->steps <= LOSS_STEPS) s->loss_first = s->loss;
    if (s->loss <= 0 || s->loss_first <= 0) return; /* a model without a loss */
    double   wanted = k_of(hub->plan) * sqrt(s->loss_first / s->loss);
    double   most = (double)hub->plan->arg[AT_GATHER][0].last;
    uint32_t k = (uint32_t)(wanted < most ? wanted + 0.5 : most);
    if (k > k_now(hub)) s->k = k;
}

/* K-: up to all workers. */
static at_err settle_first(at_plan *plan, at_fail *fail)
{
    (void)fail;
    at_value *k = &plan->arg[AT_GATHER][0];
    if (k->last == AT_SPAN_OPEN) k->last = plan->workers > k->whole ? plan->workers : k->whole;
    return AT_OK;
}

uint32_t at_gather_missing_of(const at_hub *hub, uint32_t k)
{
    uint32_t have = at_gather_present(hub);
    if (have >= k) return 0;
    uint32_t wanted = k - have, coming = missing_all(hub, 0);
    return wanted < coming ? wanted : coming;
}

/* Chen et al. 2016: the first K distinct workers make the step, the work of the rest is discarded.
 * With fewer than K workers alive, the step uses all of them. */
static uint32_t missing_first(const at_hub *hub, at_ns now)
{
    (void)now;
    return at_gather_missing_of(hub, k_now(hub));
}

/* Any K reports; a fast worker may count twice (K-batch in Dutta et al. 2018). Behind a barrier
 * each worker reports once, so the rule equals first:K. */
static uint32_t missing_any(const at_hub *hub, at_ns now)
{
    uint32_t k = k_of(hub->plan);
    if (hub->plan->release->holds) return missing_first(hub, now);
    return hub->pieces >= k ? 0 : k - hub->pieces;
}

static at_err check_first(const at_plan *plan, at_fail *fail)
{
    uint32_t k = (uint32_t)plan->arg[AT_GATHER][0].last;
    if (k <= plan->workers) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "use a smaller K, or more workers",
                       "--gather first:%u needs at least %u workers (there are %u)", k, k,
                       plan->workers);
}

static at_err check_any(const at_plan *plan, at_fail *fail)
{
    uint32_t k = k_of(plan);
    if (!plan->release->holds || k <= plan->workers) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "use --release free, or a smaller K",
                       "--gather any:%u with --release %s needs at least %u workers (there are "
                       "%u): each worker reports once per step",
                       k, plan->release->rule.name, k, plan->workers);
}

/* ---- every:PERIOD --------------------------------------------------------------------------- */

/* Only under size rule `auto` is the period left open, and it sets one time limit for all. */
static at_ns period_of(const at_hub *hub)
{
    at_ns period = hub->plan->arg[AT_GATHER][0].whole;
    return period != AT_NEVER ? period : hub->share[0].time_limit;
}

static at_ns closes_at_every(const at_hub *hub)
{
    at_ns period = period_of(hub);
    return period != AT_NEVER ? hub->opened_at + period : AT_NEVER;
}

static int64_t period_default(const at_plan *plan)
{
    return plan->time_limit;
}

/* The period has passed and at least one report has arrived. Until the period is known, every
 * worker reports once, which is what determines it. */
static uint32_t missing_every(const at_hub *hub, at_ns now)
{
    assert(now >= hub->opened_at);
    at_ns period = period_of(hub);
    if (period == AT_NEVER) return missing_all(hub, now);
    return hub->pieces > 0 && now - hub->opened_at >= period ? 0 : 1;
}

static at_err check_every(const at_plan *plan, at_fail *fail)
{
    if (plan->arg[AT_GATHER][0].whole != AT_NEVER || plan->work->timed) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "give one, for example --gather every:200ms",
                       "--gather every needs a period");
}

/* ---- the table ------------------------------------------------------------------------------ */

const at_gather_rule at_gather_rules[] = {
    {.rule = {.name = "all", .summary = "every worker that began the step", .check = check_all},
     .missing = missing_all,
     .waits_for_all = true},
    {.rule = {.name = "first",
              .summary = "the first K distinct workers; with -MAX, K grows while the loss falls",
              .arg = {K_ARG(AT_ARG_SPAN)},
              .settle = settle_first,
              .check = check_first},
     .missing = missing_first,
     .reports = k_of,
     .follows_loss = k_grows,
     .closed = closed_first,
     .state_size = state_first,
     .state_version = 1,
     .valid = valid_first},
    {.rule = {.name = "any",
              .summary = "any K reports",
              .arg = {K_ARG(AT_ARG_WHOLE)},
              .check = check_any},
     .missing = missing_any,
     .reports = k_of},
    {.rule = {.name = "every",
              .summary = "a period, and at least one report",
              .arg = {{.name = "period", .type = AT_ARG_TIME, .derive = period_default}},
              .check = check_every},
     .missing = missing_every,
     .closes_at = closes_at_every},
    {.rule = {.name = "quorum",
              .summary = "K workers, and those that come within a grace after them",
              .arg = {{.name = "k",
                       .type = AT_ARG_WHOLE,
                       .min = 1,
                       .max = AT_WORKERS_MAX,
                       .unit = "workers",
                       .derive = at_gather_quorum_default},
                      {.name = "grace", .type = AT_ARG_TIME, .open = "auto"}},
              .check = at_gather_quorum_check},
     .missing = at_gather_quorum_missing,
     .closes_at = at_gather_quorum_closes_at,
     .arrived = at_gather_quorum_arrived,
     .closed = at_gather_quorum_closed,
     .state_size = at_gather_quorum_state,
     .state_version = 1,
     .valid = at_gather_quorum_valid},
    {.rule = {0}},
};
