#include "world/sim/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 10000 }; /* several chunks */

typedef struct object {
    uint64_t number, filler[4];
} object;

static void objects_do_not_overlap(void **state)
{
    (void)state;
    static object *all[COUNT];
    at_pool        pool = {.size = sizeof(object)};
    for (uint64_t i = 0; i < COUNT; i++) {
        all[i] = at_pool_take(&pool);
        assert_non_null(all[i]);
        assert_int_equal((uintptr_t)all[i] % 8, 0);
        memset(all[i], (int)(i % 251), sizeof *all[i]);
        all[i]->number = i;
    }
    for (uint64_t i = 0; i < COUNT; i++) {
        assert_int_equal(all[i]->number, i);
        assert_int_equal(all[i]->filler[3] & 255, i % 251);
    }
    at_pool_deinit(&pool);
    assert_null(pool.chunks);
}

static void what_was_given_back_last_is_taken_first(void **state)
{
    (void)state;
    at_pool pool = {.size = sizeof(object)};
    object *a = at_pool_take(&pool), *b = at_pool_take(&pool);
    at_pool_give(&pool, a);
    at_pool_give(&pool, NULL);
    at_pool_give(&pool, b);
    assert_ptr_equal(at_pool_take(&pool), b);
    assert_ptr_equal(at_pool_take(&pool), a);
    object *c = at_pool_take(&pool);
    assert_true(c != a && c != b);
    at_pool_deinit(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_do_not_overlap),
        cmocka_unit_test(what_was_given_back_last_is_taken_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
