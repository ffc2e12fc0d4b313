/* The mix rules: who owns the parameters, and who updates them? */
#include <assert.h>

#include "step/plan.h"

static uint32_t hubs_one(const at_plan *plan)
{
    (void)plan;
    return 1;
}

static uint32_t hubs_sliced(const at_plan *plan)
{
    assert(plan->arg[AT_MIX][0].whole >= 1);
    return (uint32_t)plan->arg[AT_MIX][0].whole;
}

/* The workers that reported make the update, so all of them must be there. */
static at_err check_replicated(const at_plan *plan, at_fail *fail)
{
    if (at_plan_waits_for_all(plan)) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "leave --mix out, or use --strategy fmb or amb",
                       "--mix replicated needs every worker in every step: --gather %s with "
                       "--release %s does not wait for all",
                       plan->gather->rule.name, plan->release->rule.name);
}

/* What a worker has computed is in the parameters already, and cannot be taken back. */
static at_err check_shared(const at_plan *plan, at_fail *fail)
{
    if (plan->newer->interrupts)
        return at_fail_set(fail, AT_ERR_USAGE, "leave --newer out, or use --mix central",
                           "--mix shared does not work with --newer %s: workers compute with the "
                           "newest parameters all the time",
                           plan->newer->rule.name);
    if (!plan->stale->uses_all)
        return at_fail_set(fail, AT_ERR_USAGE, "use --strategy hogwild, or --stale use",
                           "--mix shared does not work with --strategy %s and --stale %s: what a "
                           "worker has computed is in the parameters already",
                           plan->strategy->name, plan->stale->rule.name);
    return AT_OK;
}

/* ---- gossip ---------------------------------------------------------------------------------- */

enum { GRAPH, ROUNDS, WEIGHTS, FORM, MATRIX }; /* its arguments */
static const char *const weights[] = {"proportional", "equal", NULL};
static const char *const forms[] = {"pg", "pwg", "pw", "da", NULL};      /* at_mix_form */
static const char *const matrices[] = {"metropolis", "laplacian", NULL}; /* at_graph_matrix */

at_mixing at_plan_mixing(const at_plan *plan)
{
    const at_value *arg = plan->arg[AT_MIX];
    assert(plan->mix->owned_by_workers);
    return (at_mixing){.graph = arg[GRAPH].name,
                       .rounds = arg[ROUNDS].timed ? 0 : (uint32_t)arg[ROUNDS].whole,
                       .time = arg[ROUNDS].timed ? arg[ROUNDS].whole : 0,
                       .form = (at_mix_form)arg[FORM].whole,
                       .equal = arg[WEIGHTS].whole == 1,
                       .matrix = (at_graph_matrix)arg[MATRIX].whole};
}

/* A worker's parameters change when all have reported, and each makes its own step. */
static at_err check_gossip(const at_plan *plan, at_fail *fail)
{
    if (!at_plan_waits_for_all(plan))
        return at_fail_set(fail, AT_ERR_USAGE, "use --strategy fmb-gossip or amb-gossip",
                           "--mix gossip needs every worker in every step: --gather %s with "
                           "--release %s does not wait for all",
                           plan->gather->rule.name, plan->release->rule.name);
    if (plan->size->wants_norms)
        return at_fail_set(fail, AT_ERR_USAGE, "leave --size out, or use --mix central",
                           "--size %s needs the gradients of all workers at one place, and under "
                           "--mix gossip nobody has them",
                           plan->size->rule.name);
    return AT_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

const at_mix_rule at_mix_rules[] = {
    {.rule = {.name = "central", .summary = "one hub has the parameters and computes every update"},
     .hubs = hubs_one},
    {.rule = {.name = "sliced",
              .summary = "several hubs, each updates one slice of the parameters",
              .arg = {{.name = "hubs",
                       .type = AT_ARG_WHOLE,
                       .min = 1,
                       .max = 1024,
                       .unit = "processes",
                       .fallback = "2"}}},
     .hubs = hubs_sliced},
    {.rule = {.name = "replicated",
              .summary = "no hub: the workers update jointly, by all-reduce",
              .check = check_replicated},
     .updates_by_workers = true},
    {.rule = {.name = "shared",
              .summary = "workers update one vector in shared memory without locks (hogwild)",
              .check = check_shared},
     .hubs = hubs_one,
     .updates_in_place = true},
    {.rule = {.name = "gossip",
              .summary = "every worker has its own parameters and averages with its neighbors",
              .arg = {[GRAPH] = {.name = "graph", .type = AT_ARG_NAME, .fallback = "exponential"},
                      [ROUNDS] = {.name = "rounds",
                                  .type = AT_ARG_EITHER,
                                  .min = 1,
                                  .max = AT_MIX_ROUNDS_MAX,
                                  .unit = "rounds",
                                  .fallback = "5"},
                      [WEIGHTS] = {.name = "weights",
                                   .type = AT_ARG_WORD,
                                   .words = weights,
                                   .fallback = "proportional",
                                   .brief = true},
                      [FORM] = {.name = "form",
                                .type = AT_ARG_WORD,
                                .words = forms,
                                .fallback = "pwg",
                                .brief = true},
                      [MATRIX] = {.name = "matrix",
                                  .type = AT_ARG_WORD,
                                  .words = matrices,
                                  .fallback = "metropolis",
                                  .brief = true}},
              .check = check_gossip},
     .hubs = hubs_one,
     .owned_by_workers = true},
    {.rule = {0}},
};
