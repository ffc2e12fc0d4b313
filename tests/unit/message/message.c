#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "message/message.h"

static void hub_messages_survive_a_round_trip(void **state)
{
    (void)state;
    unsigned char  bytes[AT_HUB_MESSAGE_HEAD] = {0};
    at_fail        fail;
    at_hub_message out, in = {.kind = AT_HUB_MESSAGE_WELCOME,
                              .incarnation = 3,
                              .sequence = UINT64_C(1) << 40,
                              .drawn = 77,
                              .pid = 4711,
                              .born = 123456789,
                              .usage_every = AT_SEC(1)};
    at_hub_message_write(bytes, &in);
    assert_int_equal(at_hub_message_read(bytes, sizeof bytes, &out, &fail), AT_OK);
    assert_int_equal(out.kind, in.kind);
    assert_int_equal(out.protocol, AT_PROTOCOL);
    assert_int_equal(out.incarnation, in.incarnation);
    assert_int_equal(out.sequence, in.sequence);
    assert_int_equal(out.drawn, in.drawn);
    assert_int_equal(out.pid, in.pid);
    assert_int_equal(out.born, in.born);
    assert_int_equal(out.usage_every, in.usage_every);
    in = (at_hub_message){.kind = AT_HUB_MESSAGE_WORK, .version = AT_VERSION_NONE};
    at_hub_message_write(bytes, &in);
    assert_int_equal(at_hub_message_read(bytes, sizeof bytes, &out, &fail), AT_OK);
    assert_int_equal(out.version, AT_VERSION_NONE);
    in = (at_hub_message){.kind = AT_HUB_MESSAGE_WORK, .version = 9, .base = 7, .rows = 3};
    at_hub_message_write(bytes, &in);
    assert_int_equal(at_hub_message_read(bytes, sizeof bytes, &out, &fail), AT_OK);
    assert_int_equal(out.base, 7);
    assert_int_equal(out.rows, 3);
    in.base = 10; /* changes since a version that is yet to come */
    at_hub_message_write(bytes, &in);
    assert_int_equal(at_hub_message_read(bytes, sizeof bytes, &out, &fail), AT_ERR_FORMAT);
    in = (at_hub_message){.kind = AT_HUB_MESSAGE_BYE, .together = true, .err = AT_ERR_MISSING};
    at_hub_message_write(bytes, &in);
    assert_int_equal(at_hub_message_read(bytes, sizeof bytes, &out, &fail), AT_OK);
    assert_true(out.together);
    assert_int_equal(out.err, AT_ERR_MISSING);
}

static void what_remote_seats_and_hubs_tell_survives_a_round_trip(void **state)
{
    (void)state;
    unsigned char bytes[AT_SEAT_NEWS];
    at_fail       fail;
    at_seat_news  news, new = {.present = 7,
                               .first_rank = 3,
                               .samples_used = UINT64_C(1) << 40,
                               .taken = 5,
                               .scores_taken = 6,
                               .publish = 8,
                               .evicted = true};
    at_seat_word  word, old = {.drawn = 99,
                               .left = true,
                               .scored = true,
                               .version = 12,
                               .accuracy = 0.5,
                               .loss = 0.25};
    at_seat_news_write(bytes, &new);
    assert_int_equal(at_seat_news_read(bytes, AT_SEAT_NEWS - 1, &news, &fail), AT_ERR_FORMAT);
    assert_int_equal(at_seat_news_read(bytes, AT_SEAT_NEWS, &news, &fail), AT_OK);
    assert_int_equal(news.present, 7);
    assert_int_equal(news.first_rank, 3);
    assert_int_equal(news.samples_used, new.samples_used);
    assert_int_equal(news.taken, 5);
    assert_int_equal(news.scores_taken, 6);
    assert_int_equal(news.publish, 8);
    assert_true(news.evicted && !news.leave);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(at_seat_news_read(bytes, AT_SEAT_NEWS, &news, &fail), AT_ERR_FORMAT);
    assert_int_equal(at_seat_word_read(bytes, AT_SEAT_WORD, &word, &fail), AT_ERR_FORMAT);
    at_seat_word_write(bytes, &old);
    assert_int_equal(at_seat_word_read(bytes, AT_SEAT_WORD, &word, &fail), AT_OK);
    assert_int_equal(word.drawn, 99);
    assert_true(word.left && word.scored && !word.aside);
    assert_int_equal(word.version, 12);
    assert_true(word.accuracy == 0.5 && word.loss == 0.25);
}

