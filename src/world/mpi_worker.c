/* A worker of the MPI world: what node.c needs of messages.
 *
 * Mail is received into one of a few buffers while the others hold what was received before: the
 * parameters that are computed with, and newer ones that wait to be taken. A buffer that is full of
 * parameters nobody has taken is used again as soon as newer ones have come.
 */
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/usage.h"
#include "learn/sparse.h"
#include "world/alive.h"
#include "world/doze.h"
#include "world/mpi_comm.h"
#include "world/mpi_mail.h"
#include "world/mpi_roles.h"
#include "world/mpi_wire.h"
#include "world/node.h"
#include "world/pulse.h"

enum { GRADIENTS = 2, BUFFERS_MAX = 4, NONE = -1 };
enum { CALL_MAIL = GRADIENTS, CALL_NOTE, CALLS }; /* the first ones are of reports, by slot */

static const at_ns PULSE_EVERY = AT_MS(200);
static const at_ns WATCH_EVERY = AT_MS(50);
static const at_ns NAP = AT_MS(1);
static const at_ns SPIN = AT_US(20);
static const at_ns FAREWELL_MAX = AT_SEC(600); /* the hub evaluates and writes before it says so */

/* Mail that was received. */
typedef struct buffer {
    unsigned char *bytes;
    uint64_t       version;
} buffer;

typedef struct worker {
    const at_scene *scene;
    at_node         id;
    at_mpi_calls   *calls;
    buffer          buffer[BUFFERS_MAX];
    int             buffers;
    int             open, fresh, aside, installed; /* which buffer is what; NONE: no one */
    size_t          mail_size, report_size;
    unsigned char  *report[GRADIENTS]; /* head and gradient */
    uint32_t        slots;
    uint64_t        reports; /* sent */
    unsigned char   note[AT_MPI_NOTE];

    at_order         order;
    bool             ordered; /* `order` was not taken yet */
    bool             leaves;  /* told to leave, or there is no hub any more */
    bool             welcomed;
    at_mpi_mail      welcome;
    bool             bye; /* told how to end: */
    bool             together;
    bool             orphaned; /* the hub is gone */
    uint32_t         news;
    _Atomic uint64_t drawn;

    at_doze  doze;
    at_ear   ear;
    at_pulse hub;      /* when it was heard */
    bool     hub_near; /* on this machine */
    at_ns    noted_at, watched_at, measured_at;
} worker;

/* As the hub's: messages may be under way until the process ends. */
static worker standing;

/* ---- notes --------------------------------------------------------------------------------- */

static bool send_note(worker *w, at_mpi_note *note)
{
    if (at_mpi_is_open(w->calls, CALL_NOTE)) return false;
    note->drawn = atomic_load(&w->drawn);
    at_mpi_send(w->calls, CALL_NOTE, w->note, at_mpi_put_note(w->note, note), 0, AT_MPI_TAG_NOTE);
    w->noted_at = at_clock_now();
    return true;
}

/* Far from the hub, only we can see what we take. */
static void measure(worker *w, at_ns now, at_usage *usage)
{
    at_ns every = w->scene->usage_every;
    if (w->hub_near || every == 0 || now - w->measured_at < every) return;
    w->measured_at = now;
    if (!at_usage_read(getpid(), usage)) usage->pid = 0;
}

static void beat(worker *w, at_ns now)
{
    at_mpi_note note = {.kind = AT_MPI_NOTE_PULSE};
    if (!w->welcomed || now - w->noted_at < PULSE_EVERY) return;
    if (at_mpi_is_open(w->calls, CALL_NOTE)) return;
    measure(w, now, &note.usage);
    send_note(w, &note);
}

/* ---- mail ---------------------------------------------------------------------------------- */

static bool is_used(const worker *w, int i)
{
    return i == w->open || i == w->fresh || i == w->aside || i == w->installed;
}

/* Opens a buffer for the next mail, when there is one. */
static void receive(worker *w)
{
    for (int i = 0; w->open == NONE && i < w->buffers; i++)
        if (!is_used(w, i)) w->open = i;
    if (w->open == NONE || at_mpi_is_open(w->calls, CALL_MAIL)) return;
    at_mpi_receive(w->calls, CALL_MAIL, w->buffer[w->open].bytes, w->mail_size / AT_MPI_UNIT, 0,
                   AT_MPI_TAG_MAIL);
}

