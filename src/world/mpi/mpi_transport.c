#include "world/mpi/mpi_transport.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/usage.h"
#include "learn/sparse/sparse.h"
#include "world/process/alive.h"

static const at_ns PULSE_EVERY = AT_MS(200);
static const at_ns WATCH_EVERY = AT_MS(50);
static const at_ns NAP = AT_MS(1);
static const at_ns PUSH_MIN = AT_US(5); /* of a call that moves data */
static const at_ns PUSH_MAX = AT_MS(2);

/* ---- notes --------------------------------------------------------------------------------- */

bool at_mpi_transport_note(at_mpi_transport *w, at_worker_note *note)
{
    assert(w->calls);
    if (at_mpi_is_open(w->calls, AT_MPI_CALL_NOTE)) return false;
    note->drawn = atomic_load(&w->drawn);
    at_mpi_send(w->calls, AT_MPI_CALL_NOTE, w->note, at_worker_note_write(w->note, note), 0,
                AT_MPI_TAG_NOTE);
    w->noted_at = at_clock_now();
    return true;
}

/* The hub cannot read the resource usage of a process on another machine. */
static void measure(at_mpi_transport *w, at_ns now, at_usage *usage)
{
    at_ns every = w->welcome.usage_every;
    assert(usage->pid == 0);
    if (w->hub_near || every == 0 || now - w->measured_at < every) return;
    w->measured_at = now;
    if (!at_usage_read(getpid(), usage)) usage->pid = 0;
}

static void beat(at_mpi_transport *w, at_ns now)
{
    at_worker_note note = {.kind = AT_WORKER_NOTE_PULSE};
    assert(now > 0);
    if (!w->welcomed || w->is_silent || now - w->noted_at < PULSE_EVERY) return;
    if (at_mpi_is_open(w->calls, AT_MPI_CALL_NOTE)) return;
    note.averages = w->gossip && at_mpi_gossip_averages(w->gossip);
    measure(w, now, &note.usage);
    at_mpi_transport_note(w, &note);
}

/* ---- mail ---------------------------------------------------------------------------------- */

static bool is_used(const at_mpi_transport *w, int i)
{
    assert(i >= 0 && i < w->buffers);
    return i == w->open || i == w->fresh || i == w->aside || i == w->installed;
}

/* Starts to receive the next message, if a buffer is free. */
static void receive(at_mpi_transport *w)
{
    assert(w->calls);
    for (int i = 0; w->open == AT_MPI_NO_BUFFER && i < w->buffers; i++)
        if (!is_used(w, i)) w->open = i;
    if (w->open == AT_MPI_NO_BUFFER || at_mpi_is_open(w->calls, AT_MPI_CALL_MAIL)) return;
    at_mpi_receive(w->calls, AT_MPI_CALL_MAIL, w->buffer[w->open].bytes,
                   w->mail_size / AT_MESSAGE_UNIT, 0, AT_MPI_TAG_MAIL);
}

static uint64_t newest(void *self)
{
    const at_mpi_transport *w = self;
    assert(w->buffers >= 1);
    if (w->gossip) return at_mpi_gossip_version(w->gossip);
    int i = w->fresh != AT_MPI_NO_BUFFER   ? w->fresh
            : w->aside != AT_MPI_NO_BUFFER ? w->aside
                                           : w->installed;
    return i == AT_MPI_NO_BUFFER ? AT_VERSION_NONE : w->buffer[i].version;
}

/* Ends this worker's part of the run; the hub is sent the reason. */
static void give_up(at_mpi_transport *w, const at_fail *fail)
{
    assert(fail->err);
    if (!w->fail.err) w->fail = *fail;
    w->leaves = true;
    w->news++;
    at_backoff_end(&w->backoff);
}

static void leave(at_mpi_transport *w)
{
    assert(!w->orphaned || w->leaves);
    w->leaves = w->leave_ordered = true;
}

