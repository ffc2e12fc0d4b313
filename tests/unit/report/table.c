#include "report/summary/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const at_column COLUMNS[] = {
    {"strategy", AT_ALIGN_LEFT}, {"seconds", AT_ALIGN_RIGHT}, {"note", AT_ALIGN_LEFT}};

static void check_prints(const at_table *table,
                         at_err (*print)(const at_table *, FILE *, at_fail *), const char *expected)
{
    char  *text = NULL;
    size_t size;
    FILE  *memory = open_memstream(&text, &size);
    assert_non_null(memory);
    assert_int_equal(print(table, memory, NULL), AT_OK);
    fclose(memory);
    assert_string_equal(text, expected);
    free(text);
}

static void columns_are_aligned_without_trailing_blanks(void **state)
{
    (void)state;
    at_table *table = at_table_new(COLUMNS, 3);
    at_table_add(table, "amb");
    at_table_add(table, "%.1f", 12.34);
    at_table_add(table, "fast");
    at_table_add(table, "async-timed");
    at_table_add(table, "%d", 1234567890);
    at_table_add(table, "a longer note");
    check_prints(table, at_table_print,
                 "strategy        seconds  note\n"
                 "──────────────────────────────────────\n"
                 "amb                12.3  fast\n"
                 "async-timed  1234567890  a longer note\n");
    at_table_free(table);
}

static void columns_with_nothing_in_them_can_be_dropped(void **state)
{
    (void)state;
    at_table                *table = at_table_new(COLUMNS, 3);
    static const char *const cells[] = {"amb", "-", "fast", "-", "-", "-"};
    for (size_t i = 0; i < 6; i++) at_table_add(table, "%s", cells[i]);
    at_table_drop_columns(table, "-");
    check_prints(table, at_table_print,
                 "strategy  note\n"
                 "──────────────\n"
                 "amb       fast\n"
                 "-         -\n");
    at_table_drop_columns(table, "fast"); /* not everywhere */
    check_prints(table, at_table_print_csv, "strategy,note\namb,fast\n-,-\n");
    at_table_free(table);
}

static void a_table_that_has_nothing_at_all_keeps_a_column(void **state)
{
    (void)state;
    at_table *table = at_table_new(COLUMNS, 3);
    at_table_drop_columns(table, "-"); /* without rows nothing is known about its columns */
    check_prints(table, at_table_print_csv, "strategy,seconds,note\n");
    for (size_t i = 0; i < 3; i++) at_table_add(table, "-");
    at_table_drop_columns(table, "-");
    check_prints(table, at_table_print_csv, "strategy\n-\n");
    at_table_free(table);
}

static void a_table_without_rows_has_heads_and_rule(void **state)
{
    (void)state;
    at_table *table = at_table_new(COLUMNS, 2);
    check_prints(table, at_table_print, "strategy  seconds\n─────────────────\n");
    check_prints(table, at_table_print_csv, "strategy,seconds\n");
    at_table_free(table);
    at_table_free(NULL);
}

static void text_is_measured_in_columns_not_bytes(void **state)
{
    (void)state;
    assert_int_equal(at_table_width(""), 0);
    assert_int_equal(at_table_width("abc"), 3);
    assert_int_equal(at_table_width("±µé"), 3);
    assert_int_equal(at_table_width("e\xcc\x81"), 1); /* e and a combining accent */
    assert_int_equal(at_table_width("速い"), 4);
    assert_int_equal(at_table_width("🙂"), 2);
    at_table *table = at_table_new(COLUMNS, 2);
    at_table_add(table, "größe");
    at_table_add(table, "1 ± 2");
    at_table_add(table, "速い");
    at_table_add(table, "3");
    check_prints(table, at_table_print,
                 "strategy  seconds\n"
                 "─────────────────\n"
                 "größe       1 ± 2\n"
                 "速い            3\n");
    at_table_free(table);
}

static void control_characters_do_not_reach_the_terminal(void **state)
{
    (void)state;
    at_table *table = at_table_new(COLUMNS, 1);
    at_table_add(table, "%s", "a\x1b[31mb\nc\td");
    at_table_add(table, "%s", "\xff\xc3|\xe2\x82|\xed\xa0\x80|\xc0\x80|\xc2\x9b");
    check_prints(table, at_table_print,
                 "strategy\n"
                 "──────────────\n"
                 "a?[31mb?c?d\n"
                 "??|??|???|??|?\n");
    at_table_free(table);
}

static void an_incomplete_last_row_is_printed(void **state)
{
    (void)state;
    at_table *table = at_table_new(COLUMNS, 3);
    at_table_add(table, "amb");
    check_prints(table, at_table_print,
                 "strategy  seconds  note\n"
                 "───────────────────────\n"
                 "amb\n");
    check_prints(table, at_table_print_csv, "strategy,seconds,note\namb\n");
    at_table_free(table);
}

static at_err print_in_ten_columns(const at_table *table, FILE *file, at_fail *fail)
{
    return at_table_print_in(table, file, 10, fail);
}

static void a_table_that_is_too_wide_has_a_line_per_cell(void **state)
{
    (void)state;
    at_table *table =
        at_table_new((const at_column[]){{"worker", AT_ALIGN_LEFT}, {"used", AT_ALIGN_RIGHT}}, 2);
    at_table_add(table, "1");
    at_table_add(table, "256");
    at_table_add(table, "all");
    at_table_add(table, " ");
    check_prints(table, print_in_ten_columns,
                 "worker    1\n"
                 "  used    256\n"
                 "worker    all\n");
    at_table_free(table);
}

static at_err print_in_24_columns(const at_table *table, FILE *file, at_fail *fail)
{
    return at_table_print_in(table, file, 24, fail);
}

