#include "record/runinfo.h"

#include "script.h"

static at_plan resolved(const char *strategy, const char *size)
{
    at_plan         plan;
    at_fail         fail = {0};
    at_plan_options options = {.strategy = strategy,
                               .size = size,
                               .lr_scale = "linear",
                               .k = -1,
                               .staleness = -1,
                               .workers = 3,
                               .workers_max = 3,
                               .batch = 64,
                               .batch_min = 9,
                               .batch_max = 640};
    if (at_plan_resolve(&options, &plan, &fail)) fail_msg("%s", fail.text);
    plan.samples_epoch = 60000;
    return plan;
}

static void settings_of_size_rules_are_read_back_from_the_header(void **state)
{
    (void)state;
    static const char *const sizes[] = {"speed:step", "speed:epoch", "grow:1.7,0.1", "shrink:3,2",
                                        "loss",       "noise",       "probe"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        at_plan           plan = resolved("fmb", sizes[i]), again;
        const at_run_info info = {.plan = &plan};
        char              rule[64];
        char             *text = at_run_info_text(&info);
        at_fail           fail = {0};
        if (at_run_info_plan(text, &again, &fail)) fail_msg("%s", fail.text);
        assert_string_equal(at_plan_rule_text(&again, AT_SIZE, rule, sizeof rule), sizes[i]);
        assert_true(again.size_factor == plan.size_factor);
        assert_true(again.size_epochs == plan.size_epochs);
        assert_int_equal(again.batch_min, 9);
        assert_int_equal(again.batch_max, 640);
        assert_int_equal(again.samples_epoch, 60000);
        assert_true(again.lr_linear);
        free(text);
    }
}

static void assert_plan_refused(at_plan plan, const char *what)
{
    const at_run_info info = {.plan = &plan};
    char             *text = at_run_info_text(&info);
    at_fail           fail = {0};
    at_plan           again;
    assert_int_equal(at_run_info_plan(text, &again, &fail), AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, what));
    free(text);
}

static void invalid_sizes_are_refused(void **state)
{
    (void)state;
    at_plan plan = resolved("grow", NULL);
    plan.batch_min = 65;
    assert_plan_refused(plan, "`batch_min`");
    plan.batch_min = 0;
    assert_plan_refused(plan, "`batch_min`");
    plan = resolved("grow", NULL);
    plan.batch_max = 63;
    assert_plan_refused(plan, "`batch_max`");
    plan = resolved("grow", NULL);
    plan.size_factor = 1;
    assert_plan_refused(plan, "`size_factor`");
    plan = resolved("shrink", NULL);
    plan.size_epochs = 0;
    assert_plan_refused(plan, "`size_epochs`");
}

static void an_invalid_plan_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"plan\":7}",
        "{\"plan\":{\"strategy\":\"amb\"}}",
        "{\"plan\":{\"strategy\":\"nobody\"}}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        at_plan plan;
        at_fail fail = {0};
        assert_int_equal(at_run_info_plan(texts[i], &plan, &fail), AT_ERR_FORMAT);
        assert_true(fail.text[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_of_size_rules_are_read_back_from_the_header),
        cmocka_unit_test(invalid_sizes_are_refused),
        cmocka_unit_test(an_invalid_plan_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
