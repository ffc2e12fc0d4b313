/* Each format is described once, by a function that writes or reads depending on the cursor, so the
 * two directions cannot drift apart. */
#include "message/message.h"

#include <assert.h>
#include <string.h>

enum {
    HUB_MAGIC = 0x61746d31,
    REPORT_MAGIC = 0x61747231,
    NOTE_MAGIC = 0x61746e31,
    TURN_MAGIC = 0x61747431,
    VECTOR_MAGIC = 0x61747631
};

typedef struct cursor {
    unsigned char *begin, *at, *end;
    bool           writes;
    at_fail       *fail; /* reading: what is wrong, once something is */
} cursor;

static bool is_bad(const cursor *c)
{
    return c->fail && c->fail->err;
}

/* Notes what is wrong with the message, unless something was wrong before. */
static void reject(cursor *c, bool wrong, const char *what, uint64_t value)
{
    assert(what);
    if (c->writes || !wrong || is_bad(c)) return;
    at_fail_set(c->fail, AT_ERR_FORMAT, "use the same anytime on all machines",
                "its message is malformed: %s (%llu)", what, (unsigned long long)value);
}

/* True when `size` more bytes are there. */
static bool has(cursor *c, size_t size)
{
    bool fits = (size_t)(c->end - c->at) >= size;
    assert(fits || !c->writes);
    reject(c, !fits, "it is cut off, bytes", (uint64_t)(c->end - c->begin));
    return !is_bad(c);
}

/* ---- numbers ------------------------------------------------------------------------------- */

static void code_number(cursor *c, uint64_t *value, size_t size)
{
    uint64_t read = 0;
    assert(size <= sizeof *value);
    if (!has(c, size)) return;
    for (size_t i = 0; i < size; i++) {
        if (c->writes)
            c->at[i] = (unsigned char)(*value >> (8 * i));
        else
            read |= (uint64_t)c->at[i] << (8 * i);
    }
    c->at += size;
    if (!c->writes) *value = read;
}

static void code_u64(cursor *c, uint64_t *value)
{
    code_number(c, value, 8);
}

static void code_i64(cursor *c, int64_t *value)
{
    uint64_t bits = (uint64_t)*value;
    code_number(c, &bits, 8);
    *value = (int64_t)bits;
}

static void code_u32(cursor *c, uint32_t *value)
{
    uint64_t wide = *value;
    code_number(c, &wide, 4);
    *value = (uint32_t)wide;
}

static void code_real(cursor *c, double *value)
{
    uint64_t bits;
    memcpy(&bits, value, sizeof bits);
    code_number(c, &bits, 8);
    memcpy(value, &bits, sizeof bits);
}

/* A count, below AT_MESSAGE_COUNT_MAX. */
static void code_count(cursor *c, uint64_t *value, const char *what)
{
    code_u64(c, value);
    reject(c, *value >= AT_MESSAGE_COUNT_MAX, what, *value);
}

/* A duration; not negative. */
static void code_duration(cursor *c, at_ns *value, const char *what)
{
    code_i64(c, value);
    reject(c, *value < 0, what, (uint64_t)*value);
}

/* Flags as bits of one number, the first flag lowest. */
static void code_flags(cursor *c, bool *const *flags, uint32_t count)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < count; i++) bits |= (uint32_t)*flags[i] << i;
    assert(count < 32);
    code_u32(c, &bits);
    reject(c, bits >> count != 0, "unknown flags", bits);
    for (uint32_t i = 0; i < count; i++) *flags[i] = bits >> i & 1;
}

/* The magic number of the format, then a kind below `limit`. */
static uint32_t code_kind(cursor *c, uint32_t magic, uint32_t kind, uint32_t limit)
{
    uint32_t found = magic;
    assert(kind < limit || !c->writes);
    code_u32(c, &found);
    reject(c, found != magic, "it does not begin as one of anytime", found);
    code_u32(c, &kind);
    reject(c, kind >= limit, "unknown kind", kind);
    return is_bad(c) ? 0 : kind;
}