static at_err read_orders(at_mpi_transport *w, const unsigned char *at, const unsigned char *end,
                          at_fail *fail)
{
    uint32_t samples_max = at_plan_samples_max(w->context->plan);
    uint64_t version = w->gossip ? at_mpi_gossip_version_next(w->gossip) : newest(w);
    assert(at <= end);
    for (; at < end; at += AT_ORDER_MESSAGE) {
        at_order_message order;
        AT_TRY(at_order_message_read(at, (size_t)(end - at), &order, fail));
        if (order.worker != w->id) continue;
        if (order.order.leave) {
            leave(w);
            continue;
        }
        AT_TRY(at_order_message_check(&order, samples_max, version, fail));
        /* Its gradient would still be on the way. */
        if (order.order.again && !at_plan_self_starts(w->context->plan))
            return at_fail_set(fail, AT_ERR_FORMAT, "use the same anytime on all machines",
                               "its message is malformed: rounds without an end in this run");
        w->order = order.order;
        w->ordered = true;
    }
    return AT_OK;
}

/* Changes must lie in the vector, and begin at a version that this worker has. */
static bool are_changes_valid(const at_mpi_transport *w, const at_hub_message *mail)
{
    const at_pair *pair =
        (const at_pair *)(const void *)(w->buffer[w->open].bytes + AT_HUB_MESSAGE_HEAD);
    if (!w->context->task->sparse || w->params_version == AT_VERSION_NONE) return false;
    if (mail->base > w->params_version) return false;
    for (uint64_t i = 0; i < mail->rows; i++)
        if (pair[i].index >= w->context->task->params) return false;
    return true;
}

/* The bytes of the parameters in a message of `size` bytes. */
static at_err check_vector(const at_mpi_transport *w, const at_hub_message *mail, size_t size,
                           size_t *vector, at_fail *fail)
{
    bool changes = mail->base != AT_VERSION_NONE;
    assert(w->open != AT_MPI_NO_BUFFER && size >= AT_HUB_MESSAGE_HEAD);
    *vector = w->packings.params.size;
    if (changes && !at_size_product(mail->rows, sizeof(at_pair), vector)) *vector = SIZE_MAX;
    if (*vector > size - AT_HUB_MESSAGE_HEAD)
        return at_fail_set(fail, AT_ERR_FORMAT, "use the same anytime on all machines",
                           "its message is malformed: %zu bytes are too few for the parameters",
                           size);
    if (!changes || are_changes_valid(w, mail)) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, "use the same anytime on all machines",
                       "its message is malformed: changes of parameters that this worker does not "
                       "have");
}

static at_err read_work(at_mpi_transport *w, const at_hub_message *mail, size_t size, at_fail *fail)
{
    at_mpi_buffer *into = &w->buffer[w->open];
    assert(w->open != AT_MPI_NO_BUFFER);
    if (!w->context) return AT_OK; /* it only waits for the end */
    size_t       vector = 0;
    const float *params = (const float *)(const void *)(into->bytes + AT_HUB_MESSAGE_HEAD);
    if (mail->version != AT_VERSION_NONE) {
        AT_TRY(check_vector(w, mail, size, &vector, fail));
        AT_TRY(at_params_message_check(mail, newest(w), fail));
    }
    if (mail->version != AT_VERSION_NONE && w->gossip) {
        AT_TRY(at_mpi_gossip_adopt(w->gossip, params, mail->version, fail));
    } else if (mail->version != AT_VERSION_NONE) {
        into->version = mail->version;
        into->base = mail->base;
        into->rows = mail->rows;
        w->fresh = w->open; /* and what was fresh before is free */
        w->open = AT_MPI_NO_BUFFER;
    }
    return read_orders(w, into->bytes + AT_HUB_MESSAGE_HEAD + vector, into->bytes + size, fail);
}

static at_err read_welcome(at_mpi_transport *w, const at_hub_message *mail, size_t size,
                           at_fail *fail)
{
    char here[AT_HOST_NAME_SIZE], host[AT_HOST_NAME_SIZE];
    assert(w->open != AT_MPI_NO_BUFFER);
    AT_TRY(at_hub_message_host(w->buffer[w->open].bytes, size, host, fail));
    at_mpi_host(here);
    w->welcomed = true;
    w->welcome = *mail;
    w->hub_near = strcmp(host, here) == 0 && at_alive(mail->pid, mail->born);
    return AT_OK;
}

