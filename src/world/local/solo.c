/* --workers 0: hub and worker are two machines in one loop of one process. No processes, no shared
 * memory, no copies: an order is an assignment, a report is a function call, and the computation
 * reads the parameters where the update wrote them. It is the yardstick for what a hub of its own
 * costs. (The evaluator still runs beside it.) */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "step/worker.h"
#include "world/core/compute.h"
#include "world/core/host.h"
#include "world/core/world.h"
#include "world/process/child.h"
#include "world/process/signals.h"

typedef struct solo {
    const at_world_context *context;
    at_host                 host;
    at_updater              updater;
    at_evaluator           *evaluator;
    at_worker               machine;
    at_computer             computer;
    at_bell                *bell; /* shared with the evaluator */
    float                  *params, *gradient;
    _Atomic uint64_t        drawn;
    at_order                order;
    bool                    ordered, stopping, left;
} solo;

static void send_order(void *self, at_node worker, const at_order *order)
{
    solo *s = self;
    assert(worker == 1);
    s->order = *order;
    s->ordered = true;
}

static void evict(void *self, at_node worker)
{
    (void)self;
    (void)worker;
    assert(!"the hub cannot lose patience with its own process");
}

static const float *gradient_at(void *self, at_node worker, uint32_t slot)
{
    solo *s = self;
    (void)worker;
    (void)slot;
    return s->gradient;
}

static bool interrupted(void *self)
{
    (void)self;
    return at_signals_stop();
}

static void sleep_on_ground(void *self, at_ns until)
{
    solo    *s = self;
    uint32_t heard = at_bell_heard(s->bell);
    if (!at_signals_stop()) at_bell_wait(s->bell, heard, 1, AT_BELL_ALL, until, 0);
}

static const float *params(void *self, uint64_t *version)
{
    solo *s = self;
    *version = s->host.hub->version;
    return s->params;
}

static void loop(solo *s)
{
    while (!s->host.finished) {
        at_report report;
        at_event  event = {.worker = 1};
        assert(s->ordered);
        s->ordered = false;
        if (at_compute_order(&s->machine, &s->computer, &s->order, s->gradient, &report)) {
            event.kind = AT_EV_MESSAGE;
            event.as.report = report;
        } else {
            event.kind = AT_EV_LOST;
            event.as.lost.drawn = atomic_load(&s->drawn);
        }
        event.now = at_clock_now();
        bool stop = at_signals_stop() && !s->stopping;
        if (stop) {
            s->stopping = true;
            at_host_event(&s->host, &(at_event){.kind = AT_EV_STOP, .now = event.now}, NULL);
        }
        at_host_event(&s->host, &event, &(at_about){.text = "left"});
        s->host.timer[AT_TIMER_LEASE] = AT_NEVER; /* nobody here can freeze without freezing us */
        if (!s->host.finished) at_host_poll(&s->host, event.now);
        if (at_signals_child() && at_evaluator_reap(s->evaluator))
            at_host_say(&s->host, event.now, "the evaluator died and was started again");
    }
}

static at_err prepare(solo *s, at_fail *fail)
{
    const at_world_context *context = s->context;
    const at_task          *task = context->task;
    assert(context->plan->workers == 1);
    s->params = aligned_alloc(64, (task->params * sizeof(float) + 63) / 64 * 64);
    s->gradient = aligned_alloc(64, (task->slot_floats * sizeof(float) + 63) / 64 * 64);
    if (!s->params || !s->gradient) return at_fail_memory(fail);
    s->bell = at_child_share(sizeof *s->bell, fail);
    if (!s->bell) return fail->err;
    AT_TRY(at_resume_params(context, s->params, fail));
    AT_TRY(
        at_evaluator_open(task, s->bell, &s->evaluator, fail)); /* forks before we have engines */
    AT_TRY(task->open(task->self, 1, fail));
    at_world_ops link = {
        .self = s, .send = send_order, .evict = evict, .gradients = {s, gradient_at}};
    AT_TRY(at_host_init(&s->host, context->plan, context->recorder, &s->updater, s->evaluator,
                        &link, fail));
    AT_TRY(at_host_watch(&s->host, context->usage_every, fail));
    s->computer = (at_computer){.plan = context->plan,
                                .task = task,
                                .pace = context->pace,
                                .id = 1,
                                .sample_time = context->sample_time,
                                .ground = {s, interrupted, sleep_on_ground, params},
                                .shared = context->learning->hogwild ? s->params : NULL,
                                .drawn = &s->drawn};
    AT_TRY(at_updater_init(&s->updater, context->learning, s->params, task->params,
                           s->host.hub->pieces_max, fail));
    AT_TRY(at_resume_host(context, &s->host, fail));
    at_worker_init(&s->machine, context->plan, 1, 1, 1, s->host.hub->member[0].sequence);
    atomic_store(&s->drawn, at_resume_drawn(&s->host, 1));
    return AT_OK;
}

static void run(solo *s)
{
    at_event start = {.kind = AT_EV_START, .now = at_clock_now()};
    at_event joined = {.kind = AT_EV_JOINED, .worker = 1, .now = start.now};
    joined.as.joined.incarnation = 1;
    prctl(PR_SET_TIMERSLACK, 1L);
    at_signals_open(s->bell);
    at_host_event(&s->host, &start, NULL);
    at_host_event(&s->host, &joined, NULL);
    loop(s);
    at_host_final_score(&s->host);
    at_evaluator_close(s->evaluator);
    s->evaluator = NULL;
    at_signals_close();
}

static at_err hand_over(solo *s, at_outcome *outcome, at_fail *fail)
{
    const at_hub *hub = s->host.hub;
    at_host_outcome(&s->host, outcome);
    outcome->params = s->params;
    outcome->floats = s->context->task->params;
    outcome->drawn = calloc(1, sizeof(uint64_t));
    s->params = NULL;
    if (!outcome->drawn) return at_fail_memory(fail);
    outcome->drawn[0] = atomic_load(&s->drawn);
    assert(outcome->drawn[0] == hub->member[0].used + hub->member[0].dropped);
    snprintf(outcome->engine, sizeof outcome->engine, "%s",
             s->context->task->engine(s->context->task->self));
    return AT_OK;
}

at_err at_world_solo(const at_world_context *context, at_outcome *outcome, at_fail *fail)
{
    solo   s = {.context = context};
    at_err err = prepare(&s, fail);
    if (!err) {
        run(&s);
        err = hand_over(&s, outcome, fail);
    }
    at_evaluator_close(s.evaluator);
    at_updater_deinit(&s.updater);
    at_host_deinit(&s.host);
    if (s.bell) munmap(s.bell, sizeof *s.bell);
    free(s.params);
    free(s.gradient);
    return err;
}