static void orders_survive_a_round_trip(void **state)
{
    (void)state;
    unsigned char    bytes[AT_ORDER_MESSAGE] = {0};
    at_fail          fail;
    at_order_message out, in = {.worker = 65535,
                                .order = {.round = 9,
                                          .version = UINT64_MAX - 1,
                                          .position = AT_POSITION_OWN,
                                          .time_limit = AT_NEVER,
                                          .samples_max = UINT32_MAX,
                                          .used = UINT64_MAX - 5,
                                          .again = true,
                                          .leave = true}};
    at_order_message_write(bytes, &in);
    assert_int_equal(at_order_message_read(bytes, sizeof bytes, &out, &fail), AT_OK);
    assert_int_equal(out.worker, in.worker);
    assert_int_equal(out.order.round, in.order.round);
    assert_int_equal(out.order.version, in.order.version);
    assert_int_equal(out.order.position, in.order.position);
    assert_int_equal(out.order.time_limit, in.order.time_limit);
    assert_int_equal(out.order.samples_max, in.order.samples_max);
    assert_int_equal(out.order.used, in.order.used);
    assert_true(out.order.again);
    assert_true(out.order.leave);
    assert_false(out.order.pause);
}

static void reports_survive_a_round_trip(void **state)
{
    (void)state;
    static unsigned char bytes[AT_REPORT_MESSAGE_HEAD + 7850 * AT_MESSAGE_UNIT];
    at_fail              fail;
    at_report_message    out, in = {.drawn = 1000, .floats = 7850};
    in.report = (at_report){.incarnation = 2, .slot = 1, .sequence = 500, .again = true};
    in.report.work = (at_work){.round = 499,
                               .version = 498,
                               .samples = 60,
                               .capped = true,
                               .nonfinite = 77,
                               .loss_sum = -0.1,
                               .compute_ns = 1,
                               .sleep_ns = 2,
                               .overshoot_ns = -3,
                               .idle_ns = 4,
                               .install_ns = 5,
                               .send_ns = 6};
    at_report_message_write(bytes, &in);
    assert_int_equal(at_report_message_read(bytes, sizeof bytes, &out, &fail), AT_OK);
    assert_memory_equal(&out.report.work.loss_sum, &in.report.work.loss_sum, sizeof(double));
    assert_int_equal(out.report.work.round, 499);
    assert_int_equal(out.report.work.version, 498);
    assert_int_equal(out.report.work.samples, 60);
    assert_true(out.report.work.capped);
    assert_int_equal(out.report.work.nonfinite, 77);
    assert_false(out.report.work.abandoned);
    assert_int_equal(out.report.work.overshoot_ns, -3);
    assert_int_equal(out.report.work.send_ns, 6);
    assert_int_equal(out.report.sequence, 500);
    assert_int_equal(out.report.slot, 1);
    assert_true(out.report.again);
    assert_int_equal(out.drawn, 1000);
    assert_int_equal(out.floats, 7850);
}

