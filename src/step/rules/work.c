/* The work rules: how much does a worker compute before it reports? */
#include <assert.h>

#include "step/plan.h"

enum { CAP_FACTOR = 4, BATCH_MAX = 1000000000 };

static uint32_t batch_default(const at_plan *plan)
{
    enum { BATCH_DEFAULT = 64 };
    assert(plan->strategy);
    return plan->strategy->batch > 0 ? plan->strategy->batch : BATCH_DEFAULT;
}

/* ---- fixed:N -------------------------------------------------------------------------------- */

enum { FIXED_SAMPLES };

static int64_t fixed_default(const at_plan *plan)
{
    return plan->batch > 0 ? plan->batch : batch_default(plan);
}

static at_err settle_fixed(at_plan *plan, at_fail *fail)
{
    const at_value *samples = &plan->arg[AT_WORK][FIXED_SAMPLES];
    if (samples->given && plan->batch > 0 && plan->batch != samples->whole)
        return at_fail_set(fail, AT_ERR_USAGE, "give the number once",
                           "fixed:%lld and --batch %u contradict each other",
                           (long long)samples->whole, plan->batch);
    plan->batch = (uint32_t)samples->whole;
    plan->cap = plan->batch;
    plan->time_limit = AT_NEVER;
    return AT_OK;
}

static void amount_fixed(const at_plan *plan, const at_share *share, at_order *order)
{
    assert(share->samples >= 1);
    (void)plan;
    order->samples_max = share->samples;
    order->time_limit = AT_NEVER;
}

/* ---- timed:T -----------------------------------------------------------------------------------
 *
 * Anytime Minibatch (Ferdinand et al., ICLR 2019): every worker computes for the same time T and
 * reports how many samples it finished. Size rule `auto` determines T from the first rounds, which
 * are therefore limited by samples.
 */

enum { TIMED_LIMIT, TIMED_CAP, TIMED_CUT, TIMED_BATCH };

static const char *const cuts[] = {"nearest", "after", NULL};

#define TIMED_CAP_ARG                                                                       \
    {                                                                                       \
        .name = "cap", .type = AT_ARG_WHOLE, .min = 1, .max = BATCH_MAX, .unit = "samples", \
        .brief = true                                                                       \
    }
#define TIMED_CUT_ARG                                                                           \
    {                                                                                           \
        .name = "cut", .type = AT_ARG_WORD, .words = cuts, .fallback = "nearest", .brief = true \
    }

static at_err settle_timed(at_plan *plan, at_fail *fail)
{
    const at_value *arg = plan->arg[AT_WORK];
    at_ns           limit = arg[TIMED_LIMIT].whole;
    char            inside[32], outside[32];
    if (limit != AT_NEVER && plan->time_limit != AT_NEVER && limit != plan->time_limit)
        return at_fail_set(fail, AT_ERR_USAGE, "give the duration once",
                           "%s:%s and --time-limit %s contradict each other", plan->work->rule.name,
                           at_text_show_duration(inside, sizeof inside, limit),
                           at_text_show_duration(outside, sizeof outside, plan->time_limit));
    if (limit != AT_NEVER) plan->time_limit = limit;
    plan->arg[AT_WORK][TIMED_LIMIT].whole = plan->time_limit;
    if (plan->batch == 0) plan->batch = batch_default(plan);
    uint64_t cap = plan->batch;
    if (plan->time_limit == AT_NEVER) cap *= CAP_FACTOR;
    if (arg[TIMED_CAP].given) cap = (uint64_t)arg[TIMED_CAP].whole;
    if (cap > UINT32_MAX) cap = UINT32_MAX;
    if (cap < plan->batch)
        return at_fail_set(fail, AT_ERR_USAGE, "raise the cap, or lower --batch",
                           "--work %s: CAP %llu is below --batch %u", plan->work->rule.name,
                           (unsigned long long)cap, plan->batch);
    plan->cap = (uint32_t)cap;
    plan->cut_after = arg[TIMED_CUT].whole == 1;
    return AT_OK;
}

static void amount_timed(const at_plan *plan, const at_share *share, at_order *order)
{
    order->time_limit = share->time_limit;
    order->samples_max = share->time_limit == AT_NEVER ? plan->batch : plan->cap;
    assert(order->samples_max >= 1);
}

/* ---- local:STEPS and local:TIME ----------------------------------------------------------------
 *
 * Local SGD: a worker makes steps of its own from the version that its round began on, each with
 * the mean gradient of BATCH samples, and reports by how much its parameters have changed
 * (outer.c).
 */

enum { STEPS_COUNT, STEPS_BATCH };

/* A step of a worker takes a micro-batch, unless BATCH says otherwise. */
static int64_t local_batch_default(const at_plan *plan)
{
    uint32_t micro = plan->micro_batch > 0 ? plan->micro_batch : at_plan_micro_default(plan);
    return plan->batch > 0 && plan->batch < micro ? plan->batch : micro;
}

static int64_t steps_default(const at_plan *plan)
{
    enum { STEPS_DEFAULT = 16 };
    const at_value *batch = &plan->arg[AT_WORK][STEPS_BATCH];
    int64_t         each = batch->given ? batch->whole : local_batch_default(plan);
    if (plan->batch > 0) return (plan->batch + each - 1) / each;
    return plan->strategy && plan->strategy->steps > 0 ? plan->strategy->steps : STEPS_DEFAULT;
}