static void read_orders(worker *w, const unsigned char *at, const unsigned char *end)
{
    for (; at + AT_MPI_ORDER <= end; at += AT_MPI_ORDER) {
        at_mpi_order order;
        at_mpi_get_order(at, &order);
        if (order.worker != w->id) continue;
        if (order.order.leave) {
            w->leaves = true;
        } else {
            w->order = order.order;
            w->ordered = true;
        }
    }
}

static void read_work(worker *w, const at_mpi_mail *mail, size_t size)
{
    buffer *into = &w->buffer[w->open];
    size_t  vector = mail->version == AT_VERSION_NONE ? 0 : w->scene->task->params * sizeof(float);
    assert(size >= AT_MPI_MAIL_HEAD + vector);
    read_orders(w, into->bytes + AT_MPI_MAIL_HEAD + vector, into->bytes + size);
    if (vector == 0) return;
    into->version = mail->version;
    w->fresh = w->open; /* and what was fresh before is free */
    w->open = NONE;
}

static void read_welcome(worker *w, const at_mpi_mail *mail)
{
    char        here[AT_MPI_HOST] = {0};
    const char *host = (const char *)w->buffer[w->open].bytes + AT_MPI_MAIL_HEAD;
    gethostname(here, sizeof here - 1);
    w->welcomed = true;
    w->welcome = *mail;
    w->hub_near = strncmp(host, here, sizeof here) == 0 && at_alive(mail->pid, mail->born);
}

static void read_mail(worker *w, size_t units)
{
    at_mpi_mail mail;
    bool        valid = at_mpi_get_mail(w->buffer[w->open].bytes, &mail);
    assert(valid);
    at_pulse_beat(&w->hub, w->ear.listened, true);
    switch (mail.kind) {
    case AT_MPI_MAIL_WELCOME: read_welcome(w, &mail); break;
    case AT_MPI_MAIL_WORK: read_work(w, &mail, units * AT_MPI_UNIT); break;
    case AT_MPI_MAIL_PULSE: return;
    case AT_MPI_MAIL_BYE:
        w->bye = w->leaves = true;
        w->together = mail.together;
        break;
    }
    w->news++;
    at_doze_end(&w->doze);
}

/* Whoever was told to leave waits for as long as it takes; others notice that the hub is gone. */
static void watch(worker *w, at_ns now)
{
    if (!w->welcomed || now - w->watched_at < WATCH_EVERY) return;
    w->watched_at = now;
    bool gone = w->hub_near && !at_alive(w->welcome.pid, w->welcome.born);
    bool silent = !w->leaves && at_pulse_is_gone(&w->hub, w->ear.listened);
    if (!gone && !silent) return;
    w->orphaned = w->leaves = true;
    w->news++;
}

/* ---- the port ------------------------------------------------------------------------------ */

static void poll(void *self)
{
    worker            *w = self;
    const at_mpi_done *done;
    at_ns              now = at_clock_now();
    at_ear_now(&w->ear, now);
    uint32_t count = at_mpi_poll(w->calls, &done);
    for (uint32_t i = 0; i < count; i++)
        if (done[i].call == CALL_MAIL) read_mail(w, done[i].units);
    receive(w);
    beat(w, now);
    watch(w, now);
}

static uint32_t heard(void *self)
{
    worker *w = self;
    poll(w);
    return w->news;
}

/* Naps towards an end that is known need not be short. */
static void wait(void *self, uint32_t heard_before, at_ns until)
{
    worker *w = self;
    at_ns   now = at_clock_now();
    if (w->news != heard_before) return;
    if (until == AT_NEVER)
        at_doze_nap(&w->doze, AT_NEVER);
    else
        at_clock_sleep_until(now + NAP < until ? now + NAP : until);
    poll(w);
}

static bool leaves(void *self)
{
    worker *w = self;
    return w->leaves;
}

static bool take_order(void *self, at_order *order)
{
    worker *w = self;
    if (!w->ordered) return false;
    *order = w->order;
    w->ordered = false;
    return true;
}

static uint64_t newest(void *self)
{
    const worker *w = self;
    int           i = w->fresh != NONE ? w->fresh : w->aside != NONE ? w->aside : w->installed;
    return i == NONE ? AT_VERSION_NONE : w->buffer[i].version;
}

static uint64_t fetch(void *self)
{
    worker *w = self;
    assert(w->fresh != NONE);
    assert(w->aside == NONE);
    w->aside = w->fresh;
    w->fresh = NONE;
    return w->buffer[w->aside].version;
}

