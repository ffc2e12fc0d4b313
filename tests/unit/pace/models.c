#include "pace/pace.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static at_pace *make(const char *model, const char *scale, uint32_t workers)
{
    at_pace *pace;
    at_fail  fail = {0};
    at_err   err = at_pace_new(&(at_pace_options){.model = model,
                                                  .scale = scale,
                                                  .seed = 11,
                                                  .workers = workers,
                                                  .round_ns_mean = AT_SEC(2),
                                                  .rounds_per_epoch = 10},
                               &pace, &fail);
    if (err) fail_msg("%s: %s", model, fail.text);
    return pace;
}

static void check_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%g is not within %g of %g", value, tolerance, expected);
}

typedef struct moments {
    double mean, sd, max_mean; /* max_mean: of the largest of all workers in a round */
} moments;

static moments sample(const at_pace *pace, uint32_t workers, uint64_t rounds)
{
    double sum = 0, square_sum = 0, max_sum = 0;
    for (uint64_t r = 0; r < rounds; r++) {
        double largest = 0;
        for (uint32_t w = 1; w <= workers; w++) {
            double s = at_seconds(at_pace_sleep(pace, w, r));
            sum += s;
            square_sum += s * s;
            largest = fmax(largest, s);
        }
        max_sum += largest;
    }
    double count = (double)rounds * workers, mean = sum / count;
    return (moments){.mean = mean,
                     .sd = sqrt(square_sum / count - mean * mean),
                     .max_mean = max_sum / (double)rounds};
}

/* By numerical integration; the published figures, from a simulation, agree to 0.6 %:
 * 1.00, 1.55 and 4.00 for niagara, .071, .085 and .224 for cedar. */
static void the_published_tables_have_their_published_moments(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        moments     expected;
        double      tolerance;
    } cases[] = {{"niagara", {0.9957, 1.5439, 4.0213}, 0.02},
                 {"cedar", {.07121, .08473, .22445}, .0015}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        at_pace *pace = make(cases[i].model, "1", 10);
        moments  got = sample(pace, 10, 40000);
        check_near(got.mean, cases[i].expected.mean, cases[i].tolerance);
        check_near(got.sd, cases[i].expected.sd, cases[i].tolerance);
        check_near(got.max_mean, cases[i].expected.max_mean, cases[i].tolerance);
        at_pace_free(pace);
    }
}

/* The mean that percentages of --straggler-scale refer to. At 50 % of rounds of 2 s every draw is
 * multiplied by 1 s / mean. */
static double mean_seconds(const char *model)
{
    at_pace *plain = make(model, "1", 20), *scaled = make(model, "50%", 20);
    double   mean = 0;
    for (uint64_t r = 0; r < 1000; r++)
        for (uint32_t w = 1; w <= 20 && mean == 0; w++)
            if (at_pace_sleep(plain, w, r) > AT_MS(1))
                mean = (double)at_pace_sleep(plain, w, r) / (double)at_pace_sleep(scaled, w, r);
    at_pace_free(plain);
    at_pace_free(scaled);
    return mean;
}

static void the_mean_of_every_model_is_the_mean_of_its_draws(void **state)
{
    (void)state;
    static const char *const models[] = {
        "niagara",           "cedar",          "mix:1,.5,1",
        "mix:0,1,.5;2,0,.5", "exp:.5,2",       "mix:200ms,1s,.333;1,1,.333;0,2,.333",
        "exp:0,1",           "pareto:1,4",     "disturb:.1",
        "disturb:1",         "mix:1000,100,1", /* the limit of 1024 s cuts off much of this one */
    };
    for (size_t i = 0; i < COUNT(models); i++) {
        at_pace *pace = make(models[i], "1", 20);
        double   mean = mean_seconds(models[i]);
        moments  got = sample(pace, 20, 20000);
        check_near(got.mean, mean, 4 * got.sd / sqrt(20 * 20000.0 / 100) + 1e-12);
        check_near(got.mean, mean, 0.02 * mean + 1e-12);
        at_pace_free(pace);
    }
}

