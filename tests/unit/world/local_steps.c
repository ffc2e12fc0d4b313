/* Local steps: what a worker reports is its formula, and so is what the hub makes of it. */
#include "world/core/local_steps.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { PARAMS = 1500, TRAINED = 1490, STATISTICS = PARAMS - TRAINED, VECTOR_SIZE = 6400 };
static const double LR = 0.125;

/* The gradient of a sample at w is w - position / 64, so that steps depend on the order of
 * samples; a running statistic has the mean `position`. */
static double gradient(void *self, float *g, bool first, at_point point, const at_draw *draw)
{
    (void)self;
    for (uint32_t s = 0; s < draw->count; s++)
        for (size_t i = 0; i < PARAMS; i++) {
            float position = (float)(draw->position + s);
            float one = i < TRAINED ? point.params[i] - position / 64 : position;
            g[i] = first && s == 0 ? one : g[i] + one;
        }
    return draw->count;
}

typedef struct rig {
    at_plan          plan;
    at_task          task;
    at_param_range   ranges[2];
    at_learning      outer, inner;
    at_optim         state; /* of the outer rule */
    at_world_context context;
    float           *w;
} rig;

static void set_up(rig *r, const char *work, const char *outer, const char *optim)
{
    at_plan_options options = {
        .strategy = "local-sgd", .work = work, .outer = outer, .workers = 2, .micro_batch = 4};
    at_fail fail = {0};
    *r = (rig){0};
    if (at_plan_resolve(&options, &r->plan, &fail)) fail_msg("%s", fail.text);
    r->ranges[0] = (at_param_range){.count = TRAINED};
    r->ranges[1] = (at_param_range){.at = TRAINED, .count = STATISTICS, .group = -1, .keep = 0.5F};
    r->task = (at_task){.params = PARAMS, .trained = TRAINED, .gradient = gradient};
    r->inner = (at_learning){
        .optim = at_optim_find(optim), .trained = TRAINED, .ranges = r->ranges, .ranges_count = 2};
    assert_non_null(r->inner.optim);
    for (size_t i = 0; i < AT_OPTIM_NUMBERS_MAX; i++)
        r->inner.number[i] = r->inner.optim->number[i].normal;
    assert_int_equal(at_schedule_parse("const", LR, 100, 0, &r->inner.rate[0].schedule, NULL),
                     AT_OK);
    r->state = (at_optim){.name = "outer", .states = r->plan.outer->keeps_momentum ? 1 : 0};
    r->outer = r->inner;
    r->outer.optim = &r->state;
    r->outer.inner = &r->inner;
    r->outer.outer = &r->plan;
    r->context = (at_world_context){.plan = &r->plan, .task = &r->task, .learning = &r->outer};
    r->w = aligned_alloc(64, VECTOR_SIZE);
    assert_non_null(r->w);
    for (size_t i = 0; i < PARAMS; i++) r->w[i] = (float)i / 512;
}

static void tear_down(rig *r)
{
    free(r->w);
}

/* One round in micro-batches of four; returns what is reported. */
static float *round_of(rig *r, at_local_steps *local, uint64_t position, uint32_t samples)
{
    float *change = aligned_alloc(64, VECTOR_SIZE);
    assert_non_null(change);
    at_local_steps_begin(local, r->w, change, 0);
    for (uint32_t done = 0; done < samples;) {
        uint32_t left = samples - done, count = left < 4 ? left : 4;
        at_draw  draw = {.worker = 1, .position = position + done, .count = count};
        assert_true(at_local_steps_micro(local, &draw) == count);
        done += count;
    }
    at_local_steps_end(local);
    return change;
}

static at_local_steps *new_worker(rig *r)
{
    at_local_steps *local;
    assert_int_equal(at_local_steps_new(&r->context, &local, NULL), AT_OK);
    assert_non_null(local);
    return local;
}

/* Parameter i after plain SGD over these samples in steps of `batch`. */
static double expected(const rig *r, size_t i, uint64_t position, uint32_t samples, uint32_t batch)
{
    double w = r->w[i];
    for (uint32_t done = 0; done < samples;) {
        uint32_t count = samples - done < batch ? samples - done : batch;
        double   middle = (double)(position + done) + (count - 1) / 2.0;
        w = i < TRAINED ? w - LR * (w - middle / 64) : 0.5 * w + 0.5 * middle;
        done += count;
    }
    return w;
}

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-4 * (1 + fabs(b)))) fail_msg("%.9g instead of %.9g", a, b);
}

static void a_round_is_steps_of_sgd_and_reports_its_weighted_change(void **state)
{
    (void)state;
    static const struct {
        const char *work, *outer;
        uint32_t    batch, samples;
        double      weight;
    } cases[] = {
        {"local:5,4", "average", 4, 20, 20},         {"local:5,4", "average:steps", 4, 20, 5},
        {"local:5,4", "average:equal", 4, 20, 1},    {"local:3,8", "average:steps", 8, 24, 3},
        {"local:3,8", "average:steps", 8, 19, 3}, /* the last step is cut short */
        {"local:50ms,batch=8", "average", 8, 20, 20}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        rig r;
        set_up(&r, cases[k].work, cases[k].outer, "sgd");
        at_local_steps *local = new_worker(&r);
        float          *change = round_of(&r, local, 7, cases[k].samples);
        for (size_t i = 0; i < PARAMS; i++)
            assert_near(change[i],
                        cases[k].weight *
                            (expected(&r, i, 7, cases[k].samples, cases[k].batch) - r.w[i]));
        free(change);
        at_local_steps_free(local);
        tear_down(&r);
    }
}

