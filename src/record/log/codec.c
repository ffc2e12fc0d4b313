#include "record/log/codec.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The first byte of a record: capitals for events, small letters for actions. These letters are the
 * file format and independent of the order of the enums. */
static const unsigned char event_code[] = {
    [AT_EV_START] = 'S',   [AT_EV_JOINED] = 'J',    [AT_EV_LOST] = 'L',  [AT_EV_MESSAGE] = 'M',
    [AT_EV_APPLIED] = 'A', [AT_EV_EVALUATED] = 'E', [AT_EV_TIMER] = 'T', [AT_EV_STOP] = 'X',
};
static const unsigned char action_code[] = {
    [AT_ACT_SEND] = 's',   [AT_ACT_TIMER] = 't',    [AT_ACT_ADD] = '+',  [AT_ACT_APPLY] = 'a',
    [AT_ACT_DROP] = 'd',   [AT_ACT_EVALUATE] = 'e', [AT_ACT_SAVE] = 'k', [AT_ACT_EVICT] = 'v',
    [AT_ACT_NOTICE] = 'n', [AT_ACT_FINISH] = 'f',
};
static const unsigned char text_code = '"', usage_code = '%', link_code = '@', totals_code = '=';

/* Makes room for the last values of this worker; false when there is no memory. */
static bool reach_worker(at_codec *codec, at_node worker)
{
    enum { COUNT_FIRST = 64 };
    assert(worker <= AT_WORKERS_MAX);
    size_t count = codec->last_count ? codec->last_count : COUNT_FIRST;
    while (count <= worker) count *= 2;
    if (count == codec->last_count) return true;
    at_codec_last *last = realloc(codec->last, count * sizeof *last);
    if (!last) return false;
    memset(last + codec->last_count, 0, (count - codec->last_count) * sizeof *last);
    codec->last = last;
    codec->last_count = count;
    return true;
}

at_codec *at_codec_new(bool writes)
{
    at_codec *codec = calloc(1, sizeof *codec);
    if (!codec) return NULL;
    codec->wire.writes = writes;
    if (!reach_worker(codec, 0)) {
        free(codec);
        return NULL;
    }
    return codec;
}

void at_codec_free(at_codec *codec)
{
    if (!codec) return;
    at_wire_deinit(&codec->wire);
    free(codec->pieces);
    free(codec->totals);
    free(codec->last);
    free(codec);
}

static at_codec_last *code_worker(at_codec *codec, at_node *worker)
{
    at_wire_u32(&codec->wire, worker);
    if (*worker > AT_WORKERS_MAX) {
        codec->wire.bad = "worker number out of range";
        *worker = 0;
    }
    if (!reach_worker(codec, *worker)) {
        codec->wire.bad = "not enough memory";
        *worker = 0;
    }
    return &codec->last[*worker];
}

static void code_work(at_codec *codec, at_work *work, at_codec_last *last)
{
    assert(last);
    bool  nonfinite = work->nonfinite > 0;
    bool *flags[] = {&work->abandoned, &work->capped, &work->overslept, &nonfinite};
    at_wire_delta(&codec->wire, &work->round, &last->round);
    at_wire_delta(&codec->wire, &work->version, &last->version);
    at_wire_delta_u32(&codec->wire, &work->samples, &last->samples);
    at_wire_flags(&codec->wire, flags, 4);
    if (nonfinite) at_wire_u64(&codec->wire, &work->nonfinite);
    at_wire_real(&codec->wire, &work->loss_sum);
    at_wire_i64(&codec->wire, &work->compute_ns);
    at_wire_i64(&codec->wire, &work->sleep_ns);
    at_wire_i64(&codec->wire, &work->overshoot_ns);
    at_wire_i64(&codec->wire, &work->idle_ns);
    at_wire_i64(&codec->wire, &work->install_ns);
    at_wire_i64(&codec->wire, &work->send_ns);
}

