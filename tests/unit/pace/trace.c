#include "pace/pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/rng.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static char path[] = "/tmp/anytime-trace-XXXXXX";
static char model[64];

static int make_file(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    snprintf(model, sizeof model, "trace:%s", path);
    return fd < 0 || close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static at_err open_bytes(const void *bytes, size_t size, uint32_t workers, at_pace **pace,
                         at_fail *fail)
{
    assert_int_equal(at_file_write(path, bytes, size, fail), AT_OK);
    return at_pace_new(&(at_pace_options){.model = model, .workers = workers}, pace, fail);
}

static at_err open_text(const char *text, uint32_t workers, at_pace **pace, at_fail *fail)
{
    return open_bytes(text, strlen(text), workers, pace, fail);
}

static void a_trace_has_one_line_per_round_and_repeats(void **state)
{
    (void)state;
    at_pace *pace;
    at_fail  fail = {0};
    at_err   err = open_text("# a comment\n0.1 0.2\n\n  1e-3,\t3\r\n0 .5", 2, &pace, &fail);
    if (err) fail_msg("%s", fail.text);
    static const at_ns expected[3][2] = {
        {100000000, 200000000}, {1000000, 3000000000}, {0, 500000000}};
    for (uint64_t r = 0; r < 9; r++)
        for (uint32_t w = 1; w <= 2; w++)
            assert_int_equal(at_pace_sleep(pace, w, r), expected[r % 3][w - 1]);
    at_pace_free(pace);
}

static void columns_past_the_last_worker_are_ignored(void **state)
{
    (void)state;
    at_pace *pace;
    assert_int_equal(open_text("1 2 9\n3 4 9\n", 2, &pace, NULL), AT_OK);
    assert_int_equal(at_pace_sleep(pace, 2, 1), AT_SEC(4));
    at_pace_free(pace);
}

static void a_malformed_trace_is_refused_with_line_and_hint(void **state)
{
    (void)state;
    static const struct {
        const char *text, *where;
    } bad[] = {
        {"", "empty"},
        {"\n\n# nothing\n", "empty"},
        {"1 2\n3\n", "line 2"},
        {"1 2\n1 2 3\n", "line 2"},
        {"1 -2\n", "line 1"},
        {"1 2\n1 x\n", "line 2"},
        {"1 nan\n", "line 1"},
        {"1 inf\n", "line 1"},
        {"1 20%\n", "line 1"},
        {"1 1e9\n", "line 1"},
        {"1\n", "1 sleeps for 2"},
        {"1;2\n", "line 1"},
        {"1 0x2\n", "line 1"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        at_pace *pace;
        at_fail  fail = {0};
        at_err   err = open_text(bad[i].text, 2, &pace, &fail);
        if (err != AT_ERR_FORMAT) fail_msg("case %zu gave %d", i, err);
        assert_null(pace);
        if (!strstr(fail.text, bad[i].where)) fail_msg("'%s' lacks '%s'", fail.text, bad[i].where);
        assert_non_null(strstr(fail.text, path));
        assert_true(fail.hint[0]);
    }
}

static void a_missing_file_and_a_folder_are_refused(void **state)
{
    (void)state;
    at_pace        *pace;
    at_fail         fail = {0};
    at_pace_options options = {.model = "trace:/no/such/file", .workers = 1};
    assert_int_equal(at_pace_new(&options, &pace, &fail), AT_ERR_MISSING);
    assert_true(fail.hint[0]);
    options.model = "trace:/tmp";
    assert_int_equal(at_pace_new(&options, &pace, &fail), AT_ERR_IO);
}

static void zero_bytes_are_refused(void **state)
{
    (void)state;
    at_pace *pace;
    at_fail  fail = {0};
    assert_int_equal(open_bytes("1\n\0002\n", 5, 1, &pace, &fail), AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "zero bytes"));
}

static void random_bytes_never_do_harm(void **state)
{
    (void)state;
    static const char letters[] = "0123456789.,- \t\r\n#e%x";
    at_rng            rng = at_rng_stream(3, 0, AT_RNG_PURPOSE_TEST, 0);
    for (int i = 0; i < 300; i++) {
        char   text[40];
        size_t size = at_rng_below(&rng, sizeof text);
        for (size_t k = 0; k < size; k++) text[k] = letters[at_rng_below(&rng, sizeof letters - 1)];
        at_pace *pace;
        at_fail  fail = {0};
        if (!open_bytes(text, size, 1 + (uint32_t)at_rng_below(&rng, 2), &pace, &fail))
            for (uint64_t r = 0; r < 50; r++) assert_true(at_pace_sleep(pace, 1, r) >= 0);
        at_pace_free(pace);
    }
}

/* The scale refers to the mean of the used columns: 2 s. */
static void a_trace_can_be_scaled(void **state)
{
    (void)state;
    assert_int_equal(at_file_write(path, "1 3 9\n1 3 9\n", 12, NULL), AT_OK);
    at_pace        *pace;
    at_pace_options options = {
        .model = model, .scale = "50%", .workers = 2, .round_ns_mean = AT_SEC(2)};
    assert_int_equal(at_pace_new(&options, &pace, NULL), AT_OK);
    assert_int_equal(at_pace_sleep(pace, 1, 0), AT_SEC(0.5));
    assert_int_equal(at_pace_sleep(pace, 2, 0), AT_SEC(1.5));
    at_pace_free(pace);
}

static const char times[] = "step,worker,seconds\n1,a,2\n1,b,4\n2,a,2\n2,b,8\n3,a,2\n3,b,6\n";

static void step_times_become_factors_of_the_run_s_own_round(void **state)
{
    (void)state;
    static const double expected[3][2] = {{0.5, 1}, {0.5, 2}, {0.5, 1.5}};
    at_pace            *pace;
    assert_int_equal(at_file_write(path, times, strlen(times), NULL), AT_OK);
    at_pace_options options = {
        .model = model, .workers = 2, .round_ns_mean = AT_SEC(2), .trace_scale = 0.5};
    assert_int_equal(at_pace_new(&options, &pace, NULL), AT_OK);
    for (uint64_t r = 0; r < 9; r++)
        for (uint32_t w = 1; w <= 2; w++) {
            assert_true(at_pace_factor(pace, w, r) == expected[r % 3][w - 1]);
            assert_int_equal(at_pace_sleep(pace, w, r), 0);
        }
    at_pace_free(pace);
}

static void step_times_without_a_scale_have_a_mean_factor_of_1(void **state)
{
    (void)state;
    static const char text[] = "worker,time,batch_time_norm\n1,1,100\n1,11,300\n1,21,200\n";
    at_pace          *pace;
    assert_int_equal(open_text(text, 1, &pace, NULL), AT_OK);
    assert_true(at_pace_factor(pace, 1, 0) == 0.5);
    assert_true(at_pace_factor(pace, 1, 1) == 1.5);
    at_pace_free(pace);
}

static void step_times_that_do_not_fit_the_run_are_refused(void **state)
{
    (void)state;
    at_pace *pace;
    at_fail  fail = {0};
    assert_int_equal(open_text(times, 2, &pace, &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "needs the time of a sample"));
    at_pace_options options = {.model = model, .workers = 3, .round_ns_mean = AT_SEC(2)};
    assert_int_equal(at_pace_new(&options, &pace, &fail), AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "has step times of 2 workers, but there are 3"));
}

