/* Whole nets: gradients against finite differences, the fast engine against the reference, and
 * micro-batches of any size. */
#include <math.h>

#include "engines.h"
#include "learn/net/net.h"

static const at_shape small = {
    .features = 3 * 9 * 9, .classes = 5, .channels = 3, .height = 9, .width = 9};

/* Every kind of layer, combined as in real nets. */
static const char *const texts[] = {
    "conv 3x3x8\nrelu\nmaxpool 2\nconv 3x3x20 bias=no\nbn\nrelu\navgpool all\ndense classes\n",
    "conv 5x5x16 stride=2 pad=valid\nmaxpool 2\nrelu\nflatten\ndense 12\nrelu\nbn\ndense classes\n",
    "conv 3x3x16\nresidual\nbn\nrelu\nconv 3x3x16 bias=no\nbn\nrelu\nconv 3x3x16\nend\n"
    "avgpool 3 stride=2\ndense classes\n",
    "conv 3x3x8 bias=no\nbn\nrelu\nresidual\nconv 3x3x24 stride=2\ngn 4\nrelu\nconv 3x3x24\ngn 4\n"
    "shortcut conv 1x1x24 stride=2 bias=no\nshortcut gn 4\nend\nrelu\navgpool all\ndense classes\n",
    "conv 3x3x16\nrelu\nresidual\nrelu\nresidual\nconv 1x1x16\nend\nend\nmaxpool 3 stride=2\n"
    "dense classes\n",
    "bn\nconv 3x3x10\nrelu\nmaxpool 3 stride=2\nconv 3x3x10\nmaxpool 2\ndropout keep=0.7\n"
    "dense classes\n",
};
enum { TEXTS = sizeof texts / sizeof *texts };

static fixture net_new(const char *text, at_shape shape, at_engine engine, uint32_t rows)
{
    fixture f = fixture_of_text(text, shape, engine, rows);
    at_model_noise(f.model, 11);
    return f;
}

/* Central differences in the direction of the gradient and in random directions: the effect of
 * single weights would vanish in the rounding of 32-bit sums. */
static void check_direction(fixture *f, const float *direction, size_t n)
{
    double length = 0, slope = 0;
    float *kept = floats(f->params), *scratch = floats(f->params);
    memcpy(kept, f->w, f->params * sizeof *kept);
    for (size_t i = 0; i < n; i++) {
        length += (double)direction[i] * direction[i];
        slope += (double)direction[i] * f->g[i];
    }
    double h = 4e-3 / sqrt(length), loss[2];
    for (int side = 0; side < 2; side++) {
        double step = side ? h : -h;
        for (size_t i = 0; i < n; i++) f->w[i] = (float)(kept[i] + step * direction[i]);
        loss[side] = loss_of(f, scratch);
    }
    memcpy(f->w, kept, f->params * sizeof *kept);
    double found = (loss[1] - loss[0]) / (2 * h);
    if (!(fabs(found - slope) <= 0.03 * fabs(slope) + 2e-2 * sqrt(length)))
        fail_msg("slope %g, but the gradient gives %g", found, slope);
    free(kept);
    free(scratch);
}

static void gradients_of_nets_match_finite_differences(void **state)
{
    (void)state;
    for (size_t t = 0; t < TEXTS; t++)
        for (int e = AT_ENGINE_FAST; e <= AT_ENGINE_REF; e++) {
            fixture f = net_new(texts[t], small, (at_engine)e, 6);
            size_t  n = at_model_trained(f.model);
            at_rng  rng = at_rng_stream(3, t, AT_RNG_PURPOSE_TEST, 9);
            float  *plain = floats(at_model_plain(f.model)), *direction = floats(f.params);
            loss_of(&f, f.g);
            check_direction(&f, f.g, n);
            for (int i = 0; i < 4; i++) {
                fill(plain, at_model_params(f.model), 1, &rng);
                at_model_from_plain(f.model, direction, plain);
                check_direction(&f, direction, n);
            }
            free(plain);
            free(direction);
            fixture_free(&f);
        }
}

static void small_nets_agree_in_both_engines(void **state)
{
    (void)state;
    for (size_t t = 0; t < TEXTS; t++) {
        fixture fast = net_new(texts[t], small, AT_ENGINE_FAST, 5);
        fixture ref = net_new(texts[t], small, AT_ENGINE_REF, 5);
        check_engines(texts[t], &fast, &ref, 1e-3);
        fixture_free(&fast);
        fixture_free(&ref);
    }
}