static void notes_of_every_kind_fit_and_survive_a_round_trip(void **state)
{
    (void)state;
    for (int kind = AT_WORKER_NOTE_HELLO; kind <= AT_WORKER_NOTE_LEFT; kind++) {
        unsigned char  bytes[AT_WORKER_NOTE] = {0};
        at_fail        fail;
        at_worker_note out, in = {.kind = (at_worker_note_kind)kind, .drawn = 12, .reports = 3};
        at_fail_set(&in.fail, AT_ERR_MISSING, "a hint", "%0639d", 1);
        memset(in.host, 'h', sizeof in.host - 1);
        memset(in.engine, 'e', sizeof in.engine - 1);
        in.usage.pid = 5;
        in.averages = true;
        in.part[AT_JOB_PARTS - 1] = UINT64_MAX;
        size_t units = at_worker_note_write(bytes, &in);
        assert_true(units * AT_MESSAGE_UNIT <= AT_WORKER_NOTE);
        assert_int_equal(at_worker_note_read(bytes, units * AT_MESSAGE_UNIT, &out, &fail), AT_OK);
        assert_int_equal(out.kind, kind);
        assert_int_equal(out.drawn, 12);
        assert_int_equal(out.averages, kind == AT_WORKER_NOTE_PULSE);
        if (kind != AT_WORKER_NOTE_HELLO) continue;
        assert_int_equal(out.protocol, AT_PROTOCOL);
        assert_int_equal(out.part[AT_JOB_PARTS - 1], UINT64_MAX);
        assert_string_equal(out.host, in.host);
        assert_string_equal(out.fail.text, in.fail.text);
        assert_int_equal(out.fail.err, AT_ERR_MISSING);
    }
}

static at_turn_message a_turn(void)
{
    return (at_turn_message){
        .report =
            {.report = {.incarnation = 1,
                        .sequence = 12,
                        .work = {.round = 11, .version = 11, .samples = 32, .overshoot_ns = -3}},
             .drawn = 384},
        .now = AT_SEC(9),
        .version = 11,
        .trace = UINT64_MAX - 5,
        .hash = 1,
        .stops = true,
        .has_score = true,
        .score = {.step = 10,
                  .at = AT_SEC(8),
                  .loss_sum = 1.25,
                  .auc = 0.75,
                  .correct = 60,
                  .correct_top5 = 90,
                  .count = 100,
                  .classes = 10},
        .engine = "avx2"};
}

/* By fields: the bytes between them have no value. */
static void assert_same_score(const at_turn_score *a, const at_turn_score *b)
{
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->at, b->at);
    assert_memory_equal(&a->loss_sum, &b->loss_sum, sizeof a->loss_sum);
    assert_memory_equal(&a->auc, &b->auc, sizeof a->auc);
    assert_int_equal(a->correct, b->correct);
    assert_int_equal(a->correct_top5, b->correct_top5);
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->classes, b->classes);
}

static void turns_survive_a_round_trip(void **state)
{
    (void)state;
    unsigned char   bytes[AT_TURN_MESSAGE];
    at_fail         fail;
    at_turn_message out, in = a_turn();
    at_turn_message_write(bytes, &in);
    assert_int_equal(at_turn_message_read(bytes, sizeof bytes, &out, &fail), AT_OK);
    assert_int_equal(out.report.report.sequence, in.report.report.sequence);
    assert_int_equal(out.report.report.work.samples, in.report.report.work.samples);
    assert_int_equal(out.report.report.work.overshoot_ns, -3);
    assert_int_equal(out.report.drawn, in.report.drawn);
    assert_int_equal(out.now, in.now);
    assert_int_equal(out.version, in.version);
    assert_int_equal(out.trace, in.trace);
    assert_int_equal(out.hash, in.hash);
    assert_true(out.stops && out.has_score);
    assert_same_score(&out.score, &in.score);
    assert_string_equal(out.engine, "avx2");
}

/* What a hub asserts on must not come from another rank. */
static void impossible_turns_are_rejected(void **state)
{
    (void)state;
    unsigned char   bytes[AT_TURN_MESSAGE];
    at_fail         fail;
    at_turn_message out, bad[7];
    for (size_t i = 0; i < 7; i++) bad[i] = a_turn();
    bad[0].score.count = bad[0].score.correct = bad[0].score.correct_top5 = 0;
    bad[1].score.correct = 101;
    bad[2].score.step = 12; /* the newest is 11 */
    bad[3].now = -1;
    bad[4].now = INT64_MAX;
    bad[5].version = AT_MESSAGE_COUNT_MAX;
    bad[6].report.report.work.compute_ns = -1;
    for (size_t i = 0; i < 7; i++) {
        at_turn_message_write(bytes, &bad[i]);
        assert_int_equal(at_turn_message_read(bytes, sizeof bytes, &out, &fail), AT_ERR_FORMAT);
        assert_non_null(strstr(fail.text, "malformed"));
    }
    at_turn_message_write(bytes, &(at_turn_message){0});
    assert_int_equal(at_turn_message_read(bytes, sizeof bytes - 1, &out, &fail), AT_ERR_FORMAT);
    bytes[0] ^= 1;
    assert_int_equal(at_turn_message_read(bytes, sizeof bytes, &out, &fail), AT_ERR_FORMAT);
}

