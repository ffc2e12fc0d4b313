#include "pace/step_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Reads a text in pieces of that many bytes. */
static at_err read_pieces(const char *text, size_t piece, at_step_log *log, at_fail *fail)
{
    at_step_log_reader *reader;
    *log = (at_step_log){0};
    assert_int_equal(at_step_log_reader_new(&(at_step_log_options){0}, &reader, fail), AT_OK);
    at_err err = AT_OK;
    for (size_t at = 0, size = strlen(text); at < size && !err; at += piece)
        err = at_step_log_feed(reader, text + at, size - at < piece ? size - at : piece, fail);
    if (!err) err = at_step_log_end(reader, log, fail);
    at_step_log_reader_free(reader);
    return err;
}

static at_step_log read_text(const char *text)
{
    at_step_log log;
    at_fail     fail = {0};
    if (read_pieces(text, 1 << 20, &log, &fail)) fail_msg("%s", fail.text);
    return log;
}

static const char plain[] = "step,worker,seconds,samples\n"
                            "1,0,0.5,32\n1,1,0.25,32\n2,0,0.5,32\n2,1,0.75,16\n3,1,1,8\n3,0,2,4\n";

static void check_plain(const at_step_log *log)
{
    static const double seconds[] = {0.5, 0.25, 0.5, 0.75, 2, 1},
                        samples[] = {32, 32, 32, 16, 4, 8};
    assert_int_equal(log->workers, 2);
    assert_int_equal(log->steps, 3);
    assert_memory_equal(log->seconds, seconds, sizeof seconds);
    assert_memory_equal(log->samples, samples, sizeof samples);
    assert_true(log->key[2] == 3);
    assert_string_equal(log->names[1], "1");
    assert_string_equal(log->notes, "");
    assert_false(log->normalised);
    assert_null(log->when);
}

static void rows_become_a_table_of_steps_and_workers(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < sizeof plain; piece++) {
        at_step_log log;
        assert_int_equal(read_pieces(plain, piece, &log, NULL), AT_OK);
        check_plain(&log);
        at_step_log_deinit(&log);
    }
}

static void columns_are_found_by_name_and_others_ignored(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "samples;x;seconds;rank;step\r\n32;a;.5;0;1\r\n32;b;.25;1;1\r\n32;;.5;0;2\r\n16;;.75;1;"
        "2\r\n"
        "4;;2;0;3\r\n8;;1;1;3",
        "\xef\xbb\xbf# made by hand\nworker\tstep\tbatch_time\tsamples\tnote\n0\t1\t0.5\t32\t\n"
        "1\t1\t0.25\t32\t\n0\t2\t0.5\t32\t\n\n1\t2\t0.75\t16\t\n0\t3\t2\t4\t\n1\t3\t1\t8\t",
        "\"step\", \"worker\" ,\"comment, long\",seconds,samples\n1,0,\"a,b\",.5,32\n1,1,,.25,32\n"
        "2,0,,.5,32\n2,1,\"\",\"0.75\",16\n3,0,,2,4\n3,1,, 1 ,8\n"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        at_step_log log = read_text(texts[i]);
        check_plain(&log);
        at_step_log_deinit(&log);
    }
}

static void workers_are_ordered_by_number_or_by_appearance(void **state)
{
    (void)state;
    at_step_log log =
        read_text("step,worker,seconds\n1,10,1\n1,9,2\n2,9,2\n2,10,1\n3,9,2\n3,10,1\n");
    assert_string_equal(log.names[0], "9");
    assert_true(log.seconds[0] == 2);
    at_step_log_deinit(&log);
    log = read_text("step,worker,seconds\n1,b,1\n1,a,2\n2,a,2\n2,b,1\n3,a,2\n3,b,1\n");
    assert_string_equal(log.names[0], "b");
    assert_true(log.seconds[0] == 1);
    at_step_log_deinit(&log);
}

static void a_column_without_scale_makes_the_log_normalised(void **state)
{
    (void)state;
    at_step_log log = read_text(",worker,gpu,time,batch_time_norm\n0,0,25,1,476\n1,0,25,11,500\n"
                                "2,0,25,21,400\n");
    assert_true(log.normalised);
    assert_true(log.by_time);
    assert_true(log.key[1] == 11);
    at_step_log_deinit(&log);
}