static const float *install(void *self)
{
    worker *w = self;
    assert(w->aside != NONE);
    w->installed = w->aside;
    w->aside = NONE;
    receive(w);
    return (const float *)(const void *)(w->buffer[w->installed].bytes + AT_MPI_MAIL_HEAD);
}

/* Waits until the report of that slot was taken; whoever has to leave does not wait. */
static void await_report(worker *w, uint32_t slot)
{
    while (at_mpi_is_open(w->calls, slot) && !w->leaves) {
        poll(w);
        if (at_mpi_is_open(w->calls, slot)) at_doze_nap(&w->doze, AT_NEVER);
    }
    at_doze_end(&w->doze);
}

static float *gradient(void *self, uint32_t slot)
{
    worker *w = self;
    await_report(w, slot);
    return (float *)(void *)(w->report[slot] + AT_MPI_REPORT_HEAD);
}

/* How much of a gradient there is to send. */
static size_t gradient_floats(const worker *w, const at_report *report)
{
    const at_task *task = w->scene->task;
    if (report->work.abandoned || report->work.samples == 0) return 0;
    if (!task->sparse) return task->slot_floats;
    const at_pairs *pairs = (const void *)(w->report[report->slot] + AT_MPI_REPORT_HEAD);
    size_t          size = sizeof *pairs + pairs->count * sizeof *pairs->pair;
    assert(size / sizeof(float) <= task->slot_floats);
    return size / sizeof(float);
}

/* At most one report outstanding, as everywhere. */
static void send_report(void *self, const at_report *report)
{
    worker       *w = self;
    at_mpi_report head = {
        .report = *report, .drawn = atomic_load(&w->drawn), .floats = gradient_floats(w, report)};
    for (uint32_t i = 0; i < w->slots; i++) await_report(w, i);
    if (at_mpi_is_open(w->calls, report->slot)) return; /* nobody will take it any more */
    at_mpi_put_report(w->report[report->slot], &head);
    at_mpi_send(w->calls, report->slot, w->report[report->slot],
                AT_MPI_REPORT_HEAD / AT_MPI_UNIT + head.floats, 0, AT_MPI_TAG_REPORT);
    w->reports++;
    w->noted_at = at_clock_now();
}

/* ---- beginning ----------------------------------------------------------------------------- */

/* Where a step waits for everybody nothing comes while we compute: two buffers take turns. Elsewhere
 * newer parameters wait beside those in use, and with slow networks also those under way. */
static int buffers_needed(const at_scene *scene)
{
    if (scene->plan->release->holds && scene->plan->gather->waits_for_all) return 2;
    return scene->comm_delay > 0 ? 4 : 3;
}

static at_err reserve(worker *w, at_fail *fail)
{
    const at_scene *scene = w->scene;
    bool fits = at_mpi_mail_size(scene->task->params, scene->plan->workers, &w->mail_size);
    if (!fits)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "the model does not fit into a message");
    if (w->mail_size < AT_MPI_SMALL) w->mail_size = AT_MPI_SMALL;
    w->buffers = buffers_needed(scene);
    w->slots = scene->plan->release->holds ? 1 : GRADIENTS;
    w->report_size = AT_MPI_REPORT_HEAD + (scene->task->slot_floats * sizeof(float) + 63) / 64 * 64;
    bool enough = true;
    for (int i = 0; i < w->buffers; i++)
        enough = (w->buffer[i].bytes = aligned_alloc(64, w->mail_size)) != NULL && enough;
    for (uint32_t i = 0; i < w->slots; i++)
        enough = (w->report[i] = aligned_alloc(64, w->report_size)) != NULL && enough;
    return enough ? AT_OK : at_fail_set(fail, AT_ERR_FAILED, NULL, "not enough memory");
}

/* Whoever cannot take part only listens for the end. */
static at_err reserve_bare(worker *w, at_fail *fail)
{
    w->buffers = 1;
    w->mail_size = AT_MPI_SMALL;
    w->buffer[0].bytes = aligned_alloc(64, w->mail_size);
    return w->buffer[0].bytes ? AT_OK : at_fail_set(fail, AT_ERR_FAILED, NULL, "not enough memory");
}

