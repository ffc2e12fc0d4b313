/* PyTorch's optimizers against their formulas in double precision; e2e/torch_updates.py compares
 * the bits with PyTorch itself. */
#include "learn/optim/torch_update.h"
#include "fixture.h"

#include <math.h>

enum { N = 3001, SOURCES = 3, STEPS = 20 };

/* A scalar optimizer in double precision: w, two states, the mean gradient and the step. */
typedef struct scalar {
    double w, s0, s1;
} scalar;

static scalar exact_step(at_torch_kind kind, const at_torch_group *p, scalar x, double g, double t)
{
    if (kind == AT_TORCH_ADAMW)
        x.w -= p->lr * p->weight_decay * x.w;
    else
        g += p->weight_decay * x.w;
    switch (kind) {
    case AT_TORCH_SGD:
        x.s0 = p->momentum * x.s0 + g;
        x.w -= p->lr * (p->nesterov ? g + p->momentum * x.s0 : x.s0);
        break;
    case AT_TORCH_ADAM:
    case AT_TORCH_ADAMW:
        x.s0 = p->beta1 * x.s0 + (1 - p->beta1) * g;
        x.s1 = p->beta2 * x.s1 + (1 - p->beta2) * g * g;
        x.w -=
            p->lr * x.s0 / (1 - pow(p->beta1, t)) / (sqrt(x.s1 / (1 - pow(p->beta2, t))) + p->eps);
        break;
    case AT_TORCH_RMSPROP:
        x.s0 = p->alpha * x.s0 + (1 - p->alpha) * g * g;
        x.s1 = p->momentum * x.s1 + g / (sqrt(x.s0) + p->eps);
        x.w -= p->lr * x.s1;
        break;
    case AT_TORCH_ADAGRAD:
        x.s0 += g * g;
        x.w -= p->lr / (1 + (t - 1) * p->lr_decay) * g / (sqrt(x.s0) + p->eps);
        break;
    case AT_TORCH_COUNT: fail();
    }
    return x;
}

typedef struct example {
    at_torch_kind  kind;
    uint32_t       states;
    at_torch_group group;
} example;

static const example examples[] = {
    {AT_TORCH_SGD, 0, {.lr = 0.1}},
    {AT_TORCH_SGD, 0, {.lr = 0.1, .weight_decay = 0.1}},
    {AT_TORCH_SGD, 1, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01}},
    {AT_TORCH_SGD, 1, {.lr = 0.1, .momentum = 0.9, .nesterov = true}},
    {AT_TORCH_ADAM, 2, {.lr = 0.01, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}},
    {AT_TORCH_ADAM, 2, {.lr = 0.01, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.1}},
    {AT_TORCH_ADAMW, 2, {.lr = 0.01, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 1}},
    {AT_TORCH_RMSPROP, 1, {.lr = 0.01, .alpha = 0.99, .eps = 1e-8, .weight_decay = 0.1}},
    {AT_TORCH_RMSPROP, 2, {.lr = 0.01, .alpha = 0.9, .eps = 1e-8, .momentum = 0.5}},
    {AT_TORCH_ADAGRAD, 1, {.lr = 0.1, .eps = 1e-10, .lr_decay = 0.1, .weight_decay = 0.1}},
};
enum { EXAMPLES = sizeof examples / sizeof *examples };

typedef struct vectors {
    float       *w, *s0, *s1, *gradient[SOURCES];
    const float *source[SOURCES];
} vectors;

static vectors vectors_new(uint32_t states)
{
    at_rng  rng = at_rng_stream(4, 0, AT_RNG_PURPOSE_TEST, 3);
    vectors v = {.w = floats(N)};
    fill(v.w, N, 1.0, &rng);
    for (size_t s = 0; s < SOURCES; s++) {
        fill(v.gradient[s] = floats(N), N, 3.0, &rng);
        v.source[s] = v.gradient[s];
    }
    if (states > 0) v.s0 = floats(N);
    if (states > 1) v.s1 = floats(N);
    return v;
}

static void vectors_free(vectors *v)
{
    free(v->w);
    free(v->s0);
    free(v->s1);
    for (size_t s = 0; s < SOURCES; s++) free(v->gradient[s]);
}

static at_torch_update update_of(const example *e, vectors *v, const at_torch_range *ranges,
                                 size_t ranges_count)
{
    return (at_torch_update){.kind = e->kind,
                             .step = 1,
                             .params = v->w,
                             .state = {v->s0, v->s1},
                             .gradients = v->source,
                             .gradients_count = SOURCES,
                             .mean = 1.0f / 16,
                             .mean_buffers = 1.0f / 8,
                             .groups = &e->group,
                             .ranges = ranges,
                             .ranges_count = ranges_count};
}

static void many_steps_match_the_formulas(void **state)
{
    (void)state;
    static const at_torch_range whole = {0, N, 0};
    static const float          weights[SOURCES] = {1, 0.5f, 0.25f};
    for (size_t k = 0; k < EXAMPLES; k++) {
        vectors         v = vectors_new(examples[k].states);
        scalar         *exact = calloc(N, sizeof *exact);
        at_torch_update u = update_of(&examples[k], &v, &whole, 1);
        u.weights = weights;
        for (size_t i = 0; i < N; i++) exact[i].w = v.w[i];
        for (; u.step <= STEPS; u.step++) {
            at_torch_update_slice(&u, (at_slice){0, N});
            for (size_t i = 0; i < N; i++) {
                double g = 0;
                for (size_t s = 0; s < SOURCES; s++) g += (double)weights[s] * v.source[s][i] / 16;
                exact[i] = exact_step(u.kind, &examples[k].group, exact[i], g, (double)u.step);
                assert_true(fabs(v.w[i] - exact[i].w) < 1e-5);
            }
            for (size_t s = 0; s < SOURCES; s++) /* the gradients change from step to step */
                for (size_t i = 0; i < N; i++) v.gradient[s][i] *= -0.9f;
        }
        free(exact);
        vectors_free(&v);
    }
}

