/* The line that shows how far reading is. */
#include "cli/loading_progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char said[256];

/* Tells a line whose time has come (or not yet), and catches what it says on stderr. */
static void tell(bool quiet, bool due, uint64_t done, uint64_t total)
{
    at_loading_line line;
    FILE           *file = tmpfile();
    int             saved = dup(STDERR_FILENO);
    assert_non_null(file);
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    at_loading_line_init(&line, "a-set", quiet);
    if (due) line.due = 0;
    at_load_progress_report(&line.loading, done, total);
    at_load_progress_report(&line.loading, done, total); /* too soon for another one */
    at_loading_line_end(&line);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(file);
    said[fread(said, 1, sizeof said - 1, file)] = '\0';
    fclose(file);
}

static void a_short_wait_is_borne_in_silence(void **state)
{
    (void)state;
    tell(false, false, 1, 2);
    assert_string_equal(said, "");
}

static void a_long_one_is_told_once_in_a_while(void **state)
{
    (void)state;
    tell(false, true, 30, 120);
    assert_string_equal(said, "anytime: reading a-set, 25 %\n");
    tell(false, true, 30, 0); /* nobody knows how much there is */
    assert_string_equal(said, "anytime: reading a-set\n");
}

static void quiet_is_quiet(void **state)
{
    (void)state;
    tell(true, true, 1, 2);
    assert_string_equal(said, "");
    at_load_progress_report(NULL, 1, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_wait_is_borne_in_silence),
        cmocka_unit_test(a_long_one_is_told_once_in_a_while),
        cmocka_unit_test(quiet_is_quiet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