static void recorded_rounds_are_repeated(void **state)
{
    (void)state;
    static const double sleep_s[] = {0.5, 0, 1, 2}, factor[] = {1, 2, 3, 4};
    at_pace            *pace;
    at_pace_rounds      rounds = {2, 2, sleep_s, factor};
    assert_int_equal(at_pace_replay(&rounds, &pace, NULL), AT_OK);
    for (uint64_t r = 0; r < 6; r++)
        for (uint32_t w = 1; w <= 2; w++) {
            size_t cell = r % 2 * 2 + w - 1;
            assert_int_equal(at_pace_sleep(pace, w, r), AT_SEC(sleep_s[cell]));
            assert_true(at_pace_factor(pace, w, r) == factor[cell]);
        }
    at_pace_free(pace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_has_one_line_per_round_and_repeats),
        cmocka_unit_test(columns_past_the_last_worker_are_ignored),
        cmocka_unit_test(a_malformed_trace_is_refused_with_line_and_hint),
        cmocka_unit_test(a_missing_file_and_a_folder_are_refused),
        cmocka_unit_test(zero_bytes_are_refused),
        cmocka_unit_test(random_bytes_never_do_harm),
        cmocka_unit_test(a_trace_can_be_scaled),
        cmocka_unit_test(step_times_become_factors_of_the_run_s_own_round),
        cmocka_unit_test(step_times_without_a_scale_have_a_mean_factor_of_1),
        cmocka_unit_test(step_times_that_do_not_fit_the_run_are_refused),
        cmocka_unit_test(recorded_rounds_are_repeated),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
