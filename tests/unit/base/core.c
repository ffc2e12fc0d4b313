/* Errors, arenas, random streams and the clock. */
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void a_failure_has_code_sentence_and_hint(void **state)
{
    (void)state;
    at_fail fail = {0};
    assert_int_equal(at_fail_set(&fail, AT_ERR_IO, "try again", "%s: gone", "x"), AT_ERR_IO);
    assert_int_equal(fail.err, AT_ERR_IO);
    assert_string_equal(fail.text, "x: gone");
    assert_string_equal(fail.hint, "try again");
    assert_int_equal(at_fail_set(&fail, AT_ERR_USAGE, NULL, "no"), AT_ERR_USAGE);
    assert_string_equal(fail.hint, "");
    assert_int_equal(at_fail_set(NULL, AT_ERR_FAILED, "h", "no at_fail"), AT_ERR_FAILED);
}

static void a_wrapped_failure_has_its_context(void **state)
{
    (void)state;
    at_fail fail = {0};
    at_fail_set(&fail, AT_ERR_FORMAT, "hint", "bad number");
    assert_int_equal(at_fail_wrap(&fail, "line %d", 3), AT_ERR_FORMAT);
    assert_string_equal(fail.text, "line 3: bad number");
    assert_string_equal(fail.hint, "hint");
}

static void long_sentences_are_truncated(void **state)
{
    (void)state;
    char long_text[2000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    at_fail fail = {0};
    at_fail_set(&fail, AT_ERR_IO, long_text, "%s", long_text);
    assert_int_equal(strlen(fail.text), sizeof fail.text - 1);
    assert_int_equal(strlen(fail.hint), sizeof fail.hint - 1);
    at_fail_wrap(&fail, "%s", long_text);
    assert_int_equal(strlen(fail.text), sizeof fail.text - 1);
}

static void control_characters_do_not_reach_the_terminal(void **state)
{
    (void)state;
    at_fail fail = {0};
    at_fail_set(&fail, AT_ERR_FORMAT, "see\x07", "\x1b[31m\xc2\x9b\x7f \xc3\xa9\xc2\xb5");
    assert_string_equal(fail.text, "?[31m??? \xc3\xa9\xc2\xb5");
    assert_string_equal(fail.hint, "see?");
    at_fail_wrap(&fail, "a\rb");
    assert_string_equal(fail.text, "a?b: ?[31m??? \xc3\xa9\xc2\xb5");
}

static at_err try_twice(at_err first, int *reached)
{
    AT_TRY(first);
    ++*reached;
    return AT_OK;
}

static void try_returns_at_the_first_failure(void **state)
{
    (void)state;
    int reached = 0;
    assert_int_equal(try_twice(AT_ERR_IO, &reached), AT_ERR_IO);
    assert_int_equal(reached, 0);
    assert_int_equal(try_twice(AT_OK, &reached), AT_OK);
    assert_int_equal(reached, 1);
}

static void overflowing_sizes_are_detected(void **state)
{
    (void)state;
    size_t product = 0;
    assert_true(at_size_product(3, 5, &product));
    assert_int_equal(product, 15);
    assert_true(at_size_product(0, SIZE_MAX, &product));
    assert_int_equal(product, 0);
    assert_false(at_size_product(SIZE_MAX, 2, &product));
}

static void large_memory_is_aligned_and_writable(void **state)
{
    (void)state;
    const size_t sizes[] = {1, 63, 4096, (2 << 20) - 1, 2 << 20, (4 << 20) + 5};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *place = at_large_new(sizes[i]);
        assert_non_null(place);
        assert_int_equal((uintptr_t)place % 64, 0);
        memset(place, 7, sizes[i]);
        free(place);
    }
    assert_null(at_large_new(SIZE_MAX - 64));
}

static void an_arena_gives_zeroed_aligned_memory_until_it_is_full(void **state)
{
    (void)state;
    at_arena arena;
    assert_true(at_arena_init(&arena, 256));
    unsigned char *first = at_arena_get(&arena, 1, 1), *second = at_arena_get(&arena, 8, 8);
    assert_non_null(first);
    assert_int_equal((uintptr_t)first % 64, 0);
    assert_int_equal((uintptr_t)second % 64, 0);
    assert_true(second >= first + 1);
    for (int i = 0; i < 64; i++) assert_int_equal(second[i], 0);
    assert_null(at_arena_get(&arena, 129, 1));
    assert_null(at_arena_get(&arena, SIZE_MAX, 2));
    assert_null(at_arena_get(&arena, SIZE_MAX, 1));
    assert_non_null(at_arena_get(&arena, 128, 1)); /* a failed call takes nothing */
    assert_null(at_arena_get(&arena, 1, 1));
    at_arena_deinit(&arena);
    at_arena_deinit(&arena); /* accepts a zeroed arena */
    assert_false(at_arena_init(&arena, SIZE_MAX));
}

