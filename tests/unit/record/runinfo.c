#include "record/runinfo.h"

#include "script.h"
#include "step/switch.h"

static at_plan scaled(const char *strategy, const char *size, const char *lr_scale)
{
    at_plan         plan;
    at_fail         fail = {0};
    at_plan_options options = {.strategy = strategy,
                               .size = size,
                               .lr_scale = lr_scale,
                               .workers = 3,
                               .workers_max = 3,
                               .batch = 64};
    if (at_plan_resolve(&options, &plan, &fail)) fail_msg("%s", fail.text);
    plan.samples_epoch = 60000;
    return plan;
}

static at_plan resolved(const char *strategy, const char *size)
{
    return scaled(strategy, size, "linear");
}

static void the_scale_of_the_learning_rate_is_read_back_from_the_header(void **state)
{
    (void)state;
    static const char *const scales[] = {"none", "linear", "inverse"};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        at_plan           plan = scaled("grow", NULL, scales[i]), again, next;
        const at_run_info info = {.plan = &plan};
        char             *text = at_run_info_text(&info);
        at_fail           fail = {0};
        if (at_run_info_plan(text, &again, &next, &fail)) fail_msg("%s", fail.text);
        assert_int_equal(again.lr_linear, i == 1);
        assert_int_equal(again.lr_inverse, i == 2);
        free(text);
    }
}

static void settings_of_size_rules_are_read_back_from_the_header(void **state)
{
    (void)state;
    static const char *const sizes[] = {"speed:step,9,640",
                                        "speed:epoch,9,640",
                                        "grow:1.7,0.1,9,640",
                                        "shrink:3,2,9,640",
                                        "loss:9,640",
                                        "noise:9,640",
                                        "probe:640",
                                        "grow:1.7,0.1,max=640",
                                        "grow:1.2345678901234567,2",
                                        "stall:10,5,mean",
                                        "stall:2.5,3,sum,60s,9,640",
                                        "loss-target:0.25,9,640"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        at_plan           plan = resolved("fmb", sizes[i]), again, next;
        const at_run_info info = {.plan = &plan};
        char              rule[AT_RULE_TEXT_SIZE];
        char             *text = at_run_info_text(&info);
        at_fail           fail = {0};
        if (at_run_info_plan(text, &again, &next, &fail)) fail_msg("%s", fail.text);
        assert_string_equal(at_plan_rule_text(&again, AT_SIZE, rule, sizeof rule), sizes[i]);
        for (int j = 0; j < AT_RULE_ARGS_MAX; j++) {
            assert_int_equal(again.arg[AT_SIZE][j].whole, plan.arg[AT_SIZE][j].whole);
            assert_true(again.arg[AT_SIZE][j].real == plan.arg[AT_SIZE][j].real);
        }
        assert_int_equal(again.batch_min, plan.batch_min);
        assert_int_equal(again.batch_max, plan.batch_max);
        assert_int_equal(again.samples_epoch, 60000);
        assert_true(again.lr_linear);
        free(text);
    }
}

static void check_read_back(const at_plan_options *options, const char *switch_to)
{
    at_plan           plan, then, again, next;
    const at_run_info info = {.plan = &plan};
    at_fail           fail = {0};
    if (at_plan_resolve(options, &plan, &fail)) fail_msg("%s", fail.text);
    if (at_switch_resolve(options, switch_to, &plan, &then, &fail)) fail_msg("%s", fail.text);
    char *text = at_run_info_text(&info);
    if (at_run_info_plan(text, &again, &next, &fail)) fail_msg("%s: %s", text, fail.text);
    assert_int_equal(again.time_limit, plan.time_limit);
    assert_true(again.switch_value == plan.switch_value);
    for (int i = 0; i < AT_RULE_ARGS_MAX; i++) {
        assert_int_equal(again.arg[AT_MIX][i].whole, plan.arg[AT_MIX][i].whole);
        assert_string_equal(again.arg[AT_MIX][i].name, plan.arg[AT_MIX][i].name);
    }
    free(text);
}

static void names_numbers_and_times_are_read_back_exactly(void **state)
{
    (void)state;
    at_plan_options o = {.strategy = "fmb-gossip", .workers = 4, .batch = 64};
    o.mix = "gossip:graph=file:set=3/edges.txt,rounds=3,matrix=laplacian";
    check_read_back(&o, "fmb-gossip@loss=0.12345678901234567");
    o.mix = "gossip:rounds=2000000.000000001s";
    check_read_back(&o, "fmb-gossip@step=2");
    o = (at_plan_options){.strategy = "amb:1234567.123456789s", .workers = 4, .batch = 64};
    check_read_back(&o, "fmb@time=90.000000001s");
}

/* Replaces one rule in the header by another text. */
static void assert_rule_refused(const char *family, const char *now, const char *then)
{
    at_plan           plan = resolved("grow", NULL), again, next;
    const at_run_info info = {.plan = &plan};
    char             *text = at_run_info_text(&info), changed[4096], from[64], to[64];
    at_fail           fail = {0};
    snprintf(from, sizeof from, "\"%s\":\"%s\"", family, now);
    snprintf(to, sizeof to, "\"%s\":\"%s\"", family, then);
    const char *place = strstr(text, from);
    assert_non_null(place);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(place - text), text, to,
             place + strlen(from));
    assert_int_equal(at_run_info_plan(changed, &again, &next, &fail), AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "no valid"));
    free(text);
}

static void invalid_rules_are_refused(void **state)
{
    (void)state;
    assert_rule_refused("size", "grow:2,2", "grow:2,2,65");
    assert_rule_refused("size", "grow:2,2", "grow:2,2,0");
    assert_rule_refused("size", "grow:2,2", "grow:2,2,max=63");
    assert_rule_refused("size", "grow:2,2", "grow:1,2");
    assert_rule_refused("size", "grow:2,2", "grow:2,0");
    assert_rule_refused("size", "grow:2,2", "auto");
    assert_rule_refused("gather", "all", "first:0");
    assert_rule_refused("gather", "all", "nobody");
    assert_rule_refused("release", "barrier", "free"); /* does not go with all */
    assert_rule_refused("work", "fixed:64", "fixed:63");
    assert_rule_refused("mix", "central", "sliced:0");
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
        at_plan plan, next;
        at_fail fail = {0};
        assert_int_equal(at_run_info_plan(texts[i], &plan, &next, &fail), AT_ERR_FORMAT);
        assert_true(fail.text[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_scale_of_the_learning_rate_is_read_back_from_the_header),
        cmocka_unit_test(settings_of_size_rules_are_read_back_from_the_header),
        cmocka_unit_test(names_numbers_and_times_are_read_back_exactly),
        cmocka_unit_test(invalid_rules_are_refused),
        cmocka_unit_test(an_invalid_plan_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
