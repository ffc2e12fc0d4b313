/* Resolving settings into a plan: defaults, overrides, contradictions and suggestions. */
#include "step/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static at_plan_options settings(const char *strategy)
{
    return (at_plan_options){.strategy = strategy, .workers = 4, .k = -1, .staleness = -1};
}

static at_plan resolved(at_plan_options options)
{
    at_plan plan;
    at_fail fail = {0};
    if (at_plan_resolve(&options, &plan, &fail)) fail_msg("%s (%s)", fail.text, fail.hint);
    return plan;
}

static void assert_refused(at_plan_options options, const char *text, const char *hint)
{
    at_plan plan;
    at_fail fail = {0};
    assert_int_equal(at_plan_resolve(&options, &plan, &fail), AT_ERR_USAGE);
    assert_string_equal(fail.text, text);
    assert_string_equal(fail.hint, hint);
}

static void assert_rules(at_plan_options options, const char *const rules[AT_FAMILY_COUNT])
{
    at_plan plan = resolved(options);
    char    text[64];
    for (int family = 0; family < AT_FAMILY_COUNT; family++)
        assert_string_equal(at_plan_rule_text(&plan, (enum at_family)family, text, sizeof text),
                            rules[family]);
}

#define RULES(...) ((const char *const[AT_FAMILY_COUNT]){__VA_ARGS__})

static void every_strategy_resolves_to_the_rules_of_its_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < at_strategies_count; i++) {
        const at_strategy *row = &at_strategies[i];
        at_plan            plan = resolved(settings(row->name));
        assert_ptr_equal(plan.strategy, row);
        assert_string_equal(plan.work->name, row->work);
        assert_true(strlen(row->summary) > 0);
        assert_true(strlen(row->known_as) > 0);
        for (size_t j = 0; j < i; j++) assert_string_not_equal(row->name, at_strategies[j].name);
    }
    assert_rules(settings("fmb"), RULES("fixed:64", "all", "barrier", "finish", "drop", "static"));
    assert_rules(settings("amb"), RULES("timed", "all", "barrier", "finish", "drop", "auto"));
}

static void the_default_strategy_is_fmb(void **state)
{
    (void)state;
    assert_string_equal(resolved(settings(NULL)).strategy->name, "fmb");
    assert_string_equal(resolved(settings("")).strategy->name, "fmb");
}

static void sizes_have_defaults(void **state)
{
    (void)state;
    at_plan plan = resolved(settings("fmb"));
    assert_int_equal(plan.batch, 64);
    assert_int_equal(plan.micro_batch, 32);
    assert_int_equal(plan.time_limit, AT_NEVER);
    at_plan_options o = settings("fmb");
    o.batch = 10;
    assert_int_equal(resolved(o).micro_batch, 10);
}

static void the_batch_of_a_timed_plan_is_its_cap_or_its_mean(void **state)
{
    (void)state;
    at_plan_options o = settings("amb");
    o.batch = 100;
    at_plan automatic = resolved(o);
    assert_int_equal(automatic.batch, 100);
    assert_int_equal(automatic.cap, 400);
    assert_int_equal(automatic.time_limit, AT_NEVER);
    o.cap = 150;
    assert_int_equal(resolved(o).cap, 150);
    o.cap = 0;
    o.time_limit = "50ms";
    at_plan given = resolved(o);
    assert_int_equal(given.cap, 100);
    assert_int_equal(given.time_limit, AT_MS(50));
    assert_rules(o, RULES("timed:0.05", "all", "barrier", "finish", "drop", "static"));
}

static void rules_are_replaced_one_by_one(void **state)
{
    (void)state;
    at_plan_options o = settings("amb");
    o.work = "timed:20ms";
    o.gather = "first:3";
    o.newer = "abandon";
    assert_rules(o, RULES("timed:0.02", "first:3", "barrier", "abandon", "drop", "static"));
    o = settings("fmb");
    o.work = "fixed:6e1";
    o.gather = "every:1.5s";
    o.release = "bound:2";
    o.newer = "refresh";
    o.stale = "scale";
    assert_rules(o, RULES("fixed:60", "every:1.5", "bound:2", "refresh", "scale", "static"));
}