/* What the hub says about gossip; a rank that only waits for the end ignores it. */
static at_err read_gossip(at_mpi_transport *w, const at_hub_message *mail, size_t size,
                          at_fail *fail)
{
    const unsigned char *bytes = w->buffer[w->open].bytes;
    if (!w->context || w->leaves) return AT_OK;
    if (!w->gossip)
        return at_fail_set(fail, AT_ERR_FORMAT, "use the same anytime on all machines",
                           "its message is malformed: this run has no gossip");
    if (mail->kind == AT_HUB_MESSAGE_GONE) at_mpi_gossip_gone(w->gossip, mail->worker);
    if (mail->kind == AT_HUB_MESSAGE_COLLECT)
        return at_mpi_gossip_collect(w->gossip, mail->version, fail);
    if (mail->kind != AT_HUB_MESSAGE_MIX) return AT_OK;
    const float *gradient = (const float *)(const void *)(w->report[0] + AT_REPORT_MESSAGE_HEAD);
    return at_mpi_gossip_mix(w->gossip, mail, bytes, size, gradient, w->samples, fail);
}

static at_err read_mail(at_mpi_transport *w, const at_mpi_done *done, at_fail *fail)
{
    at_hub_message mail;
    size_t         size = done->units * AT_MESSAGE_UNIT;
    assert(w->open != AT_MPI_NO_BUFFER);
    AT_TRY(at_mpi_check(done->error, "a receive from the hub", fail));
    AT_TRY(at_hub_message_read(w->buffer[w->open].bytes, size, &mail, fail));
    at_failure_detector_beat(&w->hub, w->clock.listened, true);
    switch (mail.kind) {
    case AT_HUB_MESSAGE_WELCOME: AT_TRY(read_welcome(w, &mail, size, fail)); break;
    case AT_HUB_MESSAGE_WORK: AT_TRY(read_work(w, &mail, size, fail)); break;
    case AT_HUB_MESSAGE_PULSE: return AT_OK;
    case AT_HUB_MESSAGE_BYE:
        leave(w);
        w->bye = true;
        w->together = mail.together;
        w->err = mail.err;
        break;
    case AT_HUB_MESSAGE_MIX:
    case AT_HUB_MESSAGE_COLLECT:
    case AT_HUB_MESSAGE_GONE: AT_TRY(read_gossip(w, &mail, size, fail)); break;
    }
    w->news++;
    at_backoff_end(&w->backoff);
    return AT_OK;
}

/* A worker that was ordered to leave waits for BYE without a limit; the others detect that the hub
 * is gone. */
static void watch(at_mpi_transport *w, at_ns now)
{
    assert(now >= w->watched_at);
    if (!w->welcomed || now - w->watched_at < WATCH_EVERY) return;
    w->watched_at = now;
    bool gone = w->hub_near && !at_alive(w->welcome.pid, w->welcome.born);
    bool silent = !w->leave_ordered && at_failure_detector_is_gone(&w->hub, w->clock.listened);
    if (!gone && !silent) return;
    w->orphaned = w->leaves = true;
    w->news++;
}

static void poll_gossip(at_mpi_transport *w)
{
    bool    news = false;
    at_fail fail;
    if (!w->gossip || w->fail.err) return;
    if (at_mpi_gossip_poll(w->gossip, &news, &fail)) give_up(w, &fail);
    if (!news) return;
    w->news++;
    at_backoff_end(&w->backoff);
}

/* ---- the transport --------------------------------------------------------------------------- */

void at_mpi_transport_poll(void *self)
{
    at_mpi_transport  *w = self;
    const at_mpi_done *done;
    at_fail            fail;
    at_ns              now = at_clock_now();
    assert(w->calls);
    at_listening_clock_now(&w->clock, now);
    uint32_t count = at_mpi_poll(w->calls, &done);
    for (uint32_t i = 0; i < count; i++) {
        bool   mail = done[i].call == AT_MPI_CALL_MAIL;
        at_err err = mail ? read_mail(w, &done[i], &fail)
                          : at_mpi_check(done[i].error, "a message to the hub", &fail);
        if (err) at_fail_wrap(&fail, "the hub");
        if (err) give_up(w, &fail);
    }
    if (!w->fail.err && at_mpi_calls_check(w->calls, &fail)) give_up(w, &fail);
    poll_gossip(w);
    receive(w);
    beat(w, now);
    watch(w, now);
}

