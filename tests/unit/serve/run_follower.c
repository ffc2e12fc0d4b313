#include "serve/run_follower.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "../record/script.h"
#include "record/sinks/sinks.h"
#include "serve/metrics.h"

/* A run with a log and a named strategy. */
static void begin(script *run, uint32_t workers)
{
    at_fail fail = {0};
    script_begin(run, workers);
    at_plan_options options = {
        .strategy = "fmb", .workers = workers, .batch = 64, .time_limit = "auto"};
    options.limits.steps = 100;
    if (at_plan_resolve(&options, &run->plan, &fail)) fail_msg("%s", fail.text);
}

static void open_part(script *run)
{
    at_sink sink;
    at_fail fail = {0};
    if (at_sink_eventlog(&run->info, &sink, &fail)) fail_msg("%s", fail.text);
    run->recorder = (at_recorder){0};
    at_recorder_add(&run->recorder, sink);
    run->at = 0;
    script_start(run);
    for (at_node w = 1; w <= run->plan.workers_max; w++) script_join(run, w, 1000 + w, 1);
}

static void one_step(script *run)
{
    at_piece pieces[8] = {{0}};
    uint64_t sequence = run->version + 1;
    for (at_node w = 1; w <= run->plan.workers_max; w++) {
        at_work work = {.round = run->version, .version = run->version, .samples = 64};
        work.compute_ns = AT_MS(7);
        work.loss_sum = 32;
        script_order(run, w, AT_NEVER);
        run->at += AT_MS(10);
        script_report(run, w, 1, sequence, work);
        pieces[w - 1] = (at_piece){.worker = w, .samples = 64, .incarnation = 1, .weight = 1};
        pieces[w - 1].sequence = sequence;
        pieces[w - 1].version = run->version;
    }
    script_apply(run, pieces, run->plan.workers_max, 32.0 * run->plan.workers_max, 0.1);
    script_event(run, (at_event){.kind = AT_EV_APPLIED}, (at_record){0});
}

static const char *path_in(const script *run, const char *name)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", run->folder, name);
    return path;
}

static void write_text(const script *run, const char *name, const char *text)
{
    at_fail fail = {0};
    if (at_file_write(path_in(run, name), text, strlen(text), &fail)) fail_msg("%s", fail.text);
}

/* Polls to the end; returns the number of steps in the summary. */
static uint64_t steps_of(at_run_follower *follower)
{
    while (at_run_follower_poll(follower, AT_SEC(1))) continue;
    const at_run_summary *summary = at_run_follower_summary(follower);
    return summary ? at_run_summary_tally(summary)->step_count : 0;
}

static void a_missing_folder_is_waited_for(void **state)
{
    (void)state;
    script run;
    begin(&run, 2);
    assert_int_equal(rmdir(run.folder), 0);
    at_run_follower *follower = at_run_follower_new(run.folder);
    assert_int_equal(steps_of(follower), 0);
    assert_int_equal(at_run_follower_state_of(follower), AT_RUN_FOLLOWER_WAITING);
    uint64_t revision = at_run_follower_revision(follower);
    assert_int_equal(mkdir(run.folder, 0700), 0);
    assert_int_equal(steps_of(follower), 0);
    assert_int_equal(at_run_follower_state_of(follower), AT_RUN_FOLLOWER_STARTING);
    assert_true(at_run_follower_revision(follower) > revision);
    open_part(&run);
    one_step(&run);
    script_close(&run);
    assert_int_equal(steps_of(follower), 1);
    assert_int_equal(at_run_follower_state_of(follower), AT_RUN_FOLLOWER_RUNNING);
    at_run_follower_free(follower);
    script_end(&run);
}