/* Who speaks another protocol is told so, not that its message is malformed. */
static void code_protocol(cursor *c, uint32_t *protocol)
{
    if (c->writes) *protocol = AT_PROTOCOL;
    code_u32(c, protocol);
    if (c->writes || is_bad(c) || *protocol == AT_PROTOCOL) return;
    at_fail_set(c->fail, AT_ERR_USAGE, "use the same anytime on all machines",
                "it speaks version %u of the message protocol, this program version %d", *protocol,
                AT_PROTOCOL);
}

/* Texts from a peer are printed: control characters become question marks. */
static void code_text(cursor *c, char *text, size_t size)
{
    assert(size >= 1);
    if (!has(c, size)) return;
    if (c->writes)
        memcpy(c->at, text, size);
    else
        memcpy(text, c->at, size);
    if (c->writes) c->at[size - 1] = '\0';
    c->at += size;
    if (c->writes) return;
    text[size - 1] = '\0';
    for (char *t = text; *t; t++)
        if ((unsigned char)*t < ' ' || *t == 127) *t = '?';
}

static cursor writing(void *bytes, size_t size)
{
    assert(bytes);
    memset(bytes, 0, size);
    return (cursor){
        .begin = bytes, .at = bytes, .end = (unsigned char *)bytes + size, .writes = true};
}

static cursor reading(const void *bytes, size_t size, at_fail *fail)
{
    unsigned char *at = (unsigned char *)(uintptr_t)bytes; /* a reading cursor never writes */
    assert(bytes && fail);
    *fail = (at_fail){0};
    return (cursor){.begin = at, .at = at, .end = at + size, .fail = fail};
}

static size_t used(const cursor *c)
{
    return (size_t)(c->at - c->begin);
}

static bool is_code(uint32_t code)
{
    return code == AT_OK || code == AT_ERR_FAILED || code == AT_ERR_USAGE ||
           code == AT_ERR_FORMAT || code == AT_ERR_MISSING || code == AT_ERR_IO ||
           code == AT_ERR_STOPPED;
}

static void code_err(cursor *c, at_err *err)
{
    uint32_t code = *err;
    code_u32(c, &code);
    assert(is_code(code) || !c->writes);
    reject(c, !is_code(code), "unknown error", code);
    *err = is_code(code) ? (at_err)code : AT_ERR_FAILED;
}

/* ---- hub messages and orders --------------------------------------------------------------- */

static void code_welcome(cursor *c, at_hub_message *message)
{
    code_protocol(c, &message->protocol);
    code_u32(c, &message->incarnation);
    code_count(c, &message->sequence, "sequence number");
    code_count(c, &message->drawn, "samples drawn");
    code_count(c, &message->redrawn, "samples drawn again");
    code_i64(c, &message->pid);
    code_u64(c, &message->born);
    code_duration(c, &message->usage_every, "negative interval");
    reject(c, message->pid < 0, "negative process id", (uint64_t)message->pid);
    reject(c, message->redrawn > message->drawn, "more samples drawn again than drawn",
           message->redrawn);
}

static void code_mix(cursor *c, at_hub_message *message)
{
    bool *flags[] = {&message->counts};
    code_count(c, &message->version, "step");
    code_count(c, &message->used, "samples used");
    code_real(c, &message->lr_factor);
    code_flags(c, flags, 1);
    reject(c, !(message->lr_factor > 0 && message->lr_factor <= 1e6), "factor of the learning rate",
           message->lr_factor > 0);
}

