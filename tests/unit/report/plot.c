#include "report/plot/plot.h"

#include <dirent.h>
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
#include "report/plot/gnuplot.h"

static char home[] = "/tmp/anytime-plot-XXXXXX";

static int enter_home(void **state)
{
    (void)state;
    return !mkdtemp(home) || chdir(home);
}

static int empty_home(void **state)
{
    (void)state;
    DIR *folder = opendir(".");
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) unlink(entry->d_name);
    closedir(folder);
    return 0;
}

static int leave_home(void **state)
{
    (void)state;
    return chdir("/") || rmdir(home);
}

static char *read_text(const char *path)
{
    unsigned char *bytes;
    size_t         size;
    at_fail        fail = {0};
    if (at_file_read(path, 1 << 24, &bytes, &size, &fail)) fail_msg("%s", fail.text);
    return (char *)bytes;
}

static void check_contains(const char *path, const char *part)
{
    char *text = read_text(path);
    if (!strstr(text, part)) fail_msg("%s lacks %s", path, part);
    free(text);
}

static void check_lacks(const char *path, const char *part)
{
    char *text = read_text(path);
    if (strstr(text, part)) fail_msg("%s has %s", path, part);
    free(text);
}

static at_err write_plot(const at_plot *plot, const char *folder, at_fail *fail)
{
    at_named_plot named = {.name = "p", .plot = *plot, .alone = true};
    return at_plot_write_all(&named, 1, NULL, 0, folder, fail);
}

static void check_draws(const at_plot *plot)
{
    at_fail fail = {0};
    if (write_plot(plot, ".", &fail)) fail_msg("%s", fail.text);
    char *png = read_text("p.png");
    assert_memory_equal(png, "\x89PNG", 4);
    free(png);
    check_contains("p.svg", "</svg>");
}

static const double XS[] = {0, 1, 2, 3}, YS[] = {1, 0.5, 0.25, 0.125}, ZS[] = {2, NAN, 1, INFINITY};

static void a_plot_writes_data_script_and_both_images(void **state)
{
    (void)state;
    const at_series series[] = {{"fmb", XS, YS, 4}, {"amb, \"timed\"", XS, ZS, 4}};
    at_plot         plot = {.title = "loss",
                            .x_label = "time (s)",
                            .y_label = "loss",
                            .series = series,
                            .series_count = 2};
    check_draws(&plot);
    char *csv = read_text("p.csv");
    assert_string_equal(csv, "series,x,y,name\n"
                             "1,0,1,fmb\n1,1,0.5,fmb\n1,2,0.25,fmb\n1,3,0.125,fmb\n"
                             "2,0,2,\"amb, \"\"timed\"\"\"\n2,1,NaN,\"amb, \"\"timed\"\"\"\n"
                             "2,2,1,\"amb, \"\"timed\"\"\"\n2,3,NaN,\"amb, \"\"timed\"\"\"\n");
    free(csv);
    check_contains("p.svg", "time (s)");
    check_contains("p.svg", "amb, \"timed\"");
}

static void the_script_can_be_run_again(void **state)
{
    (void)state;
    const at_series series = {"one", XS, YS, 4};
    at_fail         fail = {0};
    check_draws(&(at_plot){.series = &series, .series_count = 1});
    assert_int_equal(unlink("p.png"), 0);
    assert_int_equal(at_gnuplot_run(".", (const char *[]){"p"}, 1, &fail), AT_OK);
    assert_int_equal(access("p.png", R_OK), 0);
}

static void names_and_titles_are_never_commands(void **state)
{
    (void)state;
    static const char *const hostile[] = {
        "it's_a^{test}",
        "'; system('touch owned'); '",
        "`touch owned`",
        "$(touch owned)",
        "\"; system \"touch owned\"",
        "a\nsystem 'touch owned'\n",
        "back\\slash\\",
        "@XS #comment",
        "%s%n",
        "'`touch owned`'",
        "\xff\xfe\xc3",
        "q''''",
        "\\\nsystem 'touch owned'",
        "",
    };
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        const at_series series[] = {{hostile[i], XS, YS, 4}, {hostile[i], XS, YS, 2}};
        check_draws(&(at_plot){.title = hostile[i],
                               .x_label = hostile[i],
                               .y_label = hostile[i],
                               .series = series,
                               .series_count = 2});
        if (access("owned", F_OK) == 0) fail_msg("'%s' was run", hostile[i]);
    }
}

static void markup_in_titles_is_literal(void **state)
{
    (void)state;
    const at_series series = {"step_seconds^2", XS, YS, 4};
    check_draws(
        &(at_plot){.title = "a_b{c}", .legend = true, .series = &series, .series_count = 1});
    check_contains("p.svg", "a_b{c}");
    check_contains("p.svg", "step_seconds^2");
}

