/* --workers 0: hub and worker are two state machines in one process. No shared memory, no
 * copies: an order is an assignment, a report is a function call, and the computation reads the
 * parameters where the update wrote them. It is the yardstick for the cost of a separate hub. (The
 * evaluator is still a process of its own.) */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "world/core/driver.h"
#include "world/core/host.h"
#include "world/core/world.h"
#include "world/process/child.h"
#include "world/process/signals.h"

typedef struct solo {
    at_inplace              place; /* the worker's side */
    const at_world_context *context;
    at_host                 host;
    at_updater              updater;
    at_evaluator           *evaluator;
    at_bell                *bell; /* shared with the evaluator */
    float                  *params, *gradient;
    at_local_steps         *local; /* NULL: it reports gradients */
    _Atomic uint64_t        drawn;
    bool                    stopping;
} solo;

/* ---- the hub's side ------------------------------------------------------------------------- */

static void send_order(void *self, at_node worker, const at_order *order)
{
    solo *s = self;
    assert(worker == 1);
    at_inplace_order(&s->place, order);
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
    assert(worker == 1 && slot == 0);
    return s->gradient;
}

/* Evaluations, timers, signals. The lease is switched off: the worker cannot freeze alone. */
static void poll_host(solo *s, at_ns now)
{
    assert(!s->host.finished);
    if (at_signals_stop() && !s->stopping) {
        s->stopping = true;
        at_host_event(&s->host, &(at_event){.kind = AT_EV_STOP, .now = now}, NULL);
    }
    s->host.timer[AT_TIMER_LEASE] = AT_NEVER;
    at_host_poll(&s->host, now);
    if (at_signals_child()) at_host_reap(&s->host, now);
}

/* ---- the worker's side ---------------------------------------------------------------------- */

static uint32_t heard(void *self)
{
    solo *s = self;
    assert(s->bell);
    if (at_signals_stop() && !s->stopping) poll_host(s, at_host_now(&s->host));
    return at_bell_heard(s->bell);
}

static void wait(void *self, uint32_t heard_before, at_ns until)
{
    solo *s = self;
    at_ns due = at_host_due(&s->host);
    assert(!s->host.finished);
    if (due != AT_NEVER) due += s->host.stopped; /* the driver's clock is the machine's */
    at_bell_wait(s->bell, heard_before, 1, AT_BELL_ALL, due < until ? due : until, 0);
    poll_host(s, at_host_now(&s->host));
}

static bool leaves(void *self)
{
    return ((solo *)self)->place.leaving;
}

static bool send_report(void *self, const at_report *report)
{
    solo    *s = self;
    at_event event = {.kind = AT_EV_MESSAGE, .worker = 1, .now = at_host_now(&s->host)};
    assert(report->incarnation == 1);
    event.as.report = *report;
    if (at_signals_stop()) poll_host(s, event.now);
    at_host_event(&s->host, &event, NULL);
    if (!s->host.finished) poll_host(s, event.now);
    return true;
}

static void work(solo *s)
{
    s->place.hub = s->host.hub;
    s->place.params = s->params;
    s->place.gradient = s->gradient;
    const at_world_context *context = s->context;
    at_driver_options       options = {.context = context,
                                       .transport = at_inplace_transport(&s->place),
                                       .id = 1,
                                       .incarnation = 1,
                                       .slots = 1,
                                       .sequence = s->host.hub->member[0].sequence,
                                       .local = s->local,
                                       .drawn = &s->drawn,
                                       .redrawn = s->host.hub->member[0].redrawn};
    at_driver               driver;
    options.transport.heard = heard;
    options.transport.wait = wait;
    options.transport.leaves = leaves;
    options.transport.send = send_report;
    at_driver_init(&driver, &options);
    at_driver_run(&driver, context->learning->updates_in_place ? s->params : NULL);
    at_event left = {.kind = AT_EV_LOST, .worker = 1, .now = at_host_now(&s->host)};
    left.as.lost.drawn = atomic_load(&s->drawn);
    at_host_event(&s->host, &left, &(at_about){.text = "left"});
    assert(s->host.finished);
}

/* ---- beginning and end ---------------------------------------------------------------------- */

static at_err prepare(solo *s, at_fail *fail)
{
    const at_world_context *context = s->context;
    const at_task          *task = context->task;
    assert(context->plan->workers_max == 1);
    s->params = aligned_alloc(64, (task->params * sizeof(float) + 63) / 64 * 64);
    s->gradient = aligned_alloc(64, (task->slot_floats * sizeof(float) + 63) / 64 * 64);
    if (!s->params || !s->gradient) return at_fail_memory(fail);
    s->bell = at_child_share(sizeof *s->bell, fail);
    if (!s->bell) return fail->err;
    AT_TRY(at_resume_params(context, s->params, fail));
    AT_TRY(
        at_evaluator_open(task, s->bell, &s->evaluator, fail)); /* forks before we have engines */
    AT_TRY(task->open(task->self, 1, fail));
    AT_TRY(at_local_steps_new(context, &s->local, fail));
    at_world_ops link = {
        .self = s, .send = send_order, .evict = evict, .gradients = {s, gradient_at}};
    AT_TRY(at_host_init(&s->host, context->plan, context->recorder, &s->updater, s->evaluator,
                        &link, fail));
    AT_TRY(at_host_watch(&s->host, context->usage_every, fail));
    AT_TRY(at_updater_init(&s->updater, context->learning, s->params, task->params,
                           s->host.hub->pieces_max, fail));
    AT_TRY(at_resume_host(context, &s->host, fail));
    atomic_store(&s->drawn, at_resume_drawn(&s->host, 1));
    return AT_OK;
}

static void train(solo *s)
{
    at_event start = {.kind = AT_EV_START, .now = at_host_now(&s->host)};
    at_event joined = {.kind = AT_EV_JOINED, .worker = 1, .now = start.now};
    assert(s->bell);
    assert(!s->stopping);
    joined.as.joined.incarnation = 1;
    prctl(PR_SET_TIMERSLACK, 1L);
    at_signals_open(s->bell);
    at_host_event(&s->host, &start, NULL);
    at_host_event(&s->host, &joined, NULL);
    work(s);
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

static at_err run(const at_world_context *context, at_outcome *outcome, at_fail *fail)
{
    solo   s = {.context = context};
    at_err err = prepare(&s, fail);
    assert(context->plan->workers_max >= 1);
    if (!err) {
        train(&s);
        err = hand_over(&s, outcome, fail);
    }
    at_evaluator_close(s.evaluator);
    at_updater_deinit(&s.updater);
    at_host_deinit(&s.host);
    if (s.bell) munmap(s.bell, sizeof *s.bell);
    at_local_steps_free(s.local);
    free(s.params);
    free(s.gradient);
    return err;
}

static at_err check(const at_world_context *context, at_fail *fail)
{
    const at_plan *plan = context->plan;
    assert(context->plan->workers_max >= 1);
    if (plan->then && plan->then->release->self_starting) plan = plan->then;
    if (plan->workers_max == 1 && !plan->release->self_starting) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "use --workers 1 or more",
                       "--release %s needs a worker that runs ahead of the hub, and --workers 0 "
                       "runs both in one loop",
                       plan->release->rule.name);
}

const at_world at_world_solo = {.name = "local",
                                .steps_locally = true,
                                .called = "--workers 0",
                                .one_process = true,
                                .shares_memory = true,
                                .check = check,
                                .run = run};
