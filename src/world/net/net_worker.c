#include "world/net/net_worker.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "message/message.h"
#include "world/core/job_parts.h"
#include "world/core/local_steps.h"
#include "world/net/net_seat.h"
#include "world/process/alive.h"
#include "world/process/signals.h"

enum { EVICTIONS_MAX = 5 };
static const at_ns ANSWER_TIME = AT_SEC(30);
static const at_ns SEAT_TIME = AT_SEC(600); /* the hub may wait for others, or load its data */
static const at_ns PAUSE_MIN = AT_MS(50), PAUSE_MAX = AT_SEC(2);
static const at_ns LOOK_EVERY = AT_MS(200); /* whether to stop */

static const at_seat_part nothing = {0};

/* ---- one connection -------------------------------------------------------------------------- */

at_err at_net_hear(at_seat *s, at_seat_message_kind wanted, at_ns patience, at_fail *fail)
{
    at_ns until = at_clock_now() + patience;
    if (s->inbox.complete) at_seat_inbox_next(&s->inbox);
    while (!s->inbox.complete) {
        AT_TRY(at_seat_hear(s, until, NULL, fail));
        if (!s->inbox.complete && at_clock_now() >= until)
            return at_fail_set(fail, AT_ERR_MISSING, NULL, "the hub does not answer");
    }
    if (s->inbox.kind == AT_SEAT_REFUSED)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "the hub refused: %.500s", s->inbox.bytes);
    if (s->inbox.kind == wanted) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, "use the same version of anytime everywhere",
                       "an unexpected message from the hub");
}

static at_err read_token(const at_net_join *join, char token[AT_TOKEN_SIZE], at_fail *fail)
{
    if (access(join->token_file, R_OK) == 0) return at_token_file(join->token_file, token, fail);
    return at_fail_set(fail, AT_ERR_USAGE,
                       "give a copy of RUN/token with --token FILE or ANYTIME_TOKEN_FILE",
                       "%.200s: cannot read the token of the hub", join->token_file);
}

at_err at_net_open_seat(const at_net_join *join, at_seat *s, at_fail *fail)
{
    s->fd = -1;
    s->stops = at_signals_stop;
    AT_TRY(read_token(join, s->token, fail));
    AT_TRY(at_seat_dial(s, join->hub, fail));
    AT_TRY(at_net_hear(s, AT_SEAT_CHALLENGE, ANSWER_TIME, fail));
    return at_seat_answer(s, fail);
}

/* ---- signals --------------------------------------------------------------------------------- */

/* The first signal asks the worker to leave after its micro-batch, or not to wait for its hub any
 * longer. */
static at_err stopped(at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_STOPPED, NULL, "stopped by a signal; the run continues");
}

/* Ends at_signals_hold. Who is told to stop does not wait for the hub until the end. */
static at_err release_signals(at_err err, at_fail *fail)
{
    at_signals_release();
    if (err != AT_ERR_MISSING || !at_signals_stop()) return err;
    return at_fail_set(fail, AT_ERR_STOPPED, NULL, "stopped by a signal while waiting for the hub");
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Whether we have come too late. The hub may have said so while we were sending. */
static bool is_over(const at_net_join *join, at_seat *s)
{
    bool over = at_seat_hears_refusal(s) && strcmp((const char *)s->inbox.bytes, AT_SEAT_OVER) == 0;
    if (over && join->say) join->say(AT_SEAT_OVER);
    return over;
}

/* ---- trying again ---------------------------------------------------------------------------- */

typedef struct patience {
    at_ns until, pause;
    bool  told; /* the user knows that we wait */
} patience;

static patience new_patience(const at_net_join *join)
{
    return (patience){.until = at_clock_now() + join->reconnect, .pause = PAUSE_MIN};
}

static void rest(at_ns until)
{
    for (at_ns now = at_clock_now(); now < until && !at_signals_stop(); now = at_clock_now())
        at_clock_sleep_until(until < now + LOOK_EVERY ? until : now + LOOK_EVERY);
}

/* Only a hub that cannot be reached is tried again; one that refuses us would do so again. */
static bool tries_again(const at_net_join *join, patience *p, const at_fail *fail)
{
    char  text[sizeof fail->text + 80];
    at_ns now = at_clock_now();
    if (fail->err != AT_ERR_MISSING || now >= p->until || at_signals_stop()) return false;
    snprintf(text, sizeof text, "%s; trying again for %.0f s", fail->text,
             at_seconds(p->until - now));
    if (!p->told && join->say) join->say(text);
    p->told = true;
    rest(now + p->pause);
    p->pause = 2 * p->pause < PAUSE_MAX ? 2 * p->pause : PAUSE_MAX;
    return true;
}

/* ---- the job --------------------------------------------------------------------------------- */

static at_err ask(at_seat *s, json_t **options, at_fail *fail)
{
    AT_TRY(at_seat_tell(s, AT_SEAT_ASK_JOB, nothing, nothing, at_clock_now() + ANSWER_TIME, fail));
    AT_TRY(at_net_hear(s, AT_SEAT_JOB, SEAT_TIME, fail));
    *options = json_loadb((const char *)s->inbox.bytes, s->inbox.size, 0, NULL);
    if (json_is_object(*options)) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, "use the same version of anytime everywhere",
                       "the hub's description of the run cannot be read");
}

