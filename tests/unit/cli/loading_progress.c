/* The progress line while a data set is read. */
#include "cli/loading_progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char printed[256];

/* Reports progress to a line that is due (or not yet) and captures what it prints to stderr. */
static void report(bool quiet, bool due, uint64_t done, uint64_t total)
{
    at_loading_line line;
    FILE           *file = tmpfile();
    int             saved = dup(STDERR_FILENO);
    assert_non_null(file);
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    at_loading_line_init(&line, "a-set", quiet);
    if (due) line.due = 0, line.began -= AT_SEC(30);
    at_load_progress_report(&line.loading, done, total);
    at_load_progress_report(&line.loading, done, total); /* too early for another line */
    at_loading_line_end(&line);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(file);
    printed[fread(printed, 1, sizeof printed - 1, file)] = '\0';
    fclose(file);
}

static void a_short_wait_prints_nothing(void **state)
{
    (void)state;
    report(false, false, 1, 2);
    assert_string_equal(printed, "");
}

static void a_long_wait_prints_a_line_from_time_to_time(void **state)
{
    (void)state;
    report(false, true, 30, 120);
    assert_string_equal(printed, "anytime: reading a-set, 25 %, about 1min30 left\n");
    report(false, true, 30, 0); /* the total is unknown */
    assert_string_equal(printed, "anytime: reading a-set\n");
}

static void quiet_prints_nothing(void **state)
{
    (void)state;
    report(true, true, 1, 2);
    assert_string_equal(printed, "");
    at_load_progress_report(NULL, 1, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_wait_prints_nothing),
        cmocka_unit_test(a_long_wait_prints_a_line_from_time_to_time),
        cmocka_unit_test(quiet_prints_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
