#include "report/page/html.h"

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
#include "report/page/page.h"
#include "report/summary/table.h"

static char home[] = "/tmp/anytime-html-XXXXXX";

static int enter_home(void **state)
{
    (void)state;
    return !mkdtemp(home) || chdir(home);
}

static int leave_home(void **state)
{
    (void)state;
    unlink("report.html");
    return chdir("/") || rmdir(home);
}

static char *write_page(const char *title, json_t *data)
{
    at_fail        fail = {0};
    unsigned char *bytes;
    size_t         size;
    if (at_html_write("report.html", title, data, &fail)) fail_msg("%s", fail.text);
    if (at_file_read("report.html", 1 << 24, &bytes, &size, &fail)) fail_msg("%s", fail.text);
    json_decref(data);
    return (char *)bytes;
}

static size_t count(const char *text, const char *word)
{
    size_t found = 0;
    for (; (text = strstr(text, word)); text += strlen(word)) found++;
    return found;
}

static void data_cannot_end_their_element(void **state)
{
    (void)state;
    char *plain = write_page("title", json_pack("{s:[s]}", "runs", "plain"));
    char *evil =
        write_page("</title><script>", json_pack("{s:[s]}", "runs", "</script><!--<script>"));
    assert_int_equal(count(evil, "</script"), count(plain, "</script"));
    assert_int_equal(count(evil, "<script"), count(plain, "<script"));
    assert_int_equal(count(evil, "<!--"), 0);
    assert_non_null(strstr(evil, "\\u003c/script>\\u003c!--\\u003cscript>"));
    assert_non_null(strstr(evil, "<title>&lt;/title>&lt;script></title>"));
    free(plain);
    free(evil);
}

static void data_are_read_back_unchanged(void **state)
{
    (void)state;
    json_t *data = json_pack("{s:[{s:s, s:i}]}", "runs", "label", "a <b> & \"c\" \xc3\xa4", "n", 7);
    char   *page = write_page("title", json_incref(data));
    char   *text = strstr(page, "id=\"data\">");
    assert_non_null(text);
    json_t *back = json_loads(text + strlen("id=\"data\">"), JSON_DISABLE_EOF_CHECK, NULL);
    assert_true(json_equal(data, back));
    json_decref(back);
    json_decref(data);
    free(page);
}

static void the_page_is_complete_and_self_contained(void **state)
{
    (void)state;
    char *page = write_page("title", json_pack("{s:[]}", "runs"));
    assert_null(strstr(page, "{{title}}"));
    assert_null(strstr(page, "{{data}}"));
    assert_null(strstr(page, "{{scripts}}"));
    assert_null(strstr(page, "<script src"));
    assert_null(strstr(page, "<link rel=\"stylesheet\""));
    assert_non_null(strstr(page, "default-src 'none'"));
    assert_true(count(page, "<script") >= 8);
    free(page);
}

static void markdown_tables_escape_markup(void **state)
{
    (void)state;
    char      text[400];
    at_fail   fail = {0};
    at_table *table =
        at_table_new((const at_column[]){{"run", AT_ALIGN_LEFT}, {"s", AT_ALIGN_RIGHT}}, 2);
    FILE *file = fmemopen(text, sizeof text, "w");
    at_table_add(table, "a|b_*<i>");
    at_table_add(table, "%.1f", 1.5);
    assert_int_equal(at_table_print_markdown(table, file, &fail), AT_OK);
    fclose(file);
    assert_string_equal(text, "| run | s |\n|:---|---:|\n| a\\|b\\_\\*\\<i\\> | 1.5 |\n");
    at_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_cannot_end_their_element),
        cmocka_unit_test(data_are_read_back_unchanged),
        cmocka_unit_test(the_page_is_complete_and_self_contained),
        cmocka_unit_test(markdown_tables_escape_markup),
    };
    return cmocka_run_group_tests(tests, enter_home, leave_home);
}
