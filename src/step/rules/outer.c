/* The outer rules: how is a step made of changed parameters?
 *
 * A work rule that trains locally reports by how much its parameters changed, instead of a
 * gradient. The step then takes the mean change c over the workers:
 *
 *     average     x <- x + c
 *     nesterov    v <- MOMENTUM v + c,   x <- x + LR (c + MOMENTUM v)          (DiLoCo)
 */
#include <assert.h>

#include "step/plan.h"

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

static at_err check_nesterov(const at_plan *plan, at_fail *fail)
{
    if (plan->work->reports_change) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "leave --outer out, or use --optimizer momentum",
                       "--outer nesterov combines changes of parameters, but --work %s reports "
                       "gradients",
                       plan->work->rule.name);
}

const at_outer_rule at_outer_rules[] = {
    {.rule = {.name = "average", .summary = "the mean of the workers' parameters"},
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
                  {.name = "momentum", .type = AT_ARG_REAL, .min = 0, .max = 1, .fallback = "0.9"}},
          .check = check_nesterov},
     .apply = apply_nesterov,
     .keeps_momentum = true},
    {.rule = {0}},
};
