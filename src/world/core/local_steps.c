#include "world/core/local_steps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

struct at_local_steps {
    const at_plan *plan;
    const at_task *task;
    at_updater     updater;  /* the inner optimizer; updates `change` */
    float         *gradient; /* sum over the samples of the step under way */
    uint64_t       steps;    /* made so far, over all rounds */
    uint64_t       contents; /* of `change`: increases whenever they change, see at_point */
    const float   *params;   /* of the round */
    float         *change;
    uint64_t       used;
    uint32_t       done;    /* samples of this round */
    uint32_t       pending; /* of them, those that are in `gradient` */
};

/* ---- start and end --------------------------------------------------------------------------- */

at_err at_local_steps_new(const at_world_context *context, at_local_steps **local, at_fail *fail)
{
    const at_task     *task = context->task;
    const at_learning *inner = context->learning->inner;
    size_t             size;
    *local = NULL;
    if (!inner || task->timing_only) return AT_OK;
    assert(!task->sparse);
    at_local_steps *l = calloc(1, sizeof *l);
    if (!l) return at_fail_memory(fail);
    l->plan = context->plan;
    l->task = task;
    if (at_size_product((task->params + 15) / 16 * 16, sizeof(float), &size))
        l->gradient = aligned_alloc(64, size);
    at_err err = l->gradient
                     ? at_updater_init(&l->updater, inner, l->gradient, task->params, 1, fail)
                     : at_fail_memory_for(fail, "for local steps");
    if (err)
        at_local_steps_free(l);
    else
        *local = l;
    return err;
}

void at_local_steps_free(at_local_steps *local)
{
    if (!local) return;
    at_updater_deinit(&local->updater);
    free(local->gradient);
    free(local);
}

void at_local_steps_restart(at_local_steps *local)
{
    const at_optim *optim = local->updater.learning->optim;
    assert(optim->states <= sizeof local->updater.state / sizeof *local->updater.state);
    for (uint32_t k = 0; k < optim->states; k++)
        for (size_t i = 0; i < local->task->params; i++)
            local->updater.state[k][i] = optim->state_start;
    local->steps = 0;
}

/* ---- a round --------------------------------------------------------------------------------- */

void at_local_steps_begin(at_local_steps *local, const float *params, float *change, uint64_t used)
{
    assert(params);
    assert(change && change != params);
    local->params = params;
    local->change = change;
    local->used = used;
    local->done = local->pending = 0;
    local->contents++;
    local->updater.w = change;
    memcpy(change, params, local->task->params * sizeof *change);
}

static const float *own_gradient(void *self, at_node worker, uint32_t slot)
{
    (void)worker, (void)slot;
    return self;
}

/* Schedules count the samples of all workers: within a round each is taken to be as fast as we
 * are, and the next round starts from the true number. */
static void make_step(at_local_steps *local)
{
    assert(local->pending >= 1);
    assert(local->done >= local->pending);
    uint64_t     before = local->done - local->pending;
    at_piece     piece = {.worker = 1, .samples = local->pending, .weight = 1};
    at_gradients gradients = {local->gradient, own_gradient};
    at_action    apply = {.kind = AT_ACT_APPLY};
    apply.as.apply.step = ++local->steps;
    apply.as.apply.samples = local->pending;
    apply.as.apply.samples_used = local->used + before * local->plan->workers;
    apply.as.apply.pieces = &piece;
    apply.as.apply.count = 1;
    apply.as.apply.lr_factor = 1;
    at_updater_apply(&local->updater, &apply, &gradients);
    local->contents++;
    local->pending = 0;
}

double at_local_steps_micro(at_local_steps *local, const at_draw *draw)
{
    const at_task *task = local->task;
    at_point       point = {.params = local->change, .version = local->contents};
    assert(local->change);
    assert(draw->count <= local->plan->local_batch - local->pending);
    double loss = task->gradient(task->self, local->gradient, local->pending == 0, point, draw);
    local->pending += draw->count;
    local->done += draw->count;
    if (local->pending == local->plan->local_batch) make_step(local);
    return loss;
}

void at_local_steps_end(at_local_steps *local)
{
    assert(local->done >= 1);
    float *change = local->change;
    if (local->pending > 0) make_step(local);
    const float weight = (float)at_plan_change_weight(local->plan, local->done);
    for (size_t i = 0; i < local->task->params; i++)
        change[i] = weight * (change[i] - local->params[i]);
    local->change = NULL;
}
