/* The hub's updates: the norms that size rules use, clipping, and the factor on the learning
 * rate. */
#include "world/core/update.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { PARAMS = 3, PIECES = 2 };

/* Sums over 2 and 4 samples: their means are (1, 2, 2) and (0, 1.5, 2). */
static const float sums[PIECES][PARAMS] = {{2, 4, 4}, {0, 6, 8}};

static const float *gradient_at(void *self, at_node worker, uint32_t slot)
{
    (void)self;
    (void)slot;
    return sums[worker - 1];
}

typedef struct rig {
    at_learning  learning;
    at_updater   updater;
    float        w[PARAMS];
    at_piece     piece[PIECES];
    at_gradients gradients;
} rig;

static void set_up(rig *r, bool norms)
{
    *r = (rig){.w = {1, 2, 3}, .gradients = {NULL, gradient_at}};
    assert_int_equal(at_schedule_parse("const", 0.5, 100, 0, &r->learning.rate[0].schedule, NULL),
                     AT_OK);
    r->learning.optim = at_optim_find("sgd");
    r->learning.trained = PARAMS;
    assert_int_equal(at_updater_init(&r->updater, &r->learning, r->w, PARAMS, PIECES, NULL), AT_OK);
    r->updater.wants_norms = norms;
    r->piece[0] = (at_piece){.worker = 1, .samples = 2, .weight = 1};
    r->piece[1] = (at_piece){.worker = 2, .samples = 4, .weight = 1};
}

static double apply(rig *r, bool folded, double lr_factor)
{
    at_action action = {.kind = AT_ACT_APPLY};
    action.as.apply.step = 1;
    action.as.apply.samples = 6;
    action.as.apply.pieces = r->piece;
    action.as.apply.count = PIECES;
    action.as.apply.folded = folded;
    action.as.apply.lr_factor = lr_factor;
    for (int i = 0; folded && i < PIECES; i++)
        at_updater_add(&r->updater, &r->piece[i], &r->gradients);
    return at_updater_apply(&r->updater, &action, &r->gradients);
}

/* |(1, 2, 2)|^2 = 9 and |(0, 1.5, 2)|^2 = 6.25; the step's mean is (2, 10, 12) / 6. */
static void assert_norms(const rig *r)
{
    assert_true(fabs(r->updater.norm2_piece - (9 + 6.25) / 2) < 1e-12);
    assert_true(fabs(r->updater.norm2_step - 248.0 / 36) < 1e-12);
}

static void norms_are_those_of_mean_gradients(void **state)
{
    (void)state;
    for (int folded = 0; folded < 2; folded++) {
        rig r;
        set_up(&r, true);
        for (int i = 0; i < 2; i++) { /* no step affects the norms of the next */
            apply(&r, folded, 1);
            assert_norms(&r);
        }
        at_updater_deinit(&r.updater);
    }
}

static void computing_norms_changes_no_bit(void **state)
{
    (void)state;
    for (int weighted = 0; weighted < 2; weighted++)
        for (int folded = 0; folded < 2; folded++) {
            rig with, without;
            set_up(&with, true);
            set_up(&without, false);
            if (weighted) with.piece[1].weight = without.piece[1].weight = 1.0 / 3;
            apply(&with, folded, 1);
            apply(&without, folded, 1);
            assert_memory_equal(with.w, without.w, sizeof with.w);
            assert_true(without.updater.norm2_step == 0);
            at_updater_deinit(&with.updater);
            at_updater_deinit(&without.updater);
        }
}

static void the_factor_multiplies_the_learning_rate(void **state)
{
    (void)state;
    rig r;
    set_up(&r, false);
    assert_true(apply(&r, false, 3) == 1.5);
    assert_true(fabsf(r.w[0] - (1 - 1.5f * 2 / 6)) < 1e-6f);
    at_updater_deinit(&r.updater);
}

/* The mean gradient is (2, 10, 12) / 6, of norm sqrt(248) / 6 = 2.62. */
static void a_mean_gradient_longer_than_the_limit_is_scaled_down_to_it(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) { /* folded or not, with norms or not */
        rig r;
        set_up(&r, way & 2);
        r.learning.clip = 0.5;
        apply(&r, way & 1, 1);
        for (int i = 0; i < PARAMS; i++) {
            double direction = (sums[0][i] + sums[1][i]) / sqrt(248);
            assert_true(fabs(r.w[i] - (1 + i - 0.5 * 0.5 * direction)) < 1e-6);
        }
        if (way & 2) assert_norms(&r); /* those of the gradient as it was */
        at_updater_deinit(&r.updater);
    }
}

static void a_shorter_mean_gradient_keeps_every_bit(void **state)
{
    (void)state;
    for (int way = 0; way < 8; way++) { /* folded or not, with norms or not, weighted or not */
        rig with, without;
        set_up(&with, way & 2);
        set_up(&without, false);
        with.learning.clip = 2.63;
        if (way & 4) with.piece[1].weight = without.piece[1].weight = 1.0 / 3;
        apply(&with, way & 1, 1);
        apply(&without, way & 1, 1);
        assert_memory_equal(with.w, without.w, sizeof with.w);
        at_updater_deinit(&with.updater);
        at_updater_deinit(&without.updater);
    }
}

/* The last parameter is a running statistic: neither in the norm nor scaled. */
static void statistics_are_not_clipped(void **state)
{
    (void)state;
    static const at_param_range ranges[] = {{.at = 0, .count = 2, .group = 0},
                                            {.at = 2, .count = 1, .group = -1, .keep = 0.5f}};
    rig                         r;
    set_up(&r, false);
    at_updater_deinit(&r.updater);
    r.learning.ranges = ranges;
    r.learning.ranges_count = 2;
    r.learning.trained = 2;
    r.learning.clip = 1;
    assert_int_equal(at_updater_init(&r.updater, &r.learning, r.w, PARAMS, PIECES, NULL), AT_OK);
    apply(&r, false, 1);
    assert_true(fabs(r.w[0] - (1 - 0.5 * 2 / sqrt(104))) < 1e-6);
    assert_true(fabs(r.w[1] - (2 - 0.5 * 10 / sqrt(104))) < 1e-6);
    assert_true(fabs(r.w[2] - (0.5 * 3 + 0.5 * 2)) < 1e-6);
    at_updater_deinit(&r.updater);
}

/* Norms of blocks are what hubs tell each other: 8 bytes per block. */
static void hubs_share_norms_first_and_parameters_then(void **state)
{
    (void)state;
    rig r;
    set_up(&r, false);
    apply(&r, false, 1);
    at_update_result result = at_updater_result(&r.updater, (at_slice){0, PARAMS});
    assert_ptr_equal(result.floats, r.w);
    assert_int_equal(result.count, PARAMS);
    r.updater.work->gauges = true;
    result = at_updater_result(&r.updater, (at_slice){0, PARAMS});
    assert_ptr_equal((void *)result.floats, (void *)r.updater.norm2_sums);
    assert_int_equal(result.count, 2);
    at_updater_deinit(&r.updater);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_are_those_of_mean_gradients),
        cmocka_unit_test(computing_norms_changes_no_bit),
        cmocka_unit_test(the_factor_multiplies_the_learning_rate),
        cmocka_unit_test(a_mean_gradient_longer_than_the_limit_is_scaled_down_to_it),
        cmocka_unit_test(a_shorter_mean_gradient_keeps_every_bit),
        cmocka_unit_test(statistics_are_not_clipped),
        cmocka_unit_test(hubs_share_norms_first_and_parameters_then),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