static void logarithmic_axes_skip_nonpositive_values(void **state)
{
    (void)state;
    static const double xs[] = {0, 1, 10, 100}, ys[] = {5, -1, 0.1, 1e-4};
    const at_series     series = {"log", xs, ys, 4};
    check_draws(&(at_plot){.x_log = true, .y_log = true, .series = &series, .series_count = 1});
    static const double bad[] = {0, -1, -2, -3};
    const at_series     none = {"none", xs, bad, 4};
    at_plot             plot = {.y_log = true, .series = &none, .series_count = 1};
    assert_false(at_plot_has_points(&plot));
    plot.y_log = false;
    assert_true(at_plot_has_points(&plot));
}

static void single_points_and_constant_lines_are_drawn(void **state)
{
    (void)state;
    static const double same[] = {3, 3, 3, 3};
    const at_series series[] = {{"point", XS, same, 1}, {"line", XS, same, 4}, {"no", XS, XS, 0}};
    check_draws(&(at_plot){.series = series, .series_count = 3});
    check_draws(&(at_plot){.series = series, .series_count = 1});
}

static void extreme_values_are_drawn_or_skipped(void **state)
{
    (void)state;
    static const double huge[][4] = {{-1e300, 1e300, 0, 2}, {1e308, -1e308, 1, 1},
                                     {1e-300, 1e300, 1, 3}, {1e-100, 1e100, -1e100, 1},
                                     {5e-324, 1, 2, 3},     {1, 1.0001, 1, 1}};
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        const at_series series = {"huge", XS, huge[i], 4};
        check_draws(&(at_plot){.series = &series, .series_count = 1});
        check_draws(&(at_plot){.y_log = true, .series = &series, .series_count = 1});
    }
}

static void long_series_are_downsampled_in_the_image_only(void **state)
{
    (void)state;
    enum { POINTS = 50000 };
    double *x = malloc(POINTS * sizeof *x), *y = malloc(POINTS * sizeof *y);
    assert_true(x && y);
    for (int i = 0; i < POINTS; i++) x[i] = i, y[i] = sin(i / 1000.0);
    const at_series series = {"wave", x, y, POINTS};
    check_draws(&(at_plot){.series = &series, .series_count = 1});
    char *svg = read_text("p.svg");
    assert_true(strlen(svg) < 200000);
    free(svg);
    check_contains("p.csv", "\n1,49999,");
    free(x);
    free(y);
}

static void nothing_to_draw_writes_nothing(void **state)
{
    (void)state;
    static const double nans[] = {NAN, NAN};
    const at_series     series = {"empty", XS, nans, 2};
    at_fail             fail = {0};
    at_plot             plot = {.series = &series, .series_count = 1};
    assert_int_equal(write_plot(&plot, ".", &fail), AT_OK);
    assert_int_equal(access("p.csv", F_OK), -1);
    plot.series_count = 0;
    assert_int_equal(write_plot(&plot, ".", &fail), AT_OK);
    assert_int_equal(access("p.csv", F_OK), -1);
}

static void a_missing_folder_is_an_error(void **state)
{
    (void)state;
    const at_series series = {"one", XS, YS, 4};
    at_fail         fail = {0};
    at_plot         plot = {.series = &series, .series_count = 1};
    assert_int_equal(write_plot(&plot, "nowhere", &fail), AT_ERR_IO);
    assert_non_null(strstr(fail.text, "nowhere/p.csv"));
    assert_int_equal(at_gnuplot_run("nowhere", (const char *[]){"p"}, 1, &fail), AT_ERR_FAILED);
}

static void without_gnuplot_data_and_script_remain_and_a_hint_is_given(void **state)
{
    (void)state;
    const at_series series = {"one", XS, YS, 4};
    at_fail         fail = {0};
    at_plot         plot = {.series = &series, .series_count = 1};
    char           *path = strdup(getenv("PATH"));
    setenv("PATH", home, 1);
    at_err err = write_plot(&plot, ".", &fail);
    setenv("PATH", path, 1);
    free(path);
    assert_int_equal(err, AT_ERR_MISSING);
    assert_non_null(strstr(fail.hint, "gnuplot-nox"));
    assert_int_equal(access("p.csv", R_OK), 0);
    assert_int_equal(access("p.gp", R_OK), 0);
    assert_int_equal(access("p.png", F_OK), -1);
}

/* ---- histograms, units, sheets ------------------------------------------------------------- */

static void steps_are_filled_and_show_their_means(void **state)
{
    (void)state;
    static const double means[] = {1.5, NAN};
    const at_series     series[] = {{"fmb", XS, YS, 4}, {"amb", XS, YS, 4}};
    at_plot plot = {.kind = AT_PLOT_STEPS, .series = series, .series_count = 2, .mean = means};
    check_draws(&plot);
    check_contains("p.gp", "with fillsteps");
    check_contains("p.gp", "set arrow from first 1.5, graph 0 to first 1.5, graph 1 nohead");
    check_contains("p.svg", "mean");
    char *script = read_text("p.gp");
    assert_null(strstr(strstr(script, "set arrow") + 1, "set arrow"));
    free(script);
}