static void code_report(at_codec *codec, at_report *report, at_codec_last *last)
{
    assert(last >= codec->last);
    assert(last < codec->last + codec->last_count);
    at_wire_delta_u32(&codec->wire, &report->incarnation, &last->incarnation);
    at_wire_delta_u32(&codec->wire, &report->slot, &last->slot);
    at_wire_delta(&codec->wire, &report->sequence, &last->sequence);
    at_wire_flag(&codec->wire, &report->again);
    code_work(codec, &report->work, last);
}

static void code_order(at_codec *codec, at_order *order, at_codec_last *last)
{
    assert(last);
    bool *flags[] = {&order->again, &order->leave, &order->pause, &order->then};
    at_wire_delta(&codec->wire, &order->round, &last->order_round);
    at_wire_delta(&codec->wire, &order->version, &last->order_version);
    uint64_t position = order->position + 1; /* AT_POSITION_OWN becomes 0 */
    at_wire_u64(&codec->wire, &position);
    order->position = position - 1;
    at_wire_delta_i64(&codec->wire, &order->time_limit, &codec->base.time_limit);
    at_wire_delta_u32(&codec->wire, &order->samples_max, &last->samples_max);
    at_wire_flags(&codec->wire, flags, 4);
}

/* A piece repeats fields of its report, so nearly all differences are 0. */
static void code_piece(at_codec *codec, at_piece *piece)
{
    at_codec_last *last = code_worker(codec, &piece->worker);
    at_wire_delta_u32(&codec->wire, &piece->slot, &last->slot);
    at_wire_delta_u32(&codec->wire, &piece->samples, &last->samples);
    at_wire_delta_u32(&codec->wire, &piece->incarnation, &last->incarnation);
    at_wire_delta(&codec->wire, &piece->sequence, &last->sequence);
    at_wire_delta(&codec->wire, &piece->version, &last->version);
    bool is_weighted = piece->weight != 1;
    at_wire_flag(&codec->wire, &is_weighted);
    if (is_weighted)
        at_wire_real(&codec->wire, &piece->weight);
    else
        piece->weight = 1;
}

/* Room for one more piece. Grows with the pieces actually read, not with the count in the file. */
static bool grow_pieces(at_codec *codec, size_t count)
{
    assert(count <= codec->pieces_size);
    if (count < codec->pieces_size) return true;
    size_t    size = codec->pieces_size ? 2 * codec->pieces_size : 64;
    at_piece *more = realloc(codec->pieces, size * sizeof *more);
    if (!more) {
        codec->wire.bad = "not enough memory";
        return false;
    }
    codec->pieces = more;
    codec->pieces_size = size;
    return true;
}

static void read_pieces(at_codec *codec, uint32_t count)
{
    assert(!codec->wire.writes);
    if (count > AT_PIECES_MAX) codec->wire.bad = "too many gradients in one step";
    for (uint32_t i = 0; i < count && !codec->wire.bad; i++) {
        if (!grow_pieces(codec, i)) return;
        memset(&codec->pieces[i], 0, sizeof codec->pieces[i]);
        code_piece(codec, &codec->pieces[i]);
    }
}

/* Omitted when it is 1, which it is without --lr-scale. */
static void code_lr_factor(at_codec *codec, double *factor)
{
    bool is_scaled = *factor != 1;
    at_wire_flag(&codec->wire, &is_scaled);
    if (is_scaled)
        at_wire_real(&codec->wire, factor);
    else
        *factor = 1;
}

