#include "world/core/nonfinite.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "learn/optim/sum.h"
#include "learn/sparse/sparse.h"

/* Sparse gradients are found by feature, because the order of pairs means nothing. */
static uint64_t find_pair(const at_pairs *pairs)
{
    for (uint64_t i = 0; i < pairs->count; i++)
        if (!isfinite(pairs->pair[i].value)) return (uint64_t)pairs->pair[i].index + 1;
    return 0;
}

static uint64_t find_float(const float *gradient, size_t count)
{
    size_t at = at_first_nonfinite(gradient, count);
    return at < count ? at + 1 : 0;
}

void at_nonfinite_look(const at_task *task, const at_plan *plan, const float *gradient,
                       at_work *work)
{
    bool empty = work->abandoned || work->samples == 0 || task->timing_only;
    if (plan->nonfinite == AT_NONFINITE_IGNORE || empty) return;
    assert(gradient);
    work->nonfinite = task->sparse ? find_pair((const at_pairs *)(const void *)gradient)
                                   : find_float(gradient, task->params);
}

void at_nonfinite_look_part(const at_plan *plan, const float *gradient, size_t first, size_t count,
                            uint64_t *place)
{
    assert(gradient);
    if (plan->nonfinite == AT_NONFINITE_IGNORE) return;
    uint64_t found = find_float(gradient + first, count);
    if (found > 0 && (*place == 0 || first + found < *place)) *place = first + found;
}

void at_nonfinite_look_and_clear(const at_task *task, const at_plan *plan, float *gradient,
                                 at_work *work)
{
    at_nonfinite_look(task, plan, gradient, work);
    if (work->nonfinite == 0) return;
    if (task->sparse)
        ((at_pairs *)(void *)gradient)->count = 0;
    else
        memset(gradient, 0, task->params * sizeof *gradient);
}

bool at_nonfinite_any(const at_work *work)
{
    return !work->abandoned && (work->nonfinite > 0 || !isfinite(work->loss_sum));
}

/* The place of a float in the plain vector, found by converting a vector of zeros and a one. */
static size_t plain_place(const at_task *task, size_t flat)
{
    size_t place = task->plain;
    float *from = calloc(task->params + 16, sizeof *from);
    float *to = calloc(task->plain + 16, sizeof *to);
    if (from && to) {
        from[flat] = 1;
        task->to_plain(task->self, to, from);
        for (place = 0; place < task->plain && to[place] == 0;) place++;
    }
    free(from);
    free(to);
    return place;
}

/* Writes the name of the tensor that has this float of the flat vector; "" if it is not known. */
static void name_tensor(const at_task *task, size_t flat, char name[AT_TENSOR_NAME_SIZE])
{
    name[0] = '\0';
    if (!task->tensors || flat >= task->params) return;
    size_t     place = task->to_plain ? plain_place(task, flat) : flat;
    size_t     count = task->tensors(task->self, NULL, 0);
    at_tensor *tensor = calloc(count + 1, sizeof *tensor);
    if (tensor) task->tensors(task->self, tensor, count);
    for (size_t i = 0; tensor && place < task->plain && i < count; i++)
        if (tensor[i].at <= place) memcpy(name, tensor[i].name, AT_TENSOR_NAME_SIZE);
    free(tensor);
}

void at_nonfinite_describe(const at_task *task, at_node worker, uint64_t step, const at_work *work,
                           char text[AT_NONFINITE_TEXT])
{
    char where[AT_TENSOR_NAME_SIZE + 32] = "", name[AT_TENSOR_NAME_SIZE];
    assert(at_nonfinite_any(work));
    if (task && task->sparse && work->nonfinite > 0) {
        snprintf(where, sizeof where, " (feature %llu)", (unsigned long long)work->nonfinite - 1);
    } else if (task && work->nonfinite > 0) {
        name_tensor(task, (size_t)work->nonfinite - 1, name);
        if (name[0]) snprintf(where, sizeof where, " (in %s)", name);
    }
    if (work->nonfinite > 0)
        snprintf(text, AT_NONFINITE_TEXT, "step %llu: the gradient of worker %u is not finite%s",
                 (unsigned long long)step, worker, where);
    else
        snprintf(text, AT_NONFINITE_TEXT, "step %llu: the loss of worker %u is not finite (%g)",
                 (unsigned long long)step, worker, work->loss_sum);
}
