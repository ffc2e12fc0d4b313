#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "world/mpi/row_changes.h"

enum { PARAMS = 5000, VERSIONS = 60 };

static float vector[PARAMS];

static at_row_changes begin(uint64_t version)
{
    at_row_changes changes;
    at_fail        fail;
    memset(vector, 0, sizeof vector);
    assert_int_equal(at_row_changes_open(&changes, vector, PARAMS, version, &fail), AT_OK);
    return changes;
}

static void what_changed_since_any_version_gives_the_newest(void **state)
{
    (void)state;
    static float   old[VERSIONS][PARAMS];
    static at_pair pairs[PARAMS];
    size_t         count, known = 0;
    at_rng         rng = at_rng_stream(1, 0, 0, 0);
    at_row_changes changes = begin(0);
    for (uint64_t v = 0; v < VERSIONS; v++) {
        for (int i = 0; v > 0 && i < 20; i++)
            vector[at_rng_next(&rng) % PARAMS] += (float)at_rng_normal(&rng);
        if (v > 0) at_row_changes_publish(&changes, vector, v);
        memcpy(old[v], vector, sizeof vector);
    }
    for (uint64_t base = 0; base < VERSIONS; base++) {
        if (!at_row_changes_since(&changes, base, pairs, PARAMS, &count)) continue;
        known++;
        assert_true(count <= 20 * (VERSIONS - base));
        for (size_t i = 0; i < count; i++) old[base][pairs[i].index] = pairs[i].value;
        assert_memory_equal(old[base], vector, sizeof vector);
    }
    assert_int_equal(known, VERSIONS); /* 1200 changes fit into the log */
    at_row_changes_close(&changes);
}

static void a_weight_that_changes_twice_is_listed_once(void **state)
{
    (void)state;
    at_pair        pairs[4];
    size_t         count;
    at_row_changes changes = begin(7);
    vector[3] = 1;
    at_row_changes_publish(&changes, vector, 8);
    vector[3] = 2;
    vector[PARAMS - 1] = -0.0f;
    at_row_changes_publish(&changes, vector, 9);
    assert_true(at_row_changes_since(&changes, 7, pairs, 4, &count));
    assert_int_equal(count, 2);
    assert_true(pairs[0].index == 3 && pairs[0].value == 2);
    assert_int_equal(pairs[1].index, PARAMS - 1);
    assert_false(at_row_changes_since(&changes, 7, pairs, 1, &count)); /* no place for both */
    assert_true(at_row_changes_since(&changes, 9, pairs, 4, &count));
    assert_int_equal(count, 0);
    assert_false(at_row_changes_since(&changes, 6, pairs, 4, &count));  /* before it began */
    assert_false(at_row_changes_since(&changes, 10, pairs, 4, &count)); /* not published yet */
    at_row_changes_close(&changes);
}

static void a_log_that_overflows_starts_anew(void **state)
{
    (void)state;
    static at_pair pairs[PARAMS];
    size_t         count;
    at_row_changes changes = begin(0);
    for (size_t i = 0; i < PARAMS; i++) vector[i] = 1;
    at_row_changes_publish(&changes, vector, 1);
    assert_false(at_row_changes_since(&changes, 0, pairs, PARAMS, &count));
    vector[17] = 5;
    at_row_changes_publish(&changes, vector, 2);
    assert_true(at_row_changes_since(&changes, 1, pairs, PARAMS, &count));
    assert_int_equal(count, 1);
    assert_true(pairs[0].index == 17 && pairs[0].value == 5);
    at_row_changes_close(&changes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_changed_since_any_version_gives_the_newest),
        cmocka_unit_test(a_weight_that_changes_twice_is_listed_once),
        cmocka_unit_test(a_log_that_overflows_starts_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