static at_err ask_until_answered(const at_net_join *join, json_t **options, at_fail *fail)
{
    patience p = new_patience(join);
    for (;;) {
        at_seat *s = calloc(1, sizeof *s);
        if (!s) return at_fail_memory(fail);
        *options = NULL;
        at_err err = at_net_open_seat(join, s, fail);
        if (!err) err = ask(s, options, fail);
        bool over = err && is_over(join, s);
        at_seat_leave(&s);
        if (err) json_decref(*options);
        if (over) *options = NULL;
        if (over) return AT_OK;
        if (!err || !tries_again(join, &p, fail)) return err;
    }
}

at_err at_net_ask_job(const at_net_join *join, json_t **options, at_fail *fail)
{
    at_signals_hold();
    at_err err = ask_until_answered(join, options, fail);
    err = release_signals(err, fail);
    if (err || !*options || !at_signals_stop()) return err;
    json_decref(*options);
    *options = NULL;
    return stopped(fail);
}

/* ---- work ------------------------------------------------------------------------------------ */

typedef struct worker {
    const at_world_context *context;
    at_seat                *seat;
    at_seat_welcome         welcome;
    at_node                 opened; /* the task was opened for this worker; 0: not yet */
    at_local_steps         *local;
    int64_t                 rank; /* that it had; -1: none */
    at_packings             packings;
} worker;

static at_err say_hello(const worker *w, at_fail *fail)
{
    unsigned char  bytes[AT_WORKER_NOTE] = {0};
    int32_t        rank = (int32_t)w->rank;
    at_worker_note hello = {.kind = AT_WORKER_NOTE_HELLO, .pid = getpid()};
    hello.born = at_alive_born(hello.pid);
    at_job_parts(w->context, hello.part);
    if (gethostname(hello.host, sizeof hello.host - 1) != 0) hello.host[0] = '\0';
    (void)at_worker_note_write(bytes, &hello);
    return at_seat_tell(w->seat, AT_SEAT_OWN_HELLO, (at_seat_part){bytes, sizeof bytes},
                        (at_seat_part){&rank, sizeof rank}, at_clock_now() + ANSWER_TIME, fail);
}

static at_err take_welcome(worker *w, at_fail *fail)
{
    at_seat *s = w->seat;
    json_t  *json = json_loadb((const char *)s->inbox.bytes, s->inbox.size, 0, NULL);
    at_err   err = at_seat_welcome_read(json, &w->welcome, fail);
    w->welcome.straggler = w->welcome.scale = NULL;
    w->welcome.rules = NULL;
    json_decref(json);
    AT_TRY(err);
    s->spec.floats = w->context->task->params;
    s->in_place = at_plan_reads_in_place(w->context->plan);
    if ((size_t)w->welcome.floats != s->spec.floats)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "the hub has a model of another size");
    if (w->welcome.rank >= w->context->plan->workers_max)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "the hub gave a place that the run lacks");
    AT_TRY(at_seat_link_memory(s, fail));
    AT_TRY(at_packings_init(&w->packings, w->context, fail));
    AT_TRY(at_seat_link_pack(s, &w->packings, fail));
    if (!s->in_place) {
        s->copy = aligned_alloc(64, (s->spec.floats * sizeof(float) + 63) / 64 * 64);
        if (!s->copy) return at_fail_memory(fail);
    }
    at_seat_inbox_next(&s->inbox);
    s->stage = AT_SEAT_STAGE_SEATED;
    s->rank = (uint32_t)w->welcome.rank;
    atomic_store(&at_seat_slot_of(s)->drawn, (uint64_t)w->welcome.drawn);
    return at_seat_await_params(s, fail);
}

