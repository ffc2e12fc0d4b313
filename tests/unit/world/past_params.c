/* Old gradients are corrected by --stale compensate, with numbers worked out by hand. */
#include "world/core/past_params.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "world/core/update.h"

enum { PARAMS = 3, TRAINED = 2, WORKERS = 2 };

/* Sums over 2 and 4 samples: their means are (1, -2) and (0.5, 3). The last one is a statistic. */
static const float sums[WORKERS][PARAMS] = {{2, -4, 7}, {2, 12, 8}};

static const float *gradient_at(void *self, at_node worker, uint32_t slot)
{
    (void)self;
    (void)slot;
    return sums[worker - 1];
}

static at_plan plan_of(const char *stale)
{
    at_plan         plan;
    at_fail         fail = {0};
    at_plan_options options = {.strategy = "async", .stale = stale, .workers = WORKERS};
    options.batch = 4;
    assert_int_equal(at_plan_resolve(&options, &plan, &fail), AT_OK);
    return plan;
}

static void the_formula(void **state)
{
    (void)state;
    at_plan           plan = plan_of("compensate:0.5");
    const float       then[2] = {1, 2}, now[2] = {1.25f, 1};
    float             corrected[2] = {0, 0};
    at_stale_gradient gradient = {
        .count = 2, .samples = 2, .sum = sums[0], .then = then, .now = now, .corrected = corrected};
    plan.stale->correct(&plan, &gradient);
    /* g + 0.5 g g (now - then) = 1 + 0.5 * 1 * 0.25 and -2 + 0.5 * 4 * -1, times 2 samples */
    assert_true(fabsf(corrected[0] - 2 * 1.125f) < 1e-6f);
    assert_true(fabsf(corrected[1] - 2 * -4.0f) < 1e-6f);
}

static void only_old_gradients_are_corrected(void **state)
{
    (void)state;
    at_plan        plan = plan_of("compensate:1,versions=2");
    at_past_params past;
    const float    w[3][PARAMS] = {{0, 0, 0}, {1, 2, 0}, {3, 5, 0}};
    at_piece       piece = {.worker = 1, .samples = 2};
    assert_int_equal(at_past_params_init(&past, &plan, PARAMS, TRAINED, NULL), AT_OK);
    assert_ptr_equal(at_past_params_correct(&past, &piece, sums[0], w[0]), sums[0]);
    at_past_params_keep(&past, w[0], 1);
    at_past_params_keep(&past, w[1], 2);
    for (uint64_t version = 0; version < 3; version++) {
        piece.version = version;
        const float *g = at_past_params_correct(&past, &piece, sums[0], w[2]);
        if (version == 2) assert_ptr_equal(g, sums[0]);
        for (int i = 0; i < TRAINED; i++) {
            float mean = sums[0][i] / 2;
            float wanted = 2 * (mean + mean * mean * (w[2][i] - w[version][i]));
            assert_true(fabsf(g[i] - wanted) < 1e-5f);
        }
        assert_true(g[TRAINED] == sums[0][TRAINED]);
    }
    at_past_params_deinit(&past);
}

static void other_rules_keep_nothing(void **state)
{
    (void)state;
    at_plan        plan = plan_of("use");
    at_past_params past;
    assert_int_equal(at_past_params_init(&past, &plan, PARAMS, TRAINED, NULL), AT_OK);
    assert_null(past.memory);
    at_past_params_keep(&past, sums[0], 1);
    at_past_params_deinit(&past);
}

static void add(at_updater *updater, at_node worker, uint64_t version)
{
    at_gradients gradients = {NULL, gradient_at};
    at_piece     piece = {
            .worker = worker, .samples = worker == 1 ? 2 : 4, .weight = 1, .version = version};
    at_action apply = {.kind = AT_ACT_APPLY};
    apply.as.apply.step = worker; /* worker 1 makes the first step */
    apply.as.apply.samples = piece.samples;
    apply.as.apply.pieces = &piece;
    apply.as.apply.count = 1;
    apply.as.apply.folded = true;
    apply.as.apply.lr_factor = 1;
    at_updater_add(updater, &piece, &gradients);
    at_updater_apply(updater, &apply, &gradients);
}

/* Both workers computed on version 0, the second one is late by a step. */
static void the_hub_corrects_the_late_worker(void **state)
{
    (void)state;
    at_plan     plan = plan_of("compensate:1");
    at_learning learning = {.optim = at_optim_find("sgd"), .trained = PARAMS, .stale = &plan};
    at_updater  updater;
    float       w[PARAMS] = {1, 2, 3};
    assert_int_equal(at_schedule_parse("const", 0.5, 100, 0, &learning.rate[0].schedule, NULL),
                     AT_OK);
    assert_int_equal(at_updater_init(&updater, &learning, w, PARAMS, WORKERS, NULL), AT_OK);
    add(&updater, 1, 0);
    assert_true(fabsf(w[0] - 0.5f) < 1e-6f); /* 1 - 0.5 * 1 */
    assert_true(fabsf(w[1] - 3.0f) < 1e-6f); /* 2 + 0.5 * 2 */
    add(&updater, 2, 0);
    /* 0.5 + 0.25 * -0.5 = 0.375 and 3 + 9 * 1 = 12 */
    assert_true(fabsf(w[0] - (0.5f - 0.5f * 0.375f)) < 1e-6f);
    assert_true(fabsf(w[1] - (3.0f - 0.5f * 12)) < 1e-5f);
    at_updater_deinit(&updater);
}

static void gradients_older_than_all_kept_versions_are_dropped(void **state)
{
    (void)state;
    at_plan plan = plan_of("compensate:0.1");
    assert_true(plan.stale->versions(&plan) == 4 * WORKERS);
    assert_true(plan.stale->weight(&plan, 4 * WORKERS) == 1);
    assert_true(plan.stale->weight(&plan, 4 * WORKERS + 1) < 0);
}

static void it_is_refused_where_it_cannot_work(void **state)
{
    (void)state;
    static const struct {
        at_plan_options options;
        const char     *says;
    } cases[] = {
        {{.strategy = "fmb", .stale = "compensate"}, "--release barrier"},
        {{.strategy = "async-timed", .stale = "compensate"}, "--newer refresh"},
        {{.strategy = "async", .stale = "compensate", .mix = "sliced:2"}, "--mix sliced"},
        {{.strategy = "async", .stale = "compensate:-1"}, "compensate"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        at_plan         plan;
        at_fail         fail = {0};
        at_plan_options options = cases[i].options;
        options.workers = WORKERS;
        options.batch = 4;
        assert_int_equal(at_plan_resolve(&options, &plan, &fail), AT_ERR_USAGE);
        assert_non_null(strstr(fail.text, cases[i].says));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_formula),
        cmocka_unit_test(only_old_gradients_are_corrected),
        cmocka_unit_test(other_rules_keep_nothing),
        cmocka_unit_test(the_hub_corrects_the_late_worker),
        cmocka_unit_test(gradients_older_than_all_kept_versions_are_dropped),
        cmocka_unit_test(it_is_refused_where_it_cannot_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
