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
    return (at_plan_options){.strategy = strategy, .workers = 4};
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
    char    text[AT_RULE_TEXT_SIZE];
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
        assert_memory_equal(plan.work->rule.name, row->work, strcspn(row->work, ":"));
        assert_true(strlen(row->summary) > 0);
        assert_true(strlen(row->known_as) > 0);
        for (size_t j = 0; j < i; j++) assert_string_not_equal(row->name, at_strategies[j].name);
    }
    assert_rules(settings("fmb"), RULES("fixed:64", "all", "barrier", "finish", "drop", "static",
                                        "central", "average"));
    assert_rules(settings("amb"),
                 RULES("timed", "all", "barrier", "finish", "drop", "auto", "central", "average"));
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
    o.work = ":cap=150";
    assert_int_equal(resolved(o).cap, 150);
    o.work = "timed:cap=150,cut=after";
    assert_int_equal(resolved(o).cap, 150);
    assert_true(resolved(o).cut_after);
    o.work = NULL;
    o.time_limit = "50ms";
    at_plan given = resolved(o);
    assert_int_equal(given.cap, 100);
    assert_int_equal(given.time_limit, AT_MS(50));
    assert_rules(
        o, RULES("timed:0.05", "all", "barrier", "finish", "drop", "static", "central", "average"));
}

static void rules_are_replaced_one_by_one(void **state)
{
    (void)state;
    at_plan_options o = settings("amb");
    o.work = "timed:20ms";
    o.gather = "first:3";
    o.newer = "abandon";
    assert_rules(o, RULES("timed:0.02", "first:3", "barrier", "abandon", "drop", "static",
                          "central", "average"));
    o = settings("fmb");
    o.work = "fixed:6e1";
    o.gather = "every:1.5s";
    o.release = "bound:2";
    o.newer = "refresh";
    o.stale = "scale";
    o.mix = "sliced:3";
    assert_rules(o, RULES("fixed:60", "every:1.5", "bound:2", "refresh", "scale", "static",
                          "sliced:3", "average"));
}

static int64_t gather_of(at_plan_options options)
{
    return resolved(options).arg[AT_GATHER][0].whole;
}

static void arguments_have_defaults_that_the_rule_knows(void **state)
{
    (void)state;
    at_plan_options o = settings("fmb");
    o.gather = "first";
    assert_int_equal(gather_of(o), 3); /* workers - 1 */
    o.workers = 1;
    assert_int_equal(gather_of(o), 1);
    o = settings("fmb");
    o.gather = "any:1";
    o.release = "bound";
    assert_int_equal(resolved(o).arg[AT_RELEASE][0].whole, 3);
    o = settings("amb");
    o.time_limit = "20ms";
    o.gather = "every";
    o.release = "free";
    assert_int_equal(gather_of(o), AT_MS(20)); /* the time limit, unless given */
    o.gather = "every:5ms";
    assert_int_equal(gather_of(o), AT_MS(5));
}

static void arguments_are_given_by_position_or_by_name(void **state)
{
    (void)state;
    at_plan_options o = settings("fmb");
    o.gather = "first:k=2";
    assert_int_equal(gather_of(o), 2);
    o.gather = "first:k=1,k=2"; /* as --k 1 --k 2: the last one counts */
    assert_int_equal(gather_of(o), 2);
    o.gather = NULL;
    o.size = "grow:3,max=100";
    at_plan plan = resolved(o);
    assert_true(plan.arg[AT_SIZE][0].real == 3);
    assert_true(plan.arg[AT_SIZE][1].real == 2); /* the default */
    assert_int_equal(plan.batch_min, 4);
    assert_int_equal(plan.batch_max, 100);
    assert_rules(o, RULES("fixed:64", "all", "barrier", "finish", "drop", "grow:3,2,max=100",
                          "central", "average"));
}

