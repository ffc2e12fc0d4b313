#include "record/sinks/buffered_sink.h"

#include "record/sinks/sinks.h"
#include "script.h"

/* A sink that counts its records and keeps the last one. */
typedef struct witness {
    uint32_t  count, steps, pieces, closed;
    uint64_t  samples;
    at_ns     at;
    char      text[64];
    at_usage  usage;
    at_record last;
} witness;

static void count_record(void *opaque, const at_record *record)
{
    witness *it = opaque;
    if (record->kind != AT_REC_TEXT) assert_true(record->at >= it->at);
    if (record->kind != AT_REC_TEXT) it->at = record->at;
    it->count++;
    it->last = *record;
    if (record->text) snprintf(it->text, sizeof it->text, "%s", record->text);
    if (record->usage) it->usage = *record->usage;
    if (record->kind != AT_REC_ACTION || record->action->kind != AT_ACT_APPLY) return;
    it->steps++;
    it->pieces += record->action->as.apply.count;
    for (uint32_t i = 0; i < record->action->as.apply.count; i++)
        it->samples += record->action->as.apply.pieces[i].samples;
}

static at_err count_close(void *opaque, at_fail *fail)
{
    witness *it = opaque;
    it->closed++;
    return at_fail_set(fail, AT_ERR_IO, NULL, "the disk is full");
}

static void begin(script *run, witness *it, uint32_t workers)
{
    at_recorder inner = {0};
    at_sink     sink;
    *it = (witness){0};
    script_begin(run, workers);
    at_recorder_add(
        &inner, (at_sink){.name = "see", .self = it, .put = count_record, .close = count_close});
    assert_int_equal(at_sink_buffered(&inner, NULL, NULL, &sink, NULL), AT_OK);
    assert_int_equal(inner.count, 0);
    at_recorder_add(&run->recorder, sink);
}

static void end(script *run, witness *it)
{
    at_fail fail = {0};
    assert_int_equal(at_recorder_close(&run->recorder, &fail), AT_ERR_IO);
    assert_string_equal(fail.text, "the disk is full");
    assert_int_equal(it->closed, 1);
    script_end(run);
}

static void records_are_passed_on_together_and_complete(void **state)
{
    (void)state;
    script  run;
    witness it;
    begin(&run, &it, 2);
    for (int i = 0; i < 10; i++) {
        at_piece pieces[2] = {{.worker = 1, .samples = 7}, {.worker = 2, .samples = 5}};
        run.at += AT_MS(1);
        script_lost(&run, 1, "killed by signal 9", true);
        script_apply(&run, pieces, 2, 1, 0.1);
        memset(pieces, 0xff, sizeof pieces); /* the sink must have copied them */
    }
    assert_int_equal(it.count, 0);
    run.at += AT_MS(50);
    at_usage usage = {.pid = 77, .rss_bytes = 5};
    script_put(&run, (at_record){.kind = AT_REC_USAGE, .node = 1, .usage = &usage});
    assert_int_equal(it.count, 21);
    assert_int_equal(it.steps, 10);
    assert_int_equal(it.pieces, 20);
    assert_int_equal(it.samples, 120);
    assert_string_equal(it.text, "killed by signal 9");
    assert_int_equal(it.usage.pid, 77);
    assert_int_equal(it.last.node, 1);
    end(&run, &it);
}

static void urgent_records_are_passed_on_at_once(void **state)
{
    (void)state;
    script  run;
    witness it;
    begin(&run, &it, 1);
    script_start(&run);
    script_say(&run, "look");
    assert_int_equal(it.count, 2);
    script_join(&run, 1, 100, 1);
    assert_int_equal(it.count, 2);
    script_action(&run, (at_action){.kind = AT_ACT_SAVE}, (at_record){0});
    assert_int_equal(it.count, 4);
    script_join(&run, 1, 100, 2);
    script_finish(&run, AT_END_STEPS);
    assert_int_equal(it.count, 6);
    end(&run, &it);
}

static void closing_passes_on_the_rest(void **state)
{
    (void)state;
    script  run;
    witness it;
    begin(&run, &it, 1);
    script_start(&run);
    assert_int_equal(it.count, 0);
    end(&run, &it);
    assert_int_equal(it.count, 1);
}

static void steps_too_large_for_the_buffer_keep_their_order(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    static at_piece pieces[MANY];
    script          run;
    witness         it;
    begin(&run, &it, MANY);
    for (uint32_t i = 0; i < MANY; i++) pieces[i] = (at_piece){.worker = i + 1, .samples = 1};
    for (uint32_t i = 0; i < 100; i++) {
        script_join(&run, 1, 100, i + 1);
        script_apply(&run, pieces, i % 3 ? i * 20 : MANY, 1,
                     0.1); /* larger and smaller than the buffer */
        run.at += AT_US(10);
    }
    end(&run, &it);
    assert_int_equal(it.count, 200);
    assert_int_equal(it.samples, it.pieces);
    assert_int_equal(it.steps, 100);
}

/* The same run is recorded directly and through the buffer. */
static void buffering_does_not_change_a_byte(void **state)
{
    (void)state;
    char  *table[2];
    size_t size[2];
    for (int way = 0; way < 2; way++) {
        script      run;
        at_sink     sink;
        at_recorder inner = {0};
        script_begin(&run, 3);
        assert_int_equal(at_sink_csv(&run.info, true, &sink, NULL), AT_OK);
        at_recorder_add(way == 0 ? &run.recorder : &inner, sink);
        if (way == 1) assert_int_equal(at_sink_buffered(&inner, NULL, NULL, &sink, NULL), AT_OK);
        if (way == 1) at_recorder_add(&run.recorder, sink);
        script_start(&run);
        for (uint64_t i = 1; i < 3000; i++) {
            at_piece piece = {.worker = 1 + (at_node)(i % 3), .samples = 3, .sequence = i};
            run.at += AT_US(137);
            script_order(&run, piece.worker, AT_NEVER);
            script_report(&run, piece.worker, 1, i, (at_work){.samples = 3, .compute_ns = 1000});
            script_apply(&run, &piece, 1, 0.25 * (double)i, 0.1);
        }
        script_close(&run);
        table[way] = script_read(&run, "worker_stats.csv");
        size[way] = strlen(table[way]);
        script_end(&run);
    }
    assert_int_equal(size[0], size[1]);
    assert_true(size[0] > 100000);
    assert_memory_equal(table[0], table[1], size[0]);
    free(table[0]);
    free(table[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_passed_on_together_and_complete),
        cmocka_unit_test(urgent_records_are_passed_on_at_once),
        cmocka_unit_test(closing_passes_on_the_rest),
        cmocka_unit_test(steps_too_large_for_the_buffer_keep_their_order),
        cmocka_unit_test(buffering_does_not_change_a_byte),
    };
    return cmocka_run_group_tests_name("record: buffered sink", tests, NULL, NULL);
}
