#include "world/process/evaluator.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "world/process/child.h"

/* Shared with the evaluator process. A request or answer is published by its counter. */
typedef struct shared {
    at_bell          bell; /* rung for the evaluator */
    _Atomic uint64_t asked, answered;
    _Atomic uint64_t beats; /* grows while it makes progress */
    at_score         score;
} shared;

struct at_evaluator {
    const at_task *task;
    at_bell       *hub_bell;
    shared        *shared;
    size_t         size;   /* of the mapping */
    float         *params; /* the copy to score (task->params), in the mapping */
    uint64_t       taken;  /* answers fetched */
    uint64_t       step;
    at_ns          at;
    pid_t          pid;
    uint32_t       deaths; /* during the same request */
    bool           hurry;  /* the hub waits: start the next process at normal priority */
};

enum { CHUNK = 1024 }; /* test samples between two beats */
static const at_ns STUCK_AFTER = AT_SEC(30);
static const at_ns PATIENCE = AT_SEC(2); /* with an idle-priority process on a busy machine */

/* AUC is defined for two classes; top-5 accuracy is meaningful only with many. */
void at_score_metrics(double value[AT_METRIC_COUNT], const at_score *score)
{
    enum { CLASSES_MANY = 20 };
    double count = (double)score->count;
    assert(count > 0);
    value[AT_METRIC_LOSS] = score->loss_sum / count;
    value[AT_METRIC_ACCURACY] = (double)score->correct / count;
    value[AT_METRIC_AUC] = score->classes == 2 ? score->auc : NAN;
    value[AT_METRIC_TOP5] =
        score->classes > CLASSES_MANY ? (double)score->correct_top5 / count : NAN;
}

static void score_params(at_evaluator *e)
{
    at_score sum = {0};
    for (uint64_t first = 0; first < e->task->test_samples; first += CHUNK) {
        uint64_t left = e->task->test_samples - first;
        e->task->score(e->task->self, &sum, e->params, first, left < CHUNK ? left : CHUNK);
        atomic_fetch_add(&e->shared->beats, 1);
    }
    e->shared->score = sum;
}

static int child_main(void *self)
{
    at_evaluator *e = self;
    shared       *s = e->shared;
    at_fail       fail = {0};
    at_child_background("anytime-eval");
    if (!e->hurry) at_child_idle();
    if (e->task->open(e->task->self, 0, &fail)) return fail.err;
    for (;;) {
        uint32_t heard = at_bell_heard(&s->bell);
        uint64_t asked = atomic_load(&s->asked);
        if (asked == atomic_load(&s->answered)) {
            at_bell_wait(&s->bell, heard, 1, AT_BELL_ALL, AT_NEVER, 0);
            continue;
        }
        score_params(e);
        atomic_store(&s->answered, asked);
        at_bell_ring_loud(e->hub_bell, AT_BELL_ALL);
    }
}

at_err at_evaluator_open(const at_task *task, at_bell *bell, at_evaluator **evaluator,
                         at_fail *fail)
{
    *evaluator = NULL;
    if (task->test_samples == 0) return AT_OK;
    at_evaluator *e = calloc(1, sizeof *e);
    if (!e) return at_fail_memory(fail);
    size_t head = (sizeof(shared) + 63) / 64 * 64;
    e->task = task;
    e->hub_bell = bell;
    e->size = head + task->params * sizeof(float);
    e->shared = at_child_share(e->size, fail);
    if (!e->shared) {
        free(e);
        return fail->err;
    }
    e->params = (float *)(void *)((char *)e->shared + head);
    *evaluator = e;
    return at_child_fork(child_main, e, &e->pid, fail);
}

void at_evaluator_close(at_evaluator *e)
{
    if (!e) return;
    if (e->pid > 0) at_child_end(e->pid);
    munmap(e->shared, e->size);
    free(e);
}

pid_t at_evaluator_pid(const at_evaluator *evaluator)
{
    return evaluator ? evaluator->pid : 0;
}

bool at_evaluator_busy(const at_evaluator *e)
{
    return e && atomic_load(&e->shared->asked) != e->taken;
}

void at_evaluator_begin(at_evaluator *e, const float *params, uint64_t step, at_ns now)
{
    assert(!at_evaluator_busy(e));
    memcpy(e->params, params, e->task->params * sizeof *params);
    e->step = step;
    e->at = now;
    e->deaths = 0;
    at_fail fail;
    if (e->pid <= 0) at_child_fork(child_main, e, &e->pid, &fail); /* it had died; try again */
    atomic_fetch_add(&e->shared->asked, 1);
    at_bell_ring_loud(&e->shared->bell, AT_BELL_ALL);
}

bool at_evaluator_take(at_evaluator *e, at_evaluation *evaluation)
{
    if (!e || atomic_load(&e->shared->answered) == e->taken) return false;
    e->taken = atomic_load(&e->shared->answered);
    *evaluation = (at_evaluation){.step = e->step, .at = e->at, .score = e->shared->score};
    return true;
}

bool at_evaluator_reap(at_evaluator *e)
{
    int status;
    if (!e || e->pid <= 0 || waitpid(e->pid, &status, WNOHANG) != e->pid) return false;
    e->pid = 0;
    e->deaths++;
    at_fail fail;
    /* The request is still pending in shared memory: the new process picks it up. */
    if (e->deaths < 3) at_child_fork(child_main, e, &e->pid, &fail);
    return true;
}

/* At idle priority it may never finish on a busy machine: replace it by one at normal priority. */
static void replace(at_evaluator *e)
{
    at_fail fail;
    e->hurry = true;
    if (e->pid > 0) at_child_end(e->pid);
    e->pid = 0;
    at_child_fork(child_main, e, &e->pid, &fail);
}

bool at_evaluator_wait(at_evaluator *e, at_evaluation *evaluation)
{
    uint64_t beats = 0;
    at_ns    beat_at = at_clock_now(), patient_until = beat_at + PATIENCE;
    if (e->pid > 0) e->hurry = at_child_hurry(e->pid) || e->hurry;
    while (!at_evaluator_take(e, evaluation)) {
        uint32_t heard = at_bell_heard(e->hub_bell);
        at_evaluator_reap(e);
        if (!e->hurry && at_clock_now() > patient_until) replace(e);
        if (e->pid <= 0) return false;
        uint64_t beats_now = atomic_load(&e->shared->beats);
        at_ns    now = at_clock_now();
        if (beats_now != beats) beat_at = now;
        beats = beats_now;
        if (now - beat_at >= STUCK_AFTER) return false;
        if (atomic_load(&e->shared->answered) != e->taken) continue;
        at_bell_wait(e->hub_bell, heard, 1, AT_BELL_ALL, now + AT_SEC(1), 0);
    }
    return true;
}