static void messages_about_gossip_survive_a_round_trip(void **state)
{
    (void)state;
    enum { WORKERS = 70 }; /* more than two words of bits */
    unsigned char  bytes[AT_HUB_MESSAGE_HEAD + 64] = {0};
    bool           present[WORKERS], read[WORKERS];
    at_fail        fail;
    at_hub_message out, in = {.kind = AT_HUB_MESSAGE_MIX,
                              .version = 12,
                              .used = 3456,
                              .lr_factor = 0.5,
                              .counts = true};
    size_t         size = at_mix_message_size(WORKERS);
    assert_int_equal(size, AT_HUB_MESSAGE_HEAD + 12);
    for (int i = 0; i < WORKERS; i++) present[i] = i % 3 == 0 || i == 69;
    at_mix_message_write(bytes, &in, present, WORKERS);
    assert_int_equal(at_hub_message_read(bytes, size, &out, &fail), AT_OK);
    assert_int_equal(out.version, 12);
    assert_int_equal(out.used, 3456);
    assert_true(out.lr_factor == 0.5 && out.counts);
    assert_int_equal(at_mix_message_read(bytes, size, read, WORKERS, &fail), AT_OK);
    assert_memory_equal(read, present, sizeof present);
    assert_int_equal(at_mix_message_read(bytes, size - 1, read, WORKERS, &fail), AT_ERR_FORMAT);
    in = (at_hub_message){.kind = AT_HUB_MESSAGE_COLLECT, .version = 5};
    at_hub_message_write(bytes, &in);
    assert_int_equal(at_hub_message_read(bytes, AT_HUB_MESSAGE_HEAD, &out, &fail), AT_OK);
    assert_int_equal(out.version, 5);
    in = (at_hub_message){.kind = AT_HUB_MESSAGE_GONE, .worker = 70};
    at_hub_message_write(bytes, &in);
    assert_int_equal(at_hub_message_read(bytes, AT_HUB_MESSAGE_HEAD, &out, &fail), AT_OK);
    assert_int_equal(out.worker, 70);
    in.worker = 0;
    at_hub_message_write(bytes, &in);
    assert_int_equal(at_hub_message_read(bytes, AT_HUB_MESSAGE_HEAD, &out, &fail), AT_ERR_FORMAT);
}

/* A neighbour that is in another step or round, or has another model, is not averaged with. */
static void vectors_of_other_steps_rounds_and_sizes_are_rejected(void **state)
{
    (void)state;
    unsigned char           bytes[AT_VECTOR_MESSAGE_HEAD + 12] = {0};
    const at_vector_message in = {
        .version = 7, .round = 2, .last = true, .count = 32.5, .floats = 3};
    at_vector_message out, expected = in;
    at_fail           fail;
    at_vector_message_write(bytes, &in);
    assert_int_equal(at_vector_message_read(bytes, sizeof bytes, &expected, &out, &fail), AT_OK);
    assert_true(out.count == 32.5 && out.last && out.round == 2);
    assert_int_not_equal(at_vector_message_read(bytes, sizeof bytes - 4, &expected, &out, &fail),
                         AT_OK);
    assert_int_not_equal(at_vector_message_read(bytes, 3, &expected, &out, &fail), AT_OK);
    const at_vector_message others[] = {{.version = 8, .round = 2, .floats = 3},
                                        {.version = 7, .round = 3, .floats = 3},
                                        {.version = 7, .round = 2, .floats = 2}};
    for (int i = 0; i < 3; i++)
        assert_int_equal(at_vector_message_read(bytes, sizeof bytes, &others[i], &out, &fail),
                         AT_ERR_FORMAT);
    at_vector_message_write(bytes, &(at_vector_message){.version = 7, .round = 2, .count = -1.0});
    assert_int_equal(at_vector_message_read(bytes, AT_VECTOR_MESSAGE_HEAD, &in, &out, &fail),
                     AT_ERR_FORMAT);
}