static void code_hub_message(cursor *c, at_hub_message *message)
{
    bool *flags[] = {&message->together};
    message->kind =
        (at_hub_message_kind)code_kind(c, HUB_MAGIC, message->kind, AT_HUB_MESSAGE_GONE + 1);
    if (is_bad(c)) return;
    switch (message->kind) {
    case AT_HUB_MESSAGE_WELCOME: code_welcome(c, message); break;
    case AT_HUB_MESSAGE_WORK:
        code_u64(c, &message->version);
        reject(c, message->version >= AT_MESSAGE_COUNT_MAX && message->version != AT_VERSION_NONE,
               "version", message->version);
        code_u64(c, &message->base);
        code_u64(c, &message->rows);
        reject(c, message->base > message->version && message->base != AT_VERSION_NONE, "base",
               message->base);
        reject(c, message->rows >= AT_MESSAGE_COUNT_MAX, "rows", message->rows);
        break;
    case AT_HUB_MESSAGE_PULSE: break;
    case AT_HUB_MESSAGE_BYE:
        code_flags(c, flags, 1);
        code_err(c, &message->err);
        break;
    case AT_HUB_MESSAGE_MIX: code_mix(c, message); break;
    case AT_HUB_MESSAGE_COLLECT: code_count(c, &message->version, "version"); break;
    case AT_HUB_MESSAGE_GONE:
        code_u32(c, &message->worker);
        reject(c, message->worker < 1 || message->worker > AT_WORKERS_MAX, "worker",
               message->worker);
        break;
    }
    assert(used(c) <= AT_HUB_MESSAGE_HEAD);
}

void at_hub_message_write(void *bytes, const at_hub_message *message)
{
    cursor         c = writing(bytes, AT_HUB_MESSAGE_HEAD);
    at_hub_message copy = *message;
    code_hub_message(&c, &copy);
}

at_err at_hub_message_read(const void *bytes, size_t size, at_hub_message *message, at_fail *fail)
{
    cursor c = reading(bytes, size, fail);
    *message = (at_hub_message){0};
    if (has(&c, AT_HUB_MESSAGE_HEAD)) code_hub_message(&c, message);
    return fail->err;
}

at_err at_hub_message_host(const void *bytes, size_t size, char host[AT_HOST_NAME_SIZE],
                           at_fail *fail)
{
    cursor c = reading(bytes, size, fail);
    memset(host, 0, AT_HOST_NAME_SIZE);
    if (!has(&c, AT_HUB_MESSAGE_HEAD)) return fail->err;
    c.at += AT_HUB_MESSAGE_HEAD;
    code_text(&c, host, AT_HOST_NAME_SIZE);
    return fail->err;
}

size_t at_mix_message_size(uint32_t workers)
{
    assert(workers >= 1);
    return AT_HUB_MESSAGE_HEAD + ((size_t)workers + 31) / 32 * AT_MESSAGE_UNIT;
}

void at_mix_message_write(void *bytes, const at_hub_message *message, const bool *present,
                          uint32_t workers)
{
    cursor         c = writing(bytes, at_mix_message_size(workers));
    at_hub_message copy = *message;
    assert(message->kind == AT_HUB_MESSAGE_MIX);
    code_hub_message(&c, &copy);
    c.at = c.begin + AT_HUB_MESSAGE_HEAD;
    for (uint32_t i = 0; i < workers; i += 32) {
        uint32_t bits = 0;
        for (uint32_t k = i; k < workers && k < i + 32; k++)
            bits |= (uint32_t)present[k] << (k - i);
        code_u32(&c, &bits);
    }
}

at_err at_mix_message_read(const void *bytes, size_t size, bool *present, uint32_t workers,
                           at_fail *fail)
{
    cursor c = reading(bytes, size, fail);
    if (!has(&c, AT_HUB_MESSAGE_HEAD)) return fail->err;
    c.at += AT_HUB_MESSAGE_HEAD;
    for (uint32_t i = 0; i < workers; i += 32) {
        uint32_t bits = 0;
        code_u32(&c, &bits);
        for (uint32_t k = i; k < workers && k < i + 32; k++) present[k] = bits >> (k - i) & 1;
    }
    return fail->err;
}

