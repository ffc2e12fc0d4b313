/* A seat whose hub is on another machine. Its memory is like the one a hub on this machine would
 * share; messages keep it up to date in both directions (the hub's side: seat_remote.h). They move
 * whenever the program calls the library, never while it computes. */
#include <assert.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "message/message.h"
#include "net/socket.h"
#include "world/seat/seat_client.h"

enum { MESSAGE_MAX = 1 << 20 };
static const at_ns CONNECT_TIME = AT_SEC(10);
static const at_ns WORD_TIME = AT_SEC(5);
static const at_ns LOOK_EVERY = AT_MS(200); /* whether to stop */

static const at_seat_part nothing = {0};

/* ---- receiving ------------------------------------------------------------------------------- */

static size_t collects(void *self, uint32_t kind)
{
    (void)self;
    return kind == AT_SEAT_NET_PARAMS ? AT_HUB_MESSAGE_HEAD : SIZE_MAX;
}

/* Where new parameters go. */
static float *arriving(const at_seat *s)
{
    return s->incoming ? s->incoming : s->newest;
}

static at_err place(void *self, at_link_message *m, at_fail *fail)
{
    at_seat *s = self;
    size_t   size = s->packs_params ? s->packs_params->size : s->spec.floats * sizeof(float);
    if (!s->newest || m->vector_size != size)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "the hub sent parameters of another size");
    m->vector = s->packs_params ? s->packed_params : arriving(s);
    return AT_OK;
}

static at_err take_params(at_seat *s, const at_link_message *m, at_fail *fail)
{
    at_hub_message    message;
    _Atomic uint64_t *version = &at_seat_board_of(s)->version;
    AT_TRY(at_hub_message_read(m->bytes, m->size, &message, fail));
    if (message.kind != AT_HUB_MESSAGE_WORK || message.version == AT_VERSION_NONE ||
        m->vector_size == 0)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "an unexpected message from the hub");
    AT_TRY(at_params_message_check(&message, s->has_params ? atomic_load(version) : AT_VERSION_NONE,
                                   fail));
    if (s->packs_params)
        AT_TRY(at_unpack(s->packs_params, arriving(s), m->vector, m->vector_size, fail));
    if (s->incoming) {
        float *arrived = s->incoming;
        s->incoming = s->newest;
        s->newest = arrived;
    }
    atomic_store(version, message.version);
    s->has_params = true;
    return AT_OK;
}

static at_err take_order(at_seat *s, const at_link_message *m, at_fail *fail)
{
    at_order_message message;
    at_seat_slot    *slot = at_seat_slot_of(s);
    uint64_t         version = atomic_load(&at_seat_board_of(s)->version);
    AT_TRY(at_order_message_read(m->bytes, m->size, &message, fail));
    if (message.order.leave) /* which is part of the news */
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "an unexpected message from the hub");
    AT_TRY(at_order_message_check(&message, INT32_MAX, version, fail));
    slot->order = message.order;
    atomic_fetch_add(&slot->order_lock, 2);
    return AT_OK;
}

static at_err take_news(at_seat *s, const at_link_message *m, at_fail *fail)
{
    at_seat_news   news;
    at_seat_slot  *slot = at_seat_slot_of(s);
    at_seat_board *board = at_seat_board_of(s);
    AT_TRY(at_seat_news_read(m->bytes, m->size, &news, fail));
    atomic_store(&board->present, news.present);
    atomic_store(&board->first_rank, news.first_rank);
    atomic_store(&board->samples_used, news.samples_used);
    atomic_store(&slot->taken, news.taken);
    atomic_store(&slot->scores_taken, news.scores_taken);
    atomic_store(&slot->publish, news.publish);
    atomic_store(&slot->leave, news.leave);
    atomic_store(&slot->evicted, news.evicted);
    return AT_OK;
}

/* Messages of rounds are taken at once; true for them. */
static bool take_round(at_seat *s, at_err *err, at_fail *fail)
{
    const at_link_message *m = &s->link->message;
    bool                   round = m->kind == AT_SEAT_NET_PARAMS || m->kind == AT_SEAT_NET_ORDER ||
                 m->kind == AT_SEAT_NET_NEWS;
    if (!round || s->stage < AT_SEAT_STAGE_SEATED) return false;
    *err = m->kind == AT_SEAT_NET_PARAMS  ? take_params(s, m, fail)
           : m->kind == AT_SEAT_NET_ORDER ? take_order(s, m, fail)
                                          : take_news(s, m, fail);
    s->arrivals++;
    at_link_next(s->link);
    return true;
}

/* Sends and receives what is possible now, until a message for somebody else is complete. */
static at_err move_bytes(at_seat *s, at_fail *fail)
{
    at_link *link = s->link;
    AT_TRY(at_link_flush(link, fail));
    while (!s->inbox.complete) {
        at_err err = AT_OK;
        AT_TRY(at_link_receive(link, fail));
        if (link->more) continue;
        if (!link->complete) break;
        if (!take_round(s, &err, fail)) at_seat_inbox_adopt(&s->inbox, s->link);
        AT_TRY(err);
    }
    return AT_OK;
}

