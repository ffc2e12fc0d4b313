#include "base/crc32c.h"
#include "record/histogram.h"
#include "record/sinks/sinks.h"
#include "record/sinks/tfevents.h"
#include "script.h"
#include "tensorboard.pb-c.h"

#include <ftw.h>
#include <jansson.h>
#include <sys/stat.h>

static void assert_near(double value, double expected, double by)
{
    if (!(fabs(value - expected) <= by)) fail_msg("%.9g instead of %.9g", value, expected);
}

/* ---- reading back ---------------------------------------------------------------------------- */

enum { EVENTS_MAX = 20000, FILES_MAX = 8 };

typedef struct reading {
    Tb__Event *event[EVENTS_MAX];
    size_t     count, files;
} reading;

static uint64_t number(const unsigned char *bytes, int size)
{
    uint64_t value = 0;
    for (int i = 0; i < size; i++) value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

/* Parses the file; every checksum must match, and no byte may remain. */
static void read_events(reading *all, const char *path)
{
    unsigned char *bytes;
    size_t         size, at = 0;
    at_fail        fail = {0};
    if (at_file_read(path, 1 << 26, &bytes, &size, &fail)) fail_msg("%s", fail.text);
    while (at < size) {
        assert_true(size - at >= 16);
        uint64_t length = number(bytes + at, 8);
        assert_true(length <= size - at - 16);
        assert_int_equal(number(bytes + at + 8, 4), at_crc32c_masked(bytes + at, 8));
        assert_int_equal(number(bytes + at + 12 + length, 4),
                         at_crc32c_masked(bytes + at + 12, length));
        Tb__Event *event = tb__event__unpack(NULL, length, bytes + at + 12);
        assert_non_null(event);
        assert_true(all->count < EVENTS_MAX);
        all->event[all->count++] = event;
        at += 16 + length;
    }
    free(bytes);
    all->files++;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* All files of tensorboard/NAME, in the order in which TensorBoard reads them. */
static reading *read_node(const script *run, const char *name)
{
    char folder[400], path[FILES_MAX][800];
    int  count = 0;
    snprintf(folder, sizeof folder, "%s/tensorboard/%s", run->folder, name);
    DIR *open = opendir(folder);
    assert_non_null(open);
    for (struct dirent *entry; (entry = readdir(open));) {
        if (*entry->d_name == '.') continue;
        assert_true(count < FILES_MAX);
        snprintf(path[count++], sizeof path[0], "%s/%s", folder, entry->d_name);
        assert_non_null(strstr(entry->d_name, "events.out.tfevents.1800000000."));
    }
    closedir(open);
    qsort(path, (size_t)count, sizeof path[0], by_name);
    reading *all = calloc(1, sizeof *all);
    assert_non_null(all);
    for (int i = 0; i < count; i++) read_events(all, path[i]);
    return all;
}

static void free_reading(reading *all)
{
    for (size_t i = 0; i < all->count; i++) tb__event__free_unpacked(all->event[i], NULL);
    free(all);
}

static const Tb__Summary__Value *value_in(const Tb__Event *event, const char *tag)
{
    if (event->what_case != TB__EVENT__WHAT_SUMMARY) return NULL;
    for (size_t i = 0; i < event->summary->n_value; i++)
        if (!strcmp(event->summary->value[i]->tag, tag)) return event->summary->value[i];
    return NULL;
}

/* The n-th event that has the tag, from 0; NULL when there are fewer. */
static const Tb__Event *find(const reading *all, const char *tag, size_t n)
{
    for (size_t i = 0; i < all->count; i++)
        if (value_in(all->event[i], tag) && n-- == 0) return all->event[i];
    return NULL;
}

static double scalar(const reading *all, const char *tag, size_t n)
{
    const Tb__Event *event = find(all, tag, n);
    if (!event) fail_msg("%s has no point %zu", tag, n);
    assert_non_null(event);
    return (double)value_in(event, tag)->simple_value;
}

static size_t count_points(const reading *all, const char *tag)
{
    size_t count = 0;
    while (find(all, tag, count)) count++;
    return count;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *place)
{
    (void)info, (void)type, (void)place;
    return remove(path);
}

static void clean(script *run)
{
    assert_int_equal(nftw(run->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void add_sink(script *run)
{
    at_sink sink;
    at_fail fail = {0};
    if (at_sink_tensorboard(&run->info, &sink, &fail)) fail_msg("%s", fail.text);
    at_recorder_add(&run->recorder, sink);
}

static void begin(script *run, uint32_t workers)
{
    script_begin(run, workers);
    add_sink(run);
    script_start(run);
    for (at_node worker = 1; worker <= workers; worker++) script_join(run, worker, 100, 1);
}

/* One step of one worker with this duration. */
static void play_step(script *run, at_ns takes, uint32_t samples, double loss)
{
    uint64_t sequence = run->version + 1;
    run->at += takes;
    script_report(run, 1, 1, sequence,
                  (at_work){.samples = samples,
                            .version = run->version,
                            .compute_ns = takes / 2,
                            .sleep_ns = takes / 4,
                            .idle_ns = takes / 4,
                            .loss_sum = loss * samples});
    at_piece piece = {
        .worker = 1, .samples = samples, .sequence = sequence, .version = run->version};
    script_apply(run, &piece, 1, loss * samples, 0.05);
}

static void a_file_begins_with_its_version_and_the_settings(void **state)
{
    (void)state;
    script run;
    script_begin(&run, 2);
    json_t *options = json_pack("{s:i, s:s, s:n}", "batch", 32, "strategy", "a|b", "cap");
    run.info.options = options;
    add_sink(&run);
    script_close(&run);
    json_decref(options);
    reading *hub = read_node(&run, "hub");
    assert_int_equal(hub->event[0]->what_case, TB__EVENT__WHAT_FILE_VERSION);
    assert_string_equal(hub->event[0]->file_version, "brain.Event:2");
    const Tb__Summary__Value *settings = value_in(hub->event[1], "settings");
    assert_non_null(settings);
    assert_string_equal(settings->metadata->plugin_data->plugin_name, "text");
    assert_int_equal(settings->tensor->dtype, 7);
    assert_int_equal(settings->tensor->n_string_val, 1);
    char *text = strndup((const char *)settings->tensor->string_val[0].data,
                         settings->tensor->string_val[0].len);
    assert_non_null(strstr(text, "| command | anytime train --model softmax |\n"));
    assert_non_null(strstr(text, "| --batch | 32 |\n"));
    assert_non_null(strstr(text, "| --strategy | a&#124;b |\n"));
    assert_null(strstr(text, "cap"));
    free(text);
    free_reading(hub);
    reading *worker = read_node(&run, "worker-02");
    assert_int_equal(worker->count, 1);
    free_reading(worker);
    clean(&run);
}

static void the_model_is_a_graph_from_samples_to_loss(void **state)
{
    (void)state;
    script       run;
    at_run_layer layers[] = {
        {.name = "conv1",
         .kind = "conv",
         .detail = "3x3x8",
         .from = {-1, -2},
         .shape = {8, 28, 28},
         .parameters = 80},
        {.name = "conv2", .kind = "conv", .from = {0, -2}, .shape = {8, 28, 28}},
        {.name = "add1", .kind = "add", .from = {1, 0}, .shape = {8, 28, 28}},
        {.name = "dense1", .kind = "dense", .from = {2, -2}, .shape = {10, 1, 1}},
    };
    script_begin(&run, 1);
    run.info.layers = layers;
    run.info.layer_count = 4;
    add_sink(&run);
    script_close(&run);
    reading *hub = read_node(&run, "hub");
    assert_int_equal(hub->event[2]->what_case, TB__EVENT__WHAT_GRAPH_DEF);
    ProtobufCBinaryData bytes = hub->event[2]->graph_def;
    Tb__GraphDef       *graph = tb__graph_def__unpack(NULL, bytes.len, bytes.data);
    assert_non_null(graph);
    assert_int_equal(graph->n_node, 7);
    assert_string_equal(graph->node[0]->input[0], "samples");
    assert_string_equal(graph->node[2]->op, "add");
    assert_string_equal(graph->node[2]->input[0], "conv2");
    assert_string_equal(graph->node[2]->input[1], "conv1");
    assert_string_equal(graph->node[6]->input[0], "dense1");
    const Tb__Shape *shape = graph->node[0]->attr[0]->value->list->shape[0];
    assert_int_equal(shape->n_dim, 4);
    assert_int_equal(shape->dim[0]->size, -1);
    assert_int_equal(shape->dim[1]->size, 8);
    assert_int_equal(graph->node[3]->attr[0]->value->list->shape[0]->n_dim, 2);
    tb__graph_def__free_unpacked(graph, NULL);
    free_reading(hub);
    clean(&run);
}

static void a_step_is_written_with_its_scalars(void **state)
{
    (void)state;
    script run;
    begin(&run, 1);
    run.at = AT_SEC(2);
    play_step(&run, AT_MS(50), 20, 0.75);
    run.at = AT_SEC(3);
    script_evaluated(&run, 1, AT_MS(950), 0.875, 0.5);
    script_close(&run);
    reading         *hub = read_node(&run, "hub");
    const Tb__Event *step = find(hub, "train/loss", 0);
    assert_non_null(step);
    assert_int_equal(step->step, 1);
    assert_near(step->wall_time, 1.8e9 + 2.05, 1e-5);
    assert_near(scalar(hub, "train/loss", 0), 0.75, 1e-6);
    assert_near(scalar(hub, "train/learning_rate", 0), 0.05, 1e-6);
    assert_near(scalar(hub, "step/batch", 0), 20, 0);
    assert_near(scalar(hub, "step/seconds", 0), 0.05, 1e-6); /* the script's wait */
    assert_near(scalar(hub, "step/samples_per_second", 0), 400, 1e-3);
    assert_near(scalar(hub, "workers/there", 0), 1, 0);
    const Tb__Event *test = find(hub, "test/accuracy", 0);
    assert_non_null(test);
    assert_int_equal(test->step, 1);
    assert_near(test->wall_time, 1.8e9 + 2.05, 1e-5); /* of the snapshot */
    assert_near(scalar(hub, "test/loss", 0), 0.5, 0);
    assert_null(find(hub, "test/auc", 0));
    free_reading(hub);
    reading *worker = read_node(&run, "worker-01");
    assert_near(scalar(worker, "worker/batch", 0), 20, 0);
    assert_near(scalar(worker, "worker/compute_seconds", 0), 0.025, 1e-6);
    assert_near(scalar(worker, "worker/loss", 0), 0.75, 1e-6);
    free_reading(worker);
    clean(&run);
}

static void many_steps_are_aggregated_into_few_points(void **state)
{
    (void)state;
    script run;
    double samples = 0;
    begin(&run, 1);
    for (uint32_t i = 0; i < 4999; i++) {
        play_step(&run, AT_US(200), 1 + i % 7, i < 2500 ? 2 : 1);
        samples += 1 + i % 7;
    }
    script_close(&run);
    reading *hub = read_node(&run, "hub");
    size_t   count = count_points(hub, "train/loss");
    assert_in_range(count, 10, 12);
    assert_int_equal(find(hub, "train/loss", 0)->step, 1);
    assert_int_equal(find(hub, "train/loss", count - 1)->step, 4999);
    assert_near(scalar(hub, "train/loss", 1), 2, 1e-6);
    assert_near(scalar(hub, "train/loss", count - 1), 1, 1e-6);
    assert_near(scalar(hub, "samples/used", count - 1), samples, 0);
    int64_t before = 0;
    for (size_t i = 0; i < count; i++) {
        assert_true(find(hub, "train/loss", i)->step > before);
        before = find(hub, "train/loss", i)->step;
    }
    free_reading(hub);
    clean(&run);
}

static void points_become_rarer_in_a_long_run(void **state)
{
    (void)state;
    script run;
    begin(&run, 1);
    for (uint32_t i = 0; i < 100000; i++) play_step(&run, AT_SEC(1), 8, 1);
    script_close(&run);
    reading *hub = read_node(&run, "hub");
    assert_in_range(count_points(hub, "train/loss"), 4000, 6000); /* 1000 (1 + ln 100) */
    assert_in_range(count_points(hub, "rounds/batch"), 700, 800); /* 100 (1 + ln 1000) */
    free_reading(hub);
    clean(&run);
}

/* As many as a thousandth of the elapsed time allows, and the last one. */
static void evaluations_become_rarer_in_a_long_run(void **state)
{
    enum { EVALUATIONS = 100000 };
    (void)state;
    script run;
    begin(&run, 1);
    for (uint32_t i = 1; i <= EVALUATIONS; i++) {
        run.at = i * AT_MS(5);
        script_evaluated(&run, i, AT_MS(1), 0.5, i);
    }
    script_close(&run);
    reading *hub = read_node(&run, "hub");
    size_t   count = count_points(hub, "test/loss");
    assert_in_range(count, 4000, 6000); /* 1000 (1 + ln 100) */
    for (size_t i = 0; i < 1000; i++) assert_int_equal(find(hub, "test/loss", i)->step, i + 1);
    const Tb__Event *last = find(hub, "test/loss", count - 1);
    assert_int_equal(last->step, EVALUATIONS);
    assert_near(last->wall_time, 1.8e9 + EVALUATIONS * 0.005 - 0.001, 1e-5);
    assert_near(scalar(hub, "test/loss", count - 1), EVALUATIONS, 0);
    free_reading(hub);
    clean(&run);
}

static void histograms_count_every_round_once(void **state)
{
    (void)state;
    script run;
    double count = 0, sum = 0;
    begin(&run, 1);
    run.version = 3;
    for (int i = 0; i < 3000; i++) {
        at_ns takes = AT_US(700 + i);
        run.at += AT_MS(1);
        script_report(&run, 1, 1, (uint64_t)i + 1,
                      (at_work){.samples = 32, .version = 3 - (i % 3 > 0), .compute_ns = takes});
        if (i % 300 == 0) script_evaluated(&run, 3, 0, 0.5, 1);
        sum += at_seconds(takes);
    }
    script_close(&run);
    reading *worker = read_node(&run, "worker-01");
    size_t   events = count_points(worker, "rounds/compute_seconds");
    assert_true(events >= 10);
    for (size_t i = 0; i < events; i++) {
        const Tb__Event     *event = find(worker, "rounds/compute_seconds", i);
        const Tb__Histogram *histo = value_in(event, "rounds/compute_seconds")->histo;
        double               within = 0;
        assert_int_equal(histo->n_bucket, histo->n_bucket_limit);
        for (size_t b = 0; b < histo->n_bucket; b++) {
            within += histo->bucket[b];
            if (b > 0) assert_true(histo->bucket_limit[b] > histo->bucket_limit[b - 1]);
        }
        assert_near(within, histo->num, 0);
        assert_true(histo->max <= histo->bucket_limit[histo->n_bucket - 1]);
        assert_true(histo->min >= histo->bucket_limit[0] - 1e-12);
        count += histo->num;
        sum -= histo->sum;
    }
    assert_near(count, 3000, 0);
    assert_near(sum, 0, 1e-6);
    const Tb__Histogram *stale =
        value_in(find(worker, "rounds/staleness", events - 1), "rounds/staleness")->histo;
    assert_int_equal(stale->n_bucket, 3); /* the empty one for the lower edge, 0, 1 */
    assert_near(stale->bucket[2], 2 * stale->bucket[1], 2);
    free_reading(worker);
    clean(&run);
}

static void only_the_first_64_workers_have_folders(void **state)
{
    (void)state;
    script run;
    char   path[400];
    begin(&run, 100);
    script_report(&run, 100, 1, 1, (at_work){.samples = 5});
    script_close(&run);
    snprintf(path, sizeof path, "%s/tensorboard/worker-64", run.folder);
    assert_int_equal(access(path, F_OK), 0);
    snprintf(path, sizeof path, "%s/tensorboard/worker-65", run.folder);
    assert_int_equal(access(path, F_OK), -1);
    reading *hub = read_node(&run, "hub"); /* includes all workers */
    assert_near(value_in(find(hub, "rounds/batch", 0), "rounds/batch")->histo->num, 1, 0);
    free_reading(hub);
    clean(&run);
}

static void a_resumed_run_has_a_new_file_that_marks_its_first_step(void **state)
{
    (void)state;
    script run;
    begin(&run, 1);
    play_step(&run, AT_MS(5), 8, 1);
    script_close(&run);
    run.at = 0;
    run.version = 40;
    add_sink(&run);
    script_start(&run);
    play_step(&run, AT_MS(5), 8, 1);
    script_close(&run);
    reading *hub = read_node(&run, "hub");
    assert_int_equal(hub->files, 2);
    size_t i = 0;
    while (i < hub->count && hub->event[i]->what_case != TB__EVENT__WHAT_SESSION_LOG) i++;
    assert_true(i < hub->count);
    assert_int_equal(hub->event[i]->session_log->status, 1);
    assert_int_equal(hub->event[i]->step, 41);
    assert_int_equal(find(hub, "train/loss", 1)->step, 41);
    free_reading(hub);
    clean(&run);
}

static void put_usage(script *run, at_node node, at_usage usage)
{
    script_put(run, (at_record){.kind = AT_REC_USAGE, .node = node, .usage = &usage});
}

static void resource_usage_is_written_as_rates(void **state)
{
    (void)state;
    script run;
    script_begin(&run, 1);
    run.info.usage = true;
    add_sink(&run);
    at_usage usage = {.pid = 7, .user_ns = AT_SEC(3), .rss_bytes = 1000, .read_bytes = 50};
    usage.net_in_bytes = usage.net_out_bytes = usage.loopback_bytes = AT_USAGE_UNKNOWN;
    put_usage(&run, 1, usage);
    put_usage(&run, AT_NODE_EVALUATOR, usage);
    run.at = AT_SEC(2);
    usage.user_ns = AT_SEC(4);
    usage.rss_bytes = 2000;
    usage.read_bytes = 250;
    put_usage(&run, 1, usage);
    run.at = AT_SEC(3);
    usage.pid = 8; /* a new process: no rate yet */
    put_usage(&run, 1, usage);
    script_close(&run);
    reading *worker = read_node(&run, "worker-01");
    assert_int_equal(count_points(worker, "resources/cpus"), 1);
    assert_near(scalar(worker, "resources/cpus", 0), 0.5, 1e-6);
    assert_near(scalar(worker, "resources/memory_bytes", 0), 2000, 0);
    assert_near(scalar(worker, "resources/disk_read", 0), 100, 1e-4);
    assert_int_equal(count_points(worker, "resources/network_in"), 0);
    free_reading(worker);
    free_reading(read_node(&run, "evaluator"));
    clean(&run);
}

static void a_full_disk_is_reported_at_close(void **state)
{
    (void)state;
    script  run;
    char    path[700], host[256] = "";
    at_sink sink;
    at_fail fail = {0};
    script_begin(&run, 1);
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    snprintf(path, sizeof path, "%s/tensorboard/hub", run.folder);
    assert_int_equal(at_file_make_folder(path, &fail), AT_OK);
    snprintf(path, sizeof path, "%s/tensorboard/hub/events.out.tfevents.1800000000.%s", run.folder,
             host);
    assert_int_equal(symlink("/dev/full", path), 0);
    assert_int_equal(at_sink_tensorboard(&run.info, &sink, &fail), AT_OK);
    at_recorder_add(&run.recorder, sink);
    script_start(&run);
    for (int i = 0; i < 3000; i++) play_step(&run, AT_SEC(1), 8, 1);
    assert_int_equal(at_recorder_close(&run.recorder, &fail), AT_ERR_IO);
    assert_non_null(strstr(fail.text, "events.out.tfevents.1800000000"));
    clean(&run);
}

static void a_run_without_steps_leaves_complete_files(void **state)
{
    (void)state;
    script run;
    begin(&run, 3);
    script_say(&run, "nothing happens");
    script_finish(&run, AT_END_SIGNAL);
    script_close(&run);
    reading *hub = read_node(&run, "hub");
    assert_int_equal(hub->count, 2);
    free_reading(hub);
    clean(&run);
}

static void bucket_edges_enclose_their_values(void **state)
{
    (void)state;
    for (uint32_t i = 1; i < AT_HISTOGRAM_BUCKETS; i++) {
        at_histogram one = {0};
        at_ns        first = at_histogram_edge(i - 1);
        assert_true(at_histogram_edge(i) > first);
        at_histogram_add(&one, first);
        assert_int_equal(one.bucket[i], 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_begins_with_its_version_and_the_settings),
        cmocka_unit_test(the_model_is_a_graph_from_samples_to_loss),
        cmocka_unit_test(a_step_is_written_with_its_scalars),
        cmocka_unit_test(many_steps_are_aggregated_into_few_points),
        cmocka_unit_test(points_become_rarer_in_a_long_run),
        cmocka_unit_test(evaluations_become_rarer_in_a_long_run),
        cmocka_unit_test(histograms_count_every_round_once),
        cmocka_unit_test(only_the_first_64_workers_have_folders),
        cmocka_unit_test(a_resumed_run_has_a_new_file_that_marks_its_first_step),
        cmocka_unit_test(resource_usage_is_written_as_rates),
        cmocka_unit_test(a_full_disk_is_reported_at_close),
        cmocka_unit_test(a_run_without_steps_leaves_complete_files),
        cmocka_unit_test(bucket_edges_enclose_their_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