/* Loads the engine. What it knows of parameters of an earlier seat is forgotten. */
static at_err open_task(worker *w, at_fail *fail)
{
    unsigned char  bytes[AT_WORKER_NOTE] = {0};
    const at_task *task = w->context->task;
    at_node        id = w->seat->rank + 1;
    at_worker_note ready = {.kind = AT_WORKER_NOTE_READY};
    AT_TRY(task->open(task->self, id, fail));
    if (!w->opened) AT_TRY(at_local_steps_new(w->context, &w->local, fail));
    w->opened = id;
    w->rank = w->seat->rank;
    snprintf(ready.engine, sizeof ready.engine, "%s", task->engine(task->self));
    (void)at_worker_note_write(bytes, &ready);
    return at_seat_tell(w->seat, AT_SEAT_READY, (at_seat_part){bytes, sizeof bytes}, nothing,
                        at_clock_now() + ANSWER_TIME, fail);
}

static bool leaves(void *self)
{
    at_transport transport = at_seat_transport(self);
    return at_signals_stop() || transport.leaves(self);
}

/* A round that a signal has ended is not reported: what was drawn is part of the leave, and a
 * successor may do the round again. */
static bool send_report(void *self, const at_report *report)
{
    at_transport transport = at_seat_transport(self);
    bool         ordered = atomic_load(&at_seat_slot_of(self)->leave);
    if (at_signals_stop() && report->work.abandoned && !ordered) return true;
    return transport.send(self, report);
}

static void compute(worker *w)
{
    at_seat          *s = w->seat;
    at_driver_options options = {.context = w->context,
                                 .transport = at_seat_transport(s),
                                 .id = s->rank + 1,
                                 .incarnation = (uint32_t)w->welcome.incarnation,
                                 .slots = (uint32_t)w->welcome.slots,
                                 .sequence = (uint64_t)w->welcome.sequence,
                                 .local = w->local,
                                 .drawn = &at_seat_slot_of(s)->drawn,
                                 .redrawn = (uint64_t)w->welcome.redrawn};
    options.transport.leaves = leaves;
    options.transport.send = send_report;
    at_driver_init(&s->driver, &options);
    at_driver_run(&s->driver, NULL);
}

/* Joins and works, until the run is over or the connection is lost (AT_ERR_MISSING). */
static at_err join_once(worker *w, bool *joined, at_fail *fail)
{
    at_seat *s = w->seat;
    AT_TRY(at_net_open_seat(w->context->joins, s, fail));
    AT_TRY(say_hello(w, fail));
    AT_TRY(at_net_hear(s, AT_SEAT_WELCOME, SEAT_TIME, fail));
    AT_TRY(take_welcome(w, fail));
    AT_TRY(open_task(w, fail));
    *joined = true;
    compute(w);
    if (s->lost)
        return at_fail_set(fail, AT_ERR_MISSING, NULL, "the connection to the hub is lost");
    if (atomic_load(&at_seat_slot_of(s)->evicted))
        return at_fail_set(fail, AT_ERR_MISSING, NULL, "the hub has evicted this worker");
    return at_signals_stop() && !atomic_load(&at_seat_slot_of(s)->leave) ? stopped(fail) : AT_OK;
}

at_err at_net_work(const at_world_context *context, at_fail *fail)
{
    const at_net_join *join = context->joins;
    worker             w = {.context = context, .rank = -1};
    patience           p = new_patience(join);
    uint32_t           useless = 0; /* seats in a row without a report */
    bool               over;
    at_err             err;
    at_signals_hold();
    do {
        bool joined = false;
        w.seat = calloc(1, sizeof *w.seat);
        if (!w.seat) return at_fail_memory(fail);
        err = join_once(&w, &joined, fail);
        over = err && !joined && is_over(join, w.seat);
        bool reported = joined && atomic_load(&at_seat_slot_of(w.seat)->sent) > 0;
        useless = reported ? 0 : useless + joined;
        at_seat_leave(&w.seat);
        if (joined) p = new_patience(join);
    } while (err && !over && useless < EVICTIONS_MAX && tries_again(join, &p, fail));
    at_local_steps_free(w.local);
    *join->refused = err == AT_ERR_USAGE && !over;
    return release_signals(over ? AT_OK : err, fail);
}