static void code_apply(at_codec *codec, at_action *action, at_record *record)
{
    uint32_t count = action->as.apply.count;
    at_wire_u64(&codec->wire, &action->as.apply.step);
    at_wire_u64(&codec->wire, &action->as.apply.samples);
    at_wire_u64(&codec->wire, &action->as.apply.samples_used);
    at_wire_flag(&codec->wire, &action->as.apply.folded);
    at_wire_real(&codec->wire, &action->as.apply.loss_sum);
    at_wire_i64(&codec->wire, &action->as.apply.wait_ns);
    code_lr_factor(codec, &action->as.apply.lr_factor);
    at_wire_real(&codec->wire, &record->lr);
    at_wire_i64(&codec->wire, &record->took);
    at_wire_u32(&codec->wire, &count);
    if (codec->wire.writes) {
        assert(count <= AT_PIECES_MAX);
        for (uint32_t i = 0; i < count; i++) {
            at_piece piece = action->as.apply.pieces[i];
            code_piece(codec, &piece);
        }
        return;
    }
    read_pieces(codec, count);
    action->as.apply.count = count;
    action->as.apply.pieces = codec->pieces;
}

static void code_evaluated(at_codec *codec, at_event *event, at_record *record)
{
    uint64_t now = codec->base.now;
    at_wire_u64(&codec->wire, &event->as.evaluated.step);
    at_wire_delta_i64(&codec->wire, &event->as.evaluated.at, &now);
    for (int i = 0; i < AT_METRIC_COUNT; i++) {
        bool known = !isnan(event->as.evaluated.value[i]);
        at_wire_flag(&codec->wire, &known);
        if (known)
            at_wire_real(&codec->wire, &event->as.evaluated.value[i]);
        else
            event->as.evaluated.value[i] = NAN;
    }
    at_wire_u64(&codec->wire, &record->count);
    at_wire_flag(&codec->wire, &record->final);
}

/* Only few size rules need the norms. */
static void code_applied(at_codec *codec, at_event *event)
{
    bool has_norms = event->as.applied.norm2_step != 0 || event->as.applied.norm2_piece != 0;
    at_wire_flag(&codec->wire, &has_norms);
    if (!has_norms) return; /* when reading, the event is zeroed */
    at_wire_real(&codec->wire, &event->as.applied.norm2_step);
    at_wire_real(&codec->wire, &event->as.applied.norm2_piece);
}

static void code_event_fields(at_codec *codec, at_event *event, at_record *record,
                              at_codec_last *last)
{
    switch (event->kind) {
    case AT_EV_JOINED:
        at_wire_u32(&codec->wire, &event->as.joined.incarnation);
        at_wire_i64(&codec->wire, &record->pid);
        break;
    case AT_EV_LOST:
        at_wire_u64(&codec->wire, &event->as.lost.drawn);
        at_wire_flags(&codec->wire, (bool *const[]){&event->as.lost.returns, &event->as.lost.left},
                      2);
        at_wire_text(&codec->wire, &record->text);
        break;
    case AT_EV_MESSAGE: code_report(codec, &event->as.report, last); break;
    case AT_EV_EVALUATED: code_evaluated(codec, event, record); break;
    case AT_EV_TIMER:
        event->as.timer = (at_timer)at_wire_choice(&codec->wire, event->as.timer, AT_TIMER_COUNT);
        break;
    case AT_EV_APPLIED: code_applied(codec, event); break;
    case AT_EV_START:
    case AT_EV_STOP: break;
    }
}

static void code_event(at_codec *codec, at_event *event, at_record *record)
{
    uint64_t gap = (uint64_t)event->now - codec->base.at;
    at_wire_delta(&codec->wire, &gap, &codec->base.now_gap);
    codec->base.now = codec->base.at + gap;
    event->now = (at_ns)codec->base.now;
    at_codec_last *last = code_worker(codec, &event->worker);
    code_event_fields(codec, event, record, last);
}

static void code_drop(at_codec *codec, at_action *action)
{
    at_wire_u64(&codec->wire, &action->as.drop.sequence);
    at_wire_u64(&codec->wire, &action->as.drop.samples);
    at_wire_u64(&codec->wire, &action->as.drop.version);
    action->as.drop.why = (at_drop)at_wire_choice(&codec->wire, action->as.drop.why, AT_DROP_COUNT);
}

