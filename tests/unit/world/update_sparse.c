/* Sparse updates give the same weights as dense ones, without a pass over all weights. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "learn/sparse/sparse.h"
#include "world/core/update.h"

enum { DIMENSION = 20, FLOATS = DIMENSION + AT_SPARSE_EXTRA, WORKERS = 3, PAIRS = 12 };

/* A gradient, as at_pairs. */
typedef struct slot {
    _Alignas(8) float floats[2 + 2 * PAIRS];
} slot;

/* The same training twice: sparse, and dense as the reference. */
typedef struct rig {
    at_learning sparse, dense;
    at_updater  quick, slow;
    float       flat[FLOATS], w[DIMENSION + 1];
    slot        slot[WORKERS];
    float       vector[WORKERS][DIMENSION + 1];
    at_piece    piece[WORKERS];
    at_rng      rng;
    uint64_t    step;
} rig;

static at_pairs *pairs_in(slot *place)
{
    return (at_pairs *)(void *)place->floats;
}

static const float *pairs_at(void *self, at_node worker, uint32_t place)
{
    (void)place;
    return ((rig *)self)->slot[worker - 1].floats;
}

static const float *vector_at(void *self, at_node worker, uint32_t place)
{
    (void)place;
    return ((rig *)self)->vector[worker - 1];
}

static void set_up(rig *r, const char *optim, double decay, bool norms)
{
    memset(r, 0, sizeof *r);
    r->rng = at_rng_stream(3, 1, AT_RNG_PURPOSE_SYNTHETIC, 0);
    r->dense.optim = at_optim_find(optim);
    r->dense.rate[0].weight_decay = decay;
    r->dense.trained = DIMENSION + 1;
    assert_int_equal(at_schedule_parse("const", 0.5, 100, 0, &r->dense.rate[0].schedule, NULL),
                     AT_OK);
    r->sparse = r->dense;
    r->sparse.sparse = true;
    r->sparse.slot_floats = sizeof(slot) / sizeof(float);
    at_sparse_init(r->flat, DIMENSION);
    for (int i = 0; i <= DIMENSION; i++) r->flat[i] = r->w[i] = (float)at_rng_uniform(&r->rng);
    assert_int_equal(at_updater_init(&r->quick, &r->sparse, r->flat, FLOATS, WORKERS, NULL), AT_OK);
    assert_int_equal(at_updater_init(&r->slow, &r->dense, r->w, DIMENSION + 1, WORKERS, NULL),
                     AT_OK);
    r->quick.wants_norms = r->slow.wants_norms = norms;
}

static void tear_down(rig *r)
{
    at_updater_deinit(&r->quick);
    at_updater_deinit(&r->slow);
}

static void draw_gradients(rig *r, bool weighted)
{
    memset(r->vector, 0, sizeof r->vector);
    for (uint32_t w = 0; w < WORKERS; w++) {
        at_pairs *pairs = pairs_in(&r->slot[w]);
        pairs->count = 1 + at_rng_next(&r->rng) % PAIRS;
        for (uint64_t k = 0; k < pairs->count; k++) {
            at_pair *pair = &pairs->pair[k];
            pair->index = (uint32_t)(at_rng_next(&r->rng) % (DIMENSION + 1));
            pair->value = (float)at_rng_uniform(&r->rng) - 0.5f;
            r->vector[w][pair->index] += pair->value;
        }
        r->piece[w] =
            (at_piece){.worker = w + 1, .samples = w + 1, .weight = weighted && w == 1 ? 0.5 : 1};
    }
}

static void apply(rig *r, at_updater *updater, bool folded, bool dense)
{
    at_gradients gradients = {r, dense ? vector_at : pairs_at};
    at_action    action = {.kind = AT_ACT_APPLY};
    action.as.apply.step = r->step;
    action.as.apply.samples = 1 + 2 + 3;
    action.as.apply.pieces = r->piece;
    action.as.apply.count = WORKERS;
    action.as.apply.folded = folded;
    action.as.apply.lr_factor = 1;
    for (int i = 0; folded && i < WORKERS; i++) at_updater_add(updater, &r->piece[i], &gradients);
    assert_true(at_updater_apply(updater, &action, &gradients) == 0.5);
}

static void step(rig *r, bool folded, bool weighted)
{
    r->step++;
    draw_gradients(r, weighted);
    apply(r, &r->quick, folded, false);
    apply(r, &r->slow, folded, true);
}

static void assert_same_weights(const rig *r)
{
    float plain[DIMENSION + 1];
    at_sparse_to_plain(plain, r->flat, DIMENSION);
    for (int i = 0; i <= DIMENSION; i++) assert_true(fabsf(plain[i] - r->w[i]) < 1e-4f);
}

static void check(const char *optim, double decay, int steps)
{
    for (int how = 0; how < 4; how++) {
        rig r;
        set_up(&r, optim, decay, false);
        for (int i = 0; i < steps; i++) step(&r, how & 1, how & 2);
        assert_same_weights(&r);
        tear_down(&r);
    }
}