static void arguments_without_a_name_are_for_the_rule_of_the_strategy(void **state)
{
    (void)state;
    at_plan_options o = settings("backup");
    o.gather = ":k=2";
    assert_int_equal(gather_of(o), 2);
    o = settings("ssp");
    o.release = ":staleness=0";
    assert_int_equal(resolved(o).arg[AT_RELEASE][0].whole, 0);
    o = settings("fmb");
    o.gather = ":k=2"; /* `all` has no such argument */
    assert_rules(
        o, RULES("fixed:64", "all", "barrier", "finish", "drop", "static", "central", "average"));
}

static void a_strategy_takes_the_arguments_of_its_main_rule(void **state)
{
    (void)state;
    assert_int_equal(gather_of(settings("backup:2")), 2);
    assert_int_equal(gather_of(settings("backup:k=2")), 2);
    assert_int_equal(resolved(settings("fmb:16")).batch, 16);
    assert_int_equal(resolved(settings("amb:50ms")).time_limit, AT_MS(50));
    assert_int_equal(resolved(settings("ssp:1")).arg[AT_RELEASE][0].whole, 1);
    assert_int_equal(resolved(settings("dbs:step")).arg[AT_SIZE][0].whole, 1);
    assert_string_equal(resolved(settings("backup:2")).strategy->name, "backup");
    at_plan_options o = settings("backup:2");
    o.gather = "all";
    assert_refused(o, "--strategy backup:2 sets --gather, and so does --gather all",
                   "leave one of them out");
}

