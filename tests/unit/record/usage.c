#include "base/usage.h"

#include "record/log/record_validate.h"
#include "record/sinks/sinks.h"
#include "record/tally.h"
#include "script.h"

static at_usage usage_of(int64_t pid, at_ns cpu, uint64_t rss)
{
    return (at_usage){.pid = pid,
                      .user_ns = cpu,
                      .rss_bytes = rss,
                      .shared_bytes = rss / 2,
                      .peak_bytes = AT_USAGE_UNKNOWN,
                      .read_bytes = AT_USAGE_UNKNOWN,
                      .write_bytes = AT_USAGE_UNKNOWN,
                      .net_in_bytes = AT_USAGE_UNKNOWN,
                      .net_out_bytes = AT_USAGE_UNKNOWN,
                      .loopback_bytes = AT_USAGE_UNKNOWN};
}

static void put_usage(script *run, at_node node, at_usage usage)
{
    script_put(run, (at_record){.kind = AT_REC_USAGE, .node = node, .usage = &usage});
}

/* Feeds the readings to a new tally; returns what it says about the hub. */
static at_usage_tally tally_readings(const at_usage *readings, size_t count)
{
    script  run;
    at_sink sink;
    script_begin(&run, 1);
    at_tally *tally = at_tally_new(&run.info, &sink);
    at_recorder_add(&run.recorder, sink);
    for (size_t i = 0; i < count; i++) put_usage(&run, 0, readings[i]);
    at_usage_tally hub = tally->hub_usage;
    script_close(&run);
    at_tally_free(tally);
    script_end(&run);
    return hub;
}

static void totals_continue_when_a_process_is_replaced(void **state)
{
    (void)state;
    at_usage first = usage_of(10, AT_SEC(3), 100), second = usage_of(11, AT_SEC(1), 50);
    first.read_bytes = 1000;
    second.read_bytes = 10;
    at_usage_tally tally = tally_readings((at_usage[]){first, first, second}, 3);
    assert_int_equal(tally.cpu_ns, AT_SEC(4));
    assert_int_equal(tally.read_bytes, 1010);
    assert_int_equal(tally.peak_bytes, 100);
    assert_int_equal(tally.last.pid, 11);
}

static void network_counts_from_the_first_reading(void **state)
{
    (void)state;
    static const uint64_t net_in[] = {5000, AT_USAGE_UNKNOWN /* could not be read */, 5700,
                                      3 /* an interface was removed */};
    static const uint64_t expected[] = {0, 0, 700, 700};
    at_usage              readings[4];
    for (size_t i = 0; i < 4; i++) {
        readings[i] = usage_of(10, 0, 0);
        readings[i].net_in_bytes = net_in[i];
        assert_int_equal(tally_readings(readings, i + 1).net_in_bytes, expected[i]);
    }
}

static void huge_counters_do_not_overflow(void **state)
{
    (void)state;
    enum { COUNT = 39 };
    at_usage readings[COUNT];
    for (int i = 0; i < COUNT; i++) {
        readings[i] = usage_of(i + 1, (at_ns)1 << 60, UINT64_MAX - 1);
        readings[i].system_ns = (at_ns)1 << 60;
        readings[i].read_bytes = readings[i].write_bytes = UINT64_MAX - 1;
    }
    at_usage_tally tally = tally_readings(readings, COUNT);
    assert_int_equal(tally.cpu_ns, AT_NEVER);
    assert_int_equal(tally.read_bytes, UINT64_MAX - 1);
}

