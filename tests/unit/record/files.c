#include "record/sinks/sinks.h"

#include <math.h>

#include "base/rng.h"
#include "record/log/append_file.h"
#include "script.h"

static void begin(script *run, uint32_t workers, bool rounds)
{
    script_begin(run, workers);
    at_sink sink;
    at_fail fail = {0};
    assert_int_equal(at_sink_csv(&run->info, rounds, &sink, &fail), AT_OK);
    at_recorder_add(&run->recorder, sink);
    script_start(run);
    for (at_node worker = 1; worker <= workers; worker++)
        script_join(run, worker, 100 + (int64_t)worker, 1);
}

/* Two workers, one step, one evaluation. */
static void play_a_step(script *run)
{
    run->at = AT_MS(2);
    script_order(run, 1, AT_MS(50));
    script_order(run, 2, AT_MS(50));
    run->at = AT_MS(51);
    script_report(run, 1, 1, 1,
                  (at_work){.samples = 32, .compute_ns = AT_MS(39), .sleep_ns = AT_MS(10)});
    run->at = AT_MS(52);
    script_report(run, 2, 1, 1,
                  (at_work){.round = 3,
                            .samples = 16,
                            .version = run->version,
                            .compute_ns = AT_MS(50),
                            .idle_ns = AT_US(700),
                            .install_ns = AT_US(200),
                            .send_ns = 1499});
    at_piece pieces[] = {{.worker = 1, .samples = 32}, {.worker = 2, .samples = 16}};
    script_apply(run, pieces, 2, 24, 0.05);
    run->at = AT_MS(60);
    script_evaluated(run, 1, AT_MS(8), 0.8463, 0.4375);
}

static void the_tables_have_the_published_columns(void **state)
{
    (void)state;
    script run;
    begin(&run, 2, true);
    play_a_step(&run);
    script_close(&run);
    script_check_file(&run, "master_stats.csv",
                      "time,step,loss,learning_rate,test_loss,accuracy\n"
                      "0.052000,1,0.5,0.05,,\n"
                      "0.052000,1,,,0.4375,0.8463\n");
    script_check_file(&run, "worker_stats.csv",
                      "time,master_step,rank,worker_step,worker_master_step,"
                      "last_queued_update_count,num_samples,last_send,last_recv,last_exit,"
                      "sleep_time,compute_time,master_wait_time\n"
                      "0.051000,0,1,0,0,0,32,0.000000,0.000000,0.000000,0.010000,0.049000,"
                      "0.049000\n"
                      "0.052000,0,2,3,0,0,16,0.000001,0.000200,0.000500,0.000000,0.050000,"
                      "0.050000\n");
    script_check_file(&run, "collect_stats.csv",
                      "step,worker_count,wait_time,total_samples\n1,2,0.050000,48\n");
    script_end(&run);
}

static void worker_stats_are_optional(void **state)
{
    (void)state;
    script run;
    begin(&run, 2, false);
    play_a_step(&run);
    script_close(&run);
    char path[400];
    snprintf(path, sizeof path, "%s/worker_stats.csv", run.folder);
    assert_int_equal(access(path, F_OK), -1);
    script_check_file(&run, "collect_stats.csv",
                      "step,worker_count,wait_time,total_samples\n1,2,0.050000,48\n");
    script_end(&run);
}

static void an_empty_step_has_no_loss(void **state)
{
    (void)state;
    script run;
    begin(&run, 1, false);
    script_order(&run, 1, AT_NEVER);
    script_apply(&run, NULL, 0, 0, 1);
    script_close(&run);
    script_check_file(&run, "master_stats.csv",
                      "time,step,loss,learning_rate,test_loss,accuracy\n"
                      "0.000000,1,,1.0,,\n");
    script_end(&run);
}

static void updates_received_at_once_are_counted(void **state)
{
    (void)state;
    script run;
    begin(&run, 1, true);
    script_order(&run, 1, AT_NEVER);
    script_report(&run, 1, 1, 1, (at_work){.version = 2});
    script_report(&run, 1, 1, 2, (at_work){.version = 2});
    script_report(&run, 1, 1, 3, (at_work){.version = 7});
    script_close(&run);
    char *text = script_read(&run, "worker_stats.csv");
    assert_non_null(strstr(text, "\n0.000000,0,1,0,2,2,0,"));
    assert_non_null(strstr(text, "\n0.000000,0,1,0,2,0,0,"));
    assert_non_null(strstr(text, "\n0.000000,0,1,0,7,5,0,"));
    free(text);
    script_end(&run);
}

