#include "report/summary/run_summary.h"

#include "../record/script.h"
#include "record/runinfo.h"

/* A scripted run whose recorder feeds a summary. */
typedef struct scripted {
    script          run;
    at_run_summary *summary;
} scripted;

static void put(void *self, const at_record *record)
{
    at_run_summary_put(self, record);
}

static at_err close_sink(void *self, at_fail *fail)
{
    (void)self;
    (void)fail;
    return AT_OK;
}

static void begin_with(scripted *t, const char *strategy, uint32_t workers,
                       const at_run_summary_options *options)
{
    at_fail         fail = {0};
    at_plan_options wanted = {.strategy = strategy, .workers = workers, .batch = 10};
    script_begin(&t->run, workers);
    if (at_plan_resolve(&wanted, &t->run.plan, &fail)) fail_msg("%s", fail.text);
    char *info = at_run_info_text(&t->run.info);
    assert_non_null(info);
    if (at_run_summary_new(info, options, &t->summary, &fail)) fail_msg("%s", fail.text);
    free(info);
    at_recorder_add(&t->run.recorder,
                    (at_sink){.self = t->summary, .put = put, .close = close_sink});
    script_start(&t->run);
    for (at_node w = 1; w <= workers; w++) script_join(&t->run, w, 100 + (int64_t)w, 1);
}

static void begin(scripted *t, const char *strategy, uint32_t workers)
{
    begin_with(t, strategy, workers, NULL);
}

static void end(scripted *t)
{
    script_close(&t->run);
    script_end(&t->run);
    at_run_summary_free(t->summary);
}

static void check_near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-6 * (1 + fabs(wanted))))
        fail_msg("%.9g is not %.9g", value, wanted);
}

/* ---- blame --------------------------------------------------------------------------------- */

/* One step of workers that need `ns` each. As in the local world, the hub reads all reports when
 * the last one arrives, `delivery` after it was sent. */
static void play_step(scripted *t, uint64_t step, const at_ns *ns, uint32_t workers, at_ns delivery)
{
    at_piece pieces[16];
    at_ns    longest = 0, begun = t->run.at;
    assert_true(workers <= 16);
    for (at_node w = 1; w <= workers; w++) script_order(&t->run, w, AT_NEVER);
    for (uint32_t i = 0; i < workers; i++)
        if (ns[i] > longest) longest = ns[i];
    t->run.at = begun + longest + delivery;
    for (at_node w = 1; w <= workers; w++) {
        at_work work = {.samples = 10, .compute_ns = ns[w - 1], .version = step - 1};
        if (step > 1) work.idle_ns = delivery + longest - ns[w - 1];
        script_report(&t->run, w, 1, step, work);
        pieces[w - 1] = (at_piece){.worker = w,
                                   .samples = 10,
                                   .incarnation = 1,
                                   .sequence = step,
                                   .version = step - 1,
                                   .weight = 1};
    }
    script_apply(&t->run, pieces, workers, 10.0 * workers / (double)step, 0.1);
}

static double worker_number(json_t *summary, size_t index, const char *key)
{
    json_t *row = json_array_get(json_object_get(summary, "workers"), index);
    assert_non_null(row);
    return json_number_value(json_object_get(row, key));
}

static void check_blame(scripted *t, const double *wanted, uint32_t workers)
{
    json_t *summary = at_run_summary_json(t->summary, 0);
    for (uint32_t i = 0; i < workers; i++)
        check_near(worker_number(summary, i, "waited"), wanted[i]);
    json_decref(summary);
}

static void one_slow_worker_is_blamed_for_its_extra_time(void **state)
{
    (void)state;
    const at_ns times[] = {AT_MS(10), AT_MS(10), AT_MS(25), AT_MS(10)};
    scripted    t;
    begin(&t, "fmb", 4);
    for (uint64_t step = 1; step <= 20; step++) play_step(&t, step, times, 4, AT_US(50));
    check_blame(&t, (double[]){0, 0, 20 * 0.015, 0}, 4);
    end(&t);
}

static void two_slow_workers_share_the_blame(void **state)
{
    (void)state;
    const at_ns times[] = {AT_MS(10), AT_MS(30), AT_MS(10), AT_MS(40)};
    scripted    t;
    begin(&t, "fmb", 4);
    for (uint64_t step = 1; step <= 5; step++) play_step(&t, step, times, 4, 0);
    check_blame(&t, (double[]){0, 5 * 0.010, 0, 5 * (0.010 + 0.010)}, 4);
    end(&t);
}

