#include "report/trace/trace.h"

#include <jansson.h>

#include "../record/script.h"
#include "base/rng.h"
#include "record/sinks/sinks.h"
#include "report/trace/trace_writer.h"

enum { HUB = 1, WORKERS = 2 };

/* ---- runs ------------------------------------------------------------------------------------ */

static void add_sink(script *run)
{
    at_sink sink;
    at_fail fail = {0};
    if (at_sink_eventlog(&run->info, &sink, &fail)) fail_msg("%s", fail.text);
    at_recorder_add(&run->recorder, sink);
}

static void begin(script *run, uint32_t workers)
{
    script_begin(run, workers);
    add_sink(run);
    script_start(run);
    for (at_node worker = 1; worker <= workers; worker++) script_join(run, worker, 100, 1);
}

static void order(script *run, at_node worker, uint64_t round)
{
    at_action action = {.kind = AT_ACT_SEND, .worker = worker};
    action.as.order = (at_order){.samples_max = 64, .time_limit = AT_NEVER, .round = round};
    script_action(run, action, (at_record){0});
}

static void drop(script *run, at_node worker, uint64_t sequence, at_drop why)
{
    at_action action = {.kind = AT_ACT_DROP, .worker = worker};
    action.as.drop.sequence = sequence;
    action.as.drop.samples = 32;
    action.as.drop.why = why;
    script_action(run, action, (at_record){0});
}

static void apply(script *run, const at_piece *pieces, uint32_t count)
{
    at_action action = {.kind = AT_ACT_APPLY};
    action.as.apply.step = run->version + 1;
    action.as.apply.pieces = pieces;
    action.as.apply.count = count;
    action.as.apply.samples = 64;
    action.as.apply.loss_sum = 32;
    action.as.apply.wait_ns = AT_MS(10);
    script_action(run, action, (at_record){.lr = 0.5, .took = AT_US(300)});
    run->version++;
}

/* Steps of two workers, 10 ms each; the second one sleeps and is slower. */
static void play_steps(script *run, uint64_t steps)
{
    for (uint64_t i = 0; i < steps; i++) {
        at_work work = {.round = i, .samples = 32, .version = run->version, .compute_ns = AT_MS(4)};
        order(run, 1, i);
        order(run, 2, i);
        run->at += AT_MS(9.5);
        script_report(run, 1, 1, i + 1, work);
        work.sleep_ns = AT_MS(5);
        script_report(run, 2, 1, i + 1, work);
        at_piece pieces[] = {{.worker = 1,
                              .samples = 32,
                              .incarnation = 1,
                              .sequence = i + 1,
                              .version = run->version},
                             {.worker = 2,
                              .samples = 32,
                              .incarnation = 1,
                              .sequence = i + 1,
                              .version = run->version}};
        apply(run, pieces, 2);
        run->at += AT_MS(0.5);
    }
}

/* ---- traces ---------------------------------------------------------------------------------- */

typedef struct view {
    json_t         *root, *events;
    at_trace_counts counts;
} view;

static void path_of(const script *run, char path[400])
{
    snprintf(path, 400, "%s/trace.json", run->folder);
}

static view make_view(const script *run, at_trace_options options, at_err expected)
{
    char    path[400];
    view    v = {0};
    at_fail fail = {0};
    path_of(run, path);
    at_err err = at_trace_write(run->folder, path, &options, &v.counts, &fail);
    if (err != expected) fail_msg("%d: %s", err, fail.text);
    json_error_t error;
    v.root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!v.root) fail_msg("%d: %s", error.line, error.text);
    v.events = json_object_get(v.root, "traceEvents");
    assert_true(json_is_array(v.events));
    return v;
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "";
}