static void a_log_is_followed_to_its_end_and_across_a_resume(void **state)
{
    (void)state;
    script run;
    begin(&run, 2);
    open_part(&run);
    for (int i = 0; i < 5; i++) one_step(&run);
    script_finish(&run, AT_END_SIGNAL);
    script_close(&run);
    at_run_follower *follower = at_run_follower_new(run.folder);
    assert_int_equal(steps_of(follower), 5);
    assert_int_equal(at_run_follower_state_of(follower), AT_RUN_FOLLOWER_ENDED);
    uint64_t revision = at_run_follower_revision(follower);
    assert_int_equal(steps_of(follower), 5);
    assert_int_equal(at_run_follower_revision(follower), revision); /* unchanged without new data */

    open_part(&run);
    one_step(&run);
    script_close(&run);
    steps_of(follower);
    assert_int_equal(at_run_follower_state_of(follower), AT_RUN_FOLLOWER_RUNNING);
    assert_true(at_run_follower_revision(follower) > revision);
    at_run_follower_free(follower);
    script_end(&run);
}

/* A resumed run that died before its first checkpoint: its log is of no use to the next one. */
static void a_log_that_a_resumed_run_removes_is_forgotten(void **state)
{
    (void)state;
    script run;
    begin(&run, 2);
    open_part(&run);
    for (int i = 0; i < 5; i++) one_step(&run);
    script_close(&run);
    at_run_follower *follower = at_run_follower_new(run.folder);
    open_part(&run);
    one_step(&run);
    script_close(&run);
    uint64_t steps = steps_of(follower);
    assert_int_equal(steps, 6);
    assert_int_equal(unlink(path_in(&run, "events-2.bin")), 0);
    run.version = 5;
    open_part(&run);
    for (int i = 0; i < 3; i++) one_step(&run);
    script_finish(&run, AT_END_STEPS);
    script_close(&run);
    steps = steps_of(follower);
    assert_int_equal(steps, 8);
    assert_int_equal(at_run_follower_state_of(follower), AT_RUN_FOLLOWER_ENDED);
    assert_int_equal(unlink(path_in(&run, "events.bin")), 0);
    assert_int_equal(unlink(path_in(&run, "events-2.bin")), 0);
    steps = steps_of(follower); /* the folder is being removed */
    assert_int_equal(steps, 8);
    at_run_follower_free(follower);
    script_end(&run);
}

static void a_truncated_header_is_read_when_it_is_complete(void **state)
{
    (void)state;
    script run, other;
    begin(&run, 1);
    begin(&other, 1);
    open_part(&run);
    one_step(&run);
    script_close(&run);
    unsigned char *bytes;
    size_t         size;
    assert_int_equal(at_file_read(path_in(&run, "events.bin"), 1 << 24, &bytes, &size, NULL),
                     AT_OK);
    at_run_follower *follower = at_run_follower_new(other.folder);
    FILE            *file = fopen(path_in(&other, "events.bin"), "wb");
    for (size_t i = 0; i < size; i++) {
        putc(bytes[i], file);
        fflush(file);
        steps_of(follower);
    }
    assert_int_equal(steps_of(follower), 1);
    assert_int_equal(at_run_follower_state_of(follower), AT_RUN_FOLLOWER_RUNNING);
    fclose(file);
    free(bytes);
    at_run_follower_free(follower);
    script_end(&run);
    script_end(&other);
}

static void damage_is_reported_and_earlier_data_are_kept(void **state)
{
    (void)state;
    script run;
    begin(&run, 1);
    open_part(&run);
    one_step(&run);
    script_close(&run);
    FILE *file = fopen(path_in(&run, "events.bin"), "ab");
    for (int i = 0; i < 300; i++) fputc('?', file);
    fclose(file);
    at_run_follower *follower = at_run_follower_new(run.folder);
    assert_int_equal(steps_of(follower), 1);
    assert_int_equal(at_run_follower_state_of(follower), AT_RUN_FOLLOWER_BROKEN);
    assert_non_null(strstr(at_run_follower_message(follower), "events.bin"));
    assert_int_equal(steps_of(follower), 1);
    at_run_follower_free(follower);
    script_end(&run);
}