static void code_order(cursor *c, at_order_message *message)
{
    at_order *order = &message->order;
    bool     *flags[] = {&order->again, &order->pause, &order->leave, &order->then};
    code_u32(c, &message->worker);
    code_flags(c, flags, 4);
    code_u64(c, &order->round);
    code_u64(c, &order->version);
    code_u64(c, &order->position);
    code_i64(c, &order->time_limit);
    code_u32(c, &order->samples_max);
    code_u64(c, &order->used);
    reject(c, message->worker < 1 || message->worker > AT_WORKERS_MAX, "worker", message->worker);
    assert(used(c) <= AT_ORDER_MESSAGE);
}

void at_order_message_write(void *bytes, const at_order_message *message)
{
    cursor           c = writing(bytes, AT_ORDER_MESSAGE);
    at_order_message copy = *message;
    code_order(&c, &copy);
}

at_err at_order_message_read(const void *bytes, size_t size, at_order_message *message,
                             at_fail *fail)
{
    cursor c = reading(bytes, size, fail);
    *message = (at_order_message){0};
    if (has(&c, AT_ORDER_MESSAGE)) code_order(&c, message);
    return fail->err;
}

at_err at_order_message_check(const at_order_message *message, uint32_t samples_max,
                              uint64_t version, at_fail *fail)
{
    const at_ns     time_max = AT_SEC(4e9); /* of rules, too: it can be added to a time */
    const at_order *order = &message->order;
    cursor          c = {.fail = fail};
    assert(!order->leave && samples_max >= 1);
    *fail = (at_fail){0};
    reject(&c, order->samples_max < 1 || order->samples_max > samples_max, "samples of a round",
           order->samples_max);
    reject(&c,
           order->time_limit <= 0 ||
               (order->time_limit > time_max && order->time_limit != AT_NEVER),
           "time limit", (uint64_t)order->time_limit);
    reject(&c, order->round >= AT_MESSAGE_COUNT_MAX, "round", order->round);
    reject(&c, order->used >= AT_MESSAGE_COUNT_MAX, "samples used", order->used);
    reject(&c, order->position >= AT_MESSAGE_COUNT_MAX && order->position != AT_POSITION_OWN,
           "position", order->position);
    reject(&c, version == AT_VERSION_NONE || order->version > version,
           "parameters that were not sent, version", order->version);
    return fail->err;
}

at_err at_params_message_check(const at_hub_message *message, uint64_t newest, at_fail *fail)
{
    cursor c = {.fail = fail};
    assert(message->kind == AT_HUB_MESSAGE_WORK);
    *fail = (at_fail){0};
    reject(&c, newest != AT_VERSION_NONE && message->version < newest,
           "parameters older than those before, version", message->version);
    return fail->err;
}

/* ---- reports ------------------------------------------------------------------------------- */

/* A place in a vector, from 1 on; 0: none. One beyond 32 bits is sent as the last of them. */
static void code_place(cursor *c, uint64_t *place)
{
    uint32_t narrow = *place < UINT32_MAX ? (uint32_t)*place : UINT32_MAX;
    code_u32(c, &narrow);
    *place = narrow;
}

static void code_work(cursor *c, at_work *work)
{
    bool *flags[] = {&work->abandoned, &work->capped, &work->overslept};
    code_count(c, &work->round, "round");
    code_u64(c, &work->version);
    code_u32(c, &work->samples);
    code_flags(c, flags, 3);
    code_place(c, &work->nonfinite);
    code_real(c, &work->loss_sum); /* not finite when training diverges */
    code_duration(c, &work->compute_ns, "negative time");
    code_duration(c, &work->sleep_ns, "negative time");
    code_i64(c, &work->overshoot_ns); /* negative when it ended early */
    code_duration(c, &work->idle_ns, "negative time");
    code_duration(c, &work->install_ns, "negative time");
    code_duration(c, &work->send_ns, "negative time");
}

