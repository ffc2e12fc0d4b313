/* A worker of the MPI world: its start, its run and its end. */
#include "world/mpi/mpi_worker.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "world/core/job_parts.h"
#include "world/mpi/mpi_transport.h"
#include "world/mpi/param_sender.h"
#include "world/process/alive.h"

static const at_ns SPIN = AT_US(200);          /* outlasts a round with 1 MB of parameters */
static const at_ns FAREWELL_MAX = AT_SEC(600); /* the hub evaluates and writes before BYE */

static const at_ns LAST_NOTE_MAX = AT_SEC(10);

/* The only one of the process. It must exist until the process ends, because some messages may
 * never complete. */
static at_mpi_transport the_worker;

/* ---- start ----------------------------------------------------------------------------- */

/* When a step waits for all workers, nothing arrives while this one computes, and two buffers are
 * enough. Otherwise newer parameters are kept beside those in use, and with message delays also
 * those in transit. */
static int buffers_needed(const at_world_context *context)
{
    assert(context->plan);
    if (at_plan_reads_in_place(context->plan)) return 2;
    return context->comm_delay > 0 ? 4 : 3;
}

/* With compression and for sparse models, the vectors that are not messages. */
static bool reserve_vectors(at_mpi_transport *w)
{
    const at_packings *p = &w->packings;
    size_t             params = p->params.floats * sizeof(float);
    size_t             gradient = p->gradient.floats * sizeof(float);
    size_t             residual = p->gradient.packed * sizeof(float);
    bool               enough = true;
    assert(w->slots >= 1);
    w->params_version = AT_VERSION_NONE;
    if (p->params.kind != AT_COMPRESS_NONE || w->context->task->sparse)
        enough = (w->params = at_mpi_alloc(params, params)) != NULL;
    if (p->gradient.kind == AT_COMPRESS_NONE) return enough;
    for (uint32_t i = 0; i < w->slots; i++)
        enough = (w->gradient[i] = at_mpi_alloc(gradient, gradient)) != NULL && enough;
    return (w->residual = at_mpi_alloc(residual + 1, residual)) != NULL && enough;
}

static at_err reserve(at_mpi_transport *w, at_fail *fail)
{
    const at_world_context *context = w->context;
    const at_packings      *p = &w->packings;
    assert(w->buffers == 0);
    AT_TRY(at_packings_init(&w->packings, context, fail));
    if (!at_hub_message_size(p->params.size, context->plan->workers_max, &w->mail_size))
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "the model does not fit into a message");
    if (w->mail_size < AT_MPI_SMALL) w->mail_size = AT_MPI_SMALL;
    w->buffers = buffers_needed(context);
    w->slots = at_plan_has_one_slot(context->plan) ? 1 : AT_MPI_GRADIENTS;
    w->parts = at_gradient_parts_of(context);
    size_t report_size = AT_REPORT_MESSAGE_HEAD + (p->gradient.size + 63) / 64 * 64;
    size_t likely = AT_REPORT_MESSAGE_HEAD + context->task->slot_likely * sizeof(float);
    bool   enough = reserve_vectors(w);
    if (likely > report_size) likely = report_size;
    for (int i = 0; i < w->buffers; i++)
        enough = (w->buffer[i].bytes = at_mpi_alloc(w->mail_size, w->mail_size)) != NULL && enough;
    for (uint32_t i = 0; i < w->slots; i++)
        enough = (w->report[i] = at_mpi_alloc(report_size, likely)) != NULL && enough;
    return enough ? AT_OK : at_fail_memory(fail);
}

/* For a rank that cannot take part and only waits for the end. */
static at_err reserve_bare(at_mpi_transport *w, at_fail *fail)
{
    assert(!w->context);
    w->buffers = 1;
    w->mail_size = AT_MPI_SMALL;
    w->buffer[0].bytes = at_large_new(w->mail_size);
    return w->buffer[0].bytes ? AT_OK : at_fail_memory(fail);
}

