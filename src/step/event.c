#include "step/event.h"

#include <assert.h>

const char *const at_metric_name[AT_METRIC_COUNT] = {
#define X(id, text, set) [AT_METRIC_##id] = text,
    AT_METRIC_MAP(X)
#undef X
};

const char *const at_drop_name[AT_DROP_COUNT] = {
#define X(id, text) [AT_DROP_##id] = text,
    AT_DROP_MAP(X)
#undef X
};

const char *const at_end_name[AT_END_COUNT] = {
#define X(id, text) [AT_END_##id] = text,
    AT_END_MAP(X)
#undef X
};

size_t at_out_size(uint32_t workers)
{
    assert(workers >= 1);
    assert(workers <= AT_WORKERS_MAX);
    /* Per worker at most two orders, one drop and one eviction; a few for the hub itself. */
    return 4 * (size_t)workers + 16;
}

at_action *at_out_push(at_out *out, at_action_kind kind)
{
    assert(out->count < out->size);
    at_action *action = &out->actions[out->count++];
    *action = (at_action){.kind = kind};
    return action;
}