static void means_follow_their_formulas(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        double      mean;
    } cases[] = {{"mix:3,0,1", 3},
                 {"mix:0,1,1", 0.7978843}, /* sqrt(2/pi), but for the limit at 5 sd */
                 {"exp:.5,2", 2.5},
                 {"pareto:2,3", 3},
                 {"disturb:1", 0.75}}; /* always 7.5 s per epoch of 10 rounds */
    for (size_t i = 0; i < COUNT(cases); i++)
        check_near(mean_seconds(cases[i].model), cases[i].mean, 1e-6);
}

static void models_without_sleep_never_sleep(void **state)
{
    (void)state;
    static const char *const models[] = {"none", "speed:1,2", "disturb:0", "mix:0,0,1"};
    for (size_t i = 0; i < COUNT(models); i++) {
        at_pace *pace = make(models[i], "1", 20);
        assert_true(sample(pace, 20, 1000).mean == 0);
        at_pace_free(pace);
    }
}

static void a_tail_without_a_mean_stays_bounded(void **state)
{
    (void)state;
    at_pace *pace = make("pareto:1,0.001", "1", 1);
    for (uint64_t r = 0; r < 1000; r++)
        assert_in_range(at_pace_sleep(pace, 1, r), AT_SEC(1), AT_SEC(366.0 * 24 * 3600));
    at_pace_free(pace);
    pace = make("pareto:1,0.001", "0", 1);
    for (uint64_t r = 0; r < 1000; r++) assert_int_equal(at_pace_sleep(pace, 1, r), 0);
    at_pace_free(pace);
}

static void a_draw_depends_only_on_seed_worker_and_round(void **state)
{
    (void)state;
    static const char *const models[] = {"niagara", "exp:1,1", "pareto:1,2", "disturb:.2"};
    for (size_t i = 0; i < COUNT(models); i++) {
        at_pace *few = make(models[i], "1", 4), *many = make(models[i], "1", 9);
        at_ns    forwards[4][50];
        for (uint32_t w = 1; w <= 4; w++)
            for (uint64_t r = 0; r < 50; r++) forwards[w - 1][r] = at_pace_sleep(few, w, r);
        for (uint64_t r = 50; r-- > 0;)
            for (uint32_t w = 4; w >= 1; w--)
                assert_int_equal(at_pace_sleep(many, w, r), forwards[w - 1][r]);
        at_pace_free(few);
        at_pace_free(many);
    }
}

static void seeds_workers_and_rounds_differ(void **state)
{
    (void)state;
    at_pace_options options = {.model = "exp:0,1", .seed = 1, .workers = 2};
    at_pace        *one, *two;
    assert_int_equal(at_pace_new(&options, &one, NULL), AT_OK);
    options.seed = 2;
    assert_int_equal(at_pace_new(&options, &two, NULL), AT_OK);
    assert_int_not_equal(at_pace_sleep(one, 1, 0), at_pace_sleep(two, 1, 0));
    assert_int_not_equal(at_pace_sleep(one, 1, 0), at_pace_sleep(one, 2, 0));
    assert_int_not_equal(at_pace_sleep(one, 1, 0), at_pace_sleep(one, 1, 1));
    at_pace_free(one);
    at_pace_free(two);
}

static void a_factor_scales_every_draw(void **state)
{
    (void)state;
    at_pace *whole = make("niagara", NULL, 3), *part = make("niagara", "0.05", 3);
    for (uint64_t r = 0; r < 200; r++) {
        double expected = 0.05 * (double)at_pace_sleep(whole, 2, r);
        check_near((double)at_pace_sleep(part, 2, r), expected, 1);
    }
    at_pace_free(whole);
    at_pace_free(part);
}

static void a_percentage_sets_the_mean_to_that_share_of_a_round(void **state)
{
    (void)state;
    static const char *const models[] = {"niagara", "cedar", "exp:1,1", "disturb:.5", "pareto:1,4"};
    for (size_t i = 0; i < COUNT(models); i++) {
        at_pace *pace = make(models[i], "20%", 20); /* of rounds of 2 s */
        check_near(sample(pace, 20, 20000).mean, 0.4, 0.008);
        at_pace_free(pace);
    }
    at_pace *none = make("none", "20%", 3);
    assert_int_equal(at_pace_sleep(none, 1, 0), 0);
    at_pace_free(none);
}

