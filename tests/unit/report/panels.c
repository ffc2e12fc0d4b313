#include "report/plot/panels.h"

#include <dirent.h>
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

static char home[] = "/tmp/anytime-panels-XXXXXX";

static int enter_home(void **state)
{
    (void)state;
    return !mkdtemp(home) || chdir(home);
}

static void empty_folder(const char *path)
{
    char name[600];
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.') continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        unlink(name);
    }
    closedir(folder);
}

static int make_folders(void **state)
{
    (void)state;
    at_fail fail;
    return at_file_make_folder("run", &fail) || at_file_make_folder("out", &fail);
}

static int remove_folders(void **state)
{
    (void)state;
    empty_folder("run");
    empty_folder("out");
    return rmdir("run") || rmdir("out");
}

static int leave_home(void **state)
{
    (void)state;
    return chdir("/") || rmdir(home);
}

static void write_text(const char *path, const char *text)
{
    at_fail fail = {0};
    if (at_file_write(path, text, strlen(text), &fail)) fail_msg("%s", fail.text);
}

#define HUB     "time,step,loss,learning_rate,test_loss,accuracy\n"
#define COLLECT "step,worker_count,wait_time,total_samples\n"
#define WORKER                                                                       \
    "time,master_step,rank,worker_step,worker_master_step,last_queued_update_count," \
    "num_samples,last_send,last_recv,last_exit,sleep_time,compute_time,master_wait_time\n"

static void write_run(double sleep)
{
    char rounds[600];
    write_text("run/master_stats.csv", HUB "0.5,1,2,0.1,,\n1,2,1,0.1,,\n0.5,1,,,2,0.5\n");
    write_text("run/collect_stats.csv", COLLECT "1,2,0.5,20\n2,2,0.5,30\n");
    snprintf(rounds, sizeof rounds,
             WORKER "0.5,0,1,0,0,0,10,0,0,0,%g,0.5,0\n"
                    "1,3,2,0,1,0,10,0,0,0,%g,0.5,0\n",
             sleep, sleep);
    write_text("run/worker_stats.csv", rounds);
}

static at_err draw(bool all, char *names, size_t size, at_fail *fail)
{
    const char *const   folders[] = {"run"};
    const at_panel_runs runs = {.label = "fmb", .folders = folders, .count = 1};
    at_panel_options    options = {
           .title = "a run", .folder = "out", .runs = &runs, .run_count = 1, .all = all};
    return at_panels_write(&options, names, size, fail);
}

static void check_file(const char *path, const char *wanted)
{
    unsigned char *bytes;
    size_t         size;
    at_fail        fail = {0};
    if (at_file_read(path, 1 << 24, &bytes, &size, &fail)) fail_msg("%s", fail.text);
    if (!strstr((char *)bytes, wanted)) fail_msg("%s lacks %s:\n%s", path, wanted, (char *)bytes);
    free(bytes);
}

static void panels_contain_the_values_of_the_csv_files(void **state)
{
    (void)state;
    char    names[600];
    at_fail fail = {0};
    write_run(0.25);
    if (draw(false, names, sizeof names, &fail)) fail_msg("%s", fail.text);
    assert_string_equal(names, "panels.png histograms.png loss-vs-time.png accuracy-vs-time.png "
                               "test-loss-vs-time.png");
    check_file("out/samples-vs-step.csv", "1,1,20,fmb\n1,2,50,fmb\n");
    check_file("out/time-vs-step.csv", "1,1,0.5,fmb\n1,2,1,fmb\n");
    check_file("out/staleness.csv", "1,-0.5,50,fmb\n"); /* one of 0, one of 2 */
    check_file("out/staleness.csv", "1,1.5,50,fmb\n");
    check_file("out/messages-per-step.csv", "1,1.5,100,fmb\n");
    check_file("out/panels.svg", "Induced delay");
    check_file("out/histograms.svg", "Time between steps");
    assert_int_equal(access("out/staleness.png", F_OK), -1);
}

static void every_panel_can_be_a_plot_of_its_own(void **state)
{
    (void)state;
    char    names[600];
    at_fail fail = {0};
    write_run(0.25);
    if (draw(true, names, sizeof names, &fail)) fail_msg("%s", fail.text);
    static const char *const panels[] = {
        "delay-density",    "compute-time",      "worker-batch", "loss-vs-time",
        "accuracy-vs-time", "samples-vs-step",   "loss-vs-step", "learning-rate-vs-step",
        "time-vs-step",     "staleness",         "wait-time",    "messages-per-step",
        "master-batch",     "test-loss-vs-time", "panels",       "histograms"};
    for (size_t i = 0; i < sizeof panels / sizeof *panels; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s.png", panels[i]);
        if (!strstr(names, path)) fail_msg("%s is not named in %s", path, names);
        snprintf(path, sizeof path, "out/%s.svg", panels[i]);
        check_file(path, "</svg>");
    }
}

static void a_run_without_delay_has_a_note(void **state)
{
    (void)state;
    char    names[600];
    at_fail fail = {0};
    write_run(0);
    if (draw(false, names, sizeof names, &fail)) fail_msg("%s", fail.text);
    check_file("out/panels.svg", "no induced delay");
    assert_int_equal(access("out/delay-density.csv", F_OK), -1);
}

static void csv_files_that_were_not_recorded_give_a_note(void **state)
{
    (void)state;
    char    names[600];
    at_fail fail = {0};
    write_run(0.25);
    assert_int_equal(unlink("run/worker_stats.csv"), 0);
    if (draw(false, names, sizeof names, &fail)) fail_msg("%s", fail.text);
    check_file("out/panels.svg", "not recorded (needs --record full)");
    check_file("out/histograms.svg", "Batch size per step");
}

static void a_run_that_recorded_nothing_has_no_plots(void **state)
{
    (void)state;
    char    names[600];
    at_fail fail = {0};
    assert_int_equal(draw(true, names, sizeof names, &fail), AT_OK);
    assert_string_equal(names, "");
    assert_int_equal(rmdir("out"), 0); /* it is empty */
    assert_int_equal(at_file_make_folder("out", &fail), AT_OK);
}

static void a_malformed_csv_file_is_rejected_with_its_line(void **state)
{
    (void)state;
    static const char *const bad[] = {"\n", "step\n1\n", COLLECT "1,2\n", COLLECT "1,x,1,1\n",
                                      COLLECT "1,2,0.5,20\n,,,,,,,\n1,2,0.5,2O\n"};
    char                     names[600];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        at_fail fail = {0};
        write_run(0.25);
        write_text("run/collect_stats.csv", bad[i]);
        assert_int_equal(draw(false, names, sizeof names, &fail), AT_ERR_FORMAT);
        assert_non_null(strstr(fail.text, "run/collect_stats.csv:"));
        assert_string_equal(names, "");
    }
    at_fail fail = {0};
    write_run(0.25);
    write_text("run/collect_stats.csv", ""); /* the disk was full before its first line */
    assert_int_equal(draw(false, names, sizeof names, &fail), AT_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folders, remove_folders)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(panels_contain_the_values_of_the_csv_files),
        TEST(every_panel_can_be_a_plot_of_its_own),
        TEST(a_run_without_delay_has_a_note),
        TEST(csv_files_that_were_not_recorded_give_a_note),
        TEST(a_run_that_recorded_nothing_has_no_plots),
        TEST(a_malformed_csv_file_is_rejected_with_its_line),
    };
    return cmocka_run_group_tests(tests, enter_home, leave_home);
}