void at_seat_pump(at_seat *s)
{
    at_fail fail;
    if (s->lost) return;
    bool failed = move_bytes(s, &fail) != AT_OK;
    s->lost = failed || s->inbox.complete; /* nobody has asked for a message */
}

/* Whether bytes came before `until`. */
static at_err await_bytes(at_seat *s, at_ns until, bool *interrupted, bool *ready, at_fail *fail)
{
    for (;;) {
        at_ns look = s->stops ? at_clock_now() + LOOK_EVERY : until;
        if (s->stops && s->stops())
            return at_fail_set(fail, AT_ERR_MISSING, NULL, "told not to wait for the hub");
        if (look > until) look = until;
        *ready = s->link ? at_link_await(s->link, look, interrupted)
                         : at_seat_await(s->fd, look, interrupted);
        if (*ready || look == until || (interrupted && *interrupted)) return AT_OK;
    }
}

at_err at_seat_hear(at_seat *s, at_ns until, bool *interrupted, at_fail *fail)
{
    for (;;) {
        bool     ready;
        uint32_t before = s->arrivals;
        if (s->link)
            AT_TRY(move_bytes(s, fail));
        else
            AT_TRY(at_seat_inbox_read(&s->inbox, s->fd, fail));
        if (s->inbox.complete || s->arrivals != before) return AT_OK;
        AT_TRY(await_bytes(s, until, interrupted, &ready, fail));
        if (!ready) return AT_OK;
    }
}

/* Sending has failed, and would fail again, so this only receives. */
bool at_seat_hears_refusal(at_seat *s)
{
    at_fail ignored;
    bool    connected = s->link || s->fd >= 0;
    while (connected) {
        if (s->inbox.complete && s->inbox.kind == AT_SEAT_REFUSED) return true;
        if (s->inbox.complete) at_seat_inbox_next(&s->inbox);
        connected = (s->link ? at_link_receive(s->link, &ignored)
                             : at_seat_inbox_read(&s->inbox, s->fd, &ignored)) == AT_OK;
        if (s->link && s->link->complete) at_seat_inbox_adopt(&s->inbox, s->link);
        connected = connected && (s->inbox.complete || (s->link && s->link->more));
    }
    return false;
}

/* ---- sending --------------------------------------------------------------------------------- */

static at_err too_slow(at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_MISSING, NULL, "the hub does not read its messages");
}

at_err at_seat_tell(at_seat *s, at_seat_message_kind kind, at_seat_part first, at_seat_part second,
                    at_ns until, at_fail *fail)
{
    if (!s->link) return at_seat_send(s->fd, kind, first, second, NULL, until, fail);
    AT_TRY(at_link_post(s->link, kind, first.bytes, first.size, second.bytes, second.size, fail));
    for (;;) {
        AT_TRY(at_link_flush(s->link, fail));
        if (at_link_is_idle(s->link)) return AT_OK;
        if (!at_link_await(s->link, until, NULL)) return too_slow(fail);
        AT_TRY(move_bytes(s, fail)); /* the hub may be waiting for us to read */
    }
}

/* The gradient as it is sent. It stays there until the report was sent. */
static const void *vector_to_send(at_seat *s, uint32_t slot, size_t *size)
{
    const float *gradient = at_seat_slot_gradient(&s->slot_file, s->spec.floats, slot);
    *size = s->packs_gradient ? s->packs_gradient->size : s->spec.floats * sizeof(float);
    if (!s->packs_gradient) return gradient;
    at_pack_with_residual(s->packs_gradient, s->packed_gradient, gradient, s->residual);
    return s->packed_gradient;
}

static at_err post_report(at_seat *s, const at_report *report, at_fail *fail)
{
    unsigned char     head[AT_REPORT_MESSAGE_HEAD + sizeof s->group];
    at_seat_slot     *slot = at_seat_slot_of(s);
    bool              empty = report->work.abandoned || report->work.samples == 0;
    size_t            size = 0, groups = s->spec.groups * sizeof *s->group;
    const void       *vector = empty ? NULL : vector_to_send(s, report->slot, &size);
    at_report_message message = {
        .report = *report, .drawn = atomic_load(&slot->drawn), .floats = size / AT_MESSAGE_UNIT};
    at_report_message_write(head, &message);
    memcpy(head + AT_REPORT_MESSAGE_HEAD, s->group, groups);
    return at_link_post(s->link, AT_SEAT_NET_REPORT, head, AT_REPORT_MESSAGE_HEAD + groups, vector,
                        size, fail);
}

/* It is sent when the system has taken all of it, so that its memory is free again. */
bool at_seat_link_report(at_seat *s, const at_report *report)
{
    at_seat_slot *slot = at_seat_slot_of(s);
    uint64_t      sent = atomic_load(&slot->sent);
    at_fail       fail;
    if (!s->reporting) {
        if (atomic_load(&slot->taken) < sent && !atomic_load(&slot->leave)) return false;
        if (post_report(s, report, &fail)) s->lost = true;
        s->reporting = true;
        atomic_store(&slot->sent, sent + 1);
    }
    at_seat_pump(s);
    s->reporting = !s->lost && !at_link_is_idle(s->link);
    return !s->reporting;
}

