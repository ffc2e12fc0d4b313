/* Each format is described once, by a function that writes or reads depending on the cursor, so the
 * two directions cannot drift apart. */
#include "message/message.h"

#include <assert.h>
#include <string.h>

enum { HUB_MAGIC = 0x61746d31, REPORT_MAGIC = 0x61747231, NOTE_MAGIC = 0x61746e31 };

typedef struct cursor {
    unsigned char *begin, *at;
    bool           writes;
    bool           bad;
} cursor;

/* ---- numbers ------------------------------------------------------------------------------- */

static void code_number(cursor *c, uint64_t *value, int size)
{
    uint64_t read = 0;
    for (int i = 0; i < size; i++) {
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

/* Flags as bits of one number, the first flag lowest. */
static void code_flags(cursor *c, bool *const *flags, uint32_t count)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < count; i++) bits |= (uint32_t)*flags[i] << i;
    code_u32(c, &bits);
    for (uint32_t i = 0; i < count; i++) *flags[i] = bits >> i & 1;
}

/* The magic number of the format, then a kind below `limit`. */
static uint32_t code_kind(cursor *c, uint32_t magic, uint32_t kind, uint32_t limit)
{
    uint32_t found = magic;
    code_u32(c, &found);
    code_u32(c, &kind);
    c->bad = c->bad || found != magic || kind >= limit;
    return kind;
}

static void code_text(cursor *c, char *text, size_t size)
{
    if (c->writes)
        memcpy(c->at, text, size);
    else
        memcpy(text, c->at, size);
    text[size - 1] = '\0';
    c->at += size;
}

static cursor writing(void *bytes)
{
    return (cursor){.begin = bytes, .at = bytes, .writes = true};
}

static cursor reading(const void *bytes)
{
    unsigned char *at = (unsigned char *)(uintptr_t)bytes; /* a reading cursor never writes */
    return (cursor){.begin = at, .at = at};
}

static size_t used(const cursor *c)
{
    return (size_t)(c->at - c->begin);
}

/* ---- hub messages and orders --------------------------------------------------------------- */

static void code_hub_message(cursor *c, at_hub_message *message)
{
    bool *flags[] = {&message->together};
    message->kind =
        (at_hub_message_kind)code_kind(c, HUB_MAGIC, message->kind, AT_HUB_MESSAGE_BYE + 1);
    code_u64(c, &message->version);
    code_u32(c, &message->incarnation);
    code_flags(c, flags, 1);
    code_u64(c, &message->sequence);
    code_u64(c, &message->drawn);
    code_i64(c, &message->pid);
    code_u64(c, &message->born);
    code_i64(c, &message->usage_every);
    assert(used(c) <= AT_HUB_MESSAGE_HEAD);
}

void at_hub_message_write(void *bytes, const at_hub_message *message)
{
    cursor         c = writing(bytes);
    at_hub_message copy = *message;
    code_hub_message(&c, &copy);
}

bool at_hub_message_read(const void *bytes, at_hub_message *message)
{
    cursor c = reading(bytes);
    *message = (at_hub_message){0};
    code_hub_message(&c, message);
    return !c.bad;
}

static void code_order(cursor *c, at_order_message *message)
{
    at_order *order = &message->order;
    bool     *flags[] = {&order->again, &order->pause, &order->leave};
    code_u32(c, &message->worker);
    code_flags(c, flags, 3);
    code_u64(c, &order->round);
    code_u64(c, &order->version);
    code_u64(c, &order->position);
    code_i64(c, &order->time_limit);
    code_u32(c, &order->samples_max);
    assert(used(c) <= AT_ORDER_MESSAGE);
}

void at_order_message_write(void *bytes, const at_order_message *message)
{
    cursor           c = writing(bytes);
    at_order_message copy = *message;
    code_order(&c, &copy);
}

void at_order_message_read(const void *bytes, at_order_message *message)
{
    cursor c = reading(bytes);
    *message = (at_order_message){0};
    code_order(&c, message);
}

/* ---- reports ------------------------------------------------------------------------------- */

static void code_work(cursor *c, at_work *work)
{
    bool *flags[] = {&work->abandoned, &work->capped, &work->overslept};
    code_u64(c, &work->round);
    code_u64(c, &work->version);
    code_u32(c, &work->samples);
    code_flags(c, flags, 3);
    code_real(c, &work->loss_sum);
    code_i64(c, &work->compute_ns);
    code_i64(c, &work->sleep_ns);
    code_i64(c, &work->overshoot_ns);
    code_i64(c, &work->idle_ns);
    code_i64(c, &work->install_ns);
    code_i64(c, &work->send_ns);
}

static void code_report(cursor *c, at_report_message *message)
{
    at_report *report = &message->report;
    bool      *flags[] = {&report->again};
    (void)code_kind(c, REPORT_MAGIC, 0, 1);
    code_flags(c, flags, 1);
    code_u32(c, &report->incarnation);
    code_u32(c, &report->slot);
    code_u64(c, &report->sequence);
    code_work(c, &report->work);
    code_u64(c, &message->drawn);
    code_u64(c, &message->floats);
    assert(used(c) <= AT_REPORT_MESSAGE_HEAD);
}

void at_report_message_write(void *bytes, const at_report_message *message)
{
    cursor            c = writing(bytes);
    at_report_message copy = *message;
    code_report(&c, &copy);
}

bool at_report_message_read(const void *bytes, at_report_message *message)
{
    cursor c = reading(bytes);
    *message = (at_report_message){0};
    code_report(&c, message);
    return !c.bad;
}

/* ---- notes --------------------------------------------------------------------------------- */

static void code_fail(cursor *c, at_fail *fail)
{
    uint32_t code = fail->err;
    code_u32(c, &code);
    fail->err = (at_err)code;
    code_text(c, fail->text, sizeof fail->text);
    code_text(c, fail->hint, sizeof fail->hint);
}

static void code_hello(cursor *c, at_worker_note *note)
{
    code_i64(c, &note->pid);
    code_u64(c, &note->born);
    code_u64(c, &note->fingerprint);
    code_text(c, note->host, sizeof note->host);
    code_fail(c, &note->fail);
}

static void code_usage(cursor *c, at_usage *usage)
{
    code_i64(c, &usage->pid);
    code_i64(c, &usage->user_ns);
    code_i64(c, &usage->system_ns);
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
    code_u64(c, &note->drawn);
    if (c->bad) return;
    switch (note->kind) {
    case AT_WORKER_NOTE_HELLO: code_hello(c, note); break;
    case AT_WORKER_NOTE_READY: code_text(c, note->engine, sizeof note->engine); break;
    case AT_WORKER_NOTE_LEFT:
        code_u64(c, &note->reports);
        code_usage(c, &note->usage);
        break;
    case AT_WORKER_NOTE_PULSE: code_usage(c, &note->usage); break;
    }
    assert(used(c) <= AT_WORKER_NOTE);
}

size_t at_worker_note_write(void *bytes, const at_worker_note *note)
{
    cursor         c = writing(bytes);
    at_worker_note copy = *note;
    code_note(&c, &copy);
    assert(used(&c) % AT_MESSAGE_UNIT == 0);
    return used(&c) / AT_MESSAGE_UNIT;
}

bool at_worker_note_read(const void *bytes, at_worker_note *note)
{
    cursor c = reading(bytes);
    *note = (at_worker_note){0};
    code_note(&c, note);
    return !c.bad;
}