/* --batch are the samples of a round, so it may stand for the number of steps. */
static at_err settle_local_steps(at_plan *plan, at_fail *fail)
{
    const at_value *arg = plan->arg[AT_WORK];
    int64_t         steps = arg[STEPS_COUNT].whole, each = arg[STEPS_BATCH].whole;
    if (steps > BATCH_MAX / each)
        return at_fail_set(fail, AT_ERR_USAGE, "use fewer steps, or a smaller BATCH",
                           "--work local:%lld,%lld: a round of more than %d samples",
                           (long long)steps, (long long)each, BATCH_MAX);
    if (plan->batch > 0 && (plan->batch + each - 1) / each != steps)
        return at_fail_set(
            fail, AT_ERR_USAGE,
            "leave --batch out: a round is STEPS local steps of --local-batch samples",
            "local:%lld with %lld samples per local step and --batch %u contradict each other",
            (long long)steps, (long long)each, plan->batch);
    if (plan->batch == 0) plan->batch = (uint32_t)(steps * each);
    plan->local_batch = (uint32_t)each;
    plan->cap = plan->batch;
    plan->time_limit = AT_NEVER;
    return AT_OK;
}

static at_err settle_local_time(at_plan *plan, at_fail *fail)
{
    AT_TRY(settle_timed(plan, fail));
    plan->local_batch = (uint32_t)plan->arg[AT_WORK][TIMED_BATCH].whole;
    return AT_OK;
}

static at_err refuse_local(const at_plan *plan, const char *hint, enum at_family family,
                           const char *reason, at_fail *fail)
{
    char rule[AT_RULE_TEXT_SIZE];
    at_plan_rule_text(plan, family, rule, sizeof rule);
    return at_fail_set(fail, AT_ERR_USAGE, hint, "--work local does not work with --%s %s: %s",
                       at_family_name[family], rule, reason);
}

static at_err check_local(const at_plan *plan, at_fail *fail)
{
    if (plan->newer->choice == AT_NEWER_REFRESH)
        return refuse_local(plan, "use --newer finish or abandon", AT_NEWER,
                            "newer parameters would undo the local steps of the round", fail);
    if (plan->mix->updates_in_place || plan->mix->owned_by_workers)
        return refuse_local(plan, "leave --mix out, or use --work fixed", AT_MIX,
                            "local steps start from the parameters of the hub", fail);
    if (plan->size->wants_norms)
        return refuse_local(plan, "leave --size out, or use --work fixed", AT_SIZE,
                            "it needs gradients, and local steps report changes of parameters",
                            fail);
    if (plan->lr_inverse || (plan->lr_linear && plan->size->changes_samples))
        return at_fail_set(fail, AT_ERR_USAGE, "leave --lr-scale out",
                           "--lr-scale %s does not work with --work local: the batch of a "
                           "local step does not change",
                           plan->lr_inverse ? "inverse" : "linear");
    if (plan->local_batch % plan->micro_batch == 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "change --micro-batch or --local-batch",
                       "a local step of %u samples cannot be computed in micro-batches of %u: it "
                       "must be a multiple of them",
                       plan->local_batch, plan->micro_batch);
}

#define LOCAL_BATCH_ARG                                                                 \
    {                                                                                   \
        .name = "batch", .type = AT_ARG_WHOLE, .min = 1, .max = 1e6, .unit = "samples", \
        .derive = local_batch_default                                                   \
    }

/* ---- the table ------------------------------------------------------------------------------ */

const at_work_rule at_work_rules[] = {
    {.rule = {.name = "fixed",
              .summary = "a fixed number of samples per round",
              .arg = {{.name = "samples",
                       .type = AT_ARG_WHOLE,
                       .min = 1,
                       .max = BATCH_MAX,
                       .unit = "samples",
                       .derive = fixed_default}},
              .settle = settle_fixed},
     .amount = amount_fixed},
    {.rule = {.name = "timed",
              .summary = "as many samples as fit into a time limit",
              .arg = {{.name = "time", .type = AT_ARG_TIME}, TIMED_CAP_ARG, TIMED_CUT_ARG},
              .settle = settle_timed},
     .amount = amount_timed,
     .timed = true},
    {.rule = {.name = "local",
              .summary = "a number of local steps; the change of the parameters is reported",
              .arg = {[STEPS_COUNT] = {.name = "steps",
                                       .type = AT_ARG_WHOLE,
                                       .min = 1,
                                       .max = BATCH_MAX,
                                       .unit = "steps",
                                       .derive = steps_default},
                      [STEPS_BATCH] = LOCAL_BATCH_ARG},
              .settle = settle_local_steps,
              .check = check_local},
     .amount = amount_fixed,
     .reports_change = true},
    {.rule = {.name = "local",
              .summary = "local steps for a time; the change of the parameters is reported",
              .arg = {[TIMED_LIMIT] =
                          {.name = "time", .type = AT_ARG_TIME, .unit = "s", .open = "auto"},
                      [TIMED_CAP] = TIMED_CAP_ARG,
                      [TIMED_CUT] = TIMED_CUT_ARG,
                      [TIMED_BATCH] = LOCAL_BATCH_ARG},
              .settle = settle_local_time,
              .check = check_local},
     .amount = amount_timed,
     .timed = true,
     .reports_change = true},
    {.rule = {0}},
};