static void a_fast_worker_causes_no_blame(void **state)
{
    (void)state;
    const at_ns times[] = {AT_MS(1), AT_MS(20), AT_MS(20), AT_MS(20)};
    scripted    t;
    begin(&t, "fmb", 4);
    for (uint64_t step = 1; step <= 5; step++) play_step(&t, step, times, 4, 0);
    check_blame(&t, (double[]){0, 0, 0, 0}, 4);
    end(&t);
}

static void with_a_staleness_bound_the_releasing_worker_is_blamed(void **state)
{
    (void)state;
    scripted t;
    begin(&t, "ssp", 3);
    for (at_node w = 1; w <= 3; w++) script_order(&t.run, w, AT_NEVER);
    t.run.at = AT_MS(10);
    script_report(&t.run, 1, 1, 1, (at_work){.samples = 10, .compute_ns = AT_MS(10)});
    script_report(&t.run, 2, 1, 1, (at_work){.samples = 10, .compute_ns = AT_MS(10)});
    t.run.at = AT_MS(40);
    script_report(&t.run, 3, 1, 1, (at_work){.samples = 10, .compute_ns = AT_MS(40)});
    for (at_node w = 1; w <= 3; w++) script_order(&t.run, w, AT_NEVER);
    check_blame(&t, (double[]){0, 0, 0.030}, 3);
    end(&t);
}

static void without_waiting_there_is_no_blame_but_waste_counts(void **state)
{
    (void)state;
    scripted t;
    begin(&t, "batch-sync", 2);
    script_order(&t.run, 1, AT_NEVER);
    script_order(&t.run, 2, AT_NEVER);
    t.run.at = AT_MS(30);
    script_report(&t.run, 2, 1, 1,
                  (at_work){.samples = 4, .compute_ns = AT_MS(30), .abandoned = true});
    at_action drop = {.kind = AT_ACT_DROP, .worker = 2};
    drop.as.drop.sequence = 1;
    drop.as.drop.samples = 4;
    drop.as.drop.why = AT_DROP_ABANDONED;
    script_action(&t.run, drop, (at_record){0});
    json_t *summary = at_run_summary_json(t.summary, 0);
    check_near(worker_number(summary, 1, "wasted"), 0.030);
    check_near(worker_number(summary, 1, "waited"), 0);
    check_near(worker_number(summary, 1, "dropped"), 4);
    json_decref(summary);
    end(&t);
}

/* ---- curves -------------------------------------------------------------------------------- */

static json_t *numbers_of(json_t *summary, const char *channel, const char *part)
{
    json_t *series = json_object_get(summary, "steps");
    json_t *numbers = json_object_get(json_object_get(series, channel), part);
    assert_non_null(numbers);
    return numbers;
}

static void long_curves_are_downsampled_and_keep_their_peaks(void **state)
{
    (void)state;
    const at_ns times[] = {AT_MS(10)};
    scripted    t;
    begin_with(&t, "fmb", 1, &(at_run_summary_options){.points = 64});
    for (uint64_t step = 1; step <= 5000; step++) {
        at_ns slow[] = {step == 2718 ? AT_MS(700) : times[0]};
        play_step(&t, step, slow, 1, 0);
    }
    json_t *summary = at_run_summary_json(t.summary, 0);
    json_t *max = numbers_of(summary, "seconds", "max"),
           *min = numbers_of(summary, "seconds", "min");
    double highest = 0, lowest = 1e9;
    assert_true(json_array_size(max) <= 64);
    for (size_t i = 0; i < json_array_size(max); i++) {
        highest = fmax(highest, json_number_value(json_array_get(max, i)));
        lowest = fmin(lowest, json_number_value(json_array_get(min, i)));
    }
    check_near(highest, 0.7);
    check_near(lowest, 0.01);
    json_t *used = numbers_of(summary, "samples", "max");
    check_near(json_number_value(json_array_get(used, json_array_size(used) - 1)), 50000);
    json_decref(summary);
    end(&t);
}

