#include "world/resume.h"

#include <assert.h>
#include <stdlib.h>

#include "step/image.h"
#include "world/checkpoint.h"

at_err at_resume_params(const at_scene *scene, float *params, at_fail *fail)
{
    const at_task *task = scene->task;
    if (scene->resume) {
        /* What a checkpoint does not hold (padding, say) is as at the start. */
        AT_TRY(task->init(task->self, params, scene->seed, fail));
        return at_checkpoint_params(scene->resume, task, params, fail);
    }
    return task->init(task->self, params, scene->seed, fail);
}

static at_err resume_moments(const at_scene *scene, at_updater *updater, at_fail *fail)
{
    size_t params = scene->task->params;
    if (scene->task->timing_only) return AT_OK;
    float *moment = calloc(params, sizeof *moment);
    if (!moment) return at_fail_set(fail, AT_ERR_FAILED, NULL, "not enough memory");
    at_err err = AT_OK;
    for (uint32_t i = 0; !err && i < scene->learning->optim->states; i++) {
        at_updater_moment(updater, i, moment);
        err = at_checkpoint_moment(scene->resume, scene->task, i, moment, fail);
        if (!err) at_updater_set_moment(updater, i, moment);
    }
    free(moment);
    return err;
}

at_err at_resume_host(const at_scene *scene, at_host *host, at_fail *fail)
{
    host->saver = scene->saver;
    if (!scene->resume) return AT_OK;
    if (!at_image_sound(scene->resume->image, scene->plan))
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "%s: no run could have come to this state",
                           scene->resume->path);
    at_hub_resume(host->hub, scene->resume->image);
    return resume_moments(scene, host->updater, fail);
}

uint64_t at_resume_drawn(const at_host *host, at_node worker)
{
    assert(worker >= 1);
    const at_member *member = &host->hub->member[worker - 1];
    return member->used + member->dropped;
}