/* Signals are the hub's affair: it tells everybody what follows from them. */
static at_err connect(worker *w, const at_launcher *launcher, at_fail *fail)
{
    w->id = launcher->rank;
    w->open = w->fresh = w->aside = w->installed = NONE;
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    AT_TRY(at_mpi_start(launcher, fail));
    w->calls = at_mpi_calls_new(CALLS);
    if (!w->calls) return at_fail_set(fail, AT_ERR_FAILED, NULL, "not enough memory");
    at_ear_now(&w->ear, at_clock_now());
    at_pulse_init(&w->hub, w->ear.listened);
    return AT_OK;
}

static at_mpi_note hello_of(const worker *w, const at_fail *fail)
{
    at_mpi_note hello = {.kind = AT_MPI_NOTE_HELLO, .pid = getpid(), .fail = *fail};
    hello.born = at_alive_born(hello.pid);
    if (w->scene) hello.likes = at_mpi_likes(w->scene);
    gethostname(hello.host, sizeof hello.host - 1);
    return hello;
}

static void await_welcome(worker *w)
{
    while (!w->welcomed && !w->leaves) {
        uint32_t before = heard(w);
        if (!w->welcomed && !w->leaves) wait(w, before, AT_NEVER);
    }
}

/* Sends a note as soon as the one before was taken. */
static void insist(worker *w, at_mpi_note *note)
{
    while (!w->bye && !w->orphaned && !send_note(w, note)) {
        poll(w);
        at_doze_nap(&w->doze, AT_NEVER);
    }
    at_doze_end(&w->doze);
}

static void work(worker *w)
{
    at_node_start node = {.scene = w->scene,
                          .port = {.self = w,
                                   .poll = poll,
                                   .heard = heard,
                                   .wait = wait,
                                   .leaves = leaves,
                                   .take_order = take_order,
                                   .newest = newest,
                                   .fetch = fetch,
                                   .install = install,
                                   .gradient = gradient,
                                   .send = send_report},
                          .id = w->id,
                          .incarnation = w->welcome.incarnation,
                          .slots = w->slots,
                          .sequence = w->welcome.sequence,
                          .drawn = &w->drawn};
    at_node_run(&node);
}

/* Everything that was sent must have been taken before we say that it was all. */
static void depart(worker *w)
{
    at_mpi_note left = {.kind = AT_MPI_NOTE_LEFT, .reports = w->reports};
    bool        open = true;
    while (open && !w->bye && !w->orphaned) {
        open = false;
        for (uint32_t i = 0; i < w->slots; i++) open = open || at_mpi_is_open(w->calls, i);
        poll(w);
        if (open) at_doze_nap(&w->doze, AT_NEVER);
    }
    insist(w, &left);
}

at_err at_mpi_worker_run(const at_scene *scene, const at_launcher *launcher, at_fail *fail)
{
    worker     *w = &standing;
    at_mpi_note ready = {.kind = AT_MPI_NOTE_READY};
    assert(!w->scene);
    w->scene = scene;
    AT_TRY(reserve(w, fail));
    AT_TRY(connect(w, launcher, fail));
    bool roomy = launcher->local_size > 0 && launcher->local_size <= scene->cores;
    w->doze.spin_ns = roomy && scene->sample_time == 0 ? SPIN : 0;
    at_mpi_note hello = hello_of(w, &(at_fail){0});
    insist(w, &hello);
    await_welcome(w);
    if (w->bye || w->orphaned) return AT_OK;
    atomic_store(&w->drawn, w->welcome.drawn);
    AT_TRY(scene->task->open(scene->task->self, w->id, fail));
    snprintf(ready.engine, sizeof ready.engine, "%s", scene->task->engine(scene->task->self));
    insist(w, &ready);
    work(w);
    depart(w);
    return AT_OK;
}

/* ---- end ----------------------------------------------------------------------------------- */

bool at_mpi_worker_end(const at_launcher *launcher, const at_fail *fail)
{
    worker *w = &standing;
    at_fail untold;
    at_ns   since = at_clock_now();
    if (!at_mpi_is_started() && (reserve_bare(w, &untold) || connect(w, launcher, &untold)))
        return !at_mpi_is_started();
    if (!w->calls) return true; /* launcher and library do not match: everybody is alone */
    if (fail->err) {
        at_mpi_note hello = hello_of(w, fail);
        insist(w, &hello);
    }
    while (!w->bye && !w->orphaned && at_clock_now() - since < FAREWELL_MAX) {
        uint32_t before = heard(w);
        if (!w->bye) wait(w, before, AT_NEVER);
    }
    at_mpi_cancel(w->calls, CALL_MAIL);
    return w->bye && w->together;
}