/* The hub handles signals and tells the workers to stop. */
static at_err connect(at_mpi_transport *w, const at_launcher *launcher, at_fail *fail)
{
    assert(launcher->rank > 0);
    w->id = launcher->rank;
    w->open = w->fresh = w->aside = w->installed = AT_MPI_NO_BUFFER;
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, SIG_IGN);
    AT_TRY(at_mpi_start(launcher, fail));
    w->calls = at_mpi_calls_new(AT_MPI_CALL_PART + w->parts.count);
    if (!w->calls) return at_fail_memory(fail);
    at_listening_clock_now(&w->clock, at_clock_now());
    at_failure_detector_init(&w->hub, w->clock.listened, w->context ? w->context->plan->lease : 0);
    return AT_OK;
}

static at_worker_note hello_of(const at_mpi_transport *w, const at_fail *fail)
{
    at_worker_note hello = {.kind = AT_WORKER_NOTE_HELLO, .pid = getpid(), .fail = *fail};
    hello.born = at_alive_born(hello.pid);
    assert(w->calls);
    if (!fail->err) at_job_parts(w->context, hello.part);
    at_mpi_host(hello.host);
    return hello;
}

/* The hub answers when it has loaded its own data, or when all ranks have started. */
static void await_welcome(at_mpi_transport *w)
{
    const at_ns since = w->clock.listened;
    assert(w->calls);
    while (!w->welcomed && !w->leaves && w->clock.listened - since < FAREWELL_MAX) {
        uint32_t before = at_mpi_transport_heard(w);
        if (!w->welcomed && !w->leaves) at_mpi_transport_wait(w, before, AT_NEVER);
    }
    if (!w->welcomed && !w->leaves) w->orphaned = w->leaves = true;
}

/* Sends a note as soon as the previous one was received. */
static void send_note(at_mpi_transport *w, at_worker_note *note)
{
    const at_ns until = at_clock_now() + FAREWELL_MAX;
    assert(w->calls);
    while (!w->bye && !w->orphaned && !at_mpi_transport_note(w, note) && at_clock_now() < until) {
        at_mpi_transport_poll(w);
        at_backoff_nap(&w->backoff, AT_NEVER);
    }
    at_backoff_end(&w->backoff);
}

static void work(at_mpi_transport *w, at_local_steps *local)
{
    at_driver_options options = {.context = w->context,
                                 .transport = at_mpi_transport_of(w),
                                 .id = w->id,
                                 .incarnation = w->welcome.incarnation,
                                 .slots = w->slots,
                                 .sequence = w->welcome.sequence,
                                 .local = local,
                                 .drawn = &w->drawn,
                                 .redrawn = w->welcome.redrawn};
    at_driver         driver;
    assert(w->welcomed && w->id >= 1);
    at_driver_init(&driver, &options);
    at_driver_run(&driver, NULL);
}

/* LEFT says how many reports there were, so all of them must have been received before. */
static void depart(at_mpi_transport *w)
{
    at_worker_note left = {.kind = AT_WORKER_NOTE_LEFT, .reports = w->reports};
    assert(w->calls && w->leaves);
    while (at_mpi_transport_is_reporting(w) && !w->bye && !w->orphaned) {
        at_mpi_transport_poll(w);
        at_backoff_nap(&w->backoff, AT_NEVER);
    }
    send_note(w, &left);
}

/* Releases the previous run of this process; its last note must have been received. */
static void release_previous(at_mpi_transport *w)
{
    const at_mpi_done *done;
    const at_ns        until = at_clock_now() + LAST_NOTE_MAX;
    while (w->calls && at_mpi_is_open(w->calls, AT_MPI_CALL_NOTE) && at_clock_now() < until)
        at_mpi_poll(w->calls, &done);
    if (w->calls && at_mpi_calls_end(w->calls)) {
        for (int i = 0; i < w->buffers; i++) free(w->buffer[i].bytes);
        for (uint32_t i = 0; i < w->slots; i++) {
            free(w->report[i]);
            free(w->gradient[i]);
        }
        free(w->params);
        free(w->residual);
        at_mpi_calls_free(w->calls);
    }
    at_mpi_gossip_free(w->gossip);
    *w = (at_mpi_transport){.open = AT_MPI_NO_BUFFER};
}

