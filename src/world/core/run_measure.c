#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "world/core/run.h"
#include "world/process/child.h"

typedef struct measurement {
    const at_task *task;
    uint32_t       micro_batch;
    at_ns         *sample_time; /* shared */
} measurement;

enum { MEASURE_ROUNDS = 20 };

static int measure_main(void *self)
{
    const measurement *m = self;
    const at_task     *task = m->task;
    assert(m->micro_batch >= 1);
    at_fail fail;
    float  *params = calloc(task->params + 16, sizeof(float));
    size_t  slot = (task->slot_floats * sizeof(float) + 127) / 64 * 64;
    float  *gradient = aligned_alloc(64, slot);
    if (!params || !gradient || task->open(task->self, 1, &fail)) return AT_ERR_FAILED;
    if (task->init(task->self, params, 1, &fail)) return AT_ERR_FAILED;
    at_ns best = AT_NEVER;
    for (uint64_t i = 0; i < MEASURE_ROUNDS; i++) {
        at_draw draw = {.worker = 1, .position = i * m->micro_batch, .count = m->micro_batch};
        at_ns   begin = at_clock_now();
        task->gradient(task->self, gradient, true, (at_point){.params = params}, &draw);
        at_ns took = at_clock_now() - begin;
        if (took < best) best = took;
    }
    *m->sample_time = best / m->micro_batch > 0 ? best / m->micro_batch : 1;
    return 0;
}

at_err at_run_measure(const at_task *task, uint32_t micro_batch, at_ns *sample_time, at_fail *fail)
{
    assert(micro_batch >= 1);
    measurement m = {.task = task, .micro_batch = micro_batch};
    m.sample_time = at_child_share(sizeof *m.sample_time, fail);
    if (!m.sample_time) return fail->err;
    pid_t  pid;
    int    status = 0;
    at_err err = at_child_fork(measure_main, &m, &pid, fail);
    if (!err) {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
        *sample_time = *m.sample_time;
        if (status != 0 || *sample_time <= 0)
            err = at_fail_set(fail, AT_ERR_FAILED, "set it with --sample-time",
                              "cannot measure the time of one sample: the process that measures "
                              "it failed");
    }
    munmap(m.sample_time, sizeof *m.sample_time);
    return err;
}