static void a_time_beside_the_step_is_when_the_row_was_written(void **state)
{
    (void)state;
    at_step_log log = read_text("time,step,rank,compute_time\n9.5,1,1,3\n20,2,1,4\n30,3,1,5\n");
    assert_non_null(log.when);
    assert_true(log.when[1] == 20);
    assert_true(log.key[1] == 2);
    at_step_log_deinit(&log);
}

static void incomplete_steps_are_left_out_with_a_note(void **state)
{
    (void)state;
    at_step_log log = read_text("step,worker,seconds\n1,0,1\n1,1,1\n2,0,1\n3,0,1\n3,1,1\n4,0,1\n"
                                "4,1,1\n");
    assert_int_equal(log.steps, 3);
    assert_non_null(strstr(log.notes, "1 of 4 steps lack workers"));
    assert_non_null(strstr(log.notes, "worker 1 at step 2"));
    at_step_log_deinit(&log);
}

static void a_rare_duplicate_is_ignored_with_a_note(void **state)
{
    (void)state;
    char   text[8000] = "step,worker,seconds\n";
    size_t used = strlen(text);
    for (int step = 0; step < 200; step++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%d,0,1\n%d,1,2\n", step, step);
    snprintf(text + used, sizeof text - used, "7,1,99\n");
    at_step_log log = read_text(text);
    assert_int_equal(log.steps, 200);
    assert_true(log.seconds[15] == 2);
    assert_non_null(strstr(log.notes, "1 row is ignored"));
    assert_non_null(strstr(log.notes, "line 402, worker 1"));
    at_step_log_deinit(&log);
}

static void files_of_one_job_become_one_table(void **state)
{
    (void)state;
    static const char *const files[] = {"step,worker,seconds\n1,0,1\n2,0,2\n3,0,3",
                                        "worker,seconds,step\n1,4,1\n1,5,2\n1,6,3\n"};
    at_step_log_reader      *reader;
    at_step_log              log;
    assert_int_equal(at_step_log_reader_new(&(at_step_log_options){.unit = 1e-3}, &reader, NULL),
                     AT_OK);
    for (size_t i = 0; i < COUNT(files); i++) {
        assert_int_equal(at_step_log_next_file(reader, NULL), AT_OK);
        assert_int_equal(at_step_log_feed(reader, files[i], strlen(files[i]), NULL), AT_OK);
    }
    assert_int_equal(at_step_log_end(reader, &log, NULL), AT_OK);
    at_step_log_reader_free(reader);
    assert_int_equal(log.workers, 2);
    assert_int_equal(log.steps, 3);
    assert_true(log.seconds[5] == 6 * 1e-3);
    at_step_log_deinit(&log);
}

typedef struct wrong {
    const char *text, *complaint;
} wrong;

static void every_bad_log_is_refused_with_a_sentence(void **state)
{
    (void)state;
#define HEAD "step,worker,seconds,samples\n"
    static const wrong logs[] = {
        {"", "the log is empty"},
        {"\n# nothing\n\n", "the log is empty"},
        {HEAD, "the log has no rows"},
        {"step,seconds\n1,1\n", "no column worker or rank"},
        {"worker,seconds\n1,1\n", "no column step or time"},
        {"step,worker\n1,1\n", "no column seconds or batch_time"},
        {"1,2,3\n4,5,6\n", "there is no column"},
        {HEAD "1,0,nan,1\n", "line 2: the time is not a number: 'nan'"},
        {HEAD "1,0,inf,1\n", "line 2: the time is not a number: 'inf'"},
        {HEAD "1,0,1,1\n1,1,zero,1\n", "line 3: the time is not a number: 'zero'"},
        {HEAD "1,0,0,1\n", "line 2: the time is zero"},
        {HEAD "1,0,-3,1\n", "line 2: the time is negative: '-3'"},
        {HEAD "1,0,50%,1\n", "line 2: the time is not a number"},
        {HEAD "1,0,,1\n", "line 2: the time is not a number: ''"},
        {HEAD "1,0,1e30,1\n", "wrong unit?"},
        {HEAD "1,0,1e-30,1\n", "wrong unit?"},
        {HEAD "one,0,1,1\n", "the step is not a number: 'one'"},
        {HEAD "1,,1,1\n", "no worker"},
        {HEAD "1,0123456789012345678901234567890123456789,1,1\n", "name of the worker is too long"},
        {HEAD "1,0,1,0\n", "the number of samples is '0'"},
        {HEAD "1,0,1,-1\n", "the number of samples is '-1'"},
        {HEAD "1,0,1\n", "line 2 has fewer fields than the header"},
        {HEAD "1,0,1,1\n2,0,1,1\n", "only 2 steps"},
        {HEAD "1,0,1,1\n2,1,1,1\n3,2,1,1\n4,3,1,1\n", "only 0 of 4 steps have rows of all 4"},
        {HEAD "1,0,1,1\n1,0,2,1\n2,0,1,1\n3,0,1,1\n", "line 3: worker 0 already has a row for"},
    };
    for (size_t i = 0; i < COUNT(logs); i++) {
        at_step_log log;
        at_fail     fail = {0};
        assert_int_equal(read_pieces(logs[i].text, 7, &log, &fail), AT_ERR_FORMAT);
        if (!strstr(fail.text, logs[i].complaint) || !fail.hint[0])
            fail_msg("log %zu: '%s', hint '%s'", i, fail.text, fail.hint);
    }
}

static void a_long_line_and_zero_bytes_are_refused(void **state)
{
    (void)state;
    enum { LONG = 1 << 17 };
    at_step_log_reader *reader;
    at_fail             fail = {0};
    char               *bytes = malloc(LONG);
    assert_non_null(bytes);
    memset(bytes, 'x', LONG);
    assert_int_equal(at_step_log_reader_new(&(at_step_log_options){0}, &reader, NULL), AT_OK);
    assert_int_equal(at_step_log_feed(reader, bytes, LONG, &fail), AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "line 1 is longer than"));
    at_step_log_reader_free(reader);
    assert_int_equal(at_step_log_reader_new(&(at_step_log_options){0}, &reader, NULL), AT_OK);
    assert_int_equal(at_step_log_feed(reader, "step\0,worker\n", 13, &fail), AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "zero bytes"));
    at_step_log_reader_free(reader);
    free(bytes);
}