static void code_timer(at_codec *codec, at_action *action)
{
    uint64_t now = codec->base.now;
    action->as.timer.timer =
        (at_timer)at_wire_choice(&codec->wire, action->as.timer.timer, AT_TIMER_COUNT);
    at_wire_delta_i64(&codec->wire, &action->as.timer.at, &now);
}

static void code_action(at_codec *codec, at_action *action, at_record *record)
{
    at_wire       *wire = &codec->wire;
    at_codec_last *last = code_worker(codec, &action->worker);
    switch (action->kind) {
    case AT_ACT_SEND: code_order(codec, &action->as.order, last); break;
    case AT_ACT_TIMER: code_timer(codec, action); break;
    case AT_ACT_ADD: code_piece(codec, &action->as.add); break;
    case AT_ACT_APPLY: code_apply(codec, action, record); break;
    case AT_ACT_DROP: code_drop(codec, action); break;
    case AT_ACT_EVALUATE: at_wire_u64(wire, &action->as.evaluate.step); break;
    case AT_ACT_SAVE:
        at_wire_u64(wire, &action->as.save.step);
        at_wire_flag(wire, &action->as.save.last);
        action->as.save.snapshot = NULL;
        break;
    case AT_ACT_NOTICE:
        at_wire_i64(wire, &action->as.notice.waited);
        at_wire_u64(wire, &action->as.notice.step);
        break;
    case AT_ACT_FINISH:
        action->as.finish.why = (at_end)at_wire_choice(wire, action->as.finish.why, AT_END_COUNT);
        break;
    case AT_ACT_EVICT: break;
    }
}

/* Stored plus 1, so that AT_USAGE_UNKNOWN becomes 0. */
static void code_counter(at_wire *wire, uint64_t *value)
{
    uint64_t shifted = *value + 1;
    at_wire_u64(wire, &shifted);
    *value = shifted - 1;
}

/* Not as differences: one record per second and process need not be compact. */
static void code_usage(at_wire *wire, at_node *node, at_usage *usage)
{
    uint64_t *counters[] = {&usage->rss_bytes,     &usage->shared_bytes,  &usage->peak_bytes,
                            &usage->read_bytes,    &usage->write_bytes,   &usage->net_in_bytes,
                            &usage->net_out_bytes, &usage->loopback_bytes};
    assert(!wire->writes || *node <= AT_NODE_EVALUATOR);
    at_wire_u32(wire, node);
    if (*node > AT_NODE_EVALUATOR) wire->bad = "process number out of range";
    at_wire_i64(wire, &usage->pid);
    at_wire_i64(wire, &usage->user_ns);
    at_wire_i64(wire, &usage->system_ns);
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) code_counter(wire, counters[i]);
}

static void code_name(at_wire *wire, char name[AT_LINK_NAME_SIZE])
{
    const char *text = wire->writes ? name : NULL;
    at_wire_text(wire, &text);
    if (!wire->writes) at_link_name_set(name, text ? text : "");
}

static void code_link(at_wire *wire, at_node *node, at_link_stats *link)
{
    at_wire_u32(wire, node);
    code_name(wire, link->host);
    code_name(wire, link->address);
    at_wire_i64(wire, &link->round_trip_ns);
    at_wire_i64(wire, &link->round_trip_ns_min);
    at_wire_u64(wire, &link->sent_bytes);
    at_wire_u64(wire, &link->received_bytes);
    at_wire_u64(wire, &link->resent_packets);
}

/* All the rest of the record. */
static void code_totals(at_codec *codec, at_record *record)
{
    at_wire *wire = &codec->wire;
    if (wire->writes) {
        at_wire_put(wire, record->text, strlen(record->text));
        return;
    }
    size_t size = wire->size - wire->next;
    char  *more = size < codec->totals_size ? codec->totals : realloc(codec->totals, size + 1);
    if (!more) {
        wire->bad = "not enough memory";
        return;
    }
    if (more != codec->totals) codec->totals_size = size + 1;
    codec->totals = more;
    memcpy(more, wire->bytes + wire->next, size);
    more[size] = '\0';
    wire->next += size;
    record->text = more;
}