static void setting_equals_adding_to_zeros_and_every_call_adds_once(void **state)
{
    (void)state;
    for (size_t t = 0; t < TEXTS; t++) {
        fixture f = net_new(texts[t], small, AT_ENGINE_FAST, 6);
        float  *set = floats(f.params), *sum = floats(f.params);
        fill(set, f.params, 1, &(at_rng){1}); /* previous content must not matter */
        at_model_gradient_set(f.model, set, f.w, f.x, f.labels, 6);
        at_model_gradient(f.model, f.g, f.w, f.x, f.labels, 6);
        assert_memory_equal(set, f.g, f.params * sizeof *set);
        at_model_gradient(f.model, f.g, f.w, f.x, f.labels, 6);
        for (size_t i = 0; i < f.params; i++) sum[i] = set[i] + set[i];
        assert_memory_equal(sum, f.g, f.params * sizeof *sum);
        free(set);
        free(sum);
        fixture_free(&f);
    }
}

/* The order of sizes must not matter: each has its own convolutions. */
static void bits_do_not_depend_on_earlier_micro_batch_sizes(void **state)
{
    (void)state;
    fixture f = net_new(texts[3], small, AT_ENGINE_FAST, 12);
    float  *first[13] = {0}, *again = floats(f.params);
    for (uint32_t rows = 1; rows <= 12; rows++) {
        first[rows] = floats(f.params);
        at_model_gradient_set(f.model, first[rows], f.w, f.x, f.labels, rows);
    }
    for (uint32_t rows = 12; rows >= 1; rows--) {
        at_model_gradient_set(f.model, again, f.w, f.x, f.labels, rows);
        assert_memory_equal(again, first[rows], f.params * sizeof *again);
        free(first[rows]);
    }
    free(again);
    fixture_free(&f);
}

static void installed_parameters_are_used(void **state)
{
    (void)state;
    fixture a = net_new(texts[0], small, AT_ENGINE_FAST, 4);
    fixture b = net_new(texts[0], small, AT_ENGINE_FAST, 4);
    at_model_gradient_set(a.model, a.g, a.w, a.x, a.labels, 4);
    for (size_t i = 0; i < a.params; i++) a.w[i] *= 0.5f, b.w[i] *= 0.5f;
    loss_of(&a, a.g);
    loss_of(&b, b.g);
    assert_memory_equal(a.g, b.g, a.params * sizeof *a.g);
    fixture_free(&a);
    fixture_free(&b);
}

/* Scoring reuses buffers; the scores must not change. */
static void a_model_allocated_for_scoring_scores_the_same(void **state)
{
    (void)state;
    for (size_t t = 0; t < TEXTS; t++) {
        fixture  f = net_new(texts[t], small, AT_ENGINE_FAST, 6);
        at_score both = {0}, only = {0};
        at_model_score(f.model, &both, f.w, f.x, f.labels, 6);
        assert_int_equal(at_model_allocate(f.model, 6, AT_USE_SCORE, NULL), AT_OK);
        at_model_score(f.model, &only, f.w, f.x, f.labels, 6);
        assert_memory_equal(&both, &only, sizeof both);
        fixture_free(&f);
    }
}

/* What a watcher has seen: each number when it was said to be final. */
typedef struct witness {
    const float *gradient;
    float       *seen;
    size_t       from, told;
} witness;

static void on_final(void *self, size_t from)
{
    witness *w = self;
    assert_true(from <= w->from);
    memcpy(w->seen + from, w->gradient + from, (w->from - from) * sizeof *w->seen);
    w->from = from;
    w->told++;
}

static void what_is_said_to_be_final_does_not_change_any_more(void **state)
{
    (void)state;
    for (size_t t = 0; t < TEXTS; t++) {
        fixture f = net_new(texts[t], small, AT_ENGINE_FAST, 6);
        size_t  trained = at_model_trained(f.model);
        witness w = {.gradient = f.g, .seen = floats(f.params), .from = trained};
        at_model_gradient_set(f.model, f.g, f.w, f.x, f.labels, 6);
        at_model_watch(f.model, (at_gradient_watch){&w, on_final});
        at_model_gradient(f.model, f.g, f.w, f.x, f.labels, 6); /* adds */
        assert_int_equal(w.from, 0);
        assert_true(w.told >= 2);
        assert_memory_equal(w.seen, f.g, trained * sizeof *w.seen);
        w.from = trained;
        at_model_gradient_set(f.model, f.g, f.w, f.x, f.labels, 6);
        assert_int_equal(w.from, 0);
        assert_memory_equal(w.seen, f.g, trained * sizeof *w.seen);
        free(w.seen);
        fixture_free(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_nets_match_finite_differences),
        cmocka_unit_test(small_nets_agree_in_both_engines),
        cmocka_unit_test(setting_equals_adding_to_zeros_and_every_call_adds_once),
        cmocka_unit_test(bits_do_not_depend_on_earlier_micro_batch_sizes),
        cmocka_unit_test(installed_parameters_are_used),
        cmocka_unit_test(a_model_allocated_for_scoring_scores_the_same),
        cmocka_unit_test(what_is_said_to_be_final_does_not_change_any_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