/* Five gigabytes would be refused here, after the memory of four million rows. */
static void a_log_with_too_many_rows_is_refused(void **state)
{
    (void)state;
    enum { BLOCK = 4096 };
    at_step_log_reader *reader;
    at_fail             fail = {0};
    at_err              err = AT_OK;
    char                block[BLOCK * 6 + 1];
    assert_int_equal(at_step_log_reader_new(&(at_step_log_options){0}, &reader, NULL), AT_OK);
    for (size_t i = 0; i < BLOCK; i++) memcpy(block + 6 * i, "1,2,3\n", 6);
    assert_int_equal(at_step_log_feed(reader, "step,worker,seconds\n", 20, NULL), AT_OK);
    size_t blocks = 0;
    while (!err && blocks++ <= AT_STEP_LOG_ROWS_MAX / BLOCK)
        err = at_step_log_feed(reader, block, BLOCK * 6, &fail);
    assert_int_equal(err, AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "more than 4000000 rows"));
    at_step_log_reader_free(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_become_a_table_of_steps_and_workers),
        cmocka_unit_test(columns_are_found_by_name_and_others_ignored),
        cmocka_unit_test(workers_are_ordered_by_number_or_by_appearance),
        cmocka_unit_test(a_column_without_scale_makes_the_log_normalised),
        cmocka_unit_test(a_time_beside_the_step_is_when_the_row_was_written),
        cmocka_unit_test(incomplete_steps_are_left_out_with_a_note),
        cmocka_unit_test(a_rare_duplicate_is_ignored_with_a_note),
        cmocka_unit_test(files_of_one_job_become_one_table),
        cmocka_unit_test(every_bad_log_is_refused_with_a_sentence),
        cmocka_unit_test(a_long_line_and_zero_bytes_are_refused),
        cmocka_unit_test(a_log_with_too_many_rows_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