/* Merges an update as run_data.js does. */
static json_t *splice(json_t *old, json_t *update, size_t from)
{
    json_t *merged = json_array(), *value;
    size_t  i;
    for (i = 0; i < from; i++) json_array_append(merged, json_array_get(old, i));
    json_array_foreach(update, i, value) json_array_append(merged, value);
    return merged;
}

static void updates_merge_to_the_complete_summary(void **state)
{
    (void)state;
    const at_ns times[] = {AT_MS(10), AT_MS(12)};
    scripted    t;
    uint64_t    since = 0;
    json_t     *known = json_array();
    begin_with(&t, "fmb", 2, &(at_run_summary_options){.points = 32});
    for (uint64_t step = 1; step <= 200; step++) {
        play_step(&t, step, times, 2, 0);
        if (step % 7) continue;
        json_t *update = at_run_summary_json(t.summary, since),
               *steps = json_object_get(update, "steps");
        size_t  from = (size_t)json_integer_value(json_object_get(steps, "from"));
        json_t *merged = splice(known, numbers_of(update, "loss", "mean"), from);
        json_t *whole = at_run_summary_json(t.summary, 0);
        assert_true(json_equal(merged, numbers_of(whole, "loss", "mean")));
        json_decref(known);
        known = merged;
        since = (uint64_t)json_integer_value(json_object_get(update, "serial"));
        json_decref(update);
        json_decref(whole);
    }
    json_decref(known);
    end(&t);
}

static void without_changes_an_update_is_small(void **state)
{
    (void)state;
    const at_ns times[] = {AT_MS(10), AT_MS(12)};
    scripted    t;
    begin(&t, "fmb", 2);
    play_step(&t, 1, times, 2, 0);
    json_t  *whole = at_run_summary_json(t.summary, 0);
    uint64_t serial = (uint64_t)json_integer_value(json_object_get(whole, "serial"));
    json_t  *update = at_run_summary_json(t.summary, serial);
    assert_null(json_object_get(update, "steps"));
    assert_null(json_object_get(update, "timeline"));
    assert_non_null(json_object_get(update, "state"));
    json_decref(update);
    json_decref(whole);
    end(&t);
}

/* ---- timeline ------------------------------------------------------------------------------ */

static void the_timeline_accounts_for_all_time_of_a_worker(void **state)
{
    (void)state;
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
    const at_ns       times[] = {AT_MS(10), AT_MS(20)};
    scripted          t;
    begin_with(&t, "fmb", 2, &(at_run_summary_options){.cells = 256});
    for (uint64_t step = 1; step <= 100; step++) play_step(&t, step, times, 2, 0);
    json_t *summary = at_run_summary_json(t.summary, 0),
           *timeline = json_object_get(summary, "timeline");
    double width = json_number_value(json_object_get(timeline, "width"));
    for (size_t i = 0; i < 2; i++) {
        json_t     *row = json_array_get(json_object_get(timeline, "rows"), i);
        const char *cells = json_string_value(json_object_get(row, "compute"));
        double      seconds = 0;
        for (; *cells; cells++) seconds += width * (double)(strchr(digits, *cells) - digits) / 63;
        if (fabs(seconds - (i == 0 ? 1 : 2)) > 0.02) fail_msg("row %zu has %g s", i, seconds);
    }
    json_decref(summary);
    end(&t);
}

static void many_workers_share_a_thousand_rows(void **state)
{
    (void)state;
    scripted t;
    begin(&t, "fmb", 2500);
    for (at_node w = 1; w <= 2500; w++) script_order(&t.run, w, AT_NEVER);
    t.run.at = AT_SEC(1);
    for (at_node w = 1; w <= 2500; w++)
        script_report(&t.run, w, 1, 1, (at_work){.samples = 1, .compute_ns = AT_MS(500)});
    json_t *summary = at_run_summary_json(t.summary, 0),
           *rows = json_object_get(summary, "workers");
    json_t *timeline = json_object_get(json_object_get(summary, "timeline"), "rows");
    assert_int_equal(json_array_size(rows), 1000);
    assert_int_equal(json_array_size(timeline), 1000);
    json_int_t next = 1;
    for (size_t i = 0; i < 1000; i++) {
        json_t *row = json_array_get(rows, i), *cells = json_array_get(timeline, i);
        assert_int_equal(json_integer_value(json_object_get(row, "first")), next);
        assert_true(json_equal(json_object_get(row, "first"), json_object_get(cells, "first")));
        assert_true(json_equal(json_object_get(row, "last"), json_object_get(cells, "last")));
        next = json_integer_value(json_object_get(row, "last")) + 1;
    }
    assert_int_equal(next, 2501);
    json_decref(summary);
    end(&t);
}