/* Process, and three numbers of which two fit beside it. */
static at_table *processes(const char *first, const char *second)
{
    static const at_column columns[] = {{"process", AT_ALIGN_LEFT},
                                        {"memory", AT_ALIGN_RIGHT},
                                        {"sent", AT_ALIGN_RIGHT},
                                        {"received", AT_ALIGN_RIGHT}};
    at_table              *table = at_table_new(columns, 4);
    for (int i = 0; i < 6; i++) {
        at_table_add(table, i == 1 ? first : i == 2 ? second : "%d", i);
        at_table_add(table, "%d MB", i);
        at_table_add(table, "%d", 10 * i);
        at_table_add(table, "%d", 100 * i);
    }
    return table;
}

static void a_table_that_is_too_wide_is_folded_if_that_takes_fewer_lines(void **state)
{
    (void)state;
    at_table *table = processes("hub", "worker");
    check_prints(table, print_in_24_columns,
                 "process  memory  sent\n"
                 "─────────────────────\n"
                 "0          0 MB     0\n"
                 "hub        1 MB    10\n"
                 "worker     2 MB    20\n"
                 "3          3 MB    30\n"
                 "4          4 MB    40\n"
                 "5          5 MB    50\n"
                 "\n"
                 "process  received\n"
                 "─────────────────\n"
                 "0               0\n"
                 "hub           100\n"
                 "worker        200\n"
                 "3             300\n"
                 "4             400\n"
                 "5             500\n");
    at_table_free(table);
}

static void rows_with_the_same_beginning_need_more_columns_to_be_folded(void **state)
{
    (void)state;
    at_table *table = processes("same", "same");
    char     *text = NULL;
    size_t    size;
    FILE     *memory = open_memstream(&text, &size);
    assert_non_null(memory);
    assert_int_equal(at_table_print_in(table, memory, 26, NULL), AT_OK);
    fclose(memory);
    assert_non_null(strstr(text, "process  memory  sent\n"));
    assert_non_null(strstr(text, "\n\nprocess  memory  received\n"));
    free(text);
    at_table_free(table);
}

static void csv_fields_are_quoted_if_necessary(void **state)
{
    (void)state;
    at_table *table = at_table_new(COLUMNS, 3);
    at_table_add(table, "mix:1,2,3");
    at_table_add(table, "say \"hi\"");
    at_table_add(table, "two\nlines");
    at_table_add(table, " edge");
    at_table_add(table, "%g", 1.5);
    at_table_add(table, "%s", "");
    check_prints(table, at_table_print_csv,
                 "strategy,seconds,note\n"
                 "\"mix:1,2,3\",\"say \"\"hi\"\"\",\"two\nlines\"\n"
                 "\" edge\",1.5,\n");
    at_table_free(table);
}

static void many_rows_are_kept(void **state)
{
    (void)state;
    at_table *table = at_table_new(COLUMNS, 2);
    for (int i = 0; i < 1000; i++) {
        at_table_add(table, "row %d", i);
        at_table_add(table, "%d", i * i);
    }
    char  *text = NULL;
    size_t size;
    FILE  *memory = open_memstream(&text, &size);
    assert_non_null(memory);
    assert_int_equal(at_table_print(table, memory, NULL), AT_OK);
    fclose(memory);
    assert_non_null(strstr(text, "\nrow 999    998001\n"));
    free(text);
    at_table_free(table);
}

static void a_full_disk_is_reported(void **state)
{
    (void)state;
    at_fail   fail = {0};
    at_table *table = at_table_new(COLUMNS, 2);
    FILE     *full = fopen("/dev/full", "w");
    assert_non_null(full);
    assert_int_equal(at_table_print(table, full, &fail), AT_ERR_IO);
    assert_true(fail.text[0]);
    assert_int_equal(at_table_print_csv(table, full, &fail), AT_ERR_IO);
    fclose(full);
    at_table_free(table);
}

static void long_texts_are_wrapped_between_words(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
        size_t      columns;
    } rows[] = {{"one two three four", "one two three\n      four\n", 20},
                {"one two three four", "one two three four\n", 24},
                {"one two three four", "one two three four\n", 0},
                {"0123456789012345", "01234567890123\n      45\n", 20},
                {"größere Wörter äöü", "größere Wörter\n      äöü\n", 20}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char  *text = NULL;
        size_t size;
        FILE  *memory = open_memstream(&text, &size);
        assert_non_null(memory);
        at_table_print_wrapped(memory, rows[i].text, 6, rows[i].columns);
        fclose(memory);
        assert_string_equal(text, rows[i].expected);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_texts_are_wrapped_between_words),
        cmocka_unit_test(columns_are_aligned_without_trailing_blanks),
        cmocka_unit_test(columns_with_nothing_in_them_can_be_dropped),
        cmocka_unit_test(a_table_that_has_nothing_at_all_keeps_a_column),
        cmocka_unit_test(a_table_without_rows_has_heads_and_rule),
        cmocka_unit_test(text_is_measured_in_columns_not_bytes),
        cmocka_unit_test(control_characters_do_not_reach_the_terminal),
        cmocka_unit_test(an_incomplete_last_row_is_printed),
        cmocka_unit_test(a_table_that_is_too_wide_has_a_line_per_cell),
        cmocka_unit_test(a_table_that_is_too_wide_is_folded_if_that_takes_fewer_lines),
        cmocka_unit_test(rows_with_the_same_beginning_need_more_columns_to_be_folded),
        cmocka_unit_test(csv_fields_are_quoted_if_necessary),
        cmocka_unit_test(many_rows_are_kept),
        cmocka_unit_test(a_full_disk_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
