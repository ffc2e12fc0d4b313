/* --switch: the rest of a run under another strategy. Workers take a millisecond per sample unless
 * a test says otherwise. */
#include "scenario.h"

static at_plan_options options(const char *strategy, uint32_t workers, uint64_t steps)
{
    return (at_plan_options){.strategy = strategy,
                             .workers = workers,
                             .batch = 32,
                             .micro_batch = 8,
                             .limits = {.steps = steps}};
}

static stage *enact(const char *strategy, const char *switch_to, uint64_t steps)
{
    at_plan_options o = options(strategy, 2, steps);
    transcript_open(&transcript_);
    stage_open_switching(&stage_, &o, switch_to);
    return &stage_;
}

static void a_barrier_becomes_asynchronous_at_a_step(void **state)
{
    (void)state;
    stage *s = enact("fmb", "async@step=2", 5);
    s->actor[2].sample_ns = AT_US(1500);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  48] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  48] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  48] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  96] hub > apply step 2: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  96] hub > order worker 1: round 2 on version 2, 32 samples, repeating\n"
         "[  96] hub > order worker 2: round 2 on version 2, 32 samples, repeating\n"
         "[ 128] hub > add worker 1 (32 of version 2)\n"
         "[ 128] hub > apply step 3: worker 1 (32), 32 samples, already added\n"
         "[ 144] hub > add worker 2 (32 of version 2)\n"
         "[ 144] hub > apply step 4: worker 2 (32 of version 2), 32 samples, already added\n"
         "[ 160] hub > add worker 1 (32 of version 3)\n"
         "[ 160] hub > apply step 5: worker 1 (32 of version 3), 32 samples, already added\n"
         "[ 160] hub > leave, worker 1\n"
         "[ 160] hub > leave, worker 2\n"
         "[ 168] hub > drop 16 samples of worker 2: stopped\n"
         "[ 168] hub > drop 8 samples of worker 1: stopped\n"
         "[ 168] world > worker 2 is gone, drew 112\n"
         "[ 168] world > worker 1 is gone, drew 136\n"
         "[ 168] hub > finish: steps\n");
}

static void workers_finish_their_rounds_before_a_barrier_begins(void **state)
{
    (void)state;
    stage *s = enact("async", "fmb@step=2", 5);
    s->actor[2].sample_ns = AT_US(2500);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples, repeating\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples, repeating\n"
         "[  32] hub > add worker 1 (32 of version 0)\n"
         "[  32] hub > apply step 1: worker 1 (32), 32 samples, already added\n"
         "[  64] hub > add worker 1 (32 of version 1)\n"
         "[  64] hub > apply step 2: worker 1 (32), 32 samples, already added\n"
         "[  64] hub > order worker 1: round 3 on version 2, 32 samples\n"
         "[  64] hub > order worker 2: round 1 on version 2, 32 samples\n"
         "[  80] hub > add worker 2 (32 of version 0)\n"
         "[  80] hub > apply step 3: worker 2 (32 of version 0), 32 samples, already added\n"
         "[  96] hub > add worker 1 (32 of version 2)\n"
         "[  96] hub > apply step 4: worker 1 (32 of version 2), 32 samples, already added\n"
         "[  96] hub > order worker 1: round 3 on version 4, 32 samples\n"
         "[  96] hub > order worker 2: round 1 on version 4, 32 samples\n"
         "[ 176] hub > apply step 5: worker 1 (32), worker 2 (32), 64 samples\n"
         "[ 176] hub > leave, worker 1\n"
         "[ 176] hub > leave, worker 2\n"
         "[ 176] world > worker 1 is gone, drew 128\n"
         "[ 176] world > worker 2 is gone, drew 64\n"
         "[ 176] hub > finish: steps\n");
}

