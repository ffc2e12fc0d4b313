/* Gradients that are summed before the step closes: no bit depends on when, or on who drops out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "world/core/update.h"

enum { PARAMS = 5000, WORKERS = 5, STEPS = 4 };

typedef struct rig {
    at_learning learning;
    at_updater  updater;
    float       w[PARAMS], gradient[WORKERS][PARAMS];
    at_piece    piece[WORKERS];
} rig;

static const float *gradient_at(void *self, at_node worker, uint32_t slot)
{
    (void)slot;
    return ((rig *)self)->gradient[worker - 1];
}

static void set_up(rig *r, double clip)
{
    memset(r, 0, sizeof *r);
    r->learning =
        (at_learning){.optim = at_optim_find("momentum"), .trained = PARAMS, .clip = clip};
    assert_int_equal(at_schedule_parse("const", 0.5, 100, 0, &r->learning.rate[0].schedule, NULL),
                     AT_OK);
    assert_int_equal(at_updater_init(&r->updater, &r->learning, r->w, PARAMS, WORKERS, NULL),
                     AT_OK);
}

static void draw_gradients(rig *r, uint64_t step, double weight)
{
    at_rng rng = at_rng_stream(step, 0, AT_RNG_PURPOSE_TEST, 0);
    for (uint32_t i = 0; i < WORKERS; i++) {
        for (int k = 0; k < PARAMS; k++) r->gradient[i][k] = (float)at_rng_normal(&rng);
        r->piece[i] = (at_piece){.worker = i + 1, .samples = 2, .sequence = step, .weight = 1};
    }
    r->piece[WORKERS - 1].weight = weight;
}

/* `from`: the first worker whose gradient is part of the step. */
static void apply(rig *r, uint64_t step, uint32_t from)
{
    at_action action = {.kind = AT_ACT_APPLY};
    action.as.apply.step = step;
    action.as.apply.count = WORKERS - from;
    action.as.apply.samples = 2 * (WORKERS - from);
    action.as.apply.pieces = r->piece + from;
    action.as.apply.lr_factor = 1;
    at_updater_apply(&r->updater, &action, &(at_gradients){r, gradient_at});
}

/* `there`: how many gradients had come each time the hub looked. */
static void sum_early(rig *r, const uint32_t *there)
{
    for (; *there > 0; there++)
        at_updater_sum_early(&r->updater, r->piece, *there, &(at_gradients){r, gradient_at});
}

static void assert_same(const uint32_t *there, uint32_t from, double weight, double clip)
{
    static rig early, late;
    set_up(&early, clip);
    set_up(&late, clip);
    for (uint64_t step = 1; step <= STEPS; step++) {
        draw_gradients(&early, step, weight);
        draw_gradients(&late, step, weight);
        sum_early(&early, there);
        apply(&early, step, from);
        apply(&late, step, from);
        assert_memory_equal(early.w, late.w, sizeof early.w);
    }
    at_updater_deinit(&early.updater);
    at_updater_deinit(&late.updater);
}

static void sums_begun_early_give_the_same_bits(void **state)
{
    static const uint32_t one[] = {1, 0}, some[] = {3, 0}, by_turns[] = {1, 2, 4, 0};
    static const uint32_t again[] = {2, 2, 3, 0}, all[] = {2, WORKERS, 0};
    const uint32_t       *there[] = {one, some, by_turns, again, all};
    (void)state;
    for (size_t i = 0; i < sizeof there / sizeof *there; i++) {
        assert_same(there[i], 0, 1, 0);
        assert_same(there[i], 0, 0.25, 0); /* the last gradient has less weight */
        assert_same(there[i], 0, 1, 0.01); /* clipped */
    }
}

static void a_step_without_the_first_gradient_starts_again(void **state)
{
    static const uint32_t some[] = {3, 0};
    (void)state;
    assert_same(some, 1, 1, 0);
}

static void a_sum_is_really_used(void **state)
{
    static rig r;
    (void)state;
    set_up(&r, 0);
    draw_gradients(&r, 1, 1);
    at_updater_sum_early(&r.updater, r.piece, 2, &(at_gradients){&r, gradient_at});
    r.gradient[0][7] = 1000; /* too late: it has been added up */
    apply(&r, 1, 0);
    assert_true(r.w[7] > -10 && r.w[7] < 10);
    at_updater_deinit(&r.updater);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_begun_early_give_the_same_bits),
        cmocka_unit_test(a_step_without_the_first_gradient_starts_again),
        cmocka_unit_test(a_sum_is_really_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