static void a_percentage_needs_the_time_of_a_round_and_a_mean(void **state)
{
    (void)state;
    at_pace        *pace;
    at_fail         fail = {0};
    at_pace_options options = {.model = "niagara", .scale = "20%", .workers = 1};
    assert_int_equal(at_pace_new(&options, &pace, &fail), AT_ERR_USAGE);
    assert_null(pace);
    assert_non_null(strstr(fail.hint, "--sample-time"));
    options.round_ns_mean = AT_SEC(1);
    options.model = "pareto:1,1";
    assert_int_equal(at_pace_new(&options, &pace, &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.hint, "factor"));
    options.model = "mix:0,0,1";
    assert_int_equal(at_pace_new(&options, &pace, &fail), AT_ERR_USAGE);
}

static void speeds_repeat_cyclically_and_do_not_sleep(void **state)
{
    (void)state;
    at_pace *pace = make("speed:1,2.5,4", "0.1", 5);
    double   expected[] = {1, 2.5, 4, 1, 2.5};
    for (uint32_t w = 1; w <= 5; w++) {
        assert_true(at_pace_factor(pace, w, 0) == expected[w - 1]);
        assert_int_equal(at_pace_sleep(pace, w, 7), 0);
    }
    at_pace_free(pace);
    pace = make("niagara", "1", 2);
    assert_true(at_pace_factor(pace, 2, 0) == 1);
    at_pace_free(pace);
}

static void speeds_combine_with_a_model_that_sleeps(void **state)
{
    (void)state;
    static const char *const spelling[] = {"speed:1,2,4+niagara", "niagara+speed:1,2,4"};
    at_pace                 *alone = make("niagara", "0.5", 3);
    for (size_t i = 0; i < COUNT(spelling); i++) {
        at_pace *both = make(spelling[i], "0.5", 3);
        for (uint32_t w = 1; w <= 3; w++) {
            assert_true(at_pace_factor(both, w, 0) == (double)(1u << (w - 1)));
            for (uint64_t r = 0; r < 50; r++)
                assert_int_equal(at_pace_sleep(both, w, r), at_pace_sleep(alone, w, r));
        }
        at_pace_free(both);
    }
    at_pace_free(alone);
}

static void a_plus_in_a_number_is_not_a_separator(void **state)
{
    (void)state;
    at_pace *pace = make("exp:0,1e+0+speed:1e+1", NULL, 1);
    assert_true(at_pace_factor(pace, 1, 0) == 10);
    check_near(sample(pace, 1, 40000).mean, 1, 0.02);
    at_pace_free(pace);
}

/* With P = 0.01 and a mean of 10 rounds, a worker is slow in 1 of 11 rounds. */
static void bursts_have_their_share_and_length(void **state)
{
    (void)state;
    enum { WORKERS = 20, ROUNDS = 8192 };
    at_pace *pace = make("burst:0.01,10,3", NULL, WORKERS);
    double   slow = 0, starts = 0;
    for (uint32_t w = 1; w <= WORKERS; w++)
        for (uint64_t r = 1; r < ROUNDS; r++) {
            double factor = at_pace_factor(pace, w, r);
            assert_true(factor == 1 || factor == 3);
            slow += factor == 3;
            starts += factor == 3 && at_pace_factor(pace, w, r - 1) == 1;
        }
    check_near(slow / (WORKERS * ROUNDS), 1.0 / 11, 0.01);
    check_near(slow / starts, 10, 1);
    at_pace_free(pace);
}

static void variation_has_a_mean_of_1_and_is_independent_of_sleeps(void **state)
{
    (void)state;
    enum { ROUNDS = 20000 };
    at_pace *pace = make("vary:0.2+exp:0,1", NULL, 1);
    double   sum = 0, square = 0, product = 0;
    for (uint64_t r = 0; r < ROUNDS; r++) {
        double factor = at_pace_factor(pace, 1, r);
        sum += factor / ROUNDS;
        square += log(factor) * log(factor) / ROUNDS;
        product += (factor - 1) * (at_seconds(at_pace_sleep(pace, 1, r)) - 1) / ROUNDS;
    }
    check_near(sum, 1, 0.01);
    check_near(sqrt(square), 0.2, 0.01);
    check_near(product, 0, 0.01);
    at_pace_free(pace);
}