/* ---- the hub --------------------------------------------------------------------------------- */

typedef struct outer_case {
    const char *outer;
    double      share, lr, momentum; /* share: of the first worker, with 20 of 32 samples */
} outer_case;

static const outer_case outer_cases[] = {{"average", 20.0 / 32, 1, 0},
                                         {"average:steps", 5.0 / 8, 1, 0},
                                         {"average:equal", 0.5, 1, 0},
                                         {"nesterov", 20.0 / 32, 0.7, 0.9},
                                         {"nesterov:0.5,0.8,weights=equal", 0.5, 0.5, 0.8}};

static const float *change_at(void *self, at_node worker, uint32_t slot)
{
    (void)slot;
    return ((float **)self)[worker - 1];
}

/* What a step makes of two rounds; v is the momentum. */
static void expect_step(const rig *r, const outer_case *c, double *v, double *after)
{
    for (size_t i = 0; i < PARAMS; i++) {
        double mean = c->share * (expected(r, i, 0, 20, 4) - r->w[i]) +
                      (1 - c->share) * (expected(r, i, 100, 12, 4) - r->w[i]);
        v[i] = c->momentum * v[i] + mean;
        after[i] = r->w[i] + (i < TRAINED ? c->lr * (mean + c->momentum * v[i]) : mean);
    }
}

static void make_step(rig *r, at_updater *updater, uint64_t step, bool folds)
{
    at_local_steps *local = new_worker(r);
    float          *change[2] = {round_of(r, local, 0, 20), round_of(r, local, 100, 12)};
    at_gradients    gradients = {change, change_at};
    at_piece        piece[2] = {{.worker = 1, .samples = 20, .weight = 1},
                                {.worker = 2, .samples = 12, .weight = 1}};
    at_action       apply = {.kind = AT_ACT_APPLY};
    apply.as.apply.step = step;
    apply.as.apply.samples = 32;
    apply.as.apply.pieces = piece;
    apply.as.apply.count = 2;
    apply.as.apply.folded = folds;
    apply.as.apply.lr_factor = 1;
    for (int i = 0; folds && i < 2; i++) at_updater_add(updater, &piece[i], &gradients);
    assert_true(at_updater_apply(updater, &apply, &gradients) == LR);
    free(change[0]);
    free(change[1]);
    at_local_steps_free(local);
}

/* Two steps, so that the second one has momentum. */
static void the_hub_follows_the_outer_rule(void **state)
{
    (void)state;
    for (size_t k = 0; k < 2 * sizeof outer_cases / sizeof *outer_cases; k++) {
        const outer_case *c = &outer_cases[k / 2];
        double            v[PARAMS] = {0}, after[PARAMS];
        rig               r;
        at_updater        updater;
        set_up(&r, "local:5,4", c->outer, "sgd");
        assert_int_equal(at_updater_init(&updater, &r.outer, r.w, PARAMS, 2, NULL), AT_OK);
        for (uint64_t step = 1; step <= 2; step++) {
            expect_step(&r, c, v, after);
            make_step(&r, &updater, step, k % 2 == 1);
            for (size_t i = 0; i < PARAMS; i++) assert_near(r.w[i], after[i]);
        }
        at_updater_deinit(&updater);
        tear_down(&r);
    }
}

/* ---- state ----------------------------------------------------------------------------------- */

static void the_inner_state_lasts_until_a_restart(void **state)
{
    (void)state;
    rig r;
    set_up(&r, "local:5,4", "average", "momentum");
    at_local_steps *local = new_worker(&r);
    float          *first = round_of(&r, local, 0, 20), *second = round_of(&r, local, 0, 20);
    at_local_steps_restart(local);
    float *fresh = round_of(&r, local, 0, 20);
    assert_memory_equal(first, fresh, PARAMS * sizeof *first);
    assert_memory_not_equal(first, second, TRAINED * sizeof *first);
    free(first);
    free(second);
    free(fresh);
    at_local_steps_free(local);
    tear_down(&r);
}

static void a_round_that_was_given_up_leaves_nothing_behind(void **state)
{
    (void)state;
    rig r;
    set_up(&r, "local:3,8", "average", "sgd");
    at_local_steps *local = new_worker(&r);
    float          *lost = aligned_alloc(64, VECTOR_SIZE);
    assert_non_null(lost);
    at_local_steps_begin(local, r.w, lost, 0);
    at_local_steps_micro(local, &(at_draw){.worker = 1, .position = 90, .count = 4});
    float *change = round_of(&r, local, 7, 24);
    for (size_t i = 0; i < PARAMS; i++)
        assert_near(change[i], 24 * (expected(&r, i, 7, 24, 8) - r.w[i]));
    free(lost);
    free(change);
    at_local_steps_free(local);
    tear_down(&r);
}

static void plans_with_gradients_have_no_local_steps(void **state)
{
    (void)state;
    at_learning      learning = {.optim = at_optim_find("sgd")};
    at_task          task = {.params = PARAMS};
    at_world_context context = {.learning = &learning, .task = &task};
    at_local_steps  *local;
    assert_int_equal(at_local_steps_new(&context, &local, NULL), AT_OK);
    assert_null(local);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_is_steps_of_sgd_and_reports_its_weighted_change),
        cmocka_unit_test(the_hub_follows_the_outer_rule),
        cmocka_unit_test(the_inner_state_lasts_until_a_restart),
        cmocka_unit_test(a_round_that_was_given_up_leaves_nothing_behind),
        cmocka_unit_test(plans_with_gradients_have_no_local_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