static void workers_learn_what_to_do_about_newer_versions(void **state)
{
    (void)state;
    stage *s = enact("fmb", "backup:1@time=20ms", 3);
    s->actor[2].sample_ns = AT_MS(2);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  64] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  64] hub > order worker 1: round 1 on version 1, 32 samples\n"
         "[  64] hub > order worker 2: round 1 on version 1, 32 samples\n"
         "[  96] hub > apply step 2: worker 1 (32), 32 samples\n"
         "[  96] hub > order worker 1: round 2 on version 2, 32 samples\n"
         "[ 112] hub > drop 24 samples of worker 2: abandoned\n"
         "[ 112] hub > order worker 2: round 2 on version 2, 32 samples\n"
         "[ 128] hub > apply step 3: worker 1 (32), 32 samples\n"
         "[ 128] hub > leave, worker 1\n"
         "[ 128] hub > leave, worker 2\n"
         "[ 128] world > worker 1 is gone, drew 96\n"
         "[ 144] hub > drop 16 samples of worker 2: stopped\n"
         "[ 144] world > worker 2 is gone, drew 72\n"
         "[ 144] hub > finish: steps\n");
}

static void a_replacement_gets_orders_of_the_second_strategy(void **state)
{
    (void)state;
    stage *s = enact("fmb", "async@step=1", 4);
    stage_kill(s, AT_MS(40), 2, AT_MS(10));
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  32] hub > order worker 1: round 1 on version 1, 32 samples, repeating\n"
         "[  32] hub > order worker 2: round 1 on version 1, 32 samples, repeating\n"
         "[  40] world > worker 2 is gone, drew 40, will be replaced\n"
         "[  40] hub > drop 8 samples of worker 2: lost\n"
         "[  50] world > worker 2 joins, incarnation 2\n"
         "[  50] hub > order worker 2: round 2 on version 1, 32 samples, repeating\n"
         "[  64] hub > add worker 1 (32 of version 1)\n"
         "[  64] hub > apply step 2: worker 1 (32), 32 samples, already added\n"
         "[  82] hub > add worker 2 (32 of version 1)\n"
         "[  82] hub > apply step 3: worker 2 (32 of version 1), 32 samples, already added\n"
         "[  96] hub > add worker 1 (32 of version 2)\n"
         "[  96] hub > apply step 4: worker 1 (32 of version 2), 32 samples, already added\n"
         "[  96] hub > leave, worker 1\n"
         "[  96] hub > leave, worker 2\n"
         "[  98] hub > drop 16 samples of worker 2: stopped\n"
         "[  98] world > worker 2 is gone, drew 88\n"
         "[ 104] hub > drop 8 samples of worker 1: stopped\n"
         "[ 104] world > worker 1 is gone, drew 104\n"
         "[ 104] hub > finish: steps\n");
}

static void a_run_may_end_before_its_switch(void **state)
{
    (void)state;
    enact("fmb", "async@step=9", 1);
    play("[   0] hub > order worker 1: round 0 on version 0, 32 samples\n"
         "[   0] hub > order worker 2: round 0 on version 0, 32 samples\n"
         "[  32] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples\n"
         "[  32] hub > leave, worker 1\n"
         "[  32] hub > leave, worker 2\n"
         "[  32] world > worker 1 is gone, drew 32\n"
         "[  32] world > worker 2 is gone, drew 32\n"
         "[  32] hub > finish: steps\n");
}

static void the_loss_of_a_step_can_be_the_condition(void **state)
{
    (void)state;
    at_plan_options o = options("fmb", 2, 20);
    stage           s;
    stage_open_switching(&s, &o, "async@loss=0.25");
    s.halvings = 0.5;
    stage_run(&s);
    assert_true(s.hub->switched);
    assert_int_equal(s.hub->switched_at, 5); /* the loss of version 4 is a quarter */
    stage_close(&s);
}

static void epochs_are_counted_in_used_samples(void **state)
{
    (void)state;
    at_plan_options o = options("fmb", 2, 20);
    stage           s;
    stage_open_switching(&s, &o, "async@epoch=1.5");
    s.plan.samples_epoch = 200;
    stage_run(&s);
    assert_int_equal(s.hub->switched_at, 5); /* 320 samples */
    stage_close(&s);
}

static void assert_refused(const char *strategy, const char *switch_to, const char *text)
{
    at_plan_options o = options(strategy, 4, 1);
    at_plan         plan, then;
    at_fail         fail = {0};
    assert_int_equal(at_plan_resolve(&o, &plan, &fail), AT_OK);
    assert_int_equal(at_switch_resolve(&o, switch_to, &plan, &then, &fail), AT_ERR_USAGE);
    assert_string_equal(fail.text, text);
}

