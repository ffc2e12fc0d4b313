#include "world/process/evaluator.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "world/process/child.h"
#include "world/process/supervisor.h"

/* Shared with the evaluator process. A request or answer is published by its counter. */
typedef struct shared {
    at_bell          bell; /* rung for the evaluator */
    _Atomic uint64_t asked, answered;
    _Atomic uint64_t beats;    /* grows while it makes progress */
    _Atomic at_ns    start_at; /* not to be begun before */
    at_ns            cost_ns;  /* processor time of the last answer */
    at_score         score;
} shared;

struct at_evaluator {
    const at_task *task;
    at_bell       *hub_bell;
    at_supervisor *supervisor; /* of one process */
    shared        *shared;
    size_t         size;   /* of the mapping */
    float         *params; /* the copy to score (task->params), in the mapping */
    uint64_t       taken;  /* answers fetched */
    uint64_t       step;
    at_ns          at;
    at_ns          cost_ns;    /* processor time of the last evaluation; 0: unknown */
    at_ns          begun_at;   /* the pending evaluation, or the last one */
    at_ns          hasten_at;  /* when it gets normal priority; AT_NEVER: it has it */
    at_ns          restart_at; /* when to start a process; AT_NEVER: one runs or is given up */
    bool           raised;     /* the process has normal priority for this one */
    bool           normal;     /* the process stays at normal priority: it cannot be raised */
    char           said[800];
};

enum {
    CHUNK = 1024, /* test samples between two beats */
    DEATHS_MAX = 3,
    COST_FACTOR =
        50 /* an evaluation may cost training a fiftieth of the time that it had to wait */
};
static const at_ns STUCK_AFTER = AT_SEC(30);
static const at_ns PATIENCE = AT_SEC(1); /* with the first one, whose cost is unknown */

/* The part of the labels' variance that the predictions explain: 1 - 2 loss / variance, because the
 * loss is half the squared error. If all labels are equal, 1 for exact predictions, else 0. */
static double r2_of(const at_score *score)
{
    double mean = score->label_sum / (double)score->count;
    double variance = score->label_squares / (double)score->count - mean * mean;
    if (variance <= 0) return score->loss_sum == 0 ? 1 : 0;
    return 1 - 2 * score->loss_sum / (double)score->count / variance;
}

/* AUC is defined for two classes; top-5 accuracy is meaningful only with many. */
void at_score_metrics(double value[AT_METRIC_COUNT], const at_score *score)
{
    enum { CLASSES_MANY = 20 };
    double count = (double)score->count;
    assert(count > 0);
    value[AT_METRIC_LOSS] = score->loss_sum / count;
    value[AT_METRIC_ACCURACY] = score->regression ? NAN : (double)score->correct / count;
    value[AT_METRIC_AUC] = score->classes == 2 ? score->auc : NAN;
    value[AT_METRIC_TOP5] =
        score->classes > CLASSES_MANY ? (double)score->correct_top5 / count : NAN;
    value[AT_METRIC_WORST_LOSS] = score->apart ? score->worst_loss : NAN;
    value[AT_METRIC_WORST_ACCURACY] = score->apart ? score->worst_accuracy : NAN;
    value[AT_METRIC_WORKERS_LOSS] = score->apart ? score->workers_loss : NAN;
    value[AT_METRIC_DISAGREEMENT] = score->apart ? score->disagreement : NAN;
    value[AT_METRIC_TRAIN_LOSS] = score->trained ? score->train_loss : NAN;
    value[AT_METRIC_TRAIN_LOSS_MIN] = score->trained ? score->train_loss_min : NAN;
    value[AT_METRIC_TRAIN_LOSS_MAX] = score->trained ? score->train_loss_max : NAN;
    value[AT_METRIC_TRAIN_LOSS_MODEL] = score->trained ? score->train_loss_model : NAN;
    value[AT_METRIC_R2] = score->regression ? r2_of(score) : NAN;
}

static void score_params(at_evaluator *e)
{
    at_score sum = {0};
    assert(e->task->test_samples > 0);
    for (uint64_t first = 0; first < e->task->test_samples; first += CHUNK) {
        uint64_t left = e->task->test_samples - first;
        e->task->score(e->task->self, &sum, e->params, first, left < CHUNK ? left : CHUNK);
        atomic_fetch_add(&e->shared->beats, 1);
    }
    e->shared->score = sum;
}

static at_ns cpu_ns(void)
{
    struct rusage usage = {0};
    int           failed = getrusage(RUSAGE_SELF, &usage);
    assert(!failed);
    at_ns us = usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * (at_ns)1000000000 + us * 1000;
}

