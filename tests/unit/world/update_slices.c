/* An update computed in slices, in any order, gives the same bits as the whole: for every
 * optimizer, with weights, groups, statistics, folded gradients, norms and clipping. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "world/core/update.h"

enum { BLOCKS = 7, PARAMS = BLOCKS * AT_UPDATER_BLOCK - 300, PIECES = 3, STEPS = 3 };

static float gradients[STEPS][PIECES][PARAMS];

/* Two groups with different settings, statistics, and a gap that is not trained. */
static const at_param_range ranges[] = {
    {.at = 0, .count = 1500, .group = 0},
    {.at = 1500, .count = 2000, .group = 1},
    {.at = 3600, .count = PARAMS - 3600 - 700, .group = 0},
    {.at = PARAMS - 700, .count = 700, .group = -1, .keep = 0.9f},
};

/* One combination of settings. */
typedef struct variant {
    const at_optim *optim;
    bool            weighted, folded, norms, grouped, clipped;
} variant;

typedef struct outcome {
    float  w[PARAMS], state[2][PARAMS];
    double norms[2];
} outcome;

typedef struct rig {
    at_learning learning;
    at_updater  updater;
    at_rng      rng;
    uint64_t    step;
} rig;

static const float *gradient_at(void *self, at_node worker, uint32_t slot)
{
    const rig *r = self;
    (void)slot;
    return gradients[r->step][worker - 1];
}

static void set_up(rig *r, const variant *way, outcome *o)
{
    at_learning *l = &r->learning;
    assert_int_equal(at_optim_parse(way->optim->name, &l->optim, l->number, NULL), AT_OK);
    l->clip = way->clipped ? 1 : 0;
    l->groups = way->grouped ? 2 : 0;
    for (uint32_t i = 0; i <= l->groups; i++) {
        assert_int_equal(
            at_schedule_parse("const", 0.01 * (i + 1), 100, 0, &l->rate[i].schedule, NULL), AT_OK);
        l->rate[i].weight_decay = 0.1 * i;
    }
    l->ranges = way->grouped ? ranges : NULL;
    l->ranges_count = sizeof ranges / sizeof *ranges;
    l->trained = way->grouped ? PARAMS - 700 : PARAMS;
    for (size_t i = 0; i < PARAMS; i++) o->w[i] = (float)i / PARAMS;
    assert_int_equal(at_updater_init_shared(&r->updater, l, o->w, PARAMS, PIECES, NULL), AT_OK);
    r->updater.wants_norms = way->norms;
    r->rng = at_rng_stream(1, 0, AT_RNG_PURPOSE_TEST, 0);
}

/* Cuts at random places and computes the slices from the last to the first. */
static void do_slices(void *self, const at_piece *pieces, uint32_t count)
{
    rig   *r = self;
    size_t end = PARAMS;
    (void)pieces;
    (void)count;
    while (end > 0) {
        size_t blocks = (end + AT_UPDATER_BLOCK - 1) / AT_UPDATER_BLOCK;
        size_t first = at_rng_below(&r->rng, blocks) * AT_UPDATER_BLOCK;
        at_updater_slice(&r->updater, (at_slice){first, end - first});
        end = first;
    }
}

static void take_step(rig *r, const variant *way)
{
    at_piece     pieces[PIECES];
    at_gradients where = {r, gradient_at};
    at_action    action = {.kind = AT_ACT_APPLY};
    for (uint32_t i = 0; i < PIECES; i++) {
        pieces[i] = (at_piece){.worker = i + 1, .samples = i + 2, .weight = 1};
        if (way->weighted) pieces[i].weight = 1.0 / (i + 1);
        if (way->folded) at_updater_add(&r->updater, &pieces[i], &where);
    }
    action.as.apply.step = r->step + 1;
    action.as.apply.samples = 2 + 3 + 4;
    action.as.apply.pieces = pieces;
    action.as.apply.count = PIECES;
    action.as.apply.folded = way->folded;
    action.as.apply.lr_factor = 1;
    at_updater_apply(&r->updater, &action, &where);
}

static void run(const variant *way, bool in_slices, outcome *o)
{
    rig r = {0};
    memset(o, 0, sizeof *o);
    set_up(&r, way, o);
    if (in_slices) r.updater.helpers = (at_update_helpers){&r, do_slices};
    for (r.step = 0; r.step < STEPS; r.step++) take_step(&r, way);
    for (uint32_t i = 0; i < way->optim->states; i++)
        memcpy(o->state[i], r.updater.state[i], sizeof o->state[i]);
    o->norms[0] = r.updater.norm2_step;
    o->norms[1] = r.updater.norm2_piece;
    at_updater_deinit(&r.updater);
}

static void any_slicing_gives_the_bits_of_the_whole(void **state)
{
    static outcome whole, parts;
    (void)state;
    for (const at_optim *const *optim = at_optims; *optim; optim++)
        for (int i = 0; i < 32; i++) {
            variant way = {*optim, i & 1, i & 2, i & 4, i & 8, i & 16};
            run(&way, false, &whole);
            run(&way, true, &parts);
            assert_memory_equal(&whole, &parts, sizeof whole);
            assert_true(!way.norms || whole.norms[0] > 0);
            assert_true(whole.w[5] != 5.0f / PARAMS); /* it was trained */
        }
}

static void parameters_outside_all_ranges_stay_unchanged(void **state)
{
    static outcome o;
    (void)state;
    variant way = {.optim = at_optim_find("momentum"), .grouped = true};
    run(&way, true, &o);
    for (size_t i = 3500; i < 3600; i++) assert_true(o.w[i] == (float)i / PARAMS);
}

static void all_vectors_that_a_step_changes_are_listed(void **state)
{
    static outcome o;
    (void)state;
    for (const at_optim *const *optim = at_optims; *optim; optim++) {
        rig     r = {0};
        variant way = {.optim = *optim, .folded = true};
        float  *changed[AT_UPDATER_CHANGES_MAX];
        set_up(&r, &way, &o);
        at_piece piece = {.worker = 1, .samples = 1, .weight = 1};
        at_updater_add(&r.updater, &piece, &(at_gradients){&r, gradient_at});
        assert_int_equal(at_updater_changes(&r.updater, changed), 1);
        assert_ptr_equal(changed[0], r.updater.folded);
        take_step(&r, &way);
        assert_int_equal(at_updater_changes(&r.updater, changed), 1 + (*optim)->states);
        assert_ptr_equal(changed[0], o.w);
        at_updater_deinit(&r.updater);
    }
}

static int fill(void **state)
{
    at_rng rng = at_rng_stream(2, 0, AT_RNG_PURPOSE_TEST, 0);
    (void)state;
    for (size_t i = 0; i < STEPS * PIECES * PARAMS; i++)
        (&gradients[0][0][0])[i] = (float)at_rng_normal(&rng);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_slicing_gives_the_bits_of_the_whole),
        cmocka_unit_test(parameters_outside_all_ranges_stay_unchanged),
        cmocka_unit_test(all_vectors_that_a_step_changes_are_listed),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