static void a_mean_beyond_the_axis_is_not_drawn(void **state)
{
    (void)state;
    const double    means[] = {1e9};
    const at_series series = {"one", XS, YS, 4};
    check_draws(
        &(at_plot){.kind = AT_PLOT_STEPS, .series = &series, .series_count = 1, .mean = means});
    check_lacks("p.gp", "set arrow");
}

static void times_are_drawn_in_a_suitable_unit_and_stored_in_seconds(void **state)
{
    (void)state;
    static const struct {
        double      scale;
        const char *label, *rate;
    } cases[] = {{1, "time (s)", "density (1/s)"},
                 {1e-2, "time (ms)", "density (1/ms)"},
                 {1e-5, "time (\u00b5s)", "density (1/\u00b5s)"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double    xs[] = {0, cases[i].scale};
        const at_series series = {"one", xs, YS, 2};
        at_plot         plot = {.x_label = "time",
                                .y_label = "density",
                                .x_time = true,
                                .y_rate = true,
                                .series = &series,
                                .series_count = 1};
        char            row[64];
        check_draws(&plot);
        check_contains("p.svg", cases[i].label);
        check_contains("p.svg", cases[i].rate);
        snprintf(row, sizeof row, "\n1,%.10g,0.5,", cases[i].scale);
        check_contains("p.csv", row);
    }
}

static void integer_axes_have_no_ticks_between_integers(void **state)
{
    (void)state;
    static const double xs[] = {-0.5, -0.5, 0.5}, ys[] = {0, 100, 0};
    const at_series     series = {"one", xs, ys, 3};
    at_plot plot = {.kind = AT_PLOT_STEPS, .x_whole = true, .series = &series, .series_count = 1};
    check_draws(&plot);
    check_contains("p.gp", "set xtics 1\n");
}

static void a_sheet_draws_all_plots_and_notes_empty_ones(void **state)
{
    (void)state;
    const at_series     series = {"it's `fmb`", XS, YS, 4}, none = {"it's `fmb`", XS, YS, 0};
    const at_named_plot plots[] = {
        {.name = "a", .heading = "A_1", .plot = {.series = &series, .series_count = 1}},
        {.name = "b",
         .heading = "B_2",
         .plot = {.series = &none, .series_count = 1, .note = "not 'recorded'"}},
        {.name = "c",
         .heading = "C_3",
         .alone = true,
         .plot = {.series = &series, .series_count = 1}}};
    const at_sheet sheets[] = {
        {.name = "all", .title = "of 'all'", .plots = plots, .count = 3, .columns = 2},
        {.name = "nothing", .title = "", .plots = plots + 1, .count = 1, .columns = 1}};
    at_fail fail = {0};
    if (at_plot_write_all(plots, 3, sheets, 2, ".", &fail)) fail_msg("%s", fail.text);
    static const char *const words[] = {"A_1", "B_2", "C_3", "recorded", "of \u2019all"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) check_contains("all.svg", words[i]);
    static const char *const there[] = {"all.gp", "all.png", "a.csv", "c.csv", "c.gp", "c.png"};
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        assert_int_equal(access(there[i], R_OK), 0);
    static const char *const absent[] = {"a.gp", "a.png", "b.csv", "nothing.gp", "nothing.png"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        assert_int_equal(access(absent[i], F_OK), -1);
}

static void a_script_error_is_reported_with_the_output_of_gnuplot(void **state)
{
    (void)state;
    at_fail fail = {0};
    assert_int_equal(at_file_write("bad.gp", "no such command\n", 16, &fail), AT_OK);
    assert_int_equal(at_gnuplot_run(".", (const char *[]){"bad"}, 1, &fail), AT_ERR_FAILED);
    assert_non_null(strstr(fail.text, "invalid command"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, NULL, empty_home)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_plot_writes_data_script_and_both_images),
        TEST(the_script_can_be_run_again),
        TEST(names_and_titles_are_never_commands),
        TEST(markup_in_titles_is_literal),
        TEST(logarithmic_axes_skip_nonpositive_values),
        TEST(single_points_and_constant_lines_are_drawn),
        TEST(extreme_values_are_drawn_or_skipped),
        TEST(long_series_are_downsampled_in_the_image_only),
        TEST(nothing_to_draw_writes_nothing),
        TEST(a_missing_folder_is_an_error),
        TEST(without_gnuplot_data_and_script_remain_and_a_hint_is_given),
        TEST(steps_are_filled_and_show_their_means),
        TEST(a_mean_beyond_the_axis_is_not_drawn),
        TEST(times_are_drawn_in_a_suitable_unit_and_stored_in_seconds),
        TEST(integer_axes_have_no_ticks_between_integers),
        TEST(a_sheet_draws_all_plots_and_notes_empty_ones),
        TEST(a_script_error_is_reported_with_the_output_of_gnuplot),
    };
    return cmocka_run_group_tests(tests, enter_home, leave_home);
}