static void numbers_come_with_the_rule_or_from_their_option(void **state)
{
    (void)state;
    at_plan_options o = settings("fmb");
    o.gather = "first";
    assert_int_equal(resolved(o).k, 3); /* workers - 1 */
    o.k = 2;
    assert_int_equal(resolved(o).k, 2);
    o.gather = "first:2"; /* equal values do not contradict each other */
    assert_int_equal(resolved(o).k, 2);
    o = settings("fmb");
    o.gather = "any:1";
    o.release = "bound";
    assert_int_equal(resolved(o).staleness, 3);
    o.staleness = 0;
    assert_int_equal(resolved(o).staleness, 0);
    o = settings("amb");
    o.time_limit = "20ms";
    o.gather = "every";
    o.release = "free";
    assert_int_equal(resolved(o).period, AT_MS(20)); /* the time limit, unless given */
    o.period = "5ms";
    assert_int_equal(resolved(o).period, AT_MS(5));
}

static void first_works_with_one_worker(void **state)
{
    (void)state;
    at_plan_options o = settings("fmb");
    o.workers = 1;
    o.gather = "first";
    assert_int_equal(resolved(o).k, 1);
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    at_plan_options o = settings("fmb");
    o.work = "fixed:10";
    o.batch = 20;
    assert_refused(o, "fixed:10 and --batch 20 contradict each other", "give the number once");
    o = settings("fmb");
    o.gather = "first:2";
    o.k = 3;
    assert_refused(o, "first:2 and --k 3 contradict each other", "give the number once");
    o = settings("amb");
    o.work = "timed:20ms";
    o.time_limit = "30ms";
    assert_refused(o, "timed:20ms and --time-limit 30ms contradict each other",
                   "give the duration once");
    o = settings("amb");
    o.size = "auto";
    o.time_limit = "30ms";
    assert_refused(o, "--size auto and an explicit time limit contradict each other",
                   "leave one of them out");
}

static void unsupported_combinations_are_refused_with_the_reason(void **state)
{
    (void)state;
    at_plan_options o = settings("fmb");
    o.release = "free";
    assert_refused(o,
                   "--gather all does not work with --release free: workers that do not wait for "
                   "a step never all report to it",
                   "use --release barrier, or --gather any:K");
    o = settings("fmb");
    o.gather = "any:5";
    assert_refused(o,
                   "--gather any:5 with --release barrier needs at least 5 workers (there are 4): "
                   "each worker reports once per step",
                   "use --release free, or a smaller K");
    o = settings("fmb");
    o.size = "auto";
    assert_refused(o, "--size auto sets the time limit, but fixed work has none",
                   "use --work timed");
    o = settings("amb");
    o.size = "static";
    assert_refused(o, "timed work with --size static needs a time limit",
                   "give --time-limit, or --size auto");
    o = settings("amb");
    o.deal_global = true;
    assert_refused(o,
                   "--deal global needs fixed work and a barrier: otherwise the samples of a step "
                   "are not known in advance",
                   "use --deal own, or --strategy fmb");
    o = settings("fmb");
    o.gather = "every";
    o.release = "free";
    assert_refused(o, "--gather every needs a period", "give --period, for example --period 200ms");
}

static void invalid_sizes_are_refused(void **state)
{
    (void)state;
    at_plan_options o = settings("fmb");
    o.batch = 16;
    o.micro_batch = 32;
    assert_refused(o, "--micro-batch 32 is larger than --batch 16",
                   "lower --micro-batch, or raise --batch");
    o = settings("amb");
    o.cap = 10;
    assert_refused(o, "--cap 10 is below --batch 64", "");
    o = settings("fmb");
    o.workers = 0;
    assert_refused(o, "--workers must be 1 .. 1000000", "");
    o.workers = AT_WORKERS_MAX + 1;
    assert_refused(o, "--workers must be 1 .. 1000000", "");
}