/* ---- bytes of others ----------------------------------------------------------------------- */

static void foreign_bytes_are_rejected(void **state)
{
    (void)state;
    unsigned char     bytes[AT_WORKER_NOTE] = {0};
    at_hub_message    message;
    at_report_message report;
    at_worker_note    note;
    at_fail           fail;
    assert_int_equal(at_hub_message_read(bytes, sizeof bytes, &message, &fail), AT_ERR_FORMAT);
    assert_int_equal(at_report_message_read(bytes, sizeof bytes, &report, &fail), AT_ERR_FORMAT);
    assert_int_equal(at_worker_note_read(bytes, sizeof bytes, &note, &fail), AT_ERR_FORMAT);
    at_hub_message_write(bytes, &(at_hub_message){.kind = AT_HUB_MESSAGE_BYE});
    assert_int_equal(at_worker_note_read(bytes, sizeof bytes, &note, &fail), AT_ERR_FORMAT);
    bytes[4] = 200; /* an unknown kind */
    assert_int_equal(at_hub_message_read(bytes, sizeof bytes, &message, &fail), AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "unknown kind"));
}

/* Every prefix of a message lies at the end of its own memory, so that a sanitizer sees every byte
 * that is read behind it. */
static void cut_messages_are_rejected(void **state)
{
    (void)state;
    unsigned char  whole[AT_WORKER_NOTE];
    at_worker_note note, hello = {.kind = AT_WORKER_NOTE_HELLO, .pid = 1};
    size_t         size = at_worker_note_write(whole, &hello) * AT_MESSAGE_UNIT;
    at_fail        fail;
    for (size_t cut = 1; cut < size; cut++) {
        unsigned char *bytes = malloc(cut);
        assert_non_null(bytes);
        memcpy(bytes, whole, cut);
        assert_int_equal(at_worker_note_read(bytes, cut, &note, &fail), AT_ERR_FORMAT);
        assert_non_null(strstr(fail.text, "cut off"));
        free(bytes);
    }
    assert_int_equal(at_worker_note_read(whole, size, &note, &fail), AT_OK);
    at_hub_message    message;
    at_order_message  order;
    at_report_message report;
    char              host[AT_HOST_NAME_SIZE];
    at_hub_message_write(whole, &(at_hub_message){.kind = AT_HUB_MESSAGE_PULSE});
    assert_int_not_equal(at_hub_message_read(whole, AT_HUB_MESSAGE_HEAD - 1, &message, &fail), 0);
    assert_int_not_equal(at_hub_message_host(whole, AT_HUB_MESSAGE_HEAD, host, &fail), AT_OK);
    at_order_message_write(whole, &(at_order_message){.worker = 1});
    assert_int_not_equal(at_order_message_read(whole, AT_ORDER_MESSAGE - 1, &order, &fail), AT_OK);
    at_report_message_write(whole, &(at_report_message){.floats = 1});
    assert_int_not_equal(at_report_message_read(whole, AT_REPORT_MESSAGE_HEAD, &report, &fail), 0);
    assert_int_not_equal(at_report_message_read(whole, 3, &report, &fail), AT_OK);
}

