#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/link_stats.h"

#include <string.h>

static void names_can_be_written_to_any_file(void **state)
{
    (void)state;
    char name[AT_LINK_NAME_SIZE];
    at_link_name_set(name, "node-07.example.org");
    assert_string_equal(name, "node-07.example.org");
    at_link_name_set(name, "[fe80::7%eth0]:7000");
    assert_string_equal(name, "[fe80::7%eth0]:7000");
    at_link_name_set(name, "\"},\n,</script>\\ \xc3\xa4");
    assert_string_equal(name, "???????script?????");
    at_link_name_set(name, "");
    assert_string_equal(name, "");
}

static void long_names_are_cut(void **state)
{
    (void)state;
    char name[AT_LINK_NAME_SIZE], text[200];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    at_link_name_set(name, text);
    assert_int_equal(strlen(name), AT_LINK_NAME_SIZE - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_can_be_written_to_any_file),
        cmocka_unit_test(long_names_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
