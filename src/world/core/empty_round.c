#include "world/core/empty_round.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "learn/engines/vectorize.h"
#include "record/histogram.h"
#include "world/process/bell.h"
#include "world/process/child.h"

enum { TIMES_MIN = 5, WARM_UP = 2 };

/* ---- task ------------------------------------------------------------------------------------ */

/* Reads all of one vector and writes all of the other. */
AT_VECTORIZED static void pull(float *restrict gradient, const float *restrict params, size_t count)
{
    for (size_t i = 0; i < count; i++) gradient[i] = 0.5f * params[i];
}

static at_err init(void *self, float *params, uint64_t seed, at_fail *fail)
{
    const size_t *floats = self;
    (void)seed;
    (void)fail;
    for (size_t i = 0; i < *floats; i++) params[i] = 1;
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
    return "none";
}

/* One sample is the whole round; the loss is arbitrary. */
static double gradient(void *self, float *g, bool first, at_point point, const at_draw *draw)
{
    const size_t *floats = self;
    assert(first);
    assert(draw->count == 1);
    pull(g, point.params, *floats);
    return 1;
}

at_err at_empty_round_task(size_t floats, at_task *task, at_fail *fail)
{
    size_t *self = malloc(sizeof *self);
    assert(floats >= 1);
    if (!self) return at_fail_memory(fail);
    *self = floats;
    *task = (at_task){.self = self,
                      .model = "nothing",
                      .data = "none",
                      .params = floats,
                      .trained = floats,
                      .parameters = floats,
                      .plain = floats,
                      .samples = 1,
                      .threads = 1,
                      .slot_floats = floats,
                      .slot_likely = floats,
                      .init = init,
                      .open = open_task,
                      .engine = engine,
                      .gradient = gradient,
                      .free = free};
    return AT_OK;
}

/* ---- loops ----------------------------------------------------------------------------------- */

static float *reserve(size_t floats)
{
    assert(floats >= 1);
    return aligned_alloc(64, (floats * sizeof(float) + 63) / 64 * 64);
}

static const float *gradient_at(void *self, at_node worker, uint32_t slot)
{
    const at_round_loops *l = self;
    assert(worker == 1);
    assert(slot == 0);
    return l->gradient;
}

void at_round_loops_pull(at_round_loops *l)
{
    assert(l->gradient);
    const at_task *task = l->task;
    at_draw        draw = {.worker = 1, .position = l->step, .count = 1};
    at_point       point = {.params = l->params, .version = l->step};
    task->gradient(task->self, l->gradient, true, point, &draw);
}

void at_round_loops_apply(at_round_loops *l)
{
    assert(l->updater.w == l->params);
    at_piece  piece = {.worker = 1, .samples = 1, .weight = 1};
    at_action apply = {.kind = AT_ACT_APPLY};
    apply.as.apply.step = ++l->step;
    apply.as.apply.samples = 1;
    apply.as.apply.samples_used = l->step;
    apply.as.apply.pieces = &piece;
    apply.as.apply.count = 1;
    apply.as.apply.lr_factor = 1;
    at_updater_apply(&l->updater, &apply, &(at_gradients){l, gradient_at});
}

at_err at_round_loops_open(at_round_loops *l, const at_task *task, at_fail *fail)
{
    assert(task->params >= 1);
    assert(task->slot_floats == task->params);
    *l = (at_round_loops){.task = task, .params = reserve(task->params)};
    l->learning = (at_learning){.optim = at_optim_find("sgd"), .trained = task->params};
    l->gradient = reserve(task->params);
    if (!l->params || !l->gradient)
        return at_fail_set(fail, AT_ERR_FAILED, "use smaller --sizes",
                           "not enough memory for %zu parameters", task->params);
    AT_TRY(at_schedule_parse("const", 0.1, 1, 0, &l->learning.rate[0].schedule, fail));
    AT_TRY(task->init(task->self, l->params, 0, fail));
    return at_updater_init(&l->updater, &l->learning, l->params, task->params, 1, fail);
}

void at_round_loops_close(at_round_loops *l)
{
    at_updater_deinit(&l->updater);
    free(l->params);
    free(l->gradient);
    *l = (at_round_loops){0};
}

double at_empty_round_time(void (*once)(void *self), void *self, at_ns lasts)
{
    assert(lasts >= 0);
    at_histogram *times = calloc(1, sizeof *times);
    if (!times) return 0;
    for (int i = 0; i < WARM_UP; i++) once(self);
    at_ns now = at_clock_now(), end = now + lasts;
    while (now < end || times->count < TIMES_MIN) {
        at_ns before = now;
        once(self);
        now = at_clock_now();
        at_histogram_add(times, now - before);
    }
    double median = at_seconds(at_histogram_quantile(times, 0.5));
    free(times);
    return median;
}

static void round_of(void *self)
{
    at_round_loops_pull(self);
    at_round_loops_apply(self);
}

at_err at_empty_round_loops(const at_task *task, at_ns lasts, double *seconds, at_fail *fail)
{
    at_round_loops l;
    at_err         err = at_round_loops_open(&l, task, fail);
    if (!err) *seconds = at_empty_round_time(round_of, &l, lasts);
    at_round_loops_close(&l);
    return err;
}

/* ---- bells ----------------------------------------------------------------------------------- */

/* Shared with the other process. */
typedef struct ping_pong {
    at_bell there, back;
    at_ns   spin;
} ping_pong;

static void wait_for(at_bell *bell, uint32_t heard, at_ns spin)
{
    while (at_bell_heard(bell) == heard) at_bell_wait(bell, heard, 1, AT_BELL_ALL, AT_NEVER, spin);
}

/* Answers every ring; killed by its parent. */
static int answer(void *self)
{
    ping_pong *p = self;
    for (uint32_t heard = 0; heard < UINT32_MAX; heard++) {
        wait_for(&p->there, heard, p->spin);
        at_bell_ring(&p->back);
    }
    return 0;
}

static void there_and_back(void *self)
{
    ping_pong *p = self;
    uint32_t   heard = at_bell_heard(&p->back);
    at_bell_ring(&p->there);
    wait_for(&p->back, heard, p->spin);
}

at_err at_empty_round_bells(at_ns spin, at_ns lasts, double *seconds, at_fail *fail)
{
    assert(spin >= 0);
    pid_t      pid;
    ping_pong *p = at_child_share(sizeof *p, fail);
    if (!p) return fail->err;
    p->spin = spin;
    at_err err = at_child_fork(answer, p, &pid, fail);
    if (!err) {
        *seconds = at_empty_round_time(there_and_back, p, lasts);
        at_child_end(pid);
    }
    munmap(p, sizeof *p);
    return err;
}