static void code_report(cursor *c, at_report_message *message)
{
    at_report           *report = &message->report;
    bool                *flags[] = {&report->again};
    const unsigned char *begin = c->at;
    (void)code_kind(c, REPORT_MAGIC, 0, 1);
    code_flags(c, flags, 1);
    code_u32(c, &report->incarnation);
    code_u32(c, &report->slot);
    code_count(c, &report->sequence, "sequence number");
    code_work(c, &report->work);
    code_count(c, &message->drawn, "samples drawn");
    code_count(c, &message->floats, "size of the gradient");
    assert((size_t)(c->at - begin) <= AT_REPORT_MESSAGE_HEAD);
}

void at_report_message_write(void *bytes, const at_report_message *message)
{
    cursor            c = writing(bytes, AT_REPORT_MESSAGE_HEAD);
    at_report_message copy = *message;
    code_report(&c, &copy);
}

at_err at_report_message_read(const void *bytes, size_t size, at_report_message *message,
                              at_fail *fail)
{
    cursor c = reading(bytes, size, fail);
    *message = (at_report_message){0};
    if (has(&c, AT_REPORT_MESSAGE_HEAD)) code_report(&c, message);
    reject(&c, size - AT_REPORT_MESSAGE_HEAD != message->floats * AT_MESSAGE_UNIT,
           "its length is not that of the gradient it announces, floats", message->floats);
    return fail->err;
}

at_err at_report_message_check(const at_report_message *message, const at_report_bounds *bounds,
                               at_fail *fail)
{
    const at_report *report = &message->report;
    const at_work   *work = &report->work;
    bool             empty = work->abandoned || work->samples == 0;
    uint64_t         most = empty ? 0 : bounds->floats;
    cursor           c = {.fail = fail};
    assert(bounds->samples_max >= 1);
    *fail = (at_fail){0};
    reject(&c, report->incarnation != bounds->incarnation, "incarnation", report->incarnation);
    reject(&c, report->sequence != bounds->sequence + 1, "sequence number", report->sequence);
    reject(&c, work->samples > bounds->samples_max, "samples of a round", work->samples);
    reject(&c, work->samples == 0 && !work->abandoned && !bounds->ends, "a gradient of no samples",
           0);
    reject(&c, !empty && work->version > bounds->version, "parameters that do not exist, version",
           work->version);
    reject(&c, report->again && !bounds->again, "a round without an order, after", work->round);
    reject(&c, message->drawn < bounds->drawn + work->samples, "fewer samples drawn than reported",
           message->drawn);
    reject(&c, message->floats > most || (!bounds->sparse && message->floats < most),
           "size of the gradient", message->floats);
    return fail->err;
}

/* ---- turns --------------------------------------------------------------------------------- */

static const at_ns TIME_MAX = (at_ns)1 << 60; /* 36 years of nanoseconds */

static void code_score(cursor *c, at_turn_score *score)
{
    code_count(c, &score->step, "step of an evaluation");
    code_duration(c, &score->at, "negative time");
    code_real(c, &score->loss_sum);
    code_real(c, &score->auc);
    code_count(c, &score->correct, "correct samples");
    code_count(c, &score->correct_top5, "correct samples");
    code_count(c, &score->count, "samples of an evaluation");
    code_u32(c, &score->classes);
    reject(c, score->at >= TIME_MAX, "time", (uint64_t)score->at);
    reject(c, score->correct > score->count || score->correct_top5 > score->count,
           "more correct samples than samples", score->count);
}

static void code_turn(cursor *c, at_turn_message *message)
{
    bool *flags[] = {&message->stops, &message->has_score};
    (void)code_kind(c, TURN_MAGIC, 0, 1);
    code_report(c, &message->report);
    code_duration(c, &message->now, "negative time");
    code_count(c, &message->version, "version");
    code_u64(c, &message->trace);
    code_u64(c, &message->hash);
    code_flags(c, flags, 2);
    code_score(c, &message->score);
    code_text(c, message->engine, sizeof message->engine);
    reject(c, message->now >= TIME_MAX, "time", (uint64_t)message->now);
    reject(c, message->report.floats != 0, "size of the gradient", message->report.floats);
    reject(c, message->has_score && message->score.count == 0, "an evaluation of no samples", 0);
    reject(c, message->has_score && message->score.step > message->version,
           "an evaluation of parameters that do not exist, step", message->score.step);
    assert(used(c) <= AT_TURN_MESSAGE);
}

