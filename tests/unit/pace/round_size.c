/* Sizes of rounds that are drawn (--straggler-batch). */
#include "pace/round_size.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { WORKERS = 10, ROUNDS = 2000, ORDERED = 60 };

static at_round_size parse(const char *text)
{
    at_round_size size;
    at_fail       fail = {0};
    if (at_round_size_parse(text, 5, WORKERS, &size, &fail)) fail_msg("%s", fail.text);
    return size;
}

static void without_a_law_rounds_are_as_ordered(void **state)
{
    (void)state;
    at_round_size zeroed = {0}, none = parse("none"), null = parse(NULL);
    assert_int_equal(at_round_size_draw(&zeroed, 3, 7, ORDERED), ORDERED);
    assert_int_equal(at_round_size_draw(&none, 3, 7, ORDERED), ORDERED);
    assert_int_equal(at_round_size_draw(&null, 3, 7, 1), 1);
    assert_int_equal(at_round_size_max(&none, ORDERED), ORDERED);
}

static void bernoulli_has_two_sizes_with_its_probability(void **state)
{
    (void)state;
    at_round_size size = parse("bernoulli:0.8,1");
    double        whole = 0;
    for (uint32_t w = 1; w <= WORKERS; w++)
        for (uint64_t r = 0; r < ROUNDS; r++) {
            uint32_t drawn = at_round_size_draw(&size, w, r, ORDERED);
            assert_true(drawn == ORDERED || drawn == 1);
            whole += drawn == ORDERED;
        }
    assert_true(fabs(whole / (WORKERS * ROUNDS) - 0.8) < 0.01); /* 3.5 deviations */
    size = parse("bernoulli:0,100");
    assert_int_equal(at_round_size_draw(&size, 1, 0, ORDERED), ORDERED); /* never more */
    assert_int_equal(at_round_size_max(&size, ORDERED), ORDERED);
}

static void gauss_has_its_mean_and_deviation(void **state)
{
    (void)state;
    at_round_size size = parse("gauss:10");
    double        sum = 0, squares = 0, count = WORKERS * ROUNDS;
    assert_int_equal(at_round_size_max(&size, ORDERED), ORDERED + 50);
    for (uint32_t w = 1; w <= WORKERS; w++)
        for (uint64_t r = 0; r < ROUNDS; r++) {
            uint32_t drawn = at_round_size_draw(&size, w, r, ORDERED);
            assert_true(drawn >= 10 && drawn <= ORDERED + 50);
            sum += drawn;
            squares += (double)drawn * drawn;
        }
    double mean = sum / count, deviation = sqrt(squares / count - mean * mean);
    assert_true(fabs(mean - ORDERED) < 0.3);
    assert_true(fabs(deviation - 10) < 0.3);
    size = parse("gauss:1000"); /* half of them would be negative */
    for (uint64_t r = 0; r < 100; r++) assert_true(at_round_size_draw(&size, 1, r, 2) >= 1);
}

static void rotate_gives_one_worker_after_the_other_the_whole_round(void **state)
{
    (void)state;
    at_round_size size = parse("rotate");
    for (uint64_t r = 0; r < 3 * WORKERS; r++)
        for (uint32_t w = 1; w <= WORKERS; w++)
            assert_int_equal(at_round_size_draw(&size, w, r, ORDERED),
                             r % WORKERS == w - 1 ? ORDERED : 1);
}

static void a_size_depends_on_seed_worker_and_round_only(void **state)
{
    (void)state;
    at_round_size size = parse("gauss:10"), other = size;
    uint32_t      differs = 0;
    other.seed = 6;
    for (uint64_t r = 0; r < 100; r++) {
        uint32_t drawn = at_round_size_draw(&size, 2, r, ORDERED);
        assert_int_equal(at_round_size_draw(&size, 2, r, ORDERED), drawn);
        differs += at_round_size_draw(&other, 2, r, ORDERED) != drawn;
        differs += at_round_size_draw(&size, 3, r, ORDERED) != drawn;
    }
    assert_true(differs > 150);
}

static void invalid_laws_are_refused_with_the_syntax(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",          "gauss",           "gauss:",          "gauss:-1",         "gauss:x",
        "gauss:1e9", "bernoulli",       "bernoulli:",      "bernoulli:0.5",    "bernoulli:2,1",
        "rotate:1",  "bernoulli:0.5,0", "bernoulli:0.5,x", "bernoulli:-0.1,1", "bernoulli:.5,1,2",
        "poisson:3", "gauss:nan",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        at_round_size size;
        at_fail       fail = {0};
        assert_int_equal(at_round_size_parse(wrong[i], 1, 2, &size, &fail), AT_ERR_USAGE);
        assert_non_null(strstr(fail.text, "--straggler-batch"));
        assert_non_null(strstr(fail.hint, "bernoulli:P,N"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_law_rounds_are_as_ordered),
        cmocka_unit_test(bernoulli_has_two_sizes_with_its_probability),
        cmocka_unit_test(gauss_has_its_mean_and_deviation),
        cmocka_unit_test(rotate_gives_one_worker_after_the_other_the_whole_round),
        cmocka_unit_test(a_size_depends_on_seed_worker_and_round_only),
        cmocka_unit_test(invalid_laws_are_refused_with_the_syntax),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
