/* Topologies of a plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "step/plan.h"

static at_err resolve(const char *strategy, const char *gather, const char *topology, at_plan *plan,
                      at_fail *fail)
{
    at_plan_options options = {.strategy = strategy,
                               .gather = gather,
                               .topology = topology,
                               .k = -1,
                               .staleness = -1,
                               .workers = 3,
                               .limits = {.steps = 1}};
    return at_plan_resolve(&options, plan, fail);
}

static void a_strategy_has_its_own_topology(void **state)
{
    at_plan plan;
    at_fail fail;
    (void)state;
    for (size_t i = 0; i < at_strategies_count; i++) {
        assert_int_equal(resolve(at_strategies[i].name, NULL, NULL, &plan, &fail), AT_OK);
        assert_int_equal(plan.topology, at_strategies[i].topology);
    }
}

static void allreduce_needs_strategies_that_wait_for_all(void **state)
{
    at_plan plan;
    at_fail fail;
    (void)state;
    for (size_t i = 0; i < at_strategies_count; i++) {
        const at_strategy *s = &at_strategies[i];
        bool               waits = strcmp(s->gather, "all") == 0;
        at_err             err = resolve(s->name, NULL, "allreduce", &plan, &fail);
        assert_int_equal(err, waits ? AT_OK : AT_ERR_USAGE);
        if (waits) assert_int_equal(plan.topology, AT_TOPOLOGY_ALLREDUCE);
    }
    assert_int_equal(resolve("fmb", "first:2", "allreduce", &plan, &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "does not wait for all"));
}

static void hogwild_needs_its_topology_and_vice_versa(void **state)
{
    at_plan plan;
    at_fail fail;
    (void)state;
    assert_int_equal(resolve("hogwild", NULL, "hogwild", &plan, &fail), AT_OK);
    assert_int_equal(resolve("hogwild", NULL, "hub", &plan, &fail), AT_ERR_USAGE);
    assert_int_equal(resolve("async", NULL, "hogwild", &plan, &fail), AT_ERR_USAGE);
    assert_int_equal(resolve("async", NULL, "hub", &plan, &fail), AT_OK);
}

static void an_unknown_topology_is_refused(void **state)
{
    at_plan plan;
    at_fail fail;
    (void)state;
    assert_int_equal(resolve("fmb", NULL, "ring", &plan, &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "ring"));
    assert_non_null(strstr(fail.hint, "allreduce"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_strategy_has_its_own_topology),
        cmocka_unit_test(allreduce_needs_strategies_that_wait_for_all),
        cmocka_unit_test(hogwild_needs_its_topology_and_vice_versa),
        cmocka_unit_test(an_unknown_topology_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
