/* Records about connections: in the tables, in workers.json, in the totals and their checkpoint. */
#include "base/link_stats.h"
#include "record/log/record_validate.h"
#include "record/sinks/sinks.h"
#include "record/tally.h"
#include "script.h"

static at_link_stats link_of(const char *address, uint64_t sent, uint64_t received)
{
    at_link_stats link = {.host = "alpha",
                          .round_trip_ns = AT_US(1500),
                          .round_trip_ns_min = AT_US(900),
                          .sent_bytes = sent,
                          .received_bytes = received};
    at_link_name_set(link.address, address);
    return link;
}

static void put_link(script *run, at_node worker, at_link_stats link)
{
    script_put(run, (at_record){.kind = AT_REC_LINK, .node = worker, .link = &link});
}

static at_tally *begin(script *run, uint32_t workers)
{
    at_sink sink;
    script_begin(run, workers);
    at_tally *tally = at_tally_new(&run->info, &sink);
    at_recorder_add(&run->recorder, sink);
    script_start(run);
    return tally;
}

static void end(script *run, at_tally *tally)
{
    script_close(run);
    at_tally_free(tally);
    script_end(run);
}

static void without_connections_nothing_is_counted(void **state)
{
    (void)state;
    script    run;
    at_tally *tally = begin(&run, 2);
    script_join(&run, 1, 100, 1);
    script_lost(&run, 1, "killed", true);
    assert_null(tally->link);
    end(&run, tally);
}

static void counters_of_several_connections_add_up(void **state)
{
    (void)state;
    script        run;
    at_tally     *tally = begin(&run, 2);
    at_link_stats again = link_of("10.0.0.7:2", 10, 5);
    script_join(&run, 2, 0, 1);
    put_link(&run, 2, link_of("10.0.0.7:1", 0, 100));
    put_link(&run, 2, link_of("10.0.0.7:1", 1000, 300));
    script_lost(&run, 2, "lost its connection", false);
    again.round_trip_ns_min = AT_US(700);
    script_join(&run, 2, 0, 2);
    put_link(&run, 2, again);
    assert_int_equal(tally->link[1].sent_bytes, 1010);
    assert_int_equal(tally->link[1].received_bytes, 305);
    assert_int_equal(tally->link[1].losses, 1);
    assert_int_equal(tally->link[1].round_trip_ns_min, AT_US(700));
    assert_string_equal(tally->link[1].last.address, "10.0.0.7:2");
    assert_string_equal(tally->link[0].last.address, "");
    end(&run, tally);
}

static void a_checkpoint_keeps_the_totals(void **state)
{
    (void)state;
    script    run;
    at_fail   fail;
    at_sink   sink;
    at_tally *tally = begin(&run, 2), *resumed;
    put_link(&run, 1, link_of("10.0.0.7:1", 1000, 300));
    json_t *json = at_tally_json(tally, run.at);
    resumed = at_tally_new(&run.info, &sink);
    assert_int_equal(at_tally_resume(resumed, json, &fail), AT_OK);
    assert_int_equal(resumed->link[0].sent_bytes, 1000);
    assert_int_equal(resumed->link[0].received_bytes, 300);
    assert_string_equal(resumed->link[0].last.address, ""); /* there are other connections now */
    json_object_set_new(json_array_get(json_object_get(json, "links"), 0), "sent_bytes",
                        json_integer(-1));
    at_tally_free(resumed);
    resumed = at_tally_new(&run.info, &sink);
    assert_int_equal(at_tally_resume(resumed, json, &fail), AT_ERR_FORMAT);
    at_tally_free(resumed);
    json_decref(json);
    end(&run, tally);
}

static void the_table_has_a_line_per_measurement(void **state)
{
    (void)state;
    script  run;
    at_sink sink;
    script_begin(&run, 2);
    run.info.links = true;
    assert_int_equal(at_sink_csv(&run.info, false, &sink, NULL), AT_OK);
    at_recorder_add(&run.recorder, sink);
    run.at = AT_SEC(1);
    put_link(&run, 2, link_of("10.0.0.7:1", 1000, 300));
    script_close(&run);
    script_check_file(&run, "link_stats.csv",
                      "time,worker,host,address,round_trip,round_trip_min,sent_bytes,"
                      "received_bytes,resent_packets\n"
                      "1.000000,2,alpha,10.0.0.7:1,0.001500,0.000900,1000,300,0\n");
    script_end(&run);
}

static void workers_json_says_where_a_worker_is(void **state)
{
    (void)state;
    script  run;
    at_sink sink;
    script_begin(&run, 2);
    assert_int_equal(at_sink_workers(&run.info, &sink, NULL), AT_OK);
    at_recorder_add(&run.recorder, sink);
    script_start(&run);
    script_join(&run, 2, 0, 1);
    put_link(&run, 2, link_of("10.0.0.7:1", 1000, 300));
    char *text = script_read(&run, "workers.json");
    assert_non_null(strstr(text, "{\"id\": 2, \"pid\": null, \"incarnation\": 1, \"state\": "
                                 "\"working\", \"host\": \"alpha\", \"address\": \"10.0.0.7:1\", "
                                 "\"round_trip_seconds\": 0.001500, \"sent_bytes\": 1000, "
                                 "\"received_bytes\": 300}"));
    free(text);
    put_link(&run, 2, link_of("10.0.0.7:1", 1001, 300)); /* not written at once */
    text = script_read(&run, "workers.json");
    assert_non_null(strstr(text, "\"sent_bytes\": 1000"));
    free(text);
    run.at += AT_SEC(2);
    put_link(&run, 2, link_of("10.0.0.7:1", 1002, 300));
    text = script_read(&run, "workers.json");
    assert_non_null(strstr(text, "\"sent_bytes\": 1002"));
    free(text);
    script_close(&run);
    script_end(&run);
}

static void records_that_no_run_can_make_are_refused(void **state)
{
    (void)state;
    at_link_stats link = link_of("10.0.0.7:1", 1, 1);
    at_record     record = {.kind = AT_REC_LINK, .at = 5, .node = 2, .link = &link};
    assert_null(at_record_validate(&record, 5, 2));
    assert_non_null(at_record_validate(&record, 5, 1));
    record.node = 0;
    assert_non_null(at_record_validate(&record, 5, 2));
    record.node = 1;
    link.round_trip_ns = -1;
    assert_non_null(at_record_validate(&record, 5, 2));
    link.round_trip_ns = 0;
    link.sent_bytes = UINT64_MAX;
    assert_non_null(at_record_validate(&record, 5, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_connections_nothing_is_counted),
        cmocka_unit_test(counters_of_several_connections_add_up),
        cmocka_unit_test(a_checkpoint_keeps_the_totals),
        cmocka_unit_test(the_table_has_a_line_per_measurement),
        cmocka_unit_test(workers_json_says_where_a_worker_is),
        cmocka_unit_test(records_that_no_run_can_make_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
