#include "report/plot/curve.h"

#include <math.h>
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

static const char header[] = "time,step,loss,learning_rate,test_loss,accuracy\n";

static char home[] = "/tmp/anytime-curve-XXXXXX";

static int enter_home(void **state)
{
    (void)state;
    return !mkdtemp(home) || chdir(home);
}

static int leave_home(void **state)
{
    (void)state;
    unlink("run.csv");
    return chdir("/") || rmdir(home);
}

static at_err read_text(const char *text, const char *column, at_curve *curve)
{
    at_fail fail = {0};
    assert_int_equal(at_file_write("run.csv", text, strlen(text), &fail), AT_OK);
    at_err err =
        at_curve_read(".", "run.csv", &(at_curve_source){.x = "time", .y = column}, curve, &fail);
    assert_int_equal(err, fail.err);
    return err;
}

static at_err read_rows(const char *lines, const char *column, at_curve *curve)
{
    char text[4096];
    snprintf(text, sizeof text, "%s%s", header, lines);
    return read_text(text, column, curve);
}

static void check_near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-9 * (1 + fabs(wanted))))
        fail_msg("%.12g is not %.12g", value, wanted);
}

/* A loss that falls by 1 per row, one row per second. */
static void write_long_run(unsigned lines)
{
    FILE *file = fopen("run.csv", "w");
    assert_non_null(file);
    fputs(header, file);
    for (unsigned i = 0; i < lines; i++) fprintf(file, "%u,%u,%d,0.1,,\n", i, i, -(int)i);
    assert_int_equal(fclose(file), 0);
}

static void rows_without_a_value_are_skipped_per_column(void **state)
{
    (void)state;
    at_curve    curve;
    const char *lines = "0.5,1,2.25,0.1,,\n1,2,1.5,0.1,,\n0.75,1,,,0.9,0.5\n2,3,1,0.1,,\n";
    assert_int_equal(read_rows(lines, "loss", &curve), AT_OK);
    assert_int_equal(curve.count, 3);
    check_near(curve.x[0], 0.5);
    check_near(curve.y[0], 2.25);
    check_near(curve.y[2], 1);
    assert_int_equal(read_rows(lines, "accuracy", &curve), AT_OK);
    assert_int_equal(curve.count, 1);
    check_near(curve.x[0], 0.75);
    check_near(curve.y[0], 0.5);
}

static void values_that_are_not_finite_are_skipped(void **state)
{
    (void)state;
    at_curve curve;
    assert_int_equal(read_rows("1,1,nan,,,\n2,2,-inf,,,\n3,3,inf,,,\n4,4,7,,,\n", "loss", &curve),
                     AT_OK);
    assert_int_equal(curve.count, 1);
    check_near(curve.y[0], 7);
}

static void a_file_without_rows_is_an_empty_curve(void **state)
{
    (void)state;
    at_curve curve;
    assert_int_equal(read_rows("", "loss", &curve), AT_OK);
    assert_int_equal(curve.count, 0);
}

/* "0.5,1,2" may have been on its way to "0.5,1,2.25,0.1,,". */
static void a_last_line_without_an_end_is_left_out(void **state)
{
    (void)state;
    at_curve    curve;
    const char *whole = "0.5,1,2.25,0.1,,\n1,2,1.5,0.1,,\n";
    for (size_t cut = 1; cut < strlen("1,2,1.5,0.1,,\n"); cut++) {
        char lines[100];
        snprintf(lines, sizeof lines, "%.*s", (int)(strlen(whole) - cut), whole);
        assert_int_equal(read_rows(lines, "loss", &curve), AT_OK);
        assert_int_equal(curve.count, 1);
    }
    assert_int_equal(read_text("", "loss", &curve), AT_ERR_MISSING);
    assert_int_equal(read_text("time,step,loss", "loss", &curve), AT_ERR_MISSING);
}

static void a_long_run_is_downsampled_by_averaging(void **state)
{
    (void)state;
    at_fail         fail;
    at_curve        curve;
    at_curve_source loss = {.x = "time", .y = "loss"};
    for (unsigned lines = 1; lines < 100000; lines = lines * 3 + 1) {
        write_long_run(lines);
        assert_int_equal(at_curve_read(".", "run.csv", &loss, &curve, &fail), AT_OK);
        assert_true(curve.count >= (lines < 100 ? lines : 100));
        assert_true(curve.count <= AT_CURVE_POINTS_MAX);
        for (size_t i = 0; i < curve.count; i++) {
            check_near(curve.y[i], -curve.x[i]); /* a straight line stays one */
            if (i > 0) assert_true(curve.x[i] > curve.x[i - 1]);
        }
    }
}