static void hub_workers_and_evaluator_are_counted_separately(void **state)
{
    (void)state;
    script  run;
    at_sink sink;
    script_begin(&run, 2);
    at_tally *tally = at_tally_new(&run.info, &sink);
    at_recorder_add(&run.recorder, sink);
    put_usage(&run, 0, usage_of(100, AT_SEC(1), 11));
    put_usage(&run, 2, usage_of(102, AT_SEC(2), 22));
    put_usage(&run, AT_NODE_EVALUATOR, usage_of(103, AT_SEC(3), 33));
    script_close(&run);
    assert_int_equal(tally->hub_usage.cpu_ns, AT_SEC(1));
    assert_int_equal(tally->usage[0].last.pid, 0);
    assert_int_equal(tally->usage[1].cpu_ns, AT_SEC(2));
    assert_int_equal(tally->usage[1].peak_bytes, 22);
    assert_int_equal(tally->evaluator_usage.peak_bytes, 33);
    at_tally_free(tally);
    script_end(&run);
}

static const char header[] =
    "time,node,pid,cpu_seconds,user_seconds,system_seconds,rss_bytes,shared_bytes,peak_bytes,"
    "read_bytes,write_bytes,net_in_bytes,net_out_bytes,loopback_bytes\n";

static void unknown_values_are_empty_in_the_table(void **state)
{
    (void)state;
    script  run;
    at_sink sink;
    char    expected[600];
    script_begin(&run, 2);
    run.info.usage = true;
    assert_int_equal(at_sink_csv(&run.info, false, &sink, NULL), AT_OK);
    at_recorder_add(&run.recorder, sink);
    at_usage hub = usage_of(100, AT_MS(1500), 4096);
    hub.system_ns = AT_MS(250);
    hub.net_in_bytes = 7;
    hub.net_out_bytes = 8;
    hub.loopback_bytes = 0;
    run.at = AT_SEC(1);
    put_usage(&run, 0, hub);
    put_usage(&run, 1, usage_of(101, AT_SEC(2), 0));
    put_usage(&run, AT_NODE_EVALUATOR, usage_of(102, 0, 2));
    script_close(&run);
    snprintf(expected, sizeof expected,
             "%s1.000000,hub,100,1.750000,1.500000,0.250000,4096,2048,,,,7,8,0\n"
             "1.000000,1,101,2.000000,2.000000,0.000000,0,0,,,,,,\n"
             "1.000000,evaluator,102,0.000000,0.000000,0.000000,2,1,,,,,,\n",
             header);
    script_check_file(&run, "resource_stats.csv", expected);
    script_end(&run);
}

static void without_sampling_no_table_is_written(void **state)
{
    (void)state;
    script  run;
    at_sink sink;
    char    path[400];
    script_begin(&run, 1);
    assert_int_equal(at_sink_csv(&run.info, true, &sink, NULL), AT_OK);
    at_recorder_add(&run.recorder, sink);
    put_usage(&run, 0, usage_of(100, 0, 0));
    script_close(&run);
    snprintf(path, sizeof path, "%s/resource_stats.csv", run.folder);
    assert_int_not_equal(access(path, F_OK), 0);
    script_end(&run);
}

static void invalid_usage_records_are_refused(void **state)
{
    (void)state;
    at_usage  usage = usage_of(100, 1, 1);
    at_record record = {.kind = AT_REC_USAGE, .at = 5, .node = 3, .usage = &usage};
    assert_null(at_record_validate(&record, 5, 3));
    assert_non_null(at_record_validate(&record, 6, 3));
    assert_non_null(at_record_validate(&record, 5, 2));
    record.node = AT_NODE_EVALUATOR;
    assert_null(at_record_validate(&record, 5, 2));
    usage.pid = 0;
    assert_non_null(at_record_validate(&record, 5, 2));
    usage.pid = 1;
    usage.system_ns = -1;
    assert_non_null(at_record_validate(&record, 5, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_continue_when_a_process_is_replaced),
        cmocka_unit_test(network_counts_from_the_first_reading),
        cmocka_unit_test(huge_counters_do_not_overflow),
        cmocka_unit_test(hub_workers_and_evaluator_are_counted_separately),
        cmocka_unit_test(unknown_values_are_empty_in_the_table),
        cmocka_unit_test(without_sampling_no_table_is_written),
        cmocka_unit_test(invalid_usage_records_are_refused),
    };
    return cmocka_run_group_tests_name("record: resource usage", tests, NULL, NULL);
}