static void invalid_numbers_are_refused(void **state)
{
    (void)state;
    const struct {
        const char *gather, *text;
    } wrong[] = {
        {"first:", "first: is not a whole number"},
        {"first:x", "first:x is not a whole number"},
        {"first:2.5", "first:2.5 is not a whole number"},
        {"first:-2", "first:-2 is not a whole number"},
        {"first:0", "first:0: K must be 1 .. 1048576"},
        {"first:5", "first:5 needs at least 5 workers (there are 4)"},
        {"any:1048577", "any:1048577: K must be 1 .. 1048576"},
        {"any:2e9", "--k is out of range"},
        {"all:3", "--gather all takes no number"},
        {"every:0", "--period must be above 0"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        at_plan_options o = settings("fmb");
        o.gather = wrong[i].gather;
        assert_refused(o, wrong[i].text, "");
    }
    at_plan_options o = settings("fmb");
    o.work = "fixed:0";
    assert_refused(o, "--batch must be at least 1", "");
    o = settings("amb");
    o.time_limit = "soon";
    assert_refused(o, "--time-limit soon is not a duration", "write it as 50ms or 5.5s");
}

static void unknown_names_get_the_nearest_known_one(void **state)
{
    (void)state;
    at_plan         plan;
    at_fail         fail = {0};
    at_plan_options o = settings("fbm");
    assert_int_equal(at_plan_resolve(&o, &plan, &fail), AT_ERR_USAGE);
    assert_string_equal(fail.text, "unknown strategy 'fbm'");
    assert_non_null(strstr(fail.hint, "did you mean fmb? known: fmb amb"));
    o = settings("zzz");
    assert_int_equal(at_plan_resolve(&o, &plan, &fail), AT_ERR_USAGE);
    assert_null(strstr(fail.hint, "did you mean"));
    o = settings("fmb");
    o.gather = "frist:2"; /* the number is not part of the name */
    assert_refused(o, "unknown gather 'frist'", "did you mean first? known: all first any every");
    o = settings("fmb");
    o.release = "barier";
    assert_refused(o, "unknown release 'barier'",
                   "did you mean barrier? known: barrier free bound");
    o = settings("amb");
    o.cut = "before";
    assert_refused(o, "unknown --cut 'before'", "known: nearest after");
}

static void a_plan_lists_the_options_it_uses(void **state)
{
    (void)state;
    at_plan fmb = resolved(settings("fmb")), amb = resolved(settings("amb"));
    assert_false(at_plan_uses(&fmb, "time-limit"));
    assert_false(at_plan_uses(&fmb, "cut"));
    assert_false(at_plan_uses(&fmb, "cap"));
    assert_true(at_plan_uses(&amb, "time-limit"));
    assert_true(at_plan_uses(&amb, "cut"));
    assert_true(at_plan_uses(&amb, "cap"));
    assert_false(at_plan_uses(&amb, "k"));
    assert_false(at_plan_uses(&amb, "period"));
    assert_false(at_plan_uses(&amb, "staleness"));
    assert_true(at_plan_uses(&amb, "batch"));
    at_plan_options o = settings("fmb");
    o.gather = "any:2";
    o.release = "bound";
    at_plan ssp = resolved(o);
    assert_true(at_plan_uses(&ssp, "k"));
    assert_true(at_plan_uses(&ssp, "staleness"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_strategy_resolves_to_the_rules_of_its_row),
        cmocka_unit_test(the_default_strategy_is_fmb),
        cmocka_unit_test(sizes_have_defaults),
        cmocka_unit_test(the_batch_of_a_timed_plan_is_its_cap_or_its_mean),
        cmocka_unit_test(rules_are_replaced_one_by_one),
        cmocka_unit_test(numbers_come_with_the_rule_or_from_their_option),
        cmocka_unit_test(first_works_with_one_worker),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(unsupported_combinations_are_refused_with_the_reason),
        cmocka_unit_test(invalid_sizes_are_refused),
        cmocka_unit_test(invalid_numbers_are_refused),
        cmocka_unit_test(unknown_names_get_the_nearest_known_one),
        cmocka_unit_test(a_plan_lists_the_options_it_uses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
