#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "message/message.h"

static void hub_messages_survive_a_round_trip(void **state)
{
    (void)state;
    unsigned char  bytes[AT_HUB_MESSAGE_HEAD] = {0};
    at_hub_message out, in = {.kind = AT_HUB_MESSAGE_WELCOME,
                              .version = AT_VERSION_NONE,
                              .incarnation = 3,
                              .sequence = UINT64_C(1) << 40,
                              .drawn = 77,
                              .pid = 4711,
                              .born = 123456789,
                              .usage_every = AT_SEC(1),
                              .together = true};
    at_hub_message_write(bytes, &in);
    assert_true(at_hub_message_read(bytes, &out));
    assert_int_equal(out.kind, in.kind);
    assert_int_equal(out.version, in.version);
    assert_int_equal(out.incarnation, in.incarnation);
    assert_int_equal(out.sequence, in.sequence);
    assert_int_equal(out.drawn, in.drawn);
    assert_int_equal(out.pid, in.pid);
    assert_int_equal(out.born, in.born);
    assert_int_equal(out.usage_every, in.usage_every);
    assert_true(out.together);
}

static void orders_survive_a_round_trip(void **state)
{
    (void)state;
    unsigned char    bytes[AT_ORDER_MESSAGE] = {0};
    at_order_message out, in = {.worker = 65535,
                                .order = {.round = 9,
                                          .version = UINT64_MAX - 1,
                                          .position = AT_POSITION_OWN,
                                          .time_limit = AT_NEVER,
                                          .samples_max = UINT32_MAX,
                                          .again = true,
                                          .leave = true}};
    at_order_message_write(bytes, &in);
    at_order_message_read(bytes, &out);
    assert_int_equal(out.worker, in.worker);
    assert_int_equal(out.order.round, in.order.round);
    assert_int_equal(out.order.version, in.order.version);
    assert_int_equal(out.order.position, in.order.position);
    assert_int_equal(out.order.time_limit, in.order.time_limit);
    assert_int_equal(out.order.samples_max, in.order.samples_max);
    assert_true(out.order.again);
    assert_true(out.order.leave);
    assert_false(out.order.pause);
}

static void reports_survive_a_round_trip(void **state)
{
    (void)state;
    unsigned char     bytes[AT_REPORT_MESSAGE_HEAD] = {0};
    at_report_message out, in = {.drawn = 1000, .floats = 7850};
    in.report = (at_report){.incarnation = 2, .slot = 1, .sequence = 500, .again = true};
    in.report.work = (at_work){.round = 499,
                               .version = 498,
                               .samples = 60,
                               .capped = true,
                               .loss_sum = -0.1,
                               .compute_ns = 1,
                               .sleep_ns = 2,
                               .overshoot_ns = -3,
                               .idle_ns = 4,
                               .install_ns = 5,
                               .send_ns = 6};
    at_report_message_write(bytes, &in);
    assert_true(at_report_message_read(bytes, &out));
    assert_memory_equal(&out.report.work.loss_sum, &in.report.work.loss_sum, sizeof(double));
    assert_int_equal(out.report.work.round, 499);
    assert_int_equal(out.report.work.version, 498);
    assert_int_equal(out.report.work.samples, 60);
    assert_true(out.report.work.capped);
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
        at_worker_note out, in = {.kind = (at_worker_note_kind)kind, .drawn = 12, .reports = 3};
        at_fail_set(&in.fail, AT_ERR_MISSING, "a hint", "%0639d", 1);
        memset(in.host, 'h', sizeof in.host - 1);
        memset(in.engine, 'e', sizeof in.engine - 1);
        in.usage.pid = 5;
        size_t units = at_worker_note_write(bytes, &in);
        assert_true(units * AT_MESSAGE_UNIT <= AT_WORKER_NOTE);
        assert_true(at_worker_note_read(bytes, &out));
        assert_int_equal(out.kind, kind);
        assert_int_equal(out.drawn, 12);
        if (kind != AT_WORKER_NOTE_HELLO) continue;
        assert_string_equal(out.host, in.host);
        assert_string_equal(out.fail.text, in.fail.text);
        assert_int_equal(out.fail.err, AT_ERR_MISSING);
    }
}

static void foreign_bytes_are_rejected(void **state)
{
    (void)state;
    unsigned char     bytes[AT_WORKER_NOTE] = {0};
    at_hub_message    message;
    at_report_message report;
    at_worker_note    note;
    assert_false(at_hub_message_read(bytes, &message));
    assert_false(at_report_message_read(bytes, &report));
    assert_false(at_worker_note_read(bytes, &note));
    at_hub_message_write(bytes, &(at_hub_message){.kind = AT_HUB_MESSAGE_BYE});
    assert_false(at_worker_note_read(bytes, &note));
    bytes[4] = 200; /* an unknown kind */
    assert_false(at_hub_message_read(bytes, &message));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hub_messages_survive_a_round_trip),
        cmocka_unit_test(orders_survive_a_round_trip),
        cmocka_unit_test(reports_survive_a_round_trip),
        cmocka_unit_test(notes_of_every_kind_fit_and_survive_a_round_trip),
        cmocka_unit_test(foreign_bytes_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