static void sgd_equals_dense_sgd(void **state)
{
    (void)state;
    check("sgd", 0, 30);
}

static void lazy_decay_equals_eager_decay(void **state)
{
    (void)state;
    check("sgd", 0.1, 30);
    check("sgd", 1.0, 200); /* the scale is multiplied into the weights in between */
}

static void adagrad_equals_dense_adagrad(void **state)
{
    (void)state;
    check("adagrad", 0, 30);
}

/* Decoupled: all weights shrink by learning rate times decay, independent of AdaGrad. */
static void decay_of_adagrad_shrinks_all_weights_equally(void **state)
{
    rig   r;
    float before[DIMENSION + 1], after[DIMENSION + 1];
    (void)state;
    set_up(&r, "adagrad", 0.2, false);
    at_sparse_to_plain(before, r.flat, DIMENSION);
    r.step = 1;
    draw_gradients(&r, false);
    for (int w = 0; w < WORKERS; w++) {
        pairs_in(&r.slot[w])->count = 1;
        pairs_in(&r.slot[w])->pair[0].index = 0;
    }
    apply(&r, &r.quick, false, false);
    at_sparse_to_plain(after, r.flat, DIMENSION);
    for (int i = 1; i <= DIMENSION; i++) assert_true(fabsf(after[i] - 0.9f * before[i]) < 1e-6f);
    assert_true(fabsf(after[0] - 0.9f * before[0]) > 1e-3f);
    tear_down(&r);
}

static void norms_are_those_of_dense_gradients_and_change_no_bit(void **state)
{
    (void)state;
    for (int folded = 0; folded < 2; folded++) {
        rig with, without;
        set_up(&with, "sgd", 0, true);
        set_up(&without, "sgd", 0, false);
        for (int i = 0; i < 10; i++) {
            step(&with, folded, false);
            step(&without, folded, false);
            assert_true(fabs(with.quick.norm2_step - with.slow.norm2_step) < 1e-5);
            assert_true(fabs(with.quick.norm2_piece - with.slow.norm2_piece) < 1e-5);
        }
        assert_memory_equal(with.flat, without.flat, sizeof with.flat);
        tear_down(&with);
        tear_down(&without);
    }
}

static void hogwild_sets_rate_and_scale_but_not_the_weights(void **state)
{
    rig   r;
    float before[FLOATS];
    (void)state;
    set_up(&r, "sgd", 0.1, false);
    r.sparse.updates_in_place = true;
    memcpy(before, r.flat, sizeof before);
    draw_gradients(&r, false);
    r.step = 1;
    apply(&r, &r.quick, true, false);
    assert_memory_equal(before, r.flat, (DIMENSION + 1) * sizeof *before);
    assert_true(fabsf(*at_sparse_scale(r.flat, DIMENSION) - (float)pow(0.95, 6)) < 1e-6f);
    assert_true(*at_sparse_rate(r.flat, DIMENSION) == 0.5f);
    tear_down(&r);
}

/* Workers read it from the parameters, which a checkpoint has without it. */
static void a_resumed_hogwild_run_has_the_rate_of_its_step(void **state)
{
    (void)state;
    rig r;
    set_up(&r, "sgd", 0, false);
    assert_int_equal(
        at_schedule_parse("linear:0,steps", 0.5, 100, 10, &r.sparse.rate[0].schedule, NULL), AT_OK);
    at_updater_resume(&r.quick, 60, 5);
    double now = at_schedule_now(&r.sparse.rate[0].schedule, 60, 5);
    assert_true(now < 0.5);
    assert_float_equal(*at_sparse_rate(r.flat, DIMENSION), now, 1e-7);
    tear_down(&r);
}

static void sums_that_hogwild_workers_share_are_saved_and_restored(void **state)
{
    rig   r;
    float shared[DIMENSION + 1], saved[DIMENSION + 1];
    (void)state;
    set_up(&r, "adagrad", 0, false);
    r.sparse.updates_in_place = true;
    r.sparse.shared_state = shared;
    for (int i = 0; i <= DIMENSION; i++) shared[i] = (float)i;
    at_updater_moment(&r.quick, 0, saved);
    assert_memory_equal(saved, shared, sizeof saved);
    memset(shared, 0, sizeof shared);
    at_updater_set_moment(&r.quick, 0, saved);
    assert_memory_equal(saved, shared, sizeof saved);
    tear_down(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sgd_equals_dense_sgd),
        cmocka_unit_test(lazy_decay_equals_eager_decay),
        cmocka_unit_test(adagrad_equals_dense_adagrad),
        cmocka_unit_test(decay_of_adagrad_shrinks_all_weights_equally),
        cmocka_unit_test(norms_are_those_of_dense_gradients_and_change_no_bit),
        cmocka_unit_test(hogwild_sets_rate_and_scale_but_not_the_weights),
        cmocka_unit_test(a_resumed_hogwild_run_has_the_rate_of_its_step),
        cmocka_unit_test(sums_that_hogwild_workers_share_are_saved_and_restored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