static void a_stream_is_a_function_of_its_four_numbers(void **state)
{
    (void)state;
    at_rng a = at_rng_stream(1, 2, AT_RNG_PURPOSE_PACE, 3),
           b = at_rng_stream(1, 2, AT_RNG_PURPOSE_PACE, 3);
    for (int i = 0; i < 100; i++) assert_int_equal(at_rng_next(&a), at_rng_next(&b));
    const at_rng others[] = {at_rng_stream(2, 2, AT_RNG_PURPOSE_PACE, 3),
                             at_rng_stream(1, 3, AT_RNG_PURPOSE_PACE, 3),
                             at_rng_stream(1, 2, AT_RNG_PURPOSE_NETWORK, 3),
                             at_rng_stream(1, 2, AT_RNG_PURPOSE_PACE, 4)};
    for (size_t i = 0; i < 4; i++) {
        at_rng same = at_rng_stream(1, 2, AT_RNG_PURPOSE_PACE, 3), other = others[i];
        assert_int_not_equal(at_rng_next(&same), at_rng_next(&other));
    }
}

static void uniform_draws_are_uniform_and_below_one(void **state)
{
    (void)state;
    at_rng rng = at_rng_stream(5, 0, AT_RNG_PURPOSE_TEST, 0);
    double sum = 0, square_sum = 0;
    int    count = 100000;
    for (int i = 0; i < count; i++) {
        double u = at_rng_uniform(&rng);
        assert_true(u >= 0 && u < 1);
        sum += u;
        square_sum += u * u;
    }
    assert_true(fabs(sum / count - 0.5) < 0.005);
    assert_true(fabs(square_sum / count - 1.0 / 3) < 0.005);
}

static void draws_below_a_bound_are_uniform(void **state)
{
    (void)state;
    at_rng rng = at_rng_stream(6, 0, AT_RNG_PURPOSE_TEST, 0);
    int    hits[7] = {0};
    for (int i = 0; i < 70000; i++) hits[at_rng_below(&rng, 7)]++;
    for (int i = 0; i < 7; i++) assert_in_range(hits[i], 9600, 10400);
    assert_int_equal(at_rng_below(&rng, 1), 0);
}

static void normal_draws_have_mean_0_and_variance_1_and_use_two_draws(void **state)
{
    (void)state;
    at_rng rng = at_rng_stream(7, 0, AT_RNG_PURPOSE_TEST, 0), twin = rng;
    double sum = 0, square_sum = 0, fourth_sum = 0;
    int    count = 200000;
    for (int i = 0; i < count; i++) {
        double z = at_rng_normal(&rng);
        assert_true(isfinite(z));
        sum += z;
        square_sum += z * z;
        fourth_sum += z * z * z * z;
        at_rng_next(&twin);
        at_rng_next(&twin);
    }
    assert_true(fabs(sum / count) < 0.01);
    assert_true(fabs(square_sum / count - 1) < 0.02);
    assert_true(fabs(fourth_sum / count - 3) < 0.1);
    assert_int_equal(rng.state, twin.state);
}

/* A child, because it was started after a time that is known. */
static void a_process_was_started_between_its_fork_and_now(void **state)
{
    (void)state;
    at_ns before = at_clock_now();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        at_ns start = at_clock_process_start();
        _exit(start < before ? 1 : start > at_clock_now() ? 2 : 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(at_clock_process_start() <= at_clock_now());
}

static void the_clock_is_monotonic_and_past_times_do_not_block(void **state)
{
    (void)state;
    at_ns before = at_clock_now();
    at_clock_sleep_until(0);
    at_clock_sleep_until(before);
    assert_true(at_clock_now() >= before);
    at_clock_sleep_until(before + 1000000);
    assert_true(at_clock_now() >= before + 1000000);
}

static void a_stamp_is_a_date(void **state)
{
    (void)state;
    char stamp[16];
    at_clock_stamp(stamp, sizeof stamp);
    assert_int_equal(strlen(stamp), 15);
    assert_int_equal(stamp[8], '-');
    assert_int_equal(strspn(stamp, "0123456789"), 8);
    assert_int_equal(strspn(stamp + 9, "0123456789"), 6);
    assert_true(at_clock_date() > 1.6e9); /* later than 2020 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_has_code_sentence_and_hint),
        cmocka_unit_test(a_wrapped_failure_has_its_context),
        cmocka_unit_test(long_sentences_are_truncated),
        cmocka_unit_test(control_characters_do_not_reach_the_terminal),
        cmocka_unit_test(try_returns_at_the_first_failure),
        cmocka_unit_test(overflowing_sizes_are_detected),
        cmocka_unit_test(large_memory_is_aligned_and_writable),
        cmocka_unit_test(an_arena_gives_zeroed_aligned_memory_until_it_is_full),
        cmocka_unit_test(a_stream_is_a_function_of_its_four_numbers),
        cmocka_unit_test(uniform_draws_are_uniform_and_below_one),
        cmocka_unit_test(draws_below_a_bound_are_uniform),
        cmocka_unit_test(normal_draws_have_mean_0_and_variance_1_and_use_two_draws),
        cmocka_unit_test(a_process_was_started_between_its_fork_and_now),
        cmocka_unit_test(the_clock_is_monotonic_and_past_times_do_not_block),
        cmocka_unit_test(a_stamp_is_a_date),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