/* ---- event lines --------------------------------------------------------------------------- */

static const char *line_text(json_t *summary, size_t index)
{
    json_t *line = json_array_get(json_object_get(summary, "log"), index);
    return json_string_value(json_object_get(line, "text"));
}

static void events_of_one_kind_share_a_line_and_the_newest_are_kept(void **state)
{
    (void)state;
    scripted t;
    begin_with(&t, "backup", 9, &(at_run_summary_options){.lines = 4});
    script_drop(&t.run, 3, 10, AT_DROP_STALE);
    script_drop(&t.run, 4, 5, AT_DROP_STALE);
    json_t *summary = at_run_summary_json(t.summary, 0);
    assert_string_equal(line_text(summary, 0), "workers 1 to 9 joined");
    assert_string_equal(line_text(summary, 1), "dropped 15 samples of 2 rounds: stale");
    json_decref(summary);
    script_lost(&t.run, 7, "killed by signal 9", true);
    for (int i = 0; i < 3; i++) script_say(&t.run, "a \xff sentence </script>");
    summary = at_run_summary_json(t.summary, 0);
    assert_int_equal(json_array_size(json_object_get(summary, "log")), 4);
    assert_string_equal(line_text(summary, 0),
                        "worker 7 was lost: killed by signal 9; starting a replacement");
    assert_string_equal(line_text(summary, 3), "a ? sentence </script>");
    json_decref(summary);
    end(&t);
}

static void a_worker_that_leaves_on_order_is_not_lost(void **state)
{
    (void)state;
    scripted t;
    begin(&t, "fmb", 2);
    script_leave(&t.run, 1);
    script_lost(&t.run, 1, "exited with 0", false);
    json_t *summary = at_run_summary_json(t.summary, 0);
    assert_int_equal(json_array_size(json_object_get(summary, "log")), 1);
    json_decref(summary);
    end(&t);
}

/* ---- resumed ------------------------------------------------------------------------------- */

static void a_resumed_run_continues_in_time_without_duplicate_steps(void **state)
{
    (void)state;
    const at_ns times[] = {AT_MS(10)};
    scripted    t;
    begin(&t, "fmb", 1);
    for (uint64_t step = 1; step <= 10; step++) play_step(&t, step, times, 1, 0);
    char *info = at_run_info_text(&t.run.info);
    assert_true(at_run_summary_resume(t.summary, info));
    t.run.plan.workers_max = 2;
    char *more = at_run_info_text(&t.run.info);
    assert_false(at_run_summary_resume(t.summary, more));
    t.run.at = 0;
    t.run.version = 5; /* the checkpoint */
    script_start(&t.run);
    script_join(&t.run, 1, 200, 1);
    for (uint64_t step = 6; step <= 8; step++) play_step(&t, step, times, 1, 0);
    json_t *summary = at_run_summary_json(t.summary, 0),
           *series = json_object_get(summary, "steps");
    json_t *steps = json_object_get(series, "step"), *seconds = json_object_get(series, "t");
    assert_int_equal(json_array_size(steps), 8);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(json_integer_value(json_array_get(steps, i)), (int)i + 1);
    check_near(json_number_value(json_array_get(seconds, 7)), 0.13);
    json_decref(summary);
    free(info);
    free(more);
    end(&t);
}

/* ---- folders ------------------------------------------------------------------------------- */

static void write_file(const script *run, const char *name, const char *text)
{
    char    path[400];
    at_fail fail = {0};
    snprintf(path, sizeof path, "%s/%s", run->folder, name);
    assert_int_equal(at_file_write(path, text, strlen(text), &fail), AT_OK);
}

