/* A model in other programs: the hub knows its tensors, and how to sum and update them. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "world/seat/seat_spec.h"
#include "world/tasks/tasks.h"

typedef struct seat_task {
    const at_spec  *spec;
    const float    *params;
    at_param_groups groups;
} seat_task;

static at_err init(void *self, float *params, uint64_t seed, at_fail *fail)
{
    const seat_task *t = self;
    (void)seed;
    (void)fail;
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
    memcpy(tensors, spec->tensors, count * sizeof *tensors);
    return spec->count;
}

/* Absolute numbers: the run's own learning rate and weight decay are 1. */
static void list_groups(seat_task *t)
{
    assert(t->spec->groups <= AT_GROUPS_MAX);
    t->groups.count = t->spec->groups;
    for (uint32_t i = 0; i < t->spec->groups; i++) {
        const at_seat_group *from = &t->spec->group[i];
        t->groups.group[i] = (at_param_group){
            .lr = from->lr, .decay = from->weight_decay, .momentum = from->momentum};
    }
}

at_err at_task_seat(const at_spec *spec, const float *params, at_task *task, at_fail *fail)
{
    seat_task *t = calloc(1, sizeof *t);
    if (!t) return at_fail_memory(fail);
    t->spec = spec;
    t->params = params;
    list_groups(t);
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
                      .free = free};
    return AT_OK;
}