static void what_cannot_be_switched_is_refused_with_the_reason(void **state)
{
    (void)state;
    assert_refused("fmb", "async", "--switch async is not STRATEGY@CONDITION");
    assert_refused("fmb", "@step=2", "--switch @step=2 is not STRATEGY@CONDITION");
    assert_refused("fmb", "asink@step=2", "unknown strategy 'asink'");
    assert_refused("fmb", "async@step", "--switch: 'step' is not a condition");
    assert_refused("fmb", "async@step=0", "--switch: 'step=0' is not a condition");
    assert_refused("fmb", "async@time=soon", "--switch: 'time=soon' is not a condition");
    assert_refused("fmb", "backup:5@step=2",
                   "--gather first:5 needs at least 5 workers (there are 4)");
    assert_refused("fmb", "hogwild@step=2",
                   "--switch: hogwild has its parameters elsewhere (shared) than fmb (central)");
}

static void local_steps_before_and_after_a_switch_must_be_the_same(void **state)
{
    (void)state;
    at_plan_options o = {.strategy = "local-sgd:4,32", .workers = 4, .outer = "nesterov"};
    at_plan         plan, then;
    assert_int_equal(at_plan_resolve(&o, &plan, NULL), AT_OK);
    assert_int_equal(at_switch_resolve(&o, "diloco:4,32@step=2", &plan, &then, NULL), AT_OK);
    assert_int_equal(at_switch_resolve(&o, "anytime-sgd:1s,batch=32@step=2", &plan, &then, NULL),
                     AT_OK);
    o.outer = NULL;
    o.micro_batch = 16;
    assert_int_equal(at_plan_resolve(&o, &plan, NULL), AT_OK);
    at_fail fail = {0};
    assert_int_equal(at_switch_resolve(&o, "diloco:4,32@step=2", &plan, &then, &fail),
                     AT_ERR_USAGE);
    assert_string_equal(fail.text, "--switch: diloco combines local steps differently "
                                   "(nesterov:0.7,0.9) than local-sgd (average:equal)");
    assert_int_equal(at_switch_resolve(&o, "local-sgd:2,64@step=2", &plan, &then, &fail),
                     AT_ERR_USAGE);
    assert_string_equal(fail.text, "--switch: a local step has 32 samples under local-sgd, and 64 "
                                   "under local-sgd");
}

static void rules_given_for_the_first_strategy_are_not_those_of_the_second(void **state)
{
    (void)state;
    at_plan_options o = options("fmb", 4, 1);
    at_plan         plan, then;
    char            text[AT_SWITCH_TEXT_SIZE];
    o.gather = "first:2";
    o.work = "fixed:48";
    assert_int_equal(at_plan_resolve(&o, &plan, NULL), AT_ERR_USAGE); /* two batches */
    o.batch = 0;
    assert_int_equal(at_plan_resolve(&o, &plan, NULL), AT_OK);
    assert_int_equal(at_switch_resolve(&o, "async-fmb:3@time=90s", &plan, &then, NULL), AT_OK);
    assert_ptr_equal(plan.then, &then);
    assert_string_equal(then.gather->rule.name, "any");
    assert_int_equal(then.arg[AT_GATHER][0].whole, 3);
    assert_int_equal(then.batch, 48); /* of the run */
    assert_null(then.then);
    assert_string_equal(at_switch_condition(&plan, text, sizeof text), "time=90");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_barrier_becomes_asynchronous_at_a_step),
        cmocka_unit_test(workers_finish_their_rounds_before_a_barrier_begins),
        cmocka_unit_test(workers_learn_what_to_do_about_newer_versions),
        cmocka_unit_test(a_replacement_gets_orders_of_the_second_strategy),
        cmocka_unit_test(a_run_may_end_before_its_switch),
        cmocka_unit_test(the_loss_of_a_step_can_be_the_condition),
        cmocka_unit_test(epochs_are_counted_in_used_samples),
        cmocka_unit_test(what_cannot_be_switched_is_refused_with_the_reason),
        cmocka_unit_test(local_steps_before_and_after_a_switch_must_be_the_same),
        cmocka_unit_test(rules_given_for_the_first_strategy_are_not_those_of_the_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