/* Waits at the bell until `until`; true: look again. */
static bool waits(shared *s, uint32_t heard, at_ns until)
{
    assert(s);
    if (until <= at_clock_now()) return false;
    at_bell_wait(&s->bell, heard, 1, AT_BELL_ALL, until, 0);
    return true;
}

static int child_main(void *self, at_fail *fail)
{
    at_evaluator *e = self;
    shared       *s = e->shared;
    assert(s && e->hub_bell);
    at_child_background("anytime-eval");
    if (!e->normal) at_child_idle();
    if (e->task->open(e->task->self, 0, fail)) return (int)fail->err;
    for (;;) {
        uint32_t heard = at_bell_heard(&s->bell);
        uint64_t asked = atomic_load(&s->asked);
        bool     wanted = asked != atomic_load(&s->answered);
        if (waits(s, heard, wanted ? atomic_load(&s->start_at) : AT_NEVER)) continue;
        at_ns before = cpu_ns();
        score_params(e);
        s->cost_ns = cpu_ns() - before;
        atomic_store(&s->answered, asked);
        at_bell_ring_loud(e->hub_bell, AT_BELL_ALL);
    }
}

/* ---- hub side -------------------------------------------------------------------------------- */

static at_err start(at_evaluator *e, at_fail *fail)
{
    assert(at_evaluator_pid(e) == 0);
    e->restart_at = AT_NEVER;
    return at_supervisor_start(e->supervisor, 0, child_main, e, fail);
}

static at_err open_shared(at_evaluator *e, at_fail *fail)
{
    size_t head = (sizeof(shared) + 63) / 64 * 64;
    assert(e->task->params > 0);
    AT_TRY(at_supervisor_open(1, &e->supervisor, fail));
    e->size = head + e->task->params * sizeof(float);
    e->shared = at_child_share(e->size, fail);
    if (!e->shared) return fail->err;
    e->params = (float *)(void *)((char *)e->shared + head);
    return start(e, fail);
}

at_err at_evaluator_open(const at_task *task, at_bell *bell, at_evaluator **evaluator,
                         at_fail *fail)
{
    assert(bell);
    *evaluator = NULL;
    if (task->test_samples == 0) return AT_OK;
    at_evaluator *e = calloc(1, sizeof *e);
    if (!e) return at_fail_memory(fail);
    e->task = task;
    e->hub_bell = bell;
    e->hasten_at = e->restart_at = AT_NEVER;
    at_err err = open_shared(e, fail);
    if (err)
        at_evaluator_close(e);
    else
        *evaluator = e;
    return err;
}

void at_evaluator_close(at_evaluator *e)
{
    if (!e) return;
    at_supervisor_close(e->supervisor);
    if (e->shared) munmap(e->shared, e->size);
    free(e);
}

pid_t at_evaluator_pid(const at_evaluator *e)
{
    return e ? at_supervisor_pid(e->supervisor, 0) : 0;
}

bool at_evaluator_busy(const at_evaluator *e)
{
    return e && atomic_load(&e->shared->asked) != e->taken;
}

/* At normal priority it must pause after the last one, so that training keeps most of the time. At
 * idle priority it may begin at once and is raised later. */
static void plan_times(at_evaluator *e)
{
    at_ns now = at_clock_now();
    at_ns pause = e->cost_ns > 0 ? COST_FACTOR * e->cost_ns : PATIENCE;
    at_ns paced = e->begun_at + pause;
    assert(pause > 0);
    e->begun_at = e->normal && paced > now ? paced : now;
    e->hasten_at = e->normal ? AT_NEVER : now + pause;
    atomic_store(&e->shared->start_at, e->begun_at);
}

void at_evaluator_begin(at_evaluator *e, const float *params, uint64_t step, at_ns now)
{
    assert(!at_evaluator_busy(e));
    memcpy(e->params, params, e->task->params * sizeof *params);
    e->step = step;
    e->at = now;
    at_supervisor_well(e->supervisor, 0); /* deaths are counted per request */
    at_fail fail;
    if (at_evaluator_pid(e) == 0 && start(e, &fail)) /* it had died; try again */
        e->restart_at = at_supervisor_ready_at(e->supervisor, 0);
    plan_times(e);
    atomic_fetch_add(&e->shared->asked, 1);
    at_bell_ring_loud(&e->shared->bell, AT_BELL_ALL);
}

/* The process does not do it itself: on a busy machine its answer would then come at idle priority,
 * seconds later. */
static void lower(at_evaluator *e)
{
    pid_t pid = at_evaluator_pid(e);
    if (e->raised && pid > 0) at_child_lower(pid);
    e->raised = false;
}