static void a_malformed_file_is_rejected(void **state)
{
    (void)state;
    at_curve curve;
    char     wide[3000];
    memset(wide, '1', sizeof wide);
    wide[sizeof wide - 1] = '\0';
    assert_int_equal(read_text("time,step\n1,2\n", "loss", &curve), AT_ERR_FORMAT);
    assert_int_equal(read_text("losses,time\n", "loss", &curve), AT_ERR_FORMAT);
    assert_int_equal(read_rows("1,1\n", "loss", &curve), AT_ERR_FORMAT);
    assert_int_equal(read_rows("1,1,x,0.1,,\n", "loss", &curve), AT_ERR_FORMAT);
    assert_int_equal(read_rows(",1,2,0.1,,\n", "loss", &curve), AT_ERR_FORMAT);
    assert_int_equal(read_rows("2,1,2,0.1,,\n1,2,2,0.1,,\n", "loss", &curve), AT_ERR_FORMAT);
    assert_int_equal(read_rows(wide, "loss", &curve), AT_ERR_FORMAT);
}

static void a_curve_can_use_any_two_columns(void **state)
{
    (void)state;
    at_fail  fail = {0};
    at_curve curve;
    assert_int_equal(
        read_rows("0.5,1,2,0.1,,\n1,2,,0.2,,\n0.75,1,,,0.9,0.5\n2,3,1,0.3,,\n", "loss", &curve),
        AT_OK);
    at_curve_source time = {.x = "step", .y = "time", .where = "learning_rate"};
    assert_int_equal(at_curve_read(".", "run.csv", &time, &curve, &fail), AT_OK);
    assert_int_equal(curve.count, 3); /* the evaluation does not count as a step */
    check_near(curve.x[1], 2);
    check_near(curve.y[2], 2);
    time.where = NULL;
    assert_int_equal(at_curve_read(".", "run.csv", &time, &curve, &fail), AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "run.csv:4"));
}

static void a_sum_runs_over_all_rows(void **state)
{
    (void)state;
    at_fail         fail = {0};
    at_curve        curve;
    at_curve_source sum = {.x = "step", .y = "time", .sum = true};
    write_long_run(5000);
    assert_int_equal(at_curve_read(".", "run.csv", &sum, &curve, &fail), AT_OK);
    assert_true(curve.count <= AT_CURVE_POINTS_MAX);
    assert_true(curve.y[curve.count - 1] <= 4999.0 * 5000 / 2);
    assert_true(curve.y[curve.count - 1] >= 4900.0 * 4900 / 2);
}

static void a_missing_file_is_a_distinct_error(void **state)
{
    (void)state;
    at_fail         fail = {0};
    at_curve        curve;
    at_curve_source loss = {.x = "time", .y = "loss"};
    assert_int_equal(at_curve_read(".", "nowhere.csv", &loss, &curve, &fail), AT_ERR_MISSING);
    assert_int_equal(curve.count, 0);
}

static void the_mean_of_one_curve_is_itself(void **state)
{
    (void)state;
    at_curve curves[2] = {{.count = 2, .x = {1, 4}, .y = {5, 7}}, {.count = 0}}, mean;
    at_curve_mean(curves, 2, &mean);
    assert_int_equal(mean.count, 2);
    check_near(mean.x[1], 4);
    check_near(mean.y[1], 7);
    at_curve_mean(curves + 1, 1, &mean);
    assert_int_equal(mean.count, 0);
}

static void the_mean_begins_with_the_last_curve_and_extends_ended_ones(void **state)
{
    (void)state;
    at_curve curves[2] = {{.count = 2, .x = {0, 2}, .y = {0, 2}},
                          {.count = 2, .x = {1, 5}, .y = {4, 8}}},
             mean;
    at_curve_mean(curves, 2, &mean);
    assert_int_equal(mean.count, AT_CURVE_POINTS_MAX);
    check_near(mean.x[0], 1);
    check_near(mean.y[0], 2.5); /* of 1 and 4 */
    check_near(mean.x[mean.count - 1], 5);
    check_near(mean.y[mean.count - 1], 5); /* of 2, held, and 8 */
}

static void points_at_the_same_time_are_handled(void **state)
{
    (void)state;
    at_curve curves[2] = {{.count = 3, .x = {1, 1, 1}, .y = {1, 2, 3}},
                          {.count = 2, .x = {1, 1}, .y = {3, 9}}},
             mean;
    at_curve_mean(curves, 2, &mean);
    assert_int_equal(mean.count, 1);
    check_near(mean.y[0], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_without_a_value_are_skipped_per_column),
        cmocka_unit_test(values_that_are_not_finite_are_skipped),
        cmocka_unit_test(a_file_without_rows_is_an_empty_curve),
        cmocka_unit_test(a_last_line_without_an_end_is_left_out),
        cmocka_unit_test(a_long_run_is_downsampled_by_averaging),
        cmocka_unit_test(a_malformed_file_is_rejected),
        cmocka_unit_test(a_curve_can_use_any_two_columns),
        cmocka_unit_test(a_sum_runs_over_all_rows),
        cmocka_unit_test(a_missing_file_is_a_distinct_error),
        cmocka_unit_test(the_mean_of_one_curve_is_itself),
        cmocka_unit_test(the_mean_begins_with_the_last_curve_and_extends_ended_ones),
        cmocka_unit_test(points_at_the_same_time_are_handled),
    };
    return cmocka_run_group_tests(tests, enter_home, leave_home);
}