static void cutting_the_vector_changes_no_bit(void **state)
{
    (void)state;
    static const size_t         cuts[] = {2990, 1, 1024, 0, 1500, N, 37};
    static const at_torch_range whole = {0, N, 0}, halves[2] = {{0, 1111, 0}, {1111, N - 1111, 0}};
    for (size_t k = 0; k < EXAMPLES; k++) {
        vectors         a = vectors_new(examples[k].states), b = vectors_new(examples[k].states);
        at_torch_update one = update_of(&examples[k], &a, &whole, 1);
        at_torch_update many = update_of(&examples[k], &b, halves, 2);
        at_torch_update_slice(&one, (at_slice){0, N});
        for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
            size_t next = N; /* the nearest cut above this one */
            for (size_t d = 0; d < sizeof cuts / sizeof *cuts; d++)
                if (cuts[d] > cuts[c] && cuts[d] < next) next = cuts[d];
            at_torch_update_slice(&many, (at_slice){cuts[c], next - cuts[c]});
        }
        assert_memory_equal(a.w, b.w, N * sizeof(float));
        if (a.s0) assert_memory_equal(a.s0, b.s0, N * sizeof(float));
        if (a.s1) assert_memory_equal(a.s1, b.s1, N * sizeof(float));
        vectors_free(&a);
        vectors_free(&b);
    }
}

static void buffers_become_the_mean_and_the_rest_stays(void **state)
{
    (void)state;
    static const at_torch_range ranges[] = {{10, 20, -1}, {40, 2, 0}};
    vectors                     v = vectors_new(1), old = vectors_new(1);
    at_torch_update             u = update_of(&examples[2], &v, ranges, 2);
    at_torch_update_slice(&u, (at_slice){0, N});
    for (size_t i = 0; i < N; i++) {
        float sum = (v.source[0][i] + v.source[1][i]) + v.source[2][i];
        bool  buffer = i >= 10 && i < 30, trained = i == 40 || i == 41;
        if (buffer) assert_true(v.w[i] == sum / 8);
        if (!trained) assert_true(v.s0[i] == 0);
        if (!buffer) assert_true((v.w[i] != old.w[i]) == trained);
    }
    vectors_free(&v);
    vectors_free(&old);
}

static void without_decay_infinite_parameters_leave_the_moments_alone(void **state)
{
    (void)state;
    float          w = INFINITY, v = 1, sum = 2;
    at_torch_group group = {.lr = 0.1, .momentum = 0.5};
    at_torch_step  step = at_torch_step_of(AT_TORCH_SGD, &group, 1);
    at_torch_update_block(&step, &w, &sum, 0.5f, &v, NULL, 1);
    assert_true(v == 1.5f);
}

static void states_follow_from_kind_and_momentum(void **state)
{
    (void)state;
    for (size_t k = 0; k < EXAMPLES; k++)
        assert_int_equal(at_torch_states(examples[k].kind, &examples[k].group, 1),
                         examples[k].states);
    const at_torch_group groups[2] = {{.lr = 1}, {.lr = 1, .momentum = 0.1}};
    assert_int_equal(at_torch_states(AT_TORCH_SGD, groups, 2), 1); /* one of them needs it */
}

static void numbers_that_torch_refuses_are_refused(void **state)
{
    (void)state;
    at_fail fail = {0};
    for (size_t k = 0; k < EXAMPLES; k++)
        assert_int_equal(at_torch_group_check(examples[k].kind, &examples[k].group, &fail), AT_OK);
    at_torch_group bad = examples[4].group;
    bad.beta2 = 1;
    assert_int_equal(at_torch_group_check(AT_TORCH_ADAM, &bad, &fail), AT_ERR_FORMAT);
    assert_string_equal(fail.text,
                        "betas[1] of optimizer Adam must be at least 0 and below 1 (got 1)");
    assert_int_equal(at_torch_group_check(AT_TORCH_SGD, &bad, &fail), AT_OK); /* has no betas */
    bad = examples[0].group;
    bad.lr = NAN;
    assert_int_equal(at_torch_group_check(AT_TORCH_SGD, &bad, &fail), AT_ERR_FORMAT);
    bad.lr = INFINITY;
    assert_int_equal(at_torch_group_check(AT_TORCH_SGD, &bad, &fail), AT_ERR_FORMAT);
    bad = (at_torch_group){.lr = 0.1, .weight_decay = -1};
    assert_int_equal(at_torch_group_check(AT_TORCH_SGD, &bad, &fail), AT_ERR_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_steps_match_the_formulas),
        cmocka_unit_test(cutting_the_vector_changes_no_bit),
        cmocka_unit_test(buffers_become_the_mean_and_the_rest_stays),
        cmocka_unit_test(without_decay_infinite_parameters_leave_the_moments_alone),
        cmocka_unit_test(states_follow_from_kind_and_momentum),
        cmocka_unit_test(numbers_that_torch_refuses_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
