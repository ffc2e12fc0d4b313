#include "world/core/resume.h"

#include <assert.h>
#include <stdlib.h>

#include "model_io/checkpoint.h"
#include "step/snapshot.h"

at_err at_resume_params(const at_world_context *context, float *params, at_fail *fail)
{
    const at_task *task = context->task;
    if (context->resume) {
        /* What a checkpoint does not hold (padding, say) is as at the start. */
        AT_TRY(task->init(task->self, params, context->seed, fail));
        return at_checkpoint_params(context->resume, task, params, fail);
    }
    return task->init(task->self, params, context->seed, fail);
}

static at_err resume_moments(const at_world_context *context, at_updater *updater, at_fail *fail)
{
    size_t params = context->task->params;
    if (context->task->timing_only) return AT_OK;
    float *moment = calloc(params, sizeof *moment);
    if (!moment) return at_fail_memory(fail);
    at_err err = AT_OK;
    for (uint32_t i = 0; !err && i < context->learning->optim->states; i++) {
        at_updater_moment(updater, i, moment);
        err = at_checkpoint_moment(context->resume, context->task, i, moment, fail);
        if (!err) at_updater_set_moment(updater, i, moment);
    }
    free(moment);
    return err;
}

at_err at_resume_host(const at_world_context *context, at_host *host, at_fail *fail)
{
    host->saver = context->saver;
    if (!context->resume) return AT_OK;
    if (!at_snapshot_valid(context->resume->snapshot, context->plan))
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "%s: no run could have come to this state",
                           context->resume->path);
    at_snapshot_restore(host->hub, context->resume->snapshot);
    return resume_moments(context, host->updater, fail);
}

uint64_t at_resume_drawn(const at_host *host, at_node worker)
{
    assert(worker >= 1);
    const at_member *member = &host->hub->member[worker - 1];
    return member->used + member->dropped;
}