static void a_resumed_run_appends_to_the_same_tables(void **state)
{
    (void)state;
    script  run;
    at_sink sink;
    begin(&run, 2, false);
    play_a_step(&run);
    script_close(&run);
    char path[400];
    snprintf(path, sizeof path, "%s/collect_stats.csv", run.folder);
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    fputs("2,2,0.0", file); /* killed while writing a line */
    fclose(file);
    assert_int_equal(at_sink_csv(&run.info, false, &sink, NULL), AT_OK);
    at_recorder_add(&run.recorder, sink);
    play_a_step(&run);
    script_close(&run);
    script_check_file(&run, "collect_stats.csv",
                      "step,worker_count,wait_time,total_samples\n1,2,0.050000,48\n2,2,0.0\n"
                      "2,2,0.050000,48\n");
    script_end(&run);
}

static void lines_reach_the_file_within_a_second_of_the_run(void **state)
{
    (void)state;
    script run;
    begin(&run, 2, false);
    play_a_step(&run);
    run.at = AT_SEC(1.5);
    script_say(&run, "time passes");
    script_check_file(&run, "collect_stats.csv",
                      "step,worker_count,wait_time,total_samples\n1,2,0.050000,48\n");
    script_close(&run);
    script_end(&run);
}

static void a_full_disk_is_reported_at_close_with_path_and_hint(void **state)
{
    (void)state;
    script  run;
    char    path[400];
    at_fail fail = {0};
    at_sink sink;
    script_begin(&run, 1);
    snprintf(path, sizeof path, "%s/master_stats.csv", run.folder);
    assert_int_equal(symlink("/dev/full", path), 0);
    assert_int_equal(at_sink_csv(&run.info, true, &sink, &fail), AT_OK);
    at_recorder_add(&run.recorder, sink);
    script_order(&run, 1, AT_NEVER);
    for (int i = 0; i < 10000; i++) script_apply(&run, NULL, 0, 0, 1); /* no crash, no hang */
    assert_int_equal(at_recorder_close(&run.recorder, &fail), AT_ERR_IO);
    assert_non_null(strstr(fail.text, "master_stats.csv: cannot write: No space left on device"));
    assert_non_null(strstr(fail.hint, "disk is full"));
    assert_int_equal(access(path, F_OK), 0); /* nothing that was written is removed */
    script_end(&run);
}

static void a_missing_folder_is_refused_at_the_start(void **state)
{
    (void)state;
    script  run;
    at_fail fail = {0};
    at_sink sink;
    script_begin(&run, 1);
    script_end(&run);
    assert_int_equal(at_sink_csv(&run.info, true, &sink, &fail), AT_ERR_IO);
    assert_non_null(strstr(fail.text, "master_stats.csv: cannot open"));
    assert_int_equal(at_sink_eventlog(&run.info, &sink, &fail), AT_ERR_IO);
}

/* Numbers formatted by hand must parse to the original value. */
static void formatted_numbers_parse_to_the_same_value(void **state)
{
    (void)state;
    script run;
    script_begin(&run, 1);
    at_append_file *file;
    assert_int_equal(at_append_file_open(run.folder, "numbers", true, &file, NULL), AT_OK);
    at_rng rng = at_rng_stream(1, 0, AT_RNG_PURPOSE_TEST, 0);
    enum { COUNT = 3000 };
    static uint64_t whole[COUNT];
    static at_ns    ns[COUNT];
    static double   real[COUNT];
    for (int i = 0; i < COUNT; i++) {
        whole[i] = at_rng_next(&rng) >> at_rng_below(&rng, 64);
        ns[i] = (at_ns)at_rng_next(&rng) >> at_rng_below(&rng, 63);
        real[i] = at_rng_normal(&rng) * pow(10, (double)at_rng_below(&rng, 40) - 20);
        at_append_file_whole(file, whole[i]);
        at_append_file_byte(file, ' ');
        at_append_file_seconds(file, ns[i]);
        at_append_file_byte(file, ' ');
        at_append_file_real(file, real[i]);
        at_append_file_byte(file, '\n');
    }
    at_append_file_real(file, NAN);
    assert_int_equal(at_append_file_close(file, NULL), AT_OK);

    char *text = script_read(&run, "numbers"), *next = text;
    for (int i = 0; i < COUNT; i++) {
        char expected[64], *comma = strchr(next, ' ');
        snprintf(expected, sizeof expected, "%llu", (unsigned long long)whole[i]);
        assert_memory_equal(next, expected, strlen(expected));
        next = comma + 1;
        long double seconds = strtold(next, &next);
        assert_true(fabsl(seconds - (long double)ns[i] / 1e9L) <= 0.51e-6L);
        double value = strtod(next, &next);
        assert_true(fabs(value - real[i]) <= 0.51e-6 * fmax(fabs(real[i]), 0));
        assert_int_equal(*next++, '\n');
    }
    assert_string_equal(next, "nan");
    free(text);
    script_end(&run);
}

