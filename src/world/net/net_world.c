/* The world of `anytime hub --model` and `anytime work`: our own workers on any machines. The hub
 * is that of the seats (world/seat), with the model, data and optimizer of `train`. */
#include <assert.h>

#include "world/core/job_parts.h"
#include "world/net/net_worker.h"
#include "world/seat/seat_world.h"

static bool records(const at_world_context *context)
{
    return !context->joins;
}

static at_err check(const at_world_context *context, at_fail *fail)
{
    const at_mix_rule *mix = context->plan->mix;
    if (!context->seats && !context->joins)
        return at_fail_set(fail, AT_ERR_USAGE, "use `anytime hub` and `anytime work`",
                           "--world net works only with `anytime hub`");
    if (at_plan_splits_update(context->plan) || mix->updates_in_place)
        return at_fail_set(fail, AT_ERR_USAGE, "leave it out",
                           "--mix %s does not work with `anytime hub`, where one hub has all "
                           "parameters",
                           mix->rule.name);
    if (context->task->sparse)
        return at_fail_set(fail, AT_ERR_USAGE, "use a dense model, or MPI",
                           "the sparse model %s does not work with `anytime hub`",
                           context->task->model);
    if (context->plan->workers_max <= AT_BELL_RINGS_MAX) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "use fewer", "%u workers are too many (at most %d)",
                       context->plan->workers_max, AT_BELL_RINGS_MAX);
}

static at_err run(const at_world_context *context, at_outcome *outcome, at_fail *fail)
{
    assert(context->seats || context->joins);
    if (context->joins) return at_net_work(context, fail);
    at_job_parts(context, context->seats->part);
    return at_seat_world_run(context, outcome, fail);
}

static uint32_t workers_here(const at_world_context *context)
{
    return context->joins ? 1 : 0;
}

const at_world at_world_net = {.name = "net",
                               .called = "`anytime hub`",
                               .admits_workers = true,
                               .steps_locally = true,
                               .sends_vectors = true,
                               .has_hub = true,
                               .records = records,
                               .check = check,
                               .workers_here = workers_here,
                               .run = run};