void at_turn_message_write(void *bytes, const at_turn_message *message)
{
    cursor          c = writing(bytes, AT_TURN_MESSAGE);
    at_turn_message copy = *message;
    assert(message->report.floats == 0);
    code_turn(&c, &copy);
}

at_err at_turn_message_read(const void *bytes, size_t size, at_turn_message *message, at_fail *fail)
{
    cursor c = reading(bytes, size, fail);
    *message = (at_turn_message){0};
    if (has(&c, AT_TURN_MESSAGE)) code_turn(&c, message);
    return fail->err;
}

/* ---- vectors ------------------------------------------------------------------------------- */

static void code_vector(cursor *c, at_vector_message *message)
{
    bool *flags[] = {&message->last};
    (void)code_kind(c, VECTOR_MAGIC, 0, 1);
    code_count(c, &message->version, "version");
    code_u32(c, &message->round);
    code_flags(c, flags, 1);
    code_real(c, &message->count);
    code_count(c, &message->floats, "size of the vector");
    reject(c, !(message->count >= 0 && message->count < (double)AT_MESSAGE_COUNT_MAX),
           "count of samples is out of range, step", message->version);
    assert(used(c) <= AT_VECTOR_MESSAGE_HEAD);
}

void at_vector_message_write(void *bytes, const at_vector_message *message)
{
    cursor            c = writing(bytes, AT_VECTOR_MESSAGE_HEAD);
    at_vector_message copy = *message;
    code_vector(&c, &copy);
}

at_err at_vector_message_read(const void *bytes, size_t size, const at_vector_message *expected,
                              at_vector_message *message, at_fail *fail)
{
    cursor c = reading(bytes, size, fail);
    *message = (at_vector_message){0};
    if (has(&c, AT_VECTOR_MESSAGE_HEAD)) code_vector(&c, message);
    reject(&c, message->version != expected->version, "a vector of another step", message->version);
    reject(&c, message->round != expected->round, "a vector of another round", message->round);
    reject(&c, message->floats != expected->floats, "size of the vector", message->floats);
    reject(&c, size - AT_VECTOR_MESSAGE_HEAD != message->floats * AT_MESSAGE_UNIT,
           "its length is not that of the vector it announces, floats", message->floats);
    return fail->err;
}

/* ---- notes --------------------------------------------------------------------------------- */

static void code_fail(cursor *c, at_fail *fail)
{
    code_err(c, &fail->err);
    code_text(c, fail->text, sizeof fail->text);
    code_text(c, fail->hint, sizeof fail->hint);
}

static void code_hello(cursor *c, at_worker_note *note)
{
    code_protocol(c, &note->protocol);
    code_i64(c, &note->pid);
    reject(c, note->pid < 0, "negative process id", (uint64_t)note->pid);
    code_u64(c, &note->born);
    for (int i = 0; i < AT_JOB_PARTS; i++) code_u64(c, &note->part[i]);
    code_text(c, note->host, sizeof note->host);
    code_fail(c, &note->fail);
}

static void code_usage(cursor *c, at_usage *usage)
{
    code_i64(c, &usage->pid);
    reject(c, usage->pid < 0, "negative process id", (uint64_t)usage->pid);
    code_duration(c, &usage->user_ns, "negative time");
    code_duration(c, &usage->system_ns, "negative time");
    code_u64(c, &usage->rss_bytes);
    code_u64(c, &usage->shared_bytes);
    code_u64(c, &usage->peak_bytes);
    code_u64(c, &usage->read_bytes);
    code_u64(c, &usage->write_bytes);
    code_u64(c, &usage->net_in_bytes);
    code_u64(c, &usage->net_out_bytes);
    code_u64(c, &usage->loopback_bytes);
}

