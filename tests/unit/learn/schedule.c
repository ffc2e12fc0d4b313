/* Learning-rate schedules: rates by samples used, and invalid texts. */
#include "learn/optim/schedule.h"
#include "fixture.h"

#include <math.h>
#include <stdio.h>

typedef struct point {
    const char *text;
    double      used, rate; /* with lr 0.1, epochs of 1000 samples and an end at 10000 */
} point;

static const point points[] = {
    {"const", 0, 0.1},
    {"const", 1e9, 0.1},
    {"linear:0.01", 0, 0.1},
    {"linear:0.01", 5000, 0.055},
    {"linear:0.01", 10000, 0.01},
    {"linear:0.01", 20000, 0.01},
    {"linear:0", 2500, 0.075},
    {"exp:400,0.5", 0, 0.1},
    {"exp:400,0.5", 399, 0.1},
    {"exp:400,0.5", 400, 0.05},
    {"exp:400,0.5", 1200, 0.0125},
    {"exp:0.5e,0.96", 499, 0.1},
    {"exp:0.5e,0.96", 500, 0.096},
    {"exp:0.5e,0.96", 1000, 0.09216},
    {"epochs:2:0.1", 1999, 0.1},
    {"epochs:2:0.1", 2000, 0.01},
    {"epochs:2:0.1", 4000, 0.001},
    {"epochs:2,5:0.1", 1999, 0.1},
    {"epochs:2,5:0.1", 2000, 0.01},
    {"epochs:2,5:0.1", 4999, 0.01},
    {"epochs:2,5:0.1", 5000, 0.001},
    {"epochs:2,5:0.1", 9e9, 0.001},
    {"cosine", 0, 0.1},
    {"cosine", 5000, 0.05},
    {"cosine", 10000, 0},
    {"cosine", 30000, 0},
    {"stairs:2,10", 0, 0.1},
    {"stairs:2,10", 4999, 0.1},
    {"stairs:2,10", 5000, 0.01},
    {"stairs:2,10", 10000, 0.01},
    {"stairs:3,100", 3333, 0.1},
    {"stairs:3,100", 3334, 0.01},
    {"stairs:3,100", 6667, 0.001},
    {"stairs:3,100", 99999, 0.001},
    {"one-cycle", 0, 0.004},
    {"one-cycle", 1500, 0.052},
    {"one-cycle", 3000, 0.1},
    {"one-cycle", 6500, 0.0500002},
    {"one-cycle", 10000, 4e-7},
    {"one-cycle", 20000, 4e-7},
    {"one-cycle:0.5,10,100", 2500, 0.055},
    {"one-cycle:0.5,10,100", 10000, 0.0001},
    {"one-cycle:0.5", 0, 0.004},
    {"warmup:2000", 0, 0.001},
    {"warmup:2000", 1000, 0.0505},
    {"warmup:2000", 2000, 0.1},
    {"warmup:2e", 1000, 0.0505},
    {"warmup:1e+3", 500, 0.0505},
    {"warmup:2e+cosine", 1000, 0.0505},
    {"warmup:2e+cosine", 2000, 0.1},
    {"warmup:2e+cosine", 6000, 0.05},
    {"warmup:2e+cosine", 10000, 0},
    {"warmup:2000+linear:0", 8000, 0.025},
    {"warmup:1e+epochs:2,5:0.1", 500, 0.0505},
    {"warmup:1e+epochs:2,5:0.1", 1999, 0.1},
    {"warmup:1e+epochs:2,5:0.1", 2000, 0.01},
    {"warmup:1e+exp:400,0.5", 500, 0.025 * 0.505}, /* rises to where exp is after an epoch */
};

static void rates_follow_the_samples_used(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        at_schedule schedule;
        at_fail     fail = {0};
        assert_int_equal(at_schedule_parse(points[i].text, 0.1, 1000, 10000, &schedule, &fail), 0);
        assert_true(fabs(at_schedule_rate(&schedule, points[i].used) - points[i].rate) < 1e-12);
    }
}

static void steps_count_instead_of_samples(void **state)
{
    (void)state;
    at_schedule schedule;
    at_fail     fail = {0};
    assert_int_equal(at_schedule_parse("linear:0.01,steps", 0.1, 1000, 0, &schedule, &fail), AT_OK);
    assert_int_equal(at_schedule_set_steps(&schedule, 0, &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.hint, "--steps"));
    assert_int_equal(at_schedule_set_steps(&schedule, 10, &fail), AT_OK);
    assert_true(fabs(at_schedule_now(&schedule, 1e9, 0) - 0.1) < 1e-12);
    assert_true(fabs(at_schedule_now(&schedule, 0, 5) - 0.055) < 1e-12);
    assert_true(fabs(at_schedule_now(&schedule, 0, 99) - 0.01) < 1e-12);
    assert_int_equal(at_schedule_parse("linear:0.01", 0.1, 1000, 10000, &schedule, &fail), AT_OK);
    assert_int_equal(at_schedule_set_steps(&schedule, 0, &fail), AT_OK); /* counts samples */
    assert_true(fabs(at_schedule_now(&schedule, 5000, 3) - 0.055) < 1e-12);
}

