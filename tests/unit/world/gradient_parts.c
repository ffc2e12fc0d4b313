/* A gradient as several messages: every number is in exactly one of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "world/mpi/gradient_parts.h"

static void check_cut(size_t trained, size_t floats)
{
    at_gradient_parts parts = at_gradient_parts_cut(trained, floats);
    size_t            at = trained;
    assert_true(parts.count <= AT_PARTS_MAX);
    for (uint32_t i = 0; i < parts.early; i++) {
        at_slice part = at_gradient_part(&parts, i);
        assert_int_equal(part.first + part.count, at);
        assert_true(part.count >= AT_PART_FLOATS_MIN);
        at = part.first;
    }
    assert_int_equal(at, parts.count > 0 ? parts.front : trained);
    assert_true(parts.front >= 1);
    if (parts.count == 0) {
        assert_int_equal(parts.front, floats);
    } else if (floats > trained) {
        at_slice rest = at_gradient_part(&parts, parts.early);
        assert_int_equal(parts.count, parts.early + 1);
        assert_int_equal(rest.first, trained);
        assert_int_equal(rest.first + rest.count, floats);
    } else {
        assert_int_equal(parts.count, parts.early);
    }
}

static void every_number_is_in_exactly_one_message(void **state)
{
    (void)state;
    for (size_t part = 1; part < 80; part++)
        for (size_t more = 0; more < 3; more++) {
            size_t trained = part * AT_PART_FLOATS_MIN + more - 1;
            check_cut(trained, trained);
            check_cut(trained, trained + 1000);
        }
    check_cut((size_t)1 << 30, (size_t)1 << 30);
}

static void short_vectors_are_one_message(void **state)
{
    (void)state;
    assert_int_equal(at_gradient_parts_cut(1, 1).count, 0);
    assert_int_equal(at_gradient_parts_cut(2 * AT_PART_FLOATS_MIN - 1, 1 << 20).count, 0);
    assert_int_equal(at_gradient_parts_cut(2 * AT_PART_FLOATS_MIN, 1 << 20).count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_is_in_exactly_one_message),
        cmocka_unit_test(short_vectors_are_one_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
