#include "world/core/packings.h"

#include <assert.h>

static at_err too_many(size_t params, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_USAGE, "use a smaller model",
                       "%zu parameters are too many for a message", params);
}

at_err at_packings_of(at_packings *packings, at_compress params, at_compress gradient,
                      size_t floats, size_t exact, at_fail *fail)
{
    assert(exact <= floats);
    bool fits = at_packing_of_params(params, floats, exact, &packings->params) &&
                at_packing_of_gradient(gradient, floats, exact, &packings->gradient);
    return fits ? AT_OK : too_many(floats, fail);
}

at_err at_packings_init(at_packings *packings, const at_world_context *context, at_fail *fail)
{
    const at_task *task = context->task;
    at_compress    how = context->compress;
    size_t         statistics = task->timing_only ? 0 : task->params - task->trained;
    assert(task->timing_only || task->trained <= task->params);
    assert(!task->sparse || how.kind == AT_COMPRESS_NONE);
    if (!task->sparse) return at_packings_of(packings, how, how, task->params, statistics, fail);
    if (at_packing_of_params(how, task->params, 0, &packings->params) &&
        at_packing_of_gradient(how, task->slot_floats, 0, &packings->gradient))
        return AT_OK;
    return too_many(task->params, fail);
}

void at_packings_say(const at_world_context *context, at_host *host, at_ns now)
{
    assert(host->hub);
    if (!context->resume || context->compress.kind == AT_COMPRESS_NONE) return;
    at_host_say(host, now,
                "note: what compression had held back of gradients starts at zero again");
}