/* Random bytes, and messages of which some bytes are random, are read or rejected. */
static void random_bytes_are_read_or_rejected(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int round = 0; round < 20000; round++) {
        unsigned char     bytes[AT_WORKER_NOTE];
        at_hub_message    message;
        at_order_message  order;
        at_report_message report;
        at_worker_note    note = {.kind = (at_worker_note_kind)(round % 4)};
        at_fail           fail;
        at_worker_note_write(bytes, &note);
        if (round % 3 == 1)
            at_hub_message_write(bytes,
                                 &(at_hub_message){.kind = (at_hub_message_kind)(round % 7)});
        if (round % 3 == 2) at_report_message_write(bytes, &(at_report_message){.drawn = 1});
        for (int i = 0; i < 1 + round % 20; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            bytes[(random >> 33) % (round % 2 ? 64 : sizeof bytes)] = (unsigned char)(random >> 56);
        }
        size_t size = (random >> 20) % (sizeof bytes + 1);
        if (!at_worker_note_read(bytes, size, &note, &fail)) {
            assert_true(note.kind <= AT_WORKER_NOTE_LEFT);
            assert_true(note.drawn < AT_MESSAGE_COUNT_MAX);
            assert_true(strlen(note.host) < sizeof note.host);
        }
        if (!at_hub_message_read(bytes, size, &message, &fail))
            assert_true(message.kind <= AT_HUB_MESSAGE_GONE);
        if (!at_order_message_read(bytes, size, &order, &fail)) assert_true(order.worker >= 1);
        if (!at_report_message_read(bytes, size, &report, &fail))
            assert_int_equal(size, AT_REPORT_MESSAGE_HEAD + report.floats * AT_MESSAGE_UNIT);
    }
}

static void another_protocol_is_named(void **state)
{
    (void)state;
    unsigned char  bytes[AT_WORKER_NOTE];
    at_worker_note note = {.kind = AT_WORKER_NOTE_HELLO};
    at_hub_message message;
    at_fail        fail;
    at_worker_note_write(bytes, &note);
    bytes[8] = AT_PROTOCOL + 5;
    assert_int_equal(at_worker_note_read(bytes, sizeof bytes, &note, &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "protocol"));
    at_hub_message_write(bytes, &(at_hub_message){.kind = AT_HUB_MESSAGE_WELCOME});
    bytes[8] = AT_PROTOCOL + 5;
    assert_int_equal(at_hub_message_read(bytes, sizeof bytes, &message, &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "protocol"));
}

/* Texts are printed on the terminal of rank 0. */
static void control_characters_in_texts_are_replaced(void **state)
{
    (void)state;
    unsigned char  bytes[AT_WORKER_NOTE];
    at_worker_note note = {.kind = AT_WORKER_NOTE_READY, .engine = "a\033[2Jb"};
    at_fail        fail;
    at_worker_note_write(bytes, &note);
    assert_int_equal(at_worker_note_read(bytes, sizeof bytes, &note, &fail), AT_OK);
    assert_string_equal(note.engine, "a?[2Jb");
}

static const at_report_bounds bounds = {
    .incarnation = 2, .sequence = 6, .version = 9, .samples_max = 32, .drawn = 100, .floats = 10};

static at_report_message good_report(void)
{
    at_report_message message = {.drawn = 132, .floats = 10};
    message.report = (at_report){.incarnation = 2, .sequence = 7};
    message.report.work = (at_work){.version = 9, .samples = 32};
    return message;
}

static void assert_refused(const at_report_message *message, const char *says)
{
    at_fail fail;
    assert_int_equal(at_report_message_check(message, &bounds, &fail), AT_ERR_FORMAT);
    if (!strstr(fail.text, says)) fail_msg("'%s' does not say '%s'", fail.text, says);
}