static void without_a_log_the_csv_files_are_read(void **state)
{
    (void)state;
    script          run;
    at_run_summary *summary;
    at_fail         fail = {0};
    script_begin(&run, 1);
    assert_int_equal(at_run_summary_read(run.folder, NULL, &summary, &fail), AT_ERR_MISSING);
    write_file(&run, "result.json",
               "{\"strategy\": \"amb\", \"workers\": 3, \"model\": \"softmax\", \"stopped\": "
               "\"steps\", \"rules\": {\"work\": \"timed:0.05\"}}");
    write_file(&run, "master_stats.csv",
               "time,step,loss,learning_rate,test_loss,accuracy\n0.5,1,2.0,0.1,,\n1.5,2,1.0,0.1,,\n"
               "0.5,1,,,0.9,0.7\n");
    write_file(&run, "collect_stats.csv",
               "step,worker_count,wait_time,total_samples\n1,3,0.5,30\n2,3,1.0,50\n");
    if (at_run_summary_read(run.folder, NULL, &summary, &fail)) fail_msg("%s", fail.text);
    json_t *json = at_run_summary_json(summary, 0), *info = json_object_get(json, "info");
    assert_string_equal(json_string_value(json_object_get(info, "strategy")), "amb");
    assert_int_equal(json_integer_value(json_object_get(info, "workers")), 3);
    check_near(json_number_value(json_array_get(numbers_of(json, "loss", "mean"), 1)), 1);
    assert_int_equal(at_run_summary_tally(summary)->samples_used, 80);
    assert_int_equal(at_run_summary_tally(summary)->end, AT_END_STEPS);
    check_near(at_run_summary_tally(summary)->test[AT_METRIC_ACCURACY], 0.7);
    assert_null(json_object_get(json, "workers"));
    json_decref(json);
    at_run_summary_free(summary);
    script_end(&run);
}

/* A resumed run after a full disk: each table ended where it was written last. */
static void steps_that_one_table_lacks_do_not_move_those_of_the_other(void **state)
{
    (void)state;
    script          run;
    at_run_summary *summary;
    at_fail         fail = {0};
    script_begin(&run, 1);
    write_file(&run, "result.json", "{\"strategy\": \"amb\", \"workers\": 3}");
    write_file(&run, "master_stats.csv",
               "time,step,loss,learning_rate,test_loss,accuracy\n1,1,2,0.1,,\n5,5,1,0.1,,\n"
               "6,6,1,0.1,,\n");
    write_file(&run, "collect_stats.csv",
               "step,worker_count,wait_time,total_samples\n1,3,1,1\n2,3,1,20\n3,3,1,300\n"
               "6,3,1,4000\n7,3,1,5");
    if (at_run_summary_read(run.folder, NULL, &summary, &fail)) fail_msg("%s", fail.text);
    assert_int_equal(at_run_summary_tally(summary)->samples_used, 4001);
    check_near(at_run_summary_tally(summary)->loss_total, 2 * 1 + 1 * 4000);
    at_run_summary_free(summary);
    script_end(&run);
}

static void an_invalid_log_header_is_rejected(void **state)
{
    (void)state;
    at_run_summary *summary;
    for (size_t i = 0; i < 3; i++) {
        at_fail fail = {0};
        assert_int_equal(at_run_summary_new((const char *[]){"", "[]", "{\"plan\": 3}"}[i], NULL,
                                            &summary, &fail),
                         AT_ERR_FORMAT);
        assert_null(summary);
        assert_true(*fail.text);
    }
}

/* ---- connections --------------------------------------------------------------------------- */

static void put_link(scripted *t, at_node worker, const char *address, uint64_t sent)
{
    at_link_stats link = {.host = "alpha", .round_trip_ns = AT_MS(3), .sent_bytes = sent};
    at_link_name_set(link.address, address);
    script_put(&t->run, (at_record){.kind = AT_REC_LINK, .node = worker, .link = &link});
}

static json_t *network_of(scripted *t, uint64_t since, uint64_t *serial)
{
    json_t *all = at_run_summary_json(t->summary, since);
    json_t *network = json_incref(json_object_get(all, "network"));
    if (serial) *serial = (uint64_t)json_integer_value(json_object_get(all, "serial"));
    json_decref(all);
    return network;
}

static double real_in(const json_t *array, size_t i)
{
    return json_number_value(json_array_get(array, i));
}

