#include "world/seat/seat_remote.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "world/seat/seat_wire.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "vectors are sent as they are in memory");

static at_seat_slot *slot_of(const at_remote *r)
{
    assert(r->file && r->file->memory);
    return r->file->memory;
}

/* ---- receiving ------------------------------------------------------------------------------- */

static size_t groups_size(const at_remote *r)
{
    return r->groups * sizeof(at_seat_group);
}

static size_t collects(void *self, uint32_t kind)
{
    const at_remote *r = self;
    bool             report = kind == AT_SEAT_NET_REPORT && r->file;
    return report ? AT_REPORT_MESSAGE_HEAD + groups_size(r) : SIZE_MAX;
}

/* Reports that wait in the memory of the seat. */
static uint64_t waiting(const at_remote *r)
{
    return atomic_load(&slot_of(r)->sent) - atomic_load(&slot_of(r)->taken);
}

static at_err read_report(at_remote *r, const at_link_message *m, at_fail *fail)
{
    size_t size = AT_REPORT_MESSAGE_HEAD + m->vector_size;
    AT_TRY(at_report_message_read(m->bytes, size, &r->arriving, fail));
    size_t wanted = r->packing ? r->packing->size / AT_MESSAGE_UNIT : r->floats;
    bool   fits = r->arriving.floats == 0 || r->arriving.floats == wanted;
    if (fits && r->arriving.report.slot < r->slots && waiting(r) < AT_SEAT_GRADIENTS) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, NULL, "a report that does not fit its seat");
}

static float *gradient_of(const at_remote *r)
{
    return at_seat_slot_gradient(r->file, r->floats, r->arriving.report.slot);
}

static at_err place(void *self, at_link_message *m, at_fail *fail)
{
    at_remote *r = self;
    AT_TRY(read_report(r, m, fail));
    m->vector = r->packing ? r->packed : gradient_of(r);
    return AT_OK;
}

at_link_receiver at_remote_receiver(at_remote *remote, size_t size_max)
{
    return (at_link_receiver){.self = remote,
                              .kinds = AT_SEAT_MESSAGE_KINDS,
                              .size_max = size_max,
                              .collects = collects,
                              .place = place};
}

at_err at_remote_seat(at_remote *r, const at_remote_place *place, at_fail *fail)
{
    assert(r->link && place->slots <= AT_SEAT_GRADIENTS && place->groups <= AT_SEAT_GROUPS_MAX);
    r->packed = place->packing ? malloc(place->packing->size) : NULL;
    if (place->packing && !r->packed) return at_fail_memory(fail);
    r->packing = place->packing;
    r->file = place->file;
    r->floats = place->floats;
    r->slots = place->slots;
    r->groups = place->groups;
    r->version = AT_VERSION_NONE;
    r->wants = true;
    return AT_OK;
}

void at_remote_deinit(at_remote *r)
{
    at_link_free(r->link);
    free(r->packed);
    *r = (at_remote){0};
}

bool at_remote_is_mine(uint32_t kind)
{
    return kind == AT_SEAT_NET_REPORT || kind == AT_SEAT_NET_WORD;
}

static void set_drawn(at_remote *r, uint64_t drawn)
{
    if (drawn > atomic_load(&slot_of(r)->drawn)) atomic_store(&slot_of(r)->drawn, drawn);
}

static at_err take_report(at_remote *r, const at_link_message *m, at_fail *fail)
{
    at_seat_slot *slot = slot_of(r);
    uint64_t      sent = atomic_load(&slot->sent);
    at_seat_mail *mail = &slot->mail[sent % AT_SEAT_GRADIENTS];
    if (m->vector_size == 0) AT_TRY(read_report(r, m, fail));
    if (m->vector_size > 0 && r->packing)
        AT_TRY(at_unpack(r->packing, gradient_of(r), r->packed, m->vector_size, fail));
    r->received += m->vector_size;
    mail->report = r->arriving.report;
    memcpy(mail->group, m->bytes + AT_REPORT_MESSAGE_HEAD, groups_size(r));
    set_drawn(r, r->arriving.drawn);
    atomic_store(&slot->sent, sent + 1);
    r->wants = true;
    return AT_OK;
}

static void take_score(at_seat_slot *slot, const at_seat_word *word)
{
    uint64_t sent = atomic_load(&slot->scores_sent);
    if (sent - atomic_load(&slot->scores_taken) >= AT_SEAT_SCORES) return;
    slot->score[sent % AT_SEAT_SCORES] = (at_seat_score){word->version, word->accuracy, word->loss};
    atomic_store(&slot->scores_sent, sent + 1);
}