uint32_t at_mpi_transport_heard(void *self)
{
    at_mpi_transport *w = self;
    at_mpi_transport_poll(w);
    return w->news;
}

/* With a known end the naps need not be short. */
void at_mpi_transport_wait(void *self, uint32_t heard, at_ns until)
{
    at_mpi_transport *w = self;
    at_ns             now = at_clock_now();
    if (w->news != heard) return;
    if (until == AT_NEVER)
        at_backoff_nap(&w->backoff, AT_NEVER);
    else
        at_clock_sleep_until(now + NAP < until ? now + NAP : until);
    at_mpi_transport_poll(w);
}

static bool leaves(void *self)
{
    at_mpi_transport *w = self;
    assert(w->leaves || !(w->leave_ordered || w->orphaned || w->fail.err));
    return w->leaves;
}

bool at_mpi_transport_is_reporting(const at_mpi_transport *w)
{
    bool open = false;
    assert(w->slots <= AT_MPI_GRADIENTS);
    for (uint32_t i = 0; i < w->slots; i++) open = open || at_mpi_is_open(w->calls, i);
    for (uint32_t i = 0; i < w->parts.count; i++)
        open = open || at_mpi_is_open(w->calls, AT_MPI_CALL_PART + i);
    return open;
}

/* Behind a barrier there is one slot, elsewhere the other one is free. */
static bool is_sending(const at_mpi_transport *w)
{
    assert(w->slots >= 1);
    return w->slots == 1 && at_mpi_transport_is_reporting(w);
}

static bool take_order(void *self, at_order *order)
{
    at_mpi_transport *w = self;
    assert(order);
    if (!w->ordered || is_sending(w)) return false; /* its gradient slot is still being read */
    if (w->gossip && at_mpi_gossip_version(w->gossip) < w->order.version) return false;
    *order = w->order;
    w->ordered = false;
    return true;
}

static uint64_t fetch(void *self)
{
    at_mpi_transport *w = self;
    if (w->gossip) return at_mpi_gossip_version(w->gossip);
    assert(w->fresh != AT_MPI_NO_BUFFER);
    assert(w->aside == AT_MPI_NO_BUFFER);
    w->aside = w->fresh;
    w->fresh = AT_MPI_NO_BUFFER;
    return w->buffer[w->aside].version;
}

/* The message has been checked when it arrived. */
static const float *installed_params(at_mpi_transport *w)
{
    const at_packing    *packing = &w->packings.params;
    const at_mpi_buffer *from = &w->buffer[w->installed];
    const void          *bytes = from->bytes + AT_HUB_MESSAGE_HEAD;
    at_fail              fail;
    if (!w->params) return bytes;
    w->params_version = from->version;
    if (from->base != AT_VERSION_NONE) {
        const at_pair *pair = bytes;
        for (uint64_t i = 0; i < from->rows; i++) w->params[pair[i].index] = pair[i].value;
        return w->params;
    }
    at_err err = at_unpack(packing, w->params, bytes, packing->size, &fail);
    assert(!err);
    return w->params;
}

static const float *install(void *self)
{
    at_mpi_transport *w = self;
    if (w->gossip) return at_mpi_gossip_params(w->gossip);
    assert(w->aside != AT_MPI_NO_BUFFER);
    w->installed = w->aside;
    w->aside = AT_MPI_NO_BUFFER;
    receive(w);
    return installed_params(w);
}

static float *gradient(void *self, uint32_t slot)
{
    at_mpi_transport *w = self;
    assert(slot < w->slots);
    assert(!at_mpi_is_open(w->calls, slot));
    if (w->gradient[slot]) return w->gradient[slot];
    return (float *)(void *)(w->report[slot] + AT_REPORT_MESSAGE_HEAD);
}