static void a_run_without_a_log_shows_its_result(void **state)
{
    (void)state;
    script run;
    begin(&run, 1);
    write_text(&run, "workers.json", "{}");
    at_run_follower *follower = at_run_follower_new(run.folder);
    steps_of(follower);
    assert_int_equal(at_run_follower_state_of(follower), AT_RUN_FOLLOWER_UNRECORDED);
    assert_null(at_run_follower_result(follower));
    uint64_t revision = at_run_follower_revision(follower);
    write_text(&run, "result.json", "{\"steps\": 7}");
    steps_of(follower);
    assert_true(at_run_follower_revision(follower) > revision);
    assert_int_equal(json_integer_value(json_object_get(at_run_follower_result(follower), "steps")),
                     7);
    at_run_follower_free(follower);
    script_end(&run);
}

static char *metrics_of(at_run_follower *const *followers, size_t count)
{
    char  *text = NULL;
    size_t size;
    FILE  *file = open_memstream(&text, &size);
    at_metrics_write(file, followers, count, AT_SEC(3));
    fclose(file);
    return text;
}

static void metrics_report_the_newest_state(void **state)
{
    (void)state;
    script run;
    begin(&run, 2);
    open_part(&run);
    one_step(&run);
    script_lost(&run, 2, "killed by signal 9", true);
    script_drop(&run, 2, 12, AT_DROP_LOST);
    script_close(&run);
    at_run_follower *follower = at_run_follower_new(run.folder),
                    *none = at_run_follower_new("/nonexistent/\"quoted\\\n");
    steps_of(follower);
    steps_of(none);
    char *text = metrics_of((at_run_follower *[]){follower, none}, 2), line[500];
    snprintf(line, sizeof line, "\nanytime_steps_total{run=\"%s\"} 1\n", run.folder);
    assert_non_null(strstr(text, line));
    snprintf(line, sizeof line, "\nanytime_samples_used_total{run=\"%s\"} 128\n", run.folder);
    assert_non_null(strstr(text, line));
    snprintf(line, sizeof line, "{run=\"%s\",reason=\"lost\"} 12\n", run.folder);
    assert_non_null(strstr(text, line));
    snprintf(line, sizeof line, "anytime_workers{run=\"%s\",state=\"lost\"} 1\n", run.folder);
    assert_non_null(strstr(text, line));
    snprintf(line, sizeof line, "anytime_run_silence_seconds{run=\"%s\"} 2\n", run.folder);
    assert_non_null(strstr(text, line));
    assert_non_null(strstr(text, "{run=\"/nonexistent/\\\"quoted\\\\\\n\",state=\"waiting\"} 1\n"));
    assert_non_null(strstr(text, "\n# TYPE anytime_steps_total counter\n"));
    free(text);
    at_run_follower_free(follower);
    at_run_follower_free(none);
    script_end(&run);
}

static void labels_are_escaped(void **state)
{
    (void)state;
    char  *text = NULL;
    size_t size;
    FILE  *file = open_memstream(&text, &size);
    at_metrics_label(file, "a\"b\\c\nd\x01\xff\xc3\xa9");
    fclose(file);
    assert_string_equal(text, "a\\\"b\\\\c\\nd??\xc3\xa9");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_folder_is_waited_for),
        cmocka_unit_test(a_log_is_followed_to_its_end_and_across_a_resume),
        cmocka_unit_test(a_log_that_a_resumed_run_removes_is_forgotten),
        cmocka_unit_test(a_truncated_header_is_read_when_it_is_complete),
        cmocka_unit_test(damage_is_reported_and_earlier_data_are_kept),
        cmocka_unit_test(a_run_without_a_log_shows_its_result),
        cmocka_unit_test(metrics_report_the_newest_state),
        cmocka_unit_test(labels_are_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