/* Everything after the letter; the kinds of record, event and action are set. */
static void code_record(at_codec *codec, at_record *record, at_event *event, at_action *action)
{
    at_wire_delta_i64(&codec->wire, &record->at, &codec->base.at);
    at_wire_delta(&codec->wire, &record->version, &codec->base.version);
    if (record->kind == AT_REC_EVENT) code_event(codec, event, record);
    if (record->kind == AT_REC_ACTION) code_action(codec, action, record);
    if (record->kind == AT_REC_TEXT) at_wire_text(&codec->wire, &record->text);
    if (record->kind == AT_REC_TOTALS) code_totals(codec, record);
    if (record->kind == AT_REC_USAGE) code_usage(&codec->wire, &record->node, &codec->usage);
    if (record->kind == AT_REC_LINK) code_link(&codec->wire, &record->node, &codec->link);
}

static unsigned char letter_of(const at_record *record)
{
    if (record->kind == AT_REC_EVENT) return event_code[record->event->kind];
    if (record->kind == AT_REC_ACTION) return action_code[record->action->kind];
    if (record->kind == AT_REC_LINK) return link_code;
    if (record->kind == AT_REC_TOTALS) return totals_code;
    return record->kind == AT_REC_USAGE ? usage_code : text_code;
}

bool at_codec_write(at_codec *codec, const at_record *record)
{
    assert(record->kind <= AT_REC_TOTALS);
    at_wire  *wire = &codec->wire;
    uint64_t  letter = letter_of(record);
    at_record copy = *record; /* the code_* functions take values they could also change */
    assert(letter > 0 && letter < 0x80);
    at_wire_write(wire);
    at_wire_u64(wire, &letter); /* one byte */
    if (record->event) codec->event = *record->event;
    if (record->action) codec->action = *record->action;
    if (record->usage) codec->usage = *record->usage;
    if (record->link) codec->link = *record->link;
    code_record(codec, &copy, &codec->event, &codec->action);
    return !wire->bad;
}

/* Sets the kinds for a letter; false when it is unknown. */
static bool find_kind(at_codec *codec, unsigned char letter, at_record *record)
{
    assert(!codec->wire.writes);
    const unsigned char *event = memchr(event_code, letter, sizeof event_code);
    const unsigned char *action = memchr(action_code, letter, sizeof action_code);
    *record = (at_record){.kind = AT_REC_TEXT};
    if (event) {
        memset(&codec->event, 0, sizeof codec->event);
        codec->event.kind = (at_event_kind)(event - event_code);
        record->kind = AT_REC_EVENT;
        record->event = &codec->event;
    } else if (action) {
        memset(&codec->action, 0, sizeof codec->action);
        codec->action.kind = (at_action_kind)(action - action_code);
        record->kind = AT_REC_ACTION;
        record->action = &codec->action;
    } else if (letter == usage_code) {
        codec->usage = (at_usage){0};
        record->kind = AT_REC_USAGE;
        record->usage = &codec->usage;
    } else if (letter == link_code) {
        codec->link = (at_link_stats){0};
        record->kind = AT_REC_LINK;
        record->link = &codec->link;
    } else if (letter == totals_code) {
        record->kind = AT_REC_TOTALS;
    } else {
        return letter == text_code;
    }
    return true;
}

bool at_codec_read(at_codec *codec, const unsigned char *bytes, size_t size, at_record *record)
{
    at_wire *wire = &codec->wire;
    at_wire_read(wire, bytes, size);
    if (size == 0 || !find_kind(codec, bytes[0], record)) {
        wire->bad = "unknown kind of record";
        return false;
    }
    wire->next = 1;
    code_record(codec, record, &codec->event, &codec->action);
    if (!wire->bad && wire->next < size) wire->bad = "the record is too long";
    return !wire->bad;
}