/* How much of a gradient there is to send, in units. */
static size_t gradient_floats(const at_mpi_transport *w, const at_report *report)
{
    const at_task *task = w->context->task;
    assert(report->slot < w->slots);
    if (report->work.abandoned || report->work.samples == 0 || w->gossip) return 0;
    if (!task->sparse) return w->packings.gradient.size / AT_MESSAGE_UNIT;
    const at_pairs *pairs = (const void *)(w->report[report->slot] + AT_REPORT_MESSAGE_HEAD);
    size_t          size = sizeof *pairs + pairs->count * sizeof *pairs->pair;
    assert(size / sizeof(float) <= task->slot_floats);
    return size / sizeof(float);
}

/* Without a gradient, a part is its first number. */
static void send_part(at_mpi_transport *w, bool whole)
{
    at_slice     part = at_gradient_part(&w->parts, w->parts_sent);
    const float *from = (const float *)(const void *)(w->report[0] + AT_REPORT_MESSAGE_HEAD);
    assert(w->slots == 1);
    at_mpi_send(w->calls, AT_MPI_CALL_PART + w->parts_sent, from + part.first,
                whole ? part.count : 1, 0, AT_MPI_TAG_PART);
    w->parts_sent++;
}

/* MPI sends only while it is called. A call that moves data takes long, because it copies them into
 * the buffer of a socket or of shared memory; when that is full, computing goes on. */
static void push(at_mpi_transport *w)
{
    at_ns since = at_clock_now(), before = since, now = since;
    do {
        before = now;
        at_mpi_transport_poll(w);
        now = at_clock_now();
    } while (now - before > PUSH_MIN && now - since < PUSH_MAX && at_mpi_transport_is_reporting(w));
}

static void send_final(void *self, size_t from)
{
    at_mpi_transport *w = self;
    while (w->parts_sent < w->parts.early &&
           at_gradient_part(&w->parts, w->parts_sent).first >= from)
        send_part(w, true);
    push(w);
}

/* At most one report is outstanding. A worker that leaves does not wait: perhaps it is never
 * received. */
static bool send_report(void *self, const at_report *report)
{
    at_mpi_transport *w = self;
    assert(report->slot < w->slots);
    assert(report->sequence >= 1);
    at_report_message head = {
        .report = *report, .drawn = atomic_load(&w->drawn), .floats = gradient_floats(w, report)};
    bool open = false;
    for (uint32_t i = 0; i < w->slots; i++) open = open || at_mpi_is_open(w->calls, i);
    if (open && !w->leaves) return false;
    if (at_mpi_is_open(w->calls, report->slot)) return true; /* it will not be received any more */
    if (w->residual && head.floats > 0)
        at_pack_with_residual(&w->packings.gradient,
                              w->report[report->slot] + AT_REPORT_MESSAGE_HEAD,
                              w->gradient[report->slot], w->residual);
    at_report_message_write(w->report[report->slot], &head);
    while (w->parts_sent < w->parts.count) send_part(w, head.floats > 0);
    w->parts_sent = 0;
    size_t floats = head.floats > 0 && w->parts.count > 0 ? w->parts.front : head.floats;
    at_mpi_send(w->calls, report->slot, w->report[report->slot],
                AT_REPORT_MESSAGE_HEAD / AT_MESSAGE_UNIT + floats, 0, AT_MPI_TAG_REPORT);
    w->reports++;
    w->samples = report->work.abandoned ? 0 : report->work.samples;
    w->noted_at = at_clock_now();
    at_backoff_end(&w->backoff);
    return true;
}

at_transport at_mpi_transport_of(at_mpi_transport *w)
{
    assert(w->calls && w->context);
    return (at_transport){.self = w,
                          .heard = at_mpi_transport_heard,
                          .wait = at_mpi_transport_wait,
                          .leaves = leaves,
                          .take_order = take_order,
                          .newest = newest,
                          .fetch = fetch,
                          .install = install,
                          .gradient = gradient,
                          .send = send_report,
                          .final = w->parts.count > 0 ? send_final : NULL};
}
