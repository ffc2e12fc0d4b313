/* A model in other programs: the hub knows its tensors, and how to sum and update them. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "world/seat/seat_spec.h"
#include "world/tasks/tasks.h"

typedef struct seat_task {
    const at_spec    *spec;
    const float      *params;
    at_param_groups   groups;
    at_torch_learning torch;
} seat_task;

static at_err init(void *self, float *params, uint64_t seed, at_fail *fail)
{
    const seat_task *t = self;
    (void)seed;
    (void)fail;
    if (t->spec->at_workers)
        memset(params, 0, t->spec->floats * sizeof *params); /* mean gradients come here */
    else
        memcpy(params, t->params, t->spec->floats * sizeof *params);
    return AT_OK;
}

static at_err open_task(void *self, at_node worker, at_fail *fail)
{
    (void)self;
    (void)worker;
    (void)fail;
    return AT_OK;
}

static const char *engine(void *self)
{
    (void)self;
    return "seat";
}

static size_t tensors(void *self, at_tensor *tensors, size_t max)
{
    const at_spec *spec = ((const seat_task *)self)->spec;
    size_t         count = spec->count < max ? spec->count : max;
    if (count > 0) memcpy(tensors, spec->tensors, count * sizeof *tensors);
    return spec->count;
}

/* The numbers of the groups are those of the torch optimizer; ours have none of their own. */
static void list_groups(seat_task *t)
{
    assert(t->spec->groups <= AT_GROUPS_MAX);
    t->groups.count = t->spec->groups;
    for (uint32_t i = 0; i < t->spec->groups; i++)
        t->groups.group[i] = (at_param_group){.lr = 1, .decay = 1};
}

static at_err list_ranges(seat_task *t, at_fail *fail)
{
    const at_spec     *spec = t->spec;
    at_torch_learning *torch = &t->torch;
    torch->ranges = calloc(spec->count, sizeof *torch->ranges);
    if (!torch->ranges) return at_fail_memory(fail);
    torch->ranges_count = spec->count;
    for (uint32_t i = 0; i < spec->count; i++) {
        const at_param_range *range = &spec->ranges[i];
        torch->ranges[i] = (at_torch_range){
            .at = range->at, .count = range->count, .group = spec->at_workers ? -1 : range->group};
    }
    return AT_OK;
}

/* The optimizer of the program, at the hub. */
static at_err set_torch(seat_task *t, at_fail *fail)
{
    const at_spec     *spec = t->spec;
    at_torch_learning *torch = &t->torch;
    AT_TRY(list_ranges(t, fail));
    torch->optim = (at_optim){.name = spec->optimizer, .lr_default = 1};
    if (spec->at_workers) return AT_OK; /* the mean gradient is treated as a buffer */
    torch->kind = at_spec_kind(spec->optimizer);
    torch->groups = spec->groups;
    for (uint32_t i = 0; i < spec->groups; i++) torch->group[i] = at_spec_group(&spec->group[i]);
    torch->optim = (at_optim){.name = at_torch_name[torch->kind],
                              .summary = "the optimizer of a program",
                              .states = at_torch_states(torch->kind, torch->group, torch->groups),
                              .state_start = (float)spec->group[0].accumulator,
                              .lr_default = 1};
    if (torch->kind != AT_TORCH_ADAGRAD) torch->optim.state_start = 0;
    return AT_OK;
}

static void free_task(void *self)
{
    seat_task *t = self;
    free(t->torch.ranges);
    free(t);
}

at_err at_task_seat(const at_spec *spec, const float *params, at_task *task, at_fail *fail)
{
    seat_task *t = calloc(1, sizeof *t);
    if (!t) return at_fail_memory(fail);
    t->spec = spec;
    t->params = params;
    list_groups(t);
    at_err err = set_torch(t, fail);
    if (err) {
        free_task(t);
        return err;
    }
    *task = (at_task){.self = t,
                      .model = spec->model,
                      .data = "program",
                      .params = spec->floats,
                      .slot_floats = spec->floats,
                      .slot_likely = spec->floats,
                      .trained = spec->trained,
                      .parameters = spec->trained,
                      .plain = spec->floats,
                      .samples = spec->samples,
                      .ranges = spec->ranges,
                      .ranges_count = spec->count,
                      .groups = &t->groups,
                      .init = init,
                      .open = open_task,
                      .engine = engine,
                      .tensors = tensors,
                      .torch = &t->torch,
                      .free = free_task};
    return AT_OK;
}