/* Whatever is shown can be read, and means the same. */
static void every_rule_is_read_back_as_it_is_shown(void **state)
{
    (void)state;
    for (int family = 0; family < AT_FAMILY_COUNT; family++) {
        const at_rule *rule;
        for (size_t i = 0; (rule = at_rule_row((enum at_family)family, i)); i++) {
            at_plan plan = resolved(settings("fmb")), again = plan;
            at_fail fail = {0};
            char    text[AT_RULE_TEXT_SIZE], text_again[AT_RULE_TEXT_SIZE];
            assert_true(strlen(rule->summary) > 0);
            assert_int_equal(at_plan_read_rule(&plan, (enum at_family)family, rule->name, &fail),
                             AT_OK);
            at_plan_rule_text(&plan, (enum at_family)family, text, sizeof text);
            assert_int_equal(at_plan_read_rule(&again, (enum at_family)family, text, &fail), AT_OK);
            at_plan_rule_text(&again, (enum at_family)family, text_again, sizeof text_again);
            assert_string_equal(text_again, text);
            assert_int_equal(again.batch_max, plan.batch_max);
        }
    }
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    at_plan_options o = settings("fmb");
    o.work = "fixed:10";
    o.batch = 20;
    assert_refused(o, "fixed:10 and --batch 20 contradict each other", "give the number once");
    o = settings("fmb");
    o.gather = "first:2,k=3";
    assert_refused(o, "--gather first: two values for k, the second one is 3", "give it once");
    o = settings("amb");
    o.work = "timed:20ms";
    o.time_limit = "30ms";
    assert_refused(o, "timed:20.0ms and --time-limit 30.0ms contradict each other",
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
    assert_refused(o, "--gather every needs a period",
                   "give one, for example --gather every:200ms");
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
    o.work = ":cap=10";
    assert_refused(o, "--work timed: CAP 10 is below --batch 64",
                   "raise the cap, or lower --batch");
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
        {"first:", "--gather first: K is '', which is not a whole number, or two as in 1-4"},
        {"first:x", "--gather first: K is 'x', which is not a whole number, or two as in 1-4"},
        {"first:2.5", "--gather first: K is '2.5', which is not a whole number, or two as in 1-4"},
        {"first:-2", "--gather first: K is '-2', but it must be 1 to 1048576 reports"},
        {"first:0", "--gather first: K is '0', but it must be 1 to 1048576 reports"},
        {"first:3-2", "--gather first: K is '3-2', which is not a whole number, or two as in 1-4"},
        {"first:1-x", "--gather first: K is '1-x', which is not a whole number, or two as in 1-4"},
        {"first:2,3", "--gather first takes at most 1 argument"},
        {"any:1048577", "--gather any: K is '1048577', but it must be 1 to 1048576 reports"},
        {"all:3", "--gather all takes no argument"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        at_plan_options o = settings("fmb");
        o.gather = wrong[i].gather;
        assert_refused(o, wrong[i].text, "");
    }
    at_plan_options o = settings("fmb");
    const char     *too_large[] = {"first:5", "first:2-5"};
    for (size_t i = 0; i < 2; i++) {
        o.gather = too_large[i];
        assert_refused(o, "--gather first:5 needs at least 5 workers (there are 4)",
                       "use a smaller K, or more workers");
    }
    o = settings("fmb");
    o.work = "fixed:0";
    assert_refused(o, "--work fixed: SAMPLES is '0', but it must be 1 to 1000000000 samples", "");
    o = settings("fmb");
    o.gather = "every:0";
    assert_refused(o, "--gather every: PERIOD is '0', which is not a duration above 0",
                   "write it as 50ms or 5.5s");
    o.gather = "quorum:2,soon";
    assert_refused(o, "--gather quorum: GRACE is 'soon', which is not a duration above 0",
                   "write it as 50ms or 5.5s");
    o.gather = "quorum:5";
    assert_refused(o, "--gather quorum:5 needs at least 5 workers (there are 4)",
                   "use a smaller K, or more workers");
    o.gather = "quorum";
    o.release = "free";
    assert_refused(o,
                   "--gather quorum does not work with --release free: workers that do not wait "
                   "for a step are never late for it",
                   "use --release barrier, or --gather any:K");
    o = settings("fmb");
    o.gather = "first:n=3";
    assert_refused(o, "--gather first has no argument 'n'", "known: k");
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
    assert_refused(o, "unknown gather 'frist'",
                   "did you mean first? known: all first any every quorum");
    o = settings("fmb");
    o.release = "barier";
    assert_refused(o, "unknown release 'barier'",
                   "did you mean barrier? known: barrier free bound");
    o = settings("amb");
    o.work = "timed:cut=before";
    assert_refused(o, "--work timed: 'before' is not one of nearest|after", "");
}

/* ---- local steps ----------------------------------------------------------------------------- */

static void local_work_is_a_number_of_steps_or_a_time(void **state)
{
    (void)state;
    static const struct {
        const char *strategy, *work, *text;
        uint32_t    batch, micro, round, local_batch;
        bool        timed;
    } cases[] = {{"local-sgd", NULL, "local:16,32", 0, 0, 512, 32, false},
                 {"local-sgd:5", NULL, "local:5,32", 0, 0, 160, 32, false},
                 {"local-sgd", NULL, "local:4,8", 32, 8, 32, 8, false},
                 {"local-sgd", ":batch=64", "local:16,64", 0, 0, 1024, 64, false},
                 {"diloco", NULL, "local:50,16", 0, 16, 800, 16, false},
                 {"diloco", NULL, "local:4,32", 100, 0, 100, 32, false},
                 {"fmb", "local:7,24", "local:7,24", 0, 8, 168, 24, false},
                 {"fmb", "local:20ms", "local:0.02s,batch=32", 0, 0, 64, 32, true},
                 {"fmb", "local:5s", "local:5s,batch=32", 0, 0, 64, 32, true},
                 {"fmb", "local:time=5s,batch=8", "local:5s,batch=8", 0, 0, 64, 8, true},
                 {"anytime-sgd", NULL, "local:auto,batch=32", 0, 0, 512, 32, true},
                 {"anytime-sgd:50ms", NULL, "local:0.05s,batch=32", 0, 0, 512, 32, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        at_plan_options options = settings(cases[i].strategy);
        char            text[AT_RULE_TEXT_SIZE];
        options.work = cases[i].work;
        options.batch = cases[i].batch;
        options.micro_batch = cases[i].micro;
        at_plan plan = resolved(options);
        assert_string_equal(at_plan_rule_text(&plan, AT_WORK, text, sizeof text), cases[i].text);
        assert_true(plan.work->reports_change);
        assert_int_equal(plan.work->timed, cases[i].timed);
        assert_int_equal(plan.batch, cases[i].round);
        assert_int_equal(plan.local_batch, cases[i].local_batch);
        at_plan again = plan; /* as a log or another rank reads it */
        assert_int_equal(at_plan_read_rule(&again, AT_WORK, text, NULL), AT_OK);
        assert_ptr_equal(again.work, plan.work);
        assert_int_equal(again.local_batch, plan.local_batch);
        assert_true(again.time_limit == plan.time_limit);
    }
}

static void changes_are_weighted_by_samples_steps_or_equally(void **state)
{
    (void)state;
    at_plan_options options = settings("anytime-sgd");
    at_plan         plan = resolved(options);
    assert_true(at_plan_change_weight(&plan, 100) == 100);
    options.outer = "average:steps";
    plan = resolved(options);
    assert_true(at_plan_change_weight(&plan, 96) == 3);
    assert_true(at_plan_change_weight(&plan, 100) == 4);
    plan = resolved(settings("local-sgd"));
    assert_true(at_plan_change_weight(&plan, 100) == 1);
    plan = resolved(settings("diloco"));
    assert_true(at_plan_change_weight(&plan, 100) == 100);
}

static void local_work_refuses_what_makes_no_sense_with_it(void **state)
{
    (void)state;
    at_plan_options o = settings("local-sgd:5");
    o.batch = 64;
    assert_refused(o, "local:5 with 32 samples per local step and --batch 64 contradict each other",
                   "leave --batch out: a round is STEPS local steps of --local-batch samples");
    o = settings("local-sgd");
    o.newer = "refresh";
    assert_refused(o,
                   "--work local does not work with --newer refresh: newer parameters would undo "
                   "the local steps of the round",
                   "use --newer finish or abandon");
    o = settings("local-sgd");
    o.mix = "gossip:ring,2";
    assert_refused(o,
                   "--work local does not work with --mix gossip:ring,2: local steps start from "
                   "the parameters of the hub",
                   "leave --mix out, or use --work fixed");
    o = settings("local-sgd");
    o.size = "noise";
    assert_refused(o,
                   "--work local does not work with --size noise: it needs gradients, and local "
                   "steps report changes of parameters",
                   "leave --size out, or use --work fixed");
    o = settings("local-sgd");
    o.work = ":batch=50";
    assert_refused(o,
                   "a local step of 50 samples cannot be computed in micro-batches of 32: it must "
                   "be a multiple of them",
                   "change --micro-batch or --local-batch");
    o = settings("local-sgd");
    o.work = "local:1000000000,1000";
    assert_refused(o, "--work local:1000000000,1000: a round of more than 1000000000 samples",
                   "use fewer steps, or a smaller BATCH");
    o = settings("fmb");
    o.outer = "average:steps";
    assert_refused(o,
                   "--outer average:steps weights changes of parameters, but --work fixed reports "
                   "gradients, which always count by their samples",
                   "leave --outer out, or use --work local");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_strategy_resolves_to_the_rules_of_its_row),
        cmocka_unit_test(the_default_strategy_is_fmb),
        cmocka_unit_test(sizes_have_defaults),
        cmocka_unit_test(the_batch_of_a_timed_plan_is_its_cap_or_its_mean),
        cmocka_unit_test(rules_are_replaced_one_by_one),
        cmocka_unit_test(arguments_have_defaults_that_the_rule_knows),
        cmocka_unit_test(arguments_are_given_by_position_or_by_name),
        cmocka_unit_test(arguments_without_a_name_are_for_the_rule_of_the_strategy),
        cmocka_unit_test(a_strategy_takes_the_arguments_of_its_main_rule),
        cmocka_unit_test(every_rule_is_read_back_as_it_is_shown),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(unsupported_combinations_are_refused_with_the_reason),
        cmocka_unit_test(invalid_sizes_are_refused),
        cmocka_unit_test(invalid_numbers_are_refused),
        cmocka_unit_test(unknown_names_get_the_nearest_known_one),
        cmocka_unit_test(local_work_is_a_number_of_steps_or_a_time),
        cmocka_unit_test(changes_are_weighted_by_samples_steps_or_equally),
        cmocka_unit_test(local_work_refuses_what_makes_no_sense_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
