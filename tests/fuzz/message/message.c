/* Fuzz target: any bytes as a message between hub and workers. The first byte selects which one. A
 * message that is accepted is within its limits, and is the same after writing and reading it. */
#include "message/message.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_hub_message(const uint8_t *data, size_t size)
{
    unsigned char  bytes[AT_HUB_MESSAGE_HEAD];
    char           host[AT_HOST_NAME_SIZE];
    at_hub_message message, again;
    at_fail        fail;
    if (at_hub_message_read(data, size, &message, &fail)) {
        assert(fail.err && fail.text[0]);
        return;
    }
    assert(message.kind <= AT_HUB_MESSAGE_GONE);
    at_hub_message_write(bytes, &message);
    assert(!at_hub_message_read(bytes, sizeof bytes, &again, &fail));
    assert(again.kind == message.kind && again.version == message.version);
    if (!at_hub_message_host(data, size, host, &fail)) assert(strlen(host) < sizeof host);
}

static void try_order(const uint8_t *data, size_t size)
{
    unsigned char    bytes[AT_ORDER_MESSAGE];
    at_order_message order, again;
    at_fail          fail;
    if (at_order_message_read(data, size, &order, &fail)) return;
    assert(order.worker >= 1 && order.worker <= AT_WORKERS_MAX);
    at_order_message_write(bytes, &order);
    assert(!at_order_message_read(bytes, sizeof bytes, &again, &fail));
    assert(again.order.samples_max == order.order.samples_max);
    if (!order.order.leave && !at_order_message_check(&order, 64, 9, &fail))
        assert(order.order.samples_max >= 1 && order.order.samples_max <= 64);
}

static void try_report(const uint8_t *data, size_t size)
{
    const at_report_bounds bounds = {
        .incarnation = 1, .version = 9, .samples_max = 64, .floats = 4, .sparse = size % 2 == 0};
    at_report_message report;
    at_fail           fail;
    if (at_report_message_read(data, size, &report, &fail)) return;
    assert(AT_REPORT_MESSAGE_HEAD + report.floats * AT_MESSAGE_UNIT == size);
    if (at_report_message_check(&report, &bounds, &fail)) return;
    assert(report.report.work.samples <= bounds.samples_max && report.floats <= bounds.floats);
}

static void try_note(const uint8_t *data, size_t size)
{
    unsigned char  bytes[AT_WORKER_NOTE];
    at_worker_note note, again;
    at_fail        fail;
    if (at_worker_note_read(data, size, &note, &fail)) return;
    assert(note.kind <= AT_WORKER_NOTE_LEFT && note.drawn < AT_MESSAGE_COUNT_MAX);
    size_t units = at_worker_note_write(bytes, &note);
    assert(!at_worker_note_read(bytes, units * AT_MESSAGE_UNIT, &again, &fail));
    assert(again.drawn == note.drawn && strcmp(again.host, note.host) == 0);
}

static void try_turn(const uint8_t *data, size_t size)
{
    unsigned char   bytes[AT_TURN_MESSAGE];
    at_turn_message turn, again;
    at_fail         fail;
    if (at_turn_message_read(data, size, &turn, &fail)) return;
    assert(turn.report.floats == 0 && turn.version < AT_MESSAGE_COUNT_MAX);
    assert(!turn.has_score || turn.score.count >= 1);
    at_turn_message_write(bytes, &turn);
    assert(!at_turn_message_read(bytes, sizeof bytes, &again, &fail));
    assert(again.trace == turn.trace && strcmp(again.engine, turn.engine) == 0);
}

static void try_vector(const uint8_t *data, size_t size)
{
    const at_vector_message expected = {.version = 3, .round = 1, .floats = 4};
    at_vector_message       vector;
    bool                    present[40];
    at_fail                 fail;
    if (!at_mix_message_read(data, size, present, 40, &fail)) assert(size >= AT_HUB_MESSAGE_HEAD);
    if (at_vector_message_read(data, size, &expected, &vector, &fail)) return;
    assert(vector.count >= 0 && size == AT_VECTOR_MESSAGE_HEAD + 4 * AT_MESSAGE_UNIT);
}

static void try_news(const uint8_t *data, size_t size)
{
    unsigned char bytes[AT_SEAT_NEWS];
    at_seat_news  news, again;
    at_fail       fail;
    if (at_seat_news_read(data, size, &news, &fail)) return;
    assert(news.present <= AT_WORKERS_MAX && news.taken < AT_MESSAGE_COUNT_MAX);
    at_seat_news_write(bytes, &news);
    assert(!at_seat_news_read(bytes, sizeof bytes, &again, &fail));
    assert(again.leave == news.leave && again.publish == news.publish);
}

static void try_word(const uint8_t *data, size_t size)
{
    unsigned char bytes[AT_SEAT_WORD];
    at_seat_word  word, again;
    at_fail       fail;
    if (at_seat_word_read(data, size, &word, &fail)) return;
    assert(word.drawn < AT_MESSAGE_COUNT_MAX && word.version < AT_MESSAGE_COUNT_MAX);
    at_seat_word_write(bytes, &word);
    assert(!at_seat_word_read(bytes, sizeof bytes, &again, &fail));
    assert(again.left == word.left && again.drawn == word.drawn);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const targets[])(const uint8_t *, size_t) = {
        try_hub_message, try_order, try_report, try_note, try_turn, try_vector, try_news, try_word};
    if (size < 1) return 0;
    targets[data[0] % (sizeof targets / sizeof *targets)](data + 1, size - 1);
    return 0;
}