static void invalid_bursts_and_variations_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"burst:0.1,5",   "burst:2,5,3", "burst:0.1,0.5,3",
                                        "burst:0.1,5,0", "vary",        "burst:0.1,5,3,1",
                                        "vary:4",        "vary:x"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        at_pace        *pace;
        at_fail         fail = {0};
        at_pace_options options = {.model = wrong[i], .workers = 2};
        assert_int_equal(at_pace_new(&options, &pace, &fail), AT_ERR_USAGE);
        assert_true(fail.text[0] && fail.hint[0]);
    }
}

static void a_sum_of_sleeps_never_exceeds_a_year(void **state)
{
    (void)state;
    const at_ns     year = AT_SEC(365.25 * 24 * 3600);
    char            model[4096];
    at_text         text = at_text_in(model, sizeof model);
    at_pace        *pace;
    at_pace_options options = {.model = model, .scale = "1e9", .workers = 1, .rounds_per_epoch = 1};
    at_text_add(&text, "exp:90000h,1");
    for (size_t i = 1; i < 300; i++) at_text_add(&text, "+mix:3e9,0,1");
    assert_false(text.full);
    assert_int_equal(at_pace_new(&options, &pace, NULL), AT_OK);
    assert_int_equal(at_pace_sleep(pace, 1, 0), year);
    at_pace_free(pace);
}

static void an_invalid_model_in_a_sum_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"speed:x+niagara", "speed:1+exp:0", "speed:1+",
                                        "+niagara",        "niagara+",      "niagara+foo",
                                        "niagara++cedar"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        at_pace *pace;
        at_fail  fail = {0};
        at_err err = at_pace_new(&(at_pace_options){.model = wrong[i], .workers = 1}, &pace, &fail);
        if (err != AT_ERR_USAGE) fail_msg("'%s' was accepted", wrong[i]);
        assert_true(fail.hint[0] != '\0');
    }
}

/* All rounds of an epoch sleep equally long; a spell costs 5 to 10 s per epoch. */
static void a_disturbance_stays_for_epochs_and_costs_5_to_10_seconds_each(void **state)
{
    (void)state;
    at_pace *pace = make("disturb:0.05", "1", 1);
    int      spell = 0, spells = 0, slow = 0;
    for (uint64_t epoch = 0; epoch < 2000; epoch++) {
        at_ns each = at_pace_sleep(pace, 1, epoch * 10);
        for (uint64_t r = 1; r < 10; r++)
            assert_int_equal(at_pace_sleep(pace, 1, epoch * 10 + r), each);
        if (each) {
            assert_in_range(each * 10, AT_SEC(5), AT_SEC(10));
            assert_int_equal(each * 10 % AT_SEC(1), 0);
            slow++;
            spell++;
        } else {
            if (spell) assert_true(spell >= 4);
            spells += spell > 0;
            spell = 0;
        }
    }
    assert_true(spells > 10);
    assert_true(slow > 400 && slow < 1600);
    at_pace_free(pace);
}

static void every_invalid_model_is_refused_with_a_hint(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "Niagara",
        "niagra",
        "niagara:1",
        "none:",
        "cedar:2,3",
        "mix",
        "mix:",
        "mix:1",
        "mix:1,1",
        "mix:1,1,x",
        "mix:1,-1,1",
        "mix:-1,1,1",
        "mix:1,1,1,1",
        "mix:1,1,.5",
        "mix:1,1,1;",
        "mix:;1,1,1",
        "mix:1,1,-1",
        "mix:nan,1,1",
        "mix:1,inf,1",
        "mix:1,1,.9;1,1,.9",
        "mix:0,0,0",
        "exp",
        "exp:1",
        "exp:1,2,3",
        "exp:a,1",
        "exp:1,",
        "exp:,1",
        "exp:-1,1",
        "pareto:0,1",
        "pareto:1,0",
        "pareto:1",
        "pareto:1,nan",
        "pareto:1,1,1",
        "speed",
        "speed:",
        "speed:1,,2",
        "speed:0",
        "speed:-1",
        "speed:1,x",
        "speed:1e9",
        "disturb",
        "disturb:",
        "disturb:2",
        "disturb:-.1",
        "disturb:.1,2",
        "disturb:p",
        "trace",
        "trace:",
        "uniform:1,2",
        "exp 1,2",
        ":",
        ":1",
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        at_pace        *pace = (at_pace *)bad;
        at_fail         fail = {0};
        at_pace_options options = {.model = bad[i], .workers = 2, .rounds_per_epoch = 1};
        at_err          err = at_pace_new(&options, &pace, &fail);
        if (err != AT_ERR_USAGE) fail_msg("'%s' gave %d", bad[i], err);
        assert_null(pace);
        assert_non_null(strstr(fail.text, "--straggler"));
        if (!fail.hint[0]) fail_msg("'%s' has no hint", bad[i]);
    }
}

