/* The rules of mix and outer: who updates the parameters, and how changes are combined. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "step/plan.h"

static at_err resolve(const char *strategy, const char *gather, const char *mix, at_plan *plan,
                      at_fail *fail)
{
    at_plan_options options = {
        .strategy = strategy, .gather = gather, .mix = mix, .workers = 3, .limits = {.steps = 1}};
    return at_plan_resolve(&options, plan, fail);
}

static void all_strategies_but_hogwild_have_one_hub_that_updates(void **state)
{
    at_plan plan;
    at_fail fail;
    (void)state;
    for (size_t i = 0; i < at_strategies_count; i++) {
        bool hogwild = strcmp(at_strategies[i].name, "hogwild") == 0;
        assert_int_equal(resolve(at_strategies[i].name, NULL, NULL, &plan, &fail), AT_OK);
        assert_int_equal(plan.mix->updates_in_place, hogwild);
        assert_int_equal(at_plan_hubs(&plan), 1);
        assert_false(at_plan_splits_update(&plan));
    }
}

static void hubs_are_counted_before_workers_are_known(void **state)
{
    static const struct {
        const char *mix;
        uint32_t    hubs;
        bool        splits;
    } rows[] = {{"central", 1, false},
                {"sliced:1", 1, false},
                {"sliced", 2, true},
                {"sliced:5", 5, true},
                {"replicated", 0, true}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        at_plan         plan;
        at_fail         fail;
        uint32_t        hubs = 99;
        at_plan_options options = {.mix = rows[i].mix};
        assert_int_equal(at_plan_count_hubs(&options, &hubs, &fail), AT_OK);
        assert_int_equal(hubs, rows[i].hubs);
        assert_int_equal(resolve("fmb", NULL, rows[i].mix, &plan, &fail), AT_OK);
        assert_int_equal(at_plan_hubs(&plan), rows[i].hubs);
        assert_int_equal(at_plan_splits_update(&plan), rows[i].splits);
    }
}

static void replicated_needs_strategies_that_wait_for_all(void **state)
{
    at_plan plan;
    at_fail fail;
    (void)state;
    for (size_t i = 0; i < at_strategies_count; i++) {
        const at_strategy *s = &at_strategies[i];
        bool               waits = strcmp(s->gather, "all") == 0;
        at_err             err = resolve(s->name, NULL, "replicated", &plan, &fail);
        assert_int_equal(err, waits ? AT_OK : AT_ERR_USAGE);
        if (waits) assert_true(plan.mix->updates_by_workers);
    }
    assert_int_equal(resolve("fmb", "first:2", "replicated", &plan, &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "does not wait for all"));
}

static void shared_needs_rules_that_use_everything(void **state)
{
    at_plan plan;
    at_fail fail;
    (void)state;
    assert_int_equal(resolve("hogwild", NULL, "shared", &plan, &fail), AT_OK);
    assert_int_equal(resolve("hogwild", NULL, "central", &plan, &fail), AT_OK);
    assert_false(plan.mix->updates_in_place);
    assert_int_equal(resolve("async", NULL, "shared", &plan, &fail), AT_OK);
    assert_int_equal(resolve("fmb", NULL, "shared", &plan, &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "--stale drop"));
    assert_int_equal(resolve("batch-sync", NULL, "shared", &plan, &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "--newer abandon"));
}

static void hogwild_alone_waits_for_itself(void **state)
{
    at_plan_options options = {.strategy = "hogwild", .workers = 1, .alone = true};
    at_plan         plan;
    at_fail         fail;
    (void)state;
    assert_int_equal(at_plan_resolve(&options, &plan, &fail), AT_OK);
    assert_true(plan.release->holds);
    options.release = "free"; /* what is given counts */
    assert_int_equal(at_plan_resolve(&options, &plan, &fail), AT_OK);
    assert_true(plan.release->self_starting);
}

static void an_unknown_mix_is_refused(void **state)
{
    at_plan plan;
    at_fail fail;
    (void)state;
    assert_int_equal(resolve("fmb", NULL, "ring", &plan, &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "ring"));
    assert_non_null(strstr(fail.hint, "replicated"));
}

/* ---- outer ---------------------------------------------------------------------------------- */

static void outer(const char *rule, const float *change, float *params, float *momentum)
{
    at_plan plan;
    at_fail fail = {0};
    assert_int_equal(resolve("fmb", NULL, NULL, &plan, &fail), AT_OK);
    assert_int_equal(at_plan_read_rule(&plan, AT_OUTER, rule, &fail), AT_OK);
    plan.outer->apply(
        &plan,
        &(at_outer_step){.count = 2, .params = params, .change = change, .momentum = momentum});
}

static void averaging_adds_the_mean_change(void **state)
{
    float params[] = {1, 2};
    (void)state;
    outer("average", (const float[]){0.5F, -1}, params, NULL);
    assert_true(params[0] == 1.5F);
    assert_true(params[1] == 1);
}

static void nesterov_looks_ahead_along_its_momentum(void **state)
{
    float params[] = {0, 8}, momentum[] = {0, 4};
    (void)state;
    outer("nesterov:2,0.5", (const float[]){1, 0}, params, momentum);
    assert_true(momentum[0] == 1);
    assert_true(params[0] == 3); /* 2 (1 + 0.5) */
    assert_true(momentum[1] == 2);
    assert_true(params[1] == 10);                                   /* 8 + 2 (0 + 0.5 x 2) */
    outer("nesterov:1,0", (const float[]){1, 1}, params, momentum); /* as averaging */
    assert_true(params[0] == 4);
    assert_true(params[1] == 11);
}

static void nesterov_is_refused_for_gradients(void **state)
{
    at_plan_options options = {.outer = "nesterov", .workers = 2};
    at_plan         plan;
    at_fail         fail;
    (void)state;
    assert_int_equal(at_plan_resolve(&options, &plan, &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "reports gradients"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_strategies_but_hogwild_have_one_hub_that_updates),
        cmocka_unit_test(hubs_are_counted_before_workers_are_known),
        cmocka_unit_test(replicated_needs_strategies_that_wait_for_all),
        cmocka_unit_test(shared_needs_rules_that_use_everything),
        cmocka_unit_test(hogwild_alone_waits_for_itself),
        cmocka_unit_test(an_unknown_mix_is_refused),
        cmocka_unit_test(averaging_adds_the_mean_change),
        cmocka_unit_test(nesterov_looks_ahead_along_its_momentum),
        cmocka_unit_test(nesterov_is_refused_for_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
