#include "world/sim/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"

/* The heap does not look into entries; here they hold what the test expects. */
struct at_heap_entry {
    at_ns    at;
    uint64_t number;
};

static void put(at_heap *heap, at_heap_entry *entry, at_ns at, uint64_t number)
{
    *entry = (at_heap_entry){.at = at, .number = number};
    unsigned lane = (unsigned)(number * 7 % 5); /* two lanes and, more often, none */
    assert_true(at_heap_put(heap, at, entry, lane < AT_HEAP_LANES ? lane : AT_HEAP_NO_LANE));
}

/* Removes the first entry and checks that it comes after the last one. */
static at_heap_item take(at_heap *heap, at_heap_item last)
{
    at_ns        due = at_heap_due(heap);
    at_heap_item first = at_heap_take(heap);
    assert_int_equal(first.at, due);
    assert_int_equal(first.at, first.entry->at);
    assert_int_equal(first.birth, first.entry->number);
    assert_true(first.at > last.at || (first.at == last.at && first.birth > last.birth));
    return first;
}

static const at_heap_item BEFORE_ALL = {.at = -1};

static void an_empty_heap_is_never_due(void **state)
{
    (void)state;
    at_heap heap = {0};
    assert_int_equal(at_heap_due(&heap), AT_NEVER);
    at_heap_deinit(&heap);
}

static void the_earliest_entry_comes_first(void **state)
{
    (void)state;
    enum { COUNT = 5000 }; /* grows several times */
    static at_heap_entry entries[COUNT];
    at_heap              heap = {0};
    at_rng               rng = at_rng_stream(3, 0, 0, 0);
    for (uint64_t i = 0; i < COUNT; i++)
        put(&heap, &entries[i], (at_ns)(at_rng_uniform(&rng) * 1e9), i);
    at_heap_item last = BEFORE_ALL;
    for (int i = 0; i < COUNT; i++) last = take(&heap, last);
    assert_int_equal(at_heap_due(&heap), AT_NEVER);
    at_heap_deinit(&heap);
}

static void ties_are_broken_by_insertion_order(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    static at_heap_entry entries[COUNT];
    at_heap              heap = {0};
    for (uint64_t i = 0; i < COUNT; i++) put(&heap, &entries[i], (at_ns)(i % 7), i);
    at_heap_item last = BEFORE_ALL;
    for (int i = 0; i < COUNT; i++) last = take(&heap, last);
    at_heap_deinit(&heap);
}

/* As in a simulation: new entries are never earlier than the last one removed. */
static void order_holds_with_interleaved_insertion_and_removal(void **state)
{
    (void)state;
    enum { COUNT = 4000 };
    static at_heap_entry entries[COUNT];
    at_heap              heap = {0};
    at_rng               rng = at_rng_stream(4, 0, 0, 0);
    at_heap_item         last = BEFORE_ALL;
    for (uint64_t i = 0; i < COUNT; i++) {
        at_ns now = last.at > 0 ? last.at : 0;
        put(&heap, &entries[i], now + (at_ns)(at_rng_uniform(&rng) * 4), i);
        if (at_rng_uniform(&rng) < 0.45) last = take(&heap, last);
    }
    while (at_heap_due(&heap) != AT_NEVER) last = take(&heap, last);
    at_heap_deinit(&heap);
}

static void a_lane_takes_what_comes_in_order_and_shows_it(void **state)
{
    (void)state;
    enum { COUNT = 3000 }; /* grows, and wraps around */
    static at_heap_entry entries[COUNT];
    at_heap              heap = {0};
    at_heap_item         last = BEFORE_ALL;
    for (uint64_t i = 0; i < COUNT; i++) {
        entries[i] = (at_heap_entry){.at = (at_ns)i, .number = i};
        assert_true(at_heap_put(&heap, (at_ns)i, &entries[i], 1));
        if (i % 3 == 2) last = take(&heap, last);
    }
    assert_int_equal(heap.count, 0); /* all in the lane */
    assert_ptr_equal(at_heap_lane_entry(&heap, 1, 0), &entries[COUNT / 3]);
    assert_ptr_equal(at_heap_lane_entry(&heap, 1, 5), &entries[COUNT / 3 + 5]);
    assert_null(at_heap_lane_entry(&heap, 1, COUNT));
    assert_null(at_heap_lane_entry(&heap, 0, 0));
    while (at_heap_due(&heap) != AT_NEVER) last = take(&heap, last);
    assert_int_equal(last.birth, COUNT - 1);
    at_heap_deinit(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_heap_is_never_due),
        cmocka_unit_test(the_earliest_entry_comes_first),
        cmocka_unit_test(ties_are_broken_by_insertion_order),
        cmocka_unit_test(order_holds_with_interleaved_insertion_and_removal),
        cmocka_unit_test(a_lane_takes_what_comes_in_order_and_shows_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