static void every_invalid_scale_is_refused_with_a_hint(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "x", "-1", "-20%", "nan", "inf", "1x", "20 %", "1,5"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        at_pace *pace;
        at_fail  fail = {0};
        at_err   err = at_pace_new(
              &(at_pace_options){.model = "niagara", .scale = bad[i], .workers = 1}, &pace, &fail);
        if (err != AT_ERR_USAGE) fail_msg("'%s' gave %d", bad[i], err);
        assert_true(fail.hint[0]);
    }
}

static void a_misspelled_name_gets_a_suggestion(void **state)
{
    (void)state;
    at_pace *pace;
    at_fail  fail = {0};
    at_pace_new(&(at_pace_options){.model = "niagra", .workers = 1}, &pace, &fail);
    assert_non_null(strstr(fail.hint, "did you mean niagara?"));
    at_pace_new(&(at_pace_options){.model = "zzz", .workers = 1}, &pace, &fail);
    assert_null(strstr(fail.hint, "did you mean"));
    assert_non_null(strstr(fail.hint, "known: none niagara"));
    at_pace_new(&(at_pace_options){.model = "exp:1", .workers = 1}, &pace, &fail);
    assert_string_equal(fail.text, "--straggler exp:1: MEAN is missing");
    assert_string_equal(fail.hint, "write --straggler 'exp:SHIFT,MEAN'");
}

static void a_huge_argument_is_refused_in_one_sentence(void **state)
{
    (void)state;
    static char model[100000];
    memset(model, ',', sizeof model - 1);
    memcpy(model, "speed:", 6);
    at_pace *pace;
    at_fail  fail = {0};
    assert_int_equal(at_pace_new(&(at_pace_options){.model = model, .workers = 1}, &pace, &fail),
                     AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "is missing"));
}

static void free_accepts_null(void **state)
{
    (void)state;
    at_pace_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_tables_have_their_published_moments),
        cmocka_unit_test(the_mean_of_every_model_is_the_mean_of_its_draws),
        cmocka_unit_test(means_follow_their_formulas),
        cmocka_unit_test(models_without_sleep_never_sleep),
        cmocka_unit_test(a_tail_without_a_mean_stays_bounded),
        cmocka_unit_test(a_draw_depends_only_on_seed_worker_and_round),
        cmocka_unit_test(seeds_workers_and_rounds_differ),
        cmocka_unit_test(a_factor_scales_every_draw),
        cmocka_unit_test(a_percentage_sets_the_mean_to_that_share_of_a_round),
        cmocka_unit_test(a_percentage_needs_the_time_of_a_round_and_a_mean),
        cmocka_unit_test(speeds_repeat_cyclically_and_do_not_sleep),
        cmocka_unit_test(speeds_combine_with_a_model_that_sleeps),
        cmocka_unit_test(a_plus_in_a_number_is_not_a_separator),
        cmocka_unit_test(bursts_have_their_share_and_length),
        cmocka_unit_test(variation_has_a_mean_of_1_and_is_independent_of_sleeps),
        cmocka_unit_test(invalid_bursts_and_variations_are_refused),
        cmocka_unit_test(a_sum_of_sleeps_never_exceeds_a_year),
        cmocka_unit_test(an_invalid_model_in_a_sum_is_refused),
        cmocka_unit_test(a_disturbance_stays_for_epochs_and_costs_5_to_10_seconds_each),
        cmocka_unit_test(every_invalid_model_is_refused_with_a_hint),
        cmocka_unit_test(every_invalid_scale_is_refused_with_a_hint),
        cmocka_unit_test(a_misspelled_name_gets_a_suggestion),
        cmocka_unit_test(a_huge_argument_is_refused_in_one_sentence),
        cmocka_unit_test(free_accepts_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