static void begin_workers(script *run, uint32_t workers)
{
    script_begin(run, workers);
    at_sink sink;
    assert_int_equal(at_sink_workers(&run->info, &sink, NULL), AT_OK);
    at_recorder_add(&run->recorder, sink);
    script_start(run);
}

static void workers_json_follows_joins_and_losses(void **state)
{
    (void)state;
    script run;
    char   expected[512];
    begin_workers(&run, 2);
    script_join(&run, 1, 101, 1);
    script_join(&run, 2, 102, 1);
    script_lost(&run, 2, "killed by signal 9", true);
    snprintf(expected, sizeof expected,
             "{\n  \"anytime\": \"%s\",\n  \"hub\": %ld,\n  \"workers\": [\n"
             "    {\"id\": 1, \"pid\": 101, \"incarnation\": 1, \"state\": \"working\"},\n"
             "    {\"id\": 2, \"pid\": 102, \"incarnation\": 1, \"state\": \"lost\"}\n  ]\n}\n",
             ANYTIME_VERSION, (long)getpid());
    script_check_file(&run, "workers.json", expected);
    script_join(&run, 2, 0, 2); /* a world without processes */
    char *text = script_read(&run, "workers.json");
    assert_non_null(strstr(text, "{\"id\": 2, \"pid\": null, \"incarnation\": 2, "
                                 "\"state\": \"working\"}"));
    free(text);
    script_finish(&run, AT_END_STEPS);
    text = script_read(&run, "workers.json");
    assert_non_null(strstr(text, "\"incarnation\": 2, \"state\": \"finished\"}"));
    free(text);
    script_close(&run);
    script_end(&run);
}

static void workers_json_of_many_workers_is_written_when_training_begins(void **state)
{
    (void)state;
    script run;
    begin_workers(&run, AT_WORKERS_LISTED);
    for (at_node worker = 1; worker <= AT_WORKERS_LISTED; worker++)
        script_join(&run, worker, INT64_MAX, UINT32_MAX);
    char path[400];
    snprintf(path, sizeof path, "%s/workers.json", run.folder);
    assert_int_equal(access(path, F_OK), -1);
    script_order(&run, 1, AT_NEVER);
    char *text = script_read(&run, "workers.json");
    assert_non_null(strstr(text, "{\"id\": 4096, \"pid\": 9223372036854775807, \"incarnation\": "
                                 "4294967295, \"state\": \"working\"}"));
    free(text);
    script_lost(&run, 7, "killed by signal 9", false);
    script_close(&run); /* pending changes are written at close */
    text = script_read(&run, "workers.json");
    assert_non_null(strstr(text, "4294967295, \"state\": \"lost\"}"));
    free(text);
    script_end(&run);
}

static void failure_to_write_workers_json_is_reported_at_close(void **state)
{
    (void)state;
    script  run;
    at_fail fail = {0};
    begin_workers(&run, 1);
    script_end(&run); /* the folder is removed during the run */
    script_join(&run, 1, 101, 1);
    assert_int_equal(at_recorder_close(&run.recorder, &fail), AT_ERR_IO);
    assert_non_null(strstr(fail.text, "workers.json: cannot write: No such file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tables_have_the_published_columns),
        cmocka_unit_test(worker_stats_are_optional),
        cmocka_unit_test(an_empty_step_has_no_loss),
        cmocka_unit_test(updates_received_at_once_are_counted),
        cmocka_unit_test(a_resumed_run_appends_to_the_same_tables),
        cmocka_unit_test(lines_reach_the_file_within_a_second_of_the_run),
        cmocka_unit_test(a_full_disk_is_reported_at_close_with_path_and_hint),
        cmocka_unit_test(a_missing_folder_is_refused_at_the_start),
        cmocka_unit_test(formatted_numbers_parse_to_the_same_value),
        cmocka_unit_test(workers_json_follows_joins_and_losses),
        cmocka_unit_test(workers_json_of_many_workers_is_written_when_training_begins),
        cmocka_unit_test(failure_to_write_workers_json_is_reported_at_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
