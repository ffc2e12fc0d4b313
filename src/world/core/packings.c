#include "world/core/packings.h"

#include <assert.h>

at_err at_packings_init(at_packings *packings, const at_world_context *context, at_fail *fail)
{
    const at_task *task = context->task;
    at_compress    how = context->compress;
    size_t         statistics = task->timing_only ? 0 : task->params - task->trained;
    assert(task->timing_only || task->trained <= task->params);
    assert(!task->sparse || how.kind == AT_COMPRESS_NONE);
    if (task->sparse) statistics = 0;
    size_t floats = task->sparse ? task->slot_floats : task->params;
    if (at_packing_of_params(how, task->params, statistics, &packings->params) &&
        at_packing_of_gradient(how, floats, statistics, &packings->gradient))
        return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "use a smaller model",
                       "%zu parameters are too many for a message", task->params);
}

void at_packings_say(const at_world_context *context, at_host *host, at_ns now)
{
    assert(host->hub);
    if (!context->resume || context->compress.kind == AT_COMPRESS_NONE) return;
    at_host_say(host, now,
                "note: what compression had held back of gradients starts at zero again");
}
