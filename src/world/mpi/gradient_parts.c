#include "world/mpi/gradient_parts.h"

#include <assert.h>

at_gradient_parts at_gradient_parts_cut(size_t trained, size_t floats)
{
    const size_t      line = 16; /* floats: parts begin with a cache line */
    at_gradient_parts parts = {.front = floats, .trained = trained, .floats = floats};
    assert(trained <= floats);
    if (trained < 2 * (size_t)AT_PART_FLOATS_MIN) return parts;
    size_t most = trained / AT_PARTS_EARLY_MAX + 1;
    parts.size = most > AT_PART_FLOATS_MIN ? (most + line - 1) / line * line : AT_PART_FLOATS_MIN;
    parts.early = (uint32_t)((trained - 1) / parts.size); /* a report with a gradient has some */
    parts.front = trained - parts.early * parts.size;
    parts.count = parts.early + (floats > trained);
    assert(parts.count <= AT_PARTS_MAX);
    return parts;
}

at_gradient_parts at_gradient_parts_of(const at_world_context *context)
{
    const at_task *task = context->task;
    bool           plain = context->compress.kind == AT_COMPRESS_NONE && !task->sparse;
    bool           gradients = task->watch && !task->timing_only && !context->learning->inner;
    bool           early = at_plan_sends_early(context->plan);
    if (plain && gradients && early && !context->plan->mix->owned_by_workers)
        return at_gradient_parts_cut(task->trained, task->params);
    return (at_gradient_parts){0};
}

at_slice at_gradient_part(const at_gradient_parts *parts, uint32_t i)
{
    assert(i < parts->count);
    if (i == parts->early) return (at_slice){parts->trained, parts->floats - parts->trained};
    return (at_slice){parts->trained - (i + 1) * parts->size, parts->size};
}