static at_err take_word(at_remote *r, const at_link_message *m, at_fail *fail)
{
    at_seat_word word;
    AT_TRY(at_seat_word_read(m->bytes, m->size, &word, fail));
    set_drawn(r, word.drawn);
    if (word.scored) take_score(slot_of(r), &word);
    atomic_store(&slot_of(r)->aside, word.aside);
    if (word.left) { /* what it says then is final: a micro-batch may have been returned */
        atomic_store(&slot_of(r)->drawn, word.drawn);
        atomic_store(&slot_of(r)->left, true);
    }
    return AT_OK;
}

at_err at_remote_take(at_remote *r, const at_link_message *m, at_fail *fail)
{
    assert(at_remote_is_mine(m->kind));
    if (!r->file) return at_fail_set(fail, AT_ERR_FORMAT, NULL, "a report without a seat");
    return m->kind == AT_SEAT_NET_REPORT ? take_report(r, m, fail) : take_word(r, m, fail);
}

/* ---- sending --------------------------------------------------------------------------------- */

static at_err send_params(at_remote *r, const at_remote_view *view, at_fail *fail)
{
    unsigned char  head[AT_HUB_MESSAGE_HEAD];
    at_hub_message message = {.kind = AT_HUB_MESSAGE_WORK,
                              .version = atomic_load(&view->board->version)};
    r->wants = false;
    if (message.version == r->version) return AT_OK;
    at_hub_message_write(head, &message);
    r->version = message.version;
    r->sent += view->params_size;
    return at_link_post(r->link, AT_SEAT_NET_PARAMS, head, sizeof head, view->params(view->self),
                        view->params_size, fail);
}

static at_err send_order(at_remote *r, const at_remote_view *view, at_fail *fail)
{
    unsigned char    bytes[AT_ORDER_MESSAGE];
    at_order_message message = {.worker = 1, .order = slot_of(r)->order};
    AT_TRY(send_params(r, view, fail));
    r->order_seen = atomic_load(&slot_of(r)->order_lock);
    at_order_message_write(bytes, &message);
    return at_link_post(r->link, AT_SEAT_NET_ORDER, bytes, sizeof bytes, NULL, 0, fail);
}

static at_seat_news news_of(const at_remote *r, const at_seat_board *board)
{
    at_seat_slot *slot = slot_of(r);
    return (at_seat_news){.present = atomic_load(&board->present),
                          .first_rank = atomic_load(&board->first_rank),
                          .samples_used = atomic_load(&board->samples_used),
                          .taken = atomic_load(&slot->taken),
                          .scores_taken = atomic_load(&slot->scores_taken),
                          .publish = atomic_load(&slot->publish),
                          .leave = atomic_load(&slot->leave),
                          .evicted = atomic_load(&slot->evicted)};
}

static bool are_equal(const at_seat_news *a, const at_seat_news *b)
{
    return a->present == b->present && a->first_rank == b->first_rank &&
           a->samples_used == b->samples_used && a->taken == b->taken &&
           a->scores_taken == b->scores_taken && a->publish == b->publish && a->leave == b->leave &&
           a->evicted == b->evicted;
}

static at_err send_news(at_remote *r, const at_seat_news *news, at_fail *fail)
{
    unsigned char bytes[AT_SEAT_NEWS];
    at_seat_news_write(bytes, news);
    r->news = *news;
    return at_link_post(r->link, AT_SEAT_NET_NEWS, bytes, sizeof bytes, NULL, 0, fail);
}

/* Parameters come before the order that needs them, and before the end, so that they are final when
 * it is seen. Nothing is queued behind what a slow seat has not read yet: the others may make many
 * steps meanwhile, and only the newest state counts. */
at_err at_remote_tell(at_remote *r, const at_remote_view *view, at_fail *fail)
{
    AT_TRY(at_link_flush(r->link, fail));
    if (!at_link_is_idle(r->link)) return AT_OK;
    at_seat_news news = news_of(r, view->board);
    bool         joins = r->version == AT_VERSION_NONE;
    bool         wished = r->wants && view->on_wish;
    if (news.leave && !r->news.leave) wished = true;
    if (joins || wished || view->streams) AT_TRY(send_params(r, view, fail));
    bool ordered = atomic_load(&slot_of(r)->order_lock) != r->order_seen;
    if (!are_equal(&news, &r->news)) AT_TRY(send_news(r, &news, fail));
    if (ordered) AT_TRY(send_order(r, view, fail));
    return at_link_flush(r->link, fail);
}
