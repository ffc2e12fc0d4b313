/* The outer rules: how is a step made of changed parameters?
 *
 * A work rule that trains locally reports by how much its parameters changed, instead of a
 * gradient. The step then takes the mean change c over the workers:
 *
 *     average     x <- x + c
 *     nesterov    v <- MOMENTUM v + c,   x <- x + LR (c + MOMENTUM v)          (DiLoCo)
 *
 * In the mean a worker counts by its samples, by its steps, or as much as any other. Running
 * statistics are always averaged.
 */
#include <assert.h>
#include <math.h>

#include "step/plan.h"

static const char *const weights[] = {"samples", "steps", "equal", NULL};
enum { BY_SAMPLES, BY_STEPS, EQUAL };

double at_plan_change_weight(const at_plan *plan, uint32_t samples)
{
    int index = at_rule_arg_find(&plan->outer->rule, "weights", sizeof "weights" - 1);
    assert(index >= 0); /* every outer rule has them */
    assert(plan->local_batch >= 1);
    assert(samples >= 1);
    switch (plan->arg[AT_OUTER][index].whole) {
    case BY_STEPS: return ceil((double)samples / plan->local_batch);
    case EQUAL: return 1;
    default: return samples;
    }
}

static void apply_average(const at_plan *plan, const at_outer_step *step)
{
    (void)plan;
    for (size_t i = 0; i < step->count; i++) step->params[i] += step->change[i];
}

static void apply_nesterov(const at_plan *plan, const at_outer_step *step)
{
    const at_value *arg = plan->arg[AT_OUTER];
    const float     rate = (float)arg[0].real, momentum = (float)arg[1].real;
    assert(step->momentum);
    for (size_t i = 0; i < step->count; i++) {
        const float change = step->change[i];
        step->momentum[i] = momentum * step->momentum[i] + change;
        step->params[i] += rate * (change + momentum * step->momentum[i]);
    }
}

static at_err check_average(const at_plan *plan, at_fail *fail)
{
    if (plan->work->reports_change || !plan->arg[AT_OUTER][0].given) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "leave --outer out, or use --work local",
                       "--outer average:%s weights changes of parameters, but --work %s reports "
                       "gradients, which always count by their samples",
                       weights[plan->arg[AT_OUTER][0].whole], plan->work->rule.name);
}

static at_err check_nesterov(const at_plan *plan, at_fail *fail)
{
    if (plan->work->reports_change) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "leave --outer out, or use --optimizer momentum",
                       "--outer nesterov combines changes of parameters, but --work %s reports "
                       "gradients",
                       plan->work->rule.name);
}

#define WEIGHTS_ARG                                                                      \
    {                                                                                    \
        .name = "weights", .type = AT_ARG_WORD, .words = weights, .fallback = "samples", \
        .brief = true                                                                    \
    }

const at_outer_rule at_outer_rules[] = {
    {.rule = {.name = "average",
              .summary = "the mean of the workers' parameters",
              .arg = {WEIGHTS_ARG},
              .check = check_average},
     .apply = apply_average},
    {.rule =
         {.name = "nesterov",
          .summary = "Nesterov momentum over the mean change",
          .arg = {{.name = "lr",
                   .type = AT_ARG_REAL,
                   .min = 0,
                   .max = 1e6,
                   .above = true,
                   .fallback = "0.7"},
                  {.name = "momentum", .type = AT_ARG_REAL, .min = 0, .max = 1, .fallback = "0.9"},
                  WEIGHTS_ARG},
          .check = check_nesterov},
     .apply = apply_nesterov,
     .keeps_momentum = true},
    {.rule = {0}},
};