static void code_note(cursor *c, at_worker_note *note)
{
    note->kind = (at_worker_note_kind)code_kind(c, NOTE_MAGIC, note->kind, AT_WORKER_NOTE_LEFT + 1);
    bool *flags[] = {&note->averages};
    if (is_bad(c)) return;
    switch (note->kind) {
    case AT_WORKER_NOTE_HELLO: code_hello(c, note); break;
    case AT_WORKER_NOTE_READY: code_text(c, note->engine, sizeof note->engine); break;
    case AT_WORKER_NOTE_LEFT:
        code_count(c, &note->reports, "reports");
        code_usage(c, &note->usage);
        break;
    case AT_WORKER_NOTE_PULSE:
        code_usage(c, &note->usage);
        code_flags(c, flags, 1);
        break;
    }
    code_count(c, &note->drawn, "samples drawn");
    assert(used(c) <= AT_WORKER_NOTE);
}

size_t at_worker_note_write(void *bytes, const at_worker_note *note)
{
    cursor         c = writing(bytes, AT_WORKER_NOTE);
    at_worker_note copy = *note;
    code_note(&c, &copy);
    assert(used(&c) % AT_MESSAGE_UNIT == 0);
    return used(&c) / AT_MESSAGE_UNIT;
}

at_err at_worker_note_read(const void *bytes, size_t size, at_worker_note *note, at_fail *fail)
{
    cursor c = reading(bytes, size, fail);
    *note = (at_worker_note){0};
    code_note(&c, note);
    return fail->err;
}

/* ---- seats on other machines ----------------------------------------------------------------- */

static void code_news(cursor *c, at_seat_news *news)
{
    bool *flags[] = {&news->leave, &news->evicted};
    code_u32(c, &news->present);
    code_u32(c, &news->first_rank);
    code_count(c, &news->samples_used, "samples used");
    code_count(c, &news->taken, "reports");
    code_count(c, &news->scores_taken, "evaluations");
    code_count(c, &news->publish, "requests");
    code_flags(c, flags, 2);
    reject(c, news->present > AT_WORKERS_MAX, "workers", news->present);
    reject(c, news->first_rank >= AT_WORKERS_MAX, "rank", news->first_rank);
    assert(used(c) <= AT_SEAT_NEWS);
}

void at_seat_news_write(void *bytes, const at_seat_news *news)
{
    cursor       c = writing(bytes, AT_SEAT_NEWS);
    at_seat_news copy = *news;
    code_news(&c, &copy);
}

at_err at_seat_news_read(const void *bytes, size_t size, at_seat_news *news, at_fail *fail)
{
    cursor c = reading(bytes, size, fail);
    *news = (at_seat_news){0};
    if (has(&c, AT_SEAT_NEWS)) code_news(&c, news);
    return fail->err;
}

static void code_word(cursor *c, at_seat_word *word)
{
    bool *flags[] = {&word->aside, &word->left, &word->scored};
    code_count(c, &word->drawn, "samples drawn");
    code_flags(c, flags, 3);
    code_count(c, &word->version, "version");
    code_real(c, &word->accuracy); /* not finite: not measured */
    code_real(c, &word->loss);
    assert(used(c) <= AT_SEAT_WORD);
}

void at_seat_word_write(void *bytes, const at_seat_word *word)
{
    cursor       c = writing(bytes, AT_SEAT_WORD);
    at_seat_word copy = *word;
    code_word(&c, &copy);
}

at_err at_seat_word_read(const void *bytes, size_t size, at_seat_word *word, at_fail *fail)
{
    cursor c = reading(bytes, size, fail);
    *word = (at_seat_word){0};
    if (has(&c, AT_SEAT_WORD)) code_word(&c, word);
    return fail->err;
}