void at_seat_link_word(at_seat *s, const at_seat_score *score)
{
    unsigned char bytes[AT_SEAT_WORD];
    at_seat_slot *slot = at_seat_slot_of(s);
    at_fail       fail;
    at_seat_word  word = {.drawn = atomic_load(&slot->drawn),
                          .aside = atomic_load(&slot->aside),
                          .left = atomic_load(&slot->left)};
    if (s->lost) return;
    if (score) {
        word.scored = true;
        word.version = score->version;
        word.accuracy = score->accuracy;
        word.loss = score->loss;
    }
    at_seat_word_write(bytes, &word);
    if (at_seat_tell(s, AT_SEAT_NET_WORD, (at_seat_part){bytes, sizeof bytes}, nothing,
                     at_clock_now() + WORD_TIME, &fail))
        s->lost = true;
}

/* ---- start ----------------------------------------------------------------------------------- */

static at_err greet(at_seat *s, at_fail *fail)
{
    at_seat_challenge greeting = {.protocol = AT_SEAT_PROTOCOL};
    if (RAND_bytes(s->nonce, sizeof s->nonce) != 1)
        return at_fail_set(fail, AT_ERR_FAILED, NULL, "no random numbers");
    memcpy(greeting.nonce, s->nonce, sizeof greeting.nonce);
    return at_link_post(s->link, AT_SEAT_GREETING, &greeting, sizeof greeting, NULL, 0, fail);
}

static at_err dial_one(at_seat *s, const char *hub, at_fail *fail)
{
    at_net_address   address;
    at_link_receiver receiver = {.self = s,
                                 .kinds = AT_SEAT_MESSAGE_KINDS,
                                 .size_max = MESSAGE_MAX,
                                 .collects = collects,
                                 .place = place};
    bool             loopback;
    int              fd;
    assert(!s->link);
    AT_TRY(at_net_address_parse(hub, &address, fail));
    if (!s->tls) AT_TRY(at_tls_new(s->token, &s->tls, fail));
    AT_TRY(at_net_connect(&address, at_clock_now() + CONNECT_TIME, s->stops, &fd, &loopback, fail));
    bool encrypts = address.encrypted || !loopback;
    AT_TRY(at_link_connected(fd, s->tls, encrypts, &receiver, &s->link, fail));
    return greet(s, fail);
}

/* A hub that stands by does not listen before it has taken over: the first that answers is it. */
at_err at_seat_dial(at_seat *s, const char *hub, at_fail *fail)
{
    char        list[AT_NET_LIST_SIZE], address[AT_NET_TEXT_SIZE];
    const char *rest = list;
    at_err      err;
    AT_TRY(at_net_list_read(hub, list, fail));
    do {
        rest = at_net_list_next(rest, address);
        err = dial_one(s, address, fail);
    } while (err == AT_ERR_MISSING && *rest);
    return err;
}

at_err at_seat_link_pack(at_seat *s, const at_packings *packings, at_fail *fail)
{
    free(s->packed_params); /* of an earlier seat, as the next ones */
    free(s->packed_gradient);
    free(s->residual);
    s->packed_params = s->packed_gradient = s->residual = NULL;
    s->packings = *packings;
    s->packs_params = at_packing_used(&s->packings.params);
    s->packs_gradient = at_packing_used(&s->packings.gradient);
    if (s->packs_params) s->packed_params = malloc(packings->params.size);
    if (s->packs_gradient) {
        s->packed_gradient = malloc(packings->gradient.size);
        s->residual = calloc(packings->gradient.packed + 1, sizeof *s->residual);
    }
    bool enough = !s->packs_gradient || (s->packed_gradient && s->residual);
    return enough && (!s->packs_params || s->packed_params) ? AT_OK : at_fail_memory(fail);
}

at_err at_seat_link_memory(at_seat *s, at_fail *fail)
{
    size_t params, slot, vector;
    if (!at_seat_params_size(s->spec.floats, &params) ||
        !at_seat_slot_size(s->spec.floats, AT_SEAT_GRADIENTS, &slot) ||
        !at_size_product(s->spec.floats, sizeof(float), &vector))
        return at_fail_memory(fail);
    if (!s->params_file.memory) { /* else: of an earlier seat */
        AT_TRY(at_seat_file_private(params, &s->params_file, fail));
        AT_TRY(at_seat_file_private(at_seat_bells_size(), &s->bells_file, fail));
        AT_TRY(at_seat_file_private(slot, &s->slot_file, fail));
        s->newest = at_seat_floats(&s->params_file);
    }
    if (s->in_place || s->incoming) return AT_OK; /* in place: nothing arrives while it computes */
    AT_TRY(at_seat_file_private(vector, &s->incoming_file, fail));
    s->incoming = s->incoming_file.memory;
    return AT_OK;
}