static void invalid_schedules_are_refused_with_a_hint(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "nonsense",
        "const:1",
        "linear",
        "linear:",
        "linear:x",
        "linear:-1",
        "linear:1,2",
        "exp:400",
        "exp:0,0.5",
        "exp:,0.5",
        "exp:e,0.5",
        "exp:400,0",
        "exp:400,0.5,1",
        "epochs:2",
        "epochs::.1",
        "epochs:5,2:1",
        "epochs:0:0.1",
        "epochs:2:",
        "epochs:2:0.1:3",
        "cosine:1",
        "exp:400,nan",
        "epochs:2,2:.1",
        "epochs:2:-1",
        "linear:inf",
        "stairs",
        "stairs:2",
        "stairs:1,10",
        "stairs:2.5,10",
        "stairs:2,0",
        "warmup",
        "warmup:",
        "warmup:0",
        "warmup:x",
        "warmup:5+",
        "warmup:5+nil",
        "warmup:e",
        "warmup:-1",
        "warmups",
        "one-cycle:0",
        "one-cycle:1",
        "one-cycle:.3,0",
        "one-cycle:.3,25,1e4,1",
        "warmup:5+warmup:5+const",
        "warmup:10000+cosine",
        "linear:,steps",
        "linear:0,step",
        "linear:0,steps,",
        "linear:steps",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        at_schedule schedule;
        at_fail     fail = {0};
        assert_int_equal(at_schedule_parse(wrong[i], 0.1, 1000, 10000, &schedule, &fail),
                         AT_ERR_USAGE);
        assert_true(fail.text[0] != '\0');
        assert_true(fail.hint[0] != '\0');
    }
}

static void long_lists_are_refused_not_overrun(void **state)
{
    (void)state;
    char        text[4096] = "epochs:1";
    at_schedule schedule;
    for (int i = 2; i <= AT_SCHEDULE_EPOCHS_MAX; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), ",%d", i);
    size_t length = strlen(text);
    snprintf(text + length, sizeof text - length, ":0.5");
    assert_int_equal(at_schedule_parse(text, 1, 1, 0, &schedule, NULL), AT_OK);
    assert_true(at_schedule_rate(&schedule, 2.5) == 0.25);
    snprintf(text + length, sizeof text - length, ",%d:0.5", AT_SCHEDULE_EPOCHS_MAX + 1);
    assert_int_equal(at_schedule_parse(text, 1, 1, 0, &schedule, NULL), AT_ERR_USAGE);
    memset(text, '1', sizeof text - 1);
    memcpy(text, "epochs:", 7);
    text[sizeof text - 1] = '\0';
    assert_int_equal(at_schedule_parse(text, 1, 1, 0, &schedule, NULL), AT_ERR_USAGE);
}

static void the_nearest_name_is_offered(void **state)
{
    (void)state;
    at_schedule schedule;
    at_fail     fail = {0};
    at_schedule_parse("cosin", 0.1, 1000, 10000, &schedule, &fail);
    assert_non_null(strstr(fail.text, "cosine"));
}

static void schedules_over_the_whole_run_need_its_length(void **state)
{
    (void)state;
    at_schedule schedule;
    at_fail     fail = {0};
    assert_int_equal(at_schedule_parse("cosine", 0.1, 1000, 0, &schedule, &fail), AT_ERR_USAGE);
    assert_int_equal(at_schedule_parse("linear:0", 0.1, 1000, 0, &schedule, &fail), AT_ERR_USAGE);
    assert_int_equal(at_schedule_parse("stairs:2,9", 1, 1000, 0, &schedule, &fail), AT_ERR_USAGE);
    assert_int_equal(at_schedule_parse("exp:1e,0.9", 0.1, 1000, 0, &schedule, &fail), AT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_follow_the_samples_used),
        cmocka_unit_test(steps_count_instead_of_samples),
        cmocka_unit_test(invalid_schedules_are_refused_with_a_hint),
        cmocka_unit_test(long_lists_are_refused_not_overrun),
        cmocka_unit_test(the_nearest_name_is_offered),
        cmocka_unit_test(schedules_over_the_whole_run_need_its_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