bool at_evaluator_take(at_evaluator *e, at_evaluation *evaluation)
{
    assert(evaluation);
    if (!e || atomic_load(&e->shared->answered) == e->taken) return false;
    e->taken = atomic_load(&e->shared->answered);
    e->cost_ns = e->shared->cost_ns;
    e->hasten_at = AT_NEVER;
    lower(e);
    at_supervisor_well(e->supervisor, 0);
    *evaluation = (at_evaluation){.step = e->step, .at = e->at, .score = e->shared->score};
    return true;
}

/* ---- deaths ---------------------------------------------------------------------------------- */

/* Starts a process now or, after several failures, later. The request is still pending in shared
 * memory: the new process picks it up. */
static void restart(at_evaluator *e, const at_fail *why)
{
    at_fail fail = *why;
    bool    later = at_supervisor_ready_at(e->supervisor, 0) > at_clock_now();
    assert(at_evaluator_pid(e) == 0);
    if (!later && !start(e, &fail)) {
        snprintf(e->said, sizeof e->said, "the evaluator died and was started again");
        return;
    }
    uint32_t failures = at_supervisor_failures(e->supervisor, 0);
    bool     tries = failures < DEATHS_MAX;
    e->restart_at = tries ? at_supervisor_ready_at(e->supervisor, 0) : AT_NEVER;
    snprintf(e->said, sizeof e->said, "the evaluator %s%s%s",
             tries ? "died and will be started again"
                   : "died three times in a row and is not started again before the end of the run",
             fail.err ? ": " : "", fail.err ? fail.text : "");
}

const char *at_evaluator_reap(at_evaluator *e)
{
    at_death death;
    if (!e || !at_supervisor_reap(e->supervisor, &death)) return NULL;
    assert(at_evaluator_pid(e) == 0);
    restart(e, &death.fail);
    return e->said;
}

/* ---- priority -------------------------------------------------------------------------------- */

/* Where a process may not be raised to normal priority, another one replaces it, which stays there
 * and pauses between evaluations instead. */
static void hasten(at_evaluator *e)
{
    pid_t pid = at_evaluator_pid(e);
    assert(at_evaluator_busy(e));
    e->hasten_at = AT_NEVER;
    if (e->normal) return;
    e->raised = pid > 0 && at_child_hurry(pid);
    if (e->raised) return;
    e->normal = true;
    if (pid == 0) return; /* the next one will be */
    at_fail fail = {0};
    at_supervisor_end(e->supervisor, 0);
    if (start(e, &fail)) e->restart_at = at_supervisor_ready_at(e->supervisor, 0);
}

at_ns at_evaluator_due(const at_evaluator *e)
{
    if (!e) return AT_NEVER;
    assert(e->hasten_at == AT_NEVER || at_evaluator_busy(e));
    return e->hasten_at < e->restart_at ? e->hasten_at : e->restart_at;
}

const char *at_evaluator_poll(at_evaluator *e, at_ns now)
{
    if (now < at_evaluator_due(e)) return NULL;
    if (e->hasten_at <= now) hasten(e);
    if (e->restart_at > now) return NULL;
    assert(at_evaluator_pid(e) == 0);
    restart(e, &(at_fail){0});
    return e->said;
}

/* ---- end ------------------------------------------------------------------------------------- */

bool at_evaluator_wait(at_evaluator *e, at_evaluation *evaluation)
{
    uint64_t beats = 0;
    at_ns    silent = 0, now = at_clock_now();
    assert(at_evaluator_busy(e));
    hasten(e);
    atomic_store(&e->shared->start_at, 0);
    at_bell_ring_loud(&e->shared->bell, AT_BELL_ALL);
    while (!at_evaluator_take(e, evaluation)) {
        uint32_t heard = at_bell_heard(e->hub_bell);
        at_ns    before = now;
        now = at_clock_now();
        at_evaluator_reap(e);
        at_evaluator_poll(e, now);
        if (at_evaluator_pid(e) == 0 && e->restart_at == AT_NEVER) return false;
        uint64_t beats_now = atomic_load(&e->shared->beats);
        silent = beats_now != beats ? 0 : silent + at_waited(before, now);
        beats = beats_now;
        if (silent >= STUCK_AFTER) return false;
        if (atomic_load(&e->shared->answered) != e->taken) continue;
        at_bell_wait(e->hub_bell, heard, 1, AT_BELL_ALL, now + AT_SEC(1), 0);
    }
    return true;
}

void at_evaluator_drop(at_evaluator *e)
{
    assert(at_evaluator_busy(e));
    at_supervisor_end(e->supervisor, 0);
    e->hasten_at = e->restart_at = AT_NEVER;
    e->taken = atomic_load(&e->shared->asked);
    atomic_store(&e->shared->answered, e->taken);
}