static at_err failed(const at_mpi_transport *w, at_fail *fail)
{
    assert(w->fail.err);
    *fail = w->fail;
    return fail->err;
}

at_err at_mpi_worker_ask(const at_launcher *launcher, const at_worker_note *hello, at_fail *fail)
{
    at_mpi_transport *w = &the_worker;
    at_worker_note    note = *hello;
    assert(launcher->rank > 0 && !w->context);
    AT_TRY(reserve_bare(w, fail));
    AT_TRY(connect(w, launcher, fail));
    w->is_silent = true;
    send_note(w, &note);
    await_welcome(w);
    if (w->fail.err) return failed(w, fail);
    if (w->welcomed && !w->bye) {
        release_previous(w);
        return AT_OK;
    }
    return at_fail_set(fail, w->err ? w->err : AT_ERR_FAILED, NULL, "rank 0 %s",
                       w->bye ? "has refused the job" : "does not answer");
}

at_err at_mpi_worker_run(const at_world_context *context, const at_launcher *launcher,
                         at_fail *fail)
{
    at_mpi_transport *w = &the_worker;
    at_worker_note    ready = {.kind = AT_WORKER_NOTE_READY};
    at_local_steps   *local;
    assert(launcher->rank > 0);
    if (w->calls) release_previous(w);
    w->context = context;
    AT_TRY(reserve(w, fail));
    AT_TRY(at_mpi_gossip_new(context, launcher->rank, &w->gossip, fail));
    AT_TRY(connect(w, launcher, fail));
    bool idle_cores = launcher->local_size > 0 && launcher->local_size <= context->cores;
    w->backoff.spin_ns = idle_cores && context->sample_time == 0 ? SPIN : 0;
    at_worker_note hello = hello_of(w, &(at_fail){0});
    send_note(w, &hello);
    await_welcome(w);
    if (w->fail.err) return failed(w, fail);
    if (w->bye || w->orphaned) return AT_OK;
    atomic_store(&w->drawn, w->welcome.drawn);
    AT_TRY(context->task->open(context->task->self, w->id, fail));
    snprintf(ready.engine, sizeof ready.engine, "%s", context->task->engine(context->task->self));
    AT_TRY(at_local_steps_new(context, &local, fail));
    send_note(w, &ready);
    work(w, local);
    at_local_steps_free(local);
    if (w->fail.err) return failed(w, fail);
    depart(w);
    return AT_OK;
}

/* ---- end ----------------------------------------------------------------------------------- */

/* A worker that ends early waits for the others while the hub is alive: the launcher would take its
 * exit for a failure of the job. */
static bool is_forgotten(const at_mpi_transport *w, at_ns since)
{
    at_ns heard = w->hub.heard > since ? w->hub.heard : since;
    assert(w->clock.listened >= heard);
    return w->clock.listened - heard > FAREWELL_MAX;
}

bool at_mpi_worker_end(const at_launcher *launcher, const at_fail *fail, at_err *err)
{
    at_mpi_transport *w = &the_worker;
    at_fail           untold;
    assert(launcher->rank > 0);
    w->context = NULL; /* it was the run's, which is over */
    if (!at_mpi_is_started() && w->calls) release_previous(w);
    if (!at_mpi_is_started() && (reserve_bare(w, &untold) || connect(w, launcher, &untold)))
        return !at_mpi_is_started();
    if (!w->calls) return true; /* launcher and library do not match: there are no other ranks */
    if (fail->err) {
        at_worker_note hello = hello_of(w, fail);
        send_note(w, &hello);
    }
    at_ns since = w->clock.listened; /* silence counts from here, see at_failure_detector */
    while (!w->bye && !w->orphaned && !is_forgotten(w, since)) {
        uint32_t before = at_mpi_transport_heard(w);
        if (!w->bye) at_mpi_transport_wait(w, before, AT_NEVER);
    }
    at_mpi_cancel(w->calls, AT_MPI_CALL_MAIL);
    *err = w->err;
    return w->bye && w->together;
}