static void connections_have_rates_hosts_and_losses(void **state)
{
    (void)state;
    scripted t;
    uint64_t serial;
    begin(&t, "async", 2);
    put_link(&t, 2, "10.0.0.7:1", 0);
    t.run.at += AT_SEC(2);
    put_link(&t, 2, "10.0.0.7:1", 4000);
    script_lost(&t.run, 2, "lost its connection", false);
    json_t *network = network_of(&t, 0, &serial);
    json_t *row = json_array_get(json_object_get(network, "links"), 0);
    assert_int_equal(json_array_size(json_object_get(network, "links")), 1);
    assert_string_equal(json_string_value(json_object_get(row, "host")), "alpha");
    assert_int_equal(json_integer_value(json_object_get(row, "losses")), 1);
    assert_int_equal(json_integer_value(json_object_get(row, "sent")), 4000);
    check_near(json_number_value(json_object_get(row, "round_trip")), 0.003);
    json_t *trend = json_object_get(json_array_get(json_object_get(network, "trends"), 0), "trend");
    json_t *rates = json_object_get(json_object_get(trend, "sent"), "mean");
    check_near(real_in(rates, json_array_size(rates) - 1), 2000); /* bytes per second */
    json_t *present =
        json_object_get(json_object_get(json_object_get(network, "present"), "workers"), "mean");
    check_near(real_in(present, json_array_size(present) - 1), 1);
    json_decref(network);
    assert_null(network_of(&t, serial, NULL)); /* nothing has changed since */
    end(&t);
}

static void the_line_of_a_join_says_from_where(void **state)
{
    (void)state;
    scripted t;
    begin(&t, "async", 2);
    put_link(&t, 1, "10.0.0.7:1", 0); /* their line is about both, not one host */
    script_lost(&t.run, 2, "lost its connection", true);
    script_join(&t.run, 2, 102, 2);
    put_link(&t, 2, "10.0.0.7:2", 0);
    json_t *summary = at_run_summary_json(t.summary, 0);
    assert_string_equal(line_text(summary, 0), "workers 1 and 2 joined");
    assert_string_equal(line_text(summary, 2), "worker 2 rejoined (incarnation 2) from alpha");
    json_decref(summary);
    end(&t);
}

static void runs_on_one_machine_have_no_connections(void **state)
{
    (void)state;
    scripted t;
    begin(&t, "fmb", 2);
    assert_null(network_of(&t, 0, NULL));
    end(&t);
}

static void more_workers_than_curves_are_still_listed(void **state)
{
    (void)state;
    scripted t;
    char     address[40];
    begin(&t, "async", 100);
    for (at_node w = 1; w <= 100; w++) {
        snprintf(address, sizeof address, "10.0.0.%u:1", w);
        put_link(&t, w, address, 1);
    }
    json_t *network = network_of(&t, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(network, "links")), 100);
    assert_int_equal(json_array_size(json_object_get(network, "trends")), 64);
    json_decref(network);
    end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_slow_worker_is_blamed_for_its_extra_time),
        cmocka_unit_test(two_slow_workers_share_the_blame),
        cmocka_unit_test(a_fast_worker_causes_no_blame),
        cmocka_unit_test(with_a_staleness_bound_the_releasing_worker_is_blamed),
        cmocka_unit_test(without_waiting_there_is_no_blame_but_waste_counts),
        cmocka_unit_test(long_curves_are_downsampled_and_keep_their_peaks),
        cmocka_unit_test(updates_merge_to_the_complete_summary),
        cmocka_unit_test(without_changes_an_update_is_small),
        cmocka_unit_test(the_timeline_accounts_for_all_time_of_a_worker),
        cmocka_unit_test(many_workers_share_a_thousand_rows),
        cmocka_unit_test(events_of_one_kind_share_a_line_and_the_newest_are_kept),
        cmocka_unit_test(a_worker_that_leaves_on_order_is_not_lost),
        cmocka_unit_test(a_resumed_run_continues_in_time_without_duplicate_steps),
        cmocka_unit_test(without_a_log_the_csv_files_are_read),
        cmocka_unit_test(steps_that_one_table_lacks_do_not_move_those_of_the_other),
        cmocka_unit_test(an_invalid_log_header_is_rejected),
        cmocka_unit_test(connections_have_rates_hosts_and_losses),
        cmocka_unit_test(the_line_of_a_join_says_from_where),
        cmocka_unit_test(runs_on_one_machine_have_no_connections),
        cmocka_unit_test(more_workers_than_curves_are_still_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