static void a_report_must_fit_the_run(void **state)
{
    (void)state;
    at_fail           fail;
    at_report_message good = good_report(), bad;
    assert_int_equal(at_report_message_check(&good, &bounds, &fail), AT_OK);
    assert_refused((bad = good, bad.report.incarnation = 1, &bad), "incarnation");
    assert_refused((bad = good, bad.report.again = true, &bad), "without an order");
    assert_refused((bad = good, bad.report.sequence = 6, &bad), "sequence");
    assert_refused((bad = good, bad.report.work.samples = 33, &bad), "samples");
    assert_refused((bad = good, bad.report.work.samples = 0, bad.floats = 0, &bad), "no samples");
    assert_refused((bad = good, bad.report.work.version = 10, &bad), "version");
    assert_refused((bad = good, bad.drawn = 131, &bad), "fewer samples");
    assert_refused((bad = good, bad.floats = 9, &bad), "size of the gradient");
    assert_refused((bad = good, bad.floats = 11, &bad), "size of the gradient");
    assert_refused((bad = good, bad.report.work.abandoned = true, &bad), "size of the gradient");
}

static void an_order_must_fit_what_the_worker_has(void **state)
{
    (void)state;
    at_fail          fail;
    at_order_message bad, good = {.worker = 1,
                                  .order = {.version = 4,
                                            .position = AT_POSITION_OWN,
                                            .time_limit = AT_NEVER,
                                            .samples_max = 32}};
    assert_int_equal(at_order_message_check(&good, 32, 4, &fail), AT_OK);
    assert_int_not_equal(at_order_message_check(&good, 31, 4, &fail), AT_OK);
    assert_int_not_equal(at_order_message_check(&good, 32, 3, &fail), AT_OK);
    assert_int_not_equal(at_order_message_check(&good, 32, AT_VERSION_NONE, &fail), AT_OK);
    bad = good;
    bad.order.time_limit = 0;
    assert_int_not_equal(at_order_message_check(&bad, 32, 4, &fail), AT_OK);
    bad.order.time_limit = AT_NEVER - 1; /* which could not be added to a time */
    assert_int_not_equal(at_order_message_check(&bad, 32, 4, &fail), AT_OK);
    bad = good;
    bad.order.samples_max = 0;
    assert_int_not_equal(at_order_message_check(&bad, 32, 4, &fail), AT_OK);
    bad = good;
    bad.order.used = AT_MESSAGE_COUNT_MAX;
    assert_int_not_equal(at_order_message_check(&bad, 32, 4, &fail), AT_OK);
    bad = good;
    bad.order.position = AT_POSITION_OWN - 1;
    assert_int_not_equal(at_order_message_check(&bad, 32, 4, &fail), AT_OK);
}

static void parameters_must_not_become_older(void **state)
{
    (void)state;
    at_fail        fail;
    at_hub_message message = {.kind = AT_HUB_MESSAGE_WORK, .version = 4};
    assert_int_equal(at_params_message_check(&message, AT_VERSION_NONE, &fail), AT_OK);
    assert_int_equal(at_params_message_check(&message, 4, &fail), AT_OK); /* sent again */
    assert_int_equal(at_params_message_check(&message, 5, &fail), AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "older than those before, version (4)"));
    message.version = AT_VERSION_NONE; /* orders only */
    assert_int_equal(at_params_message_check(&message, 5, &fail), AT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hub_messages_survive_a_round_trip),
        cmocka_unit_test(messages_about_gossip_survive_a_round_trip),
        cmocka_unit_test(vectors_of_other_steps_rounds_and_sizes_are_rejected),
        cmocka_unit_test(orders_survive_a_round_trip),
        cmocka_unit_test(what_remote_seats_and_hubs_tell_survives_a_round_trip),
        cmocka_unit_test(reports_survive_a_round_trip),
        cmocka_unit_test(notes_of_every_kind_fit_and_survive_a_round_trip),
        cmocka_unit_test(turns_survive_a_round_trip),
        cmocka_unit_test(impossible_turns_are_rejected),
        cmocka_unit_test(foreign_bytes_are_rejected),
        cmocka_unit_test(cut_messages_are_rejected),
        cmocka_unit_test(random_bytes_are_read_or_rejected),
        cmocka_unit_test(another_protocol_is_named),
        cmocka_unit_test(control_characters_in_texts_are_replaced),
        cmocka_unit_test(a_report_must_fit_the_run),
        cmocka_unit_test(an_order_must_fit_what_the_worker_has),
        cmocka_unit_test(parameters_must_not_become_older),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