static double real(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static int64_t whole(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* The n-th event of this phase and name, on this row (0: any), from 0. */
static json_t *find(const view *v, const char *phase, const char *name, int64_t pid, int64_t tid,
                    size_t n)
{
    size_t  i;
    json_t *event;
    json_array_foreach(v->events, i, event)
    {
        bool is_there = (pid == 0 || whole(event, "pid") == pid) &&
                        (tid == 0 || whole(event, "tid") == tid) &&
                        !strcmp(text(event, "ph"), phase) && !strcmp(text(event, "name"), name);
        if (is_there && n-- == 0) return event;
    }
    return NULL;
}

static size_t count(const view *v, const char *phase, const char *name)
{
    size_t n = 0;
    while (find(v, phase, name, 0, 0, n)) n++;
    return n;
}

typedef struct span {
    int64_t row;
    double  begin, end;
} span;

static int by_row_and_time(const void *a, const void *b)
{
    const span *x = a, *y = b;
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static bool is_within(const span *spans, size_t used, int64_t row, double at)
{
    for (size_t i = 0; i < used; i++)
        if (spans[i].row == row && spans[i].begin <= at && at <= spans[i].end) return true;
    return false;
}

/* Slices of a row do not overlap, and both ends of every arrow are in slices. */
static void check(const view *v)
{
    size_t  i, used = 0, size = json_array_size(v->events), counted = 0;
    span   *spans = calloc(size + 1, sizeof *spans);
    json_t *event, *other = json_object_get(v->root, "otherData");
    json_array_foreach(v->events, i, event)
    {
        int64_t row = whole(event, "pid") * 100000 + whole(event, "tid");
        counted += strcmp(text(event, "ph"), "M") != 0;
        if (strcmp(text(event, "ph"), "X") != 0) continue;
        assert_true(real(event, "ts") >= 0 && real(event, "dur") >= 0);
        spans[used++] = (span){row, real(event, "ts"), real(event, "ts") + real(event, "dur")};
    }
    qsort(spans, used, sizeof *spans, by_row_and_time);
    for (size_t k = 1; k < used; k++)
        if (spans[k].row == spans[k - 1].row)
            assert_true(spans[k].begin >= spans[k - 1].end - 1e-6);
    json_array_foreach(v->events, i, event)
    {
        const char *phase = text(event, "ph");
        if (strcmp(phase, "s") != 0 && strcmp(phase, "f") != 0) continue;
        int64_t row = whole(event, "pid") * 100000 + whole(event, "tid");
        assert_true(is_within(spans, used, row, real(event, "ts")));
    }
    assert_int_equal(count(v, "s", "gradient"), count(v, "f", "gradient"));
    bool cut = whole(other, "events_omitted") > 0; /* marked by one more event */
    assert_int_equal(counted, whole(other, "events") + cut);
    free(spans);
}

static void end(script *run, view *v)
{
    check(v);
    json_decref(v->root);
    script_end(run);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void every_gradient_has_an_arrow_to_its_step(void **state)
{
    (void)state;
    script run;
    begin(&run, 2);
    play_steps(&run, 5);
    script_finish(&run, AT_END_STEPS);
    script_close(&run);
    view v = make_view(&run, (at_trace_options){0}, AT_OK);
    assert_int_equal(count(&v, "s", "gradient"), 10);
    assert_int_equal(count(&v, "X", "compute"), 10);
    assert_int_equal(count(&v, "X", "sleep"), 5);
    assert_int_equal(count(&v, "X", "apply"), 5);
    assert_int_equal(count(&v, "X", "gather"), 5);
    assert_int_equal(count(&v, "i", "finished: steps"), 1);
    assert_int_equal(count(&v, "i", "joined"), 2);
    json_t *step = find(&v, "X", "apply", HUB, 1, 2);
    assert_true(real(step, "dur") == 300);
    assert_true(real(json_object_get(step, "args"), "loss") == 0.5);
    json_t *used = json_object_get(find(&v, "X", "compute", WORKERS, 2, 2), "args");
    assert_int_equal(whole(used, "step"), 3);
    assert_string_equal(text(used, "gradient"), "used");
    assert_int_equal(v.counts.omitted, 0);
    end(&run, &v);
}

static void rows_have_names(void **state)
{
    (void)state;
    script run;
    begin(&run, 2);
    play_steps(&run, 1);
    script_evaluated(&run, 1, AT_MS(0.2), 0.5, 1.5);
    script_close(&run);
    view v = make_view(&run, (at_trace_options){0}, AT_OK);
    static const struct {
        int64_t     pid, tid;
        const char *name;
    } rows[] = {
        {HUB, 1, "hub"}, {HUB, 2, "evaluator"}, {WORKERS, 1, "worker 1"}, {WORKERS, 2, "worker 2"}};
    for (size_t i = 0; i < 4; i++) {
        json_t *row = find(&v, "M", "thread_name", rows[i].pid, rows[i].tid, 0);
        assert_non_null(row);
        assert_string_equal(text(json_object_get(row, "args"), "name"), rows[i].name);
    }
    json_t *evaluation = find(&v, "X", "evaluate", HUB, 2, 0);
    assert_true(real(json_object_get(evaluation, "args"), "accuracy") == 0.5);
    assert_true(real(evaluation, "dur") == 200);
    end(&run, &v);
}

static void a_fast_worker_waits(void **state)
{
    (void)state;
    script run;
    begin(&run, 2);
    play_steps(&run, 3);
    script_close(&run);
    view    v = make_view(&run, (at_trace_options){0}, AT_OK);
    json_t *second = find(&v, "X", "compute", WORKERS, 1, 1);
    assert_true(real(second, "ts") ==
                10000); /* from its order, not back from when the report was read */
    assert_true(real(second, "dur") == 4000);
    json_t *uncertain =
        json_object_get(json_object_get(v.root, "otherData"), "offset_uncertainty_us");
    json_t *each = json_object_get(uncertain, "worker");
    assert_true(real(each, "1") == 5500);
    assert_true(real(each, "2") == 500);
    assert_true(real(uncertain, "least") == 500);
    end(&run, &v);
}

static void dropped_gradients_are_marked_with_the_reason(void **state)
{
    (void)state;
    script run;
    begin(&run, 2);
    order(&run, 1, 0);
    order(&run, 2, 0);
    run.at = AT_MS(3);
    script_report(&run, 1, 1, 1, (at_work){.samples = 32, .compute_ns = AT_MS(2)});
    drop(&run, 1, 1, AT_DROP_STALE);
    run.at = AT_MS(4);
    script_lost(&run, 2, "killed by \"signal\" 9\n\xff", true);
    drop(&run, 2, 0, AT_DROP_LOST);
    script_close(&run);
    view    v = make_view(&run, (at_trace_options){0}, AT_OK);
    json_t *slice = find(&v, "X", "compute (dropped)", WORKERS, 1, 0);
    assert_string_equal(text(json_object_get(slice, "args"), "why"), "stale");
    assert_string_equal(text(slice, "cname"), "terrible");
    assert_non_null(find(&v, "i", "dropped: stale", WORKERS, 1, 0));
    assert_non_null(find(&v, "i", "dropped: lost", WORKERS, 2, 0));
    json_t *lost = json_object_get(find(&v, "i", "lost", WORKERS, 2, 0), "args");
    assert_string_equal(text(lost, "how"), "killed by \"signal\" 9\n?");
    assert_int_equal(count(&v, "s", "gradient"), 0);
    end(&run, &v);
}

static void a_trace_never_exceeds_the_event_limit(void **state)
{
    (void)state;
    script run;
    begin(&run, 2);
    play_steps(&run, 200);
    script_close(&run);
    view    all = make_view(&run, (at_trace_options){0}, AT_OK);
    view    v = make_view(&run, (at_trace_options){.events_max = 100}, AT_OK);
    json_t *other = json_object_get(v.root, "otherData");
    assert_in_range(v.counts.written, 98, 100);
    assert_int_equal(v.counts.written + v.counts.omitted, all.counts.written);
    assert_int_equal(whole(other, "events_omitted"), v.counts.omitted);
    assert_true(real(other, "written_until_us") > 0);
    assert_true(v.counts.cut_at < run.at);
    json_decref(all.root);
    end(&run, &v);
}

static void with_whole_a_partial_trace_is_not_written(void **state)
{
    (void)state;
    script run;
    char   path[400];
    begin(&run, 2);
    play_steps(&run, 200);
    script_close(&run);
    path_of(&run, path);
    at_trace_options options = {.events_max = 100, .whole = true};
    assert_int_equal(at_trace_write(run.folder, path, &options, NULL, NULL), AT_OK);
    assert_int_equal(access(path, F_OK), -1);
    snprintf(path, sizeof path, "%s/trace.json.part", run.folder);
    assert_int_equal(access(path, F_OK), -1);
    script_end(&run);
}

static void a_trace_can_begin_at_a_later_time(void **state)
{
    (void)state;
    script run;
    begin(&run, 2);
    play_steps(&run, 100);
    script_close(&run);
    view v = make_view(&run, (at_trace_options){.from = AT_MS(900)}, AT_OK);
    assert_in_range(count(&v, "X", "apply"), 10, 11);
    assert_in_range(count(&v, "s", "gradient"), 20, 22);
    assert_int_equal(v.counts.omitted, 0);
    end(&run, &v);
}

static void logs_of_a_resumed_run_are_concatenated(void **state)
{
    (void)state;
    script run;
    begin(&run, 2);
    play_steps(&run, 3);
    script_close(&run);
    run.info.date += 60;
    run.at = 0;
    add_sink(&run);
    script_start(&run);
    script_join(&run, 1, 100, 1);
    script_join(&run, 2, 100, 1);
    play_steps(&run, 3);
    script_close(&run);
    view v = make_view(&run, (at_trace_options){0}, AT_OK);
    assert_int_equal(count(&v, "X", "apply"), 6);
    json_t *resumed = find(&v, "i", "resumed", HUB, 1, 0);
    assert_true(real(resumed, "ts") == 60e6);
    assert_true(real(find(&v, "X", "apply", HUB, 1, 3), "ts") == 60e6 + 9500);
    end(&run, &v);
}

static void a_truncated_log_gives_a_trace_of_its_beginning(void **state)
{
    (void)state;
    script run;
    char   path[400];
    begin(&run, 2);
    play_steps(&run, 50);
    script_close(&run);
    snprintf(path, sizeof path, "%s/events.bin", run.folder);
    assert_int_equal(truncate(path, 4003), 0);
    view v = make_view(&run, (at_trace_options){0}, AT_OK);
    assert_in_range(count(&v, "X", "apply"), 1, 49);
    assert_true(json_is_true(json_object_get(json_object_get(v.root, "otherData"), "log_cut_off")));
    end(&run, &v);
}

static void the_beginning_of_a_damaged_log_is_written(void **state)
{
    (void)state;
    script run;
    char   path[400];
    begin(&run, 2);
    play_steps(&run, 50);
    script_close(&run);
    snprintf(path, sizeof path, "%s/events.bin", run.folder);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, 4000, SEEK_SET);
    for (int i = 0; i < 300; i++) fputc(0xff, file);
    fclose(file);
    view v = make_view(&run, (at_trace_options){0}, AT_OK);
    assert_in_range(count(&v, "X", "apply"), 1, 49);
    assert_true(json_is_true(json_object_get(json_object_get(v.root, "otherData"), "log_cut_off")));
    end(&run, &v);
}

static void a_run_without_log_is_rejected(void **state)
{
    (void)state;
    script  run;
    char    path[400];
    at_fail fail = {0};
    script_begin(&run, 1);
    path_of(&run, path);
    assert_int_equal(at_trace_write(run.folder, path, &(at_trace_options){0}, NULL, &fail),
                     AT_ERR_MISSING);
    assert_non_null(strstr(fail.text, "events.bin"));
    assert_int_equal(access(path, F_OK), -1);
    script_end(&run);
}

/* Reports at random times with random durations; used or dropped in any order, or never. */
static void slices_never_overlap_in_random_logs(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        script   run;
        at_rng   rng = at_rng_stream(seed, 0, AT_RNG_PURPOSE_TEST, 0);
        uint64_t sequence[5] = {0}, round[5] = {0};
        begin(&run, 4);
        for (int i = 0; i < 300; i++) {
            at_node worker = 1 + (at_node)at_rng_below(&rng, 4);
            run.at += (at_ns)at_rng_below(&rng, 2000000);
            at_work work = {.round = round[worker],
                            .version = run.version,
                            .samples = (uint32_t)at_rng_below(&rng, 3),
                            .compute_ns = (at_ns)at_rng_below(&rng, 9000000),
                            .sleep_ns = (at_ns)at_rng_below(&rng, 2) * AT_MS(1),
                            .idle_ns = (at_ns)at_rng_below(&rng, 5000000),
                            .send_ns = (at_ns)at_rng_below(&rng, 500000)};
            work.install_ns = work.idle_ns / 3;
            switch (at_rng_below(&rng, 8)) {
            case 0: order(&run, worker, ++round[worker]); break;
            case 1: drop(&run, worker, sequence[worker], AT_DROP_STALE); break;
            case 2: script_lost(&run, worker, "gone", true); break;
            case 3: script_join(&run, worker, 7, 1); break;
            case 4: {
                at_piece piece = {.worker = worker,
                                  .incarnation = 1,
                                  .sequence = sequence[worker],
                                  .version = run.version};
                apply(&run, &piece, 1);
                break;
            }
            default: script_report(&run, worker, 1, ++sequence[worker], work);
            }
        }
        script_close(&run);
        view v = make_view(&run, (at_trace_options){.events_max = seed % 3 ? 0 : 500}, AT_OK);
        end(&run, &v);
    }
}

static void quoted(const char *from, const char *expected)
{
    char    buffer[600];
    at_text args = at_text_in(buffer, sizeof buffer);
    at_trace_writer_quote(&args, from);
    assert_string_equal(buffer, expected);
}

static void any_bytes_become_valid_json(void **state)
{
    (void)state;
    quoted("plain", "\"plain\"");
    quoted("a\"b\\c\td", "\"a\\\"b\\\\c\\u0009d\"");
    quoted("h\xc3\xb6ren \xe2\x82\xac", "\"h\xc3\xb6ren \xe2\x82\xac\"");
    quoted("\xc3", "\"?\"");
    quoted("\xed\xa0\x80\xf8", "\"????\"");
    quoted("\xc0\xaf", "\"??\"");
    char large[5000];
    memset(large, '\x01', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    char    buffer[600];
    at_text args = at_text_in(buffer, sizeof buffer);
    at_trace_writer_quote(&args, large);
    assert_false(args.full);
    json_t *value = json_loads(buffer, JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    json_decref(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_gradient_has_an_arrow_to_its_step),
        cmocka_unit_test(rows_have_names),
        cmocka_unit_test(a_fast_worker_waits),
        cmocka_unit_test(dropped_gradients_are_marked_with_the_reason),
        cmocka_unit_test(a_trace_never_exceeds_the_event_limit),
        cmocka_unit_test(with_whole_a_partial_trace_is_not_written),
        cmocka_unit_test(a_trace_can_begin_at_a_later_time),
        cmocka_unit_test(logs_of_a_resumed_run_are_concatenated),
        cmocka_unit_test(a_truncated_log_gives_a_trace_of_its_beginning),
        cmocka_unit_test(the_beginning_of_a_damaged_log_is_written),
        cmocka_unit_test(a_run_without_log_is_rejected),
        cmocka_unit_test(slices_never_overlap_in_random_logs),
        cmocka_unit_test(any_bytes_become_valid_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
