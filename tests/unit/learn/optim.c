/* Optimizers against double-precision formulas, and the exact bits of sums and slices. */
#include "learn/optim/optim.h"
#include "fixture.h"

#include <float.h>
#include <math.h>

typedef struct golden {
    const char *name;
    double      w[3]; /* after each of three steps */
} golden;

/* From 0.5 with gradient sums 2, -1 and 4 over 4 samples, lr 0.1 and weight decay 0.01. */
static const golden goldens[] = {
    {"sgd", {0.449500000, 0.474050500, 0.373576450}},
    {"momentum", {0.449500000, 0.428600500, 0.309362349}},
    {"nesterov", {0.404050000, 0.409877305, 0.202206758}},
    {"rmsprop", {0.447506857, 0.474312094, 0.365717125}},
    {"adam", {0.400000063, 0.372368447, 0.306187134}},
    {"adamw", {0.399500002, 0.372466799, 0.306283173}},
    {"adagrad", {0.415245667, 0.453387198, 0.369223448}},
    {"dual-averaging", {0.449500000, 0.481650933, 0.427004941}},
};

/* One update of all n parameters. */
static void apply(const at_optim *optim, float *w, float *s0, float *s1, const float *const *src,
                  const float *weights, size_t count, size_t n, const at_update *how)
{
    at_param_range_update whole = {.count = n, .how = *how};
    at_optim_apply_ranges(optim, w, s0, s1, src, weights, count, &whole, 1);
}

static void sum_whole(float *dst, const float *const *src, const float *weights, size_t count,
                      size_t n)
{
    at_sum_slice(dst, src, weights, count, (at_slice){0, n});
}

static void three_steps_match_the_formulas(void **state)
{
    (void)state;
    const float sums[3] = {2, -1, 4};
    for (size_t k = 0; k < sizeof goldens / sizeof *goldens; k++) {
        const at_optim *optim = at_optim_find(goldens[k].name);
        assert_non_null(optim);
        float  w = 0.5f, s0 = optim->state_start, s1 = optim->state_start;
        float *p0 = optim->states > 0 ? &s0 : NULL, *p1 = optim->states > 1 ? &s1 : NULL;
        for (uint32_t t = 0; t < 3; t++) {
            const float *src = &sums[t];
            at_update    how = {.lr = 0.1f, .weight_decay = 0.01f, .scale = 0.25f, .step = t + 1};
            apply(optim, &w, p0, p1, &src, NULL, 1, 1, &how);
            assert_true(fabs(w - goldens[k].w[t]) < 3e-7);
        }
    }
}

static void every_optimizer_is_in_the_table_once_and_has_its_defaults(void **state)
{
    (void)state;
    size_t count = 0;
    for (; at_optims[count]; count++) {
        assert_ptr_equal(at_optim_find(at_optims[count]->name), at_optims[count]);
        assert_true(at_optims[count]->lr_default > 0);
        assert_true(at_optims[count]->states <= 2);
        assert_non_null(at_optims[count]->summary);
    }
    assert_int_equal(count, sizeof goldens / sizeof *goldens);
    assert_null(at_optim_find("sgdd"));
    assert_null(at_optim_find(""));
}

enum { N = 5003, SOURCES = 3 };

typedef struct vectors {
    float *w, *s0, *s1, *src[SOURCES];
} vectors;

static vectors vectors_new(const at_optim *optim)
{
    at_rng  rng = at_rng_stream(3, 0, AT_RNG_PURPOSE_TEST, 1);
    vectors v = {.w = floats(N)};
    fill(v.w, N, 1.0, &rng);
    for (size_t s = 0; s < SOURCES; s++) fill(v.src[s] = floats(N), N, 3.0, &rng);
    if (optim->states > 0) v.s0 = floats(N);
    if (optim->states > 1) v.s1 = floats(N);
    for (size_t i = 0; i < N; i++) {
        if (v.s0) v.s0[i] = optim->state_start + 0.5f;
        if (v.s1) v.s1[i] = optim->state_start + 0.25f;
    }
    return v;
}

static void vectors_free(vectors *v)
{
    free(v->w);
    free(v->s0);
    free(v->s1);
    for (size_t s = 0; s < SOURCES; s++) free(v->src[s]);
}

/* Applies to elements from .. to-1 only. */
static void apply_slice(const at_optim *optim, vectors *v, const float *weights, size_t from,
                        size_t to)
{
    const float *src[SOURCES];
    at_update    how = {.lr = 0.01f, .weight_decay = 1e-3f, .scale = 0.02f, .step = 7};
    for (size_t s = 0; s < SOURCES; s++) src[s] = v->src[s] + from;
    apply(optim, v->w + from, v->s0 ? v->s0 + from : NULL, v->s1 ? v->s1 + from : NULL, src,
          weights, SOURCES, to - from, &how);
}

static void updating_in_slices_changes_no_bit(void **state)
{
    (void)state;
    static const size_t cuts[] = {0, 1, 8, 1023, 1024, 1025, 3000, 4999, N};
    const float         weights[SOURCES] = {1.0f, 0.5f, 1.0f / 3};
    for (const at_optim *const *kind = at_optims; *kind; kind++)
        for (int weighted = 0; weighted < 2; weighted++) {
            vectors whole = vectors_new(*kind), parts = vectors_new(*kind);
            apply_slice(*kind, &whole, weighted ? weights : NULL, 0, N);
            for (size_t c = 0; c + 1 < sizeof cuts / sizeof *cuts; c++)
                apply_slice(*kind, &parts, weighted ? weights : NULL, cuts[c], cuts[c + 1]);
            assert_memory_equal(whole.w, parts.w, N * sizeof(float));
            if (whole.s0) assert_memory_equal(whole.s0, parts.s0, N * sizeof(float));
            if (whole.s1) assert_memory_equal(whole.s1, parts.s1, N * sizeof(float));
            vectors_free(&whole);
            vectors_free(&parts);
        }
}

static void apply_is_sum_then_update(void **state)
{
    (void)state;
    for (const at_optim *const *kind = at_optims; *kind; kind++) {
        vectors      a = vectors_new(*kind), b = vectors_new(*kind);
        float       *sum = floats(N);
        const float *src[SOURCES] = {b.src[0], b.src[1], b.src[2]}, *one = sum;
        at_update    how = {.lr = 0.01f, .weight_decay = 1e-3f, .scale = 0.02f, .step = 7};
        apply_slice(*kind, &a, NULL, 0, N);
        sum_whole(sum, src, NULL, SOURCES, N);
        apply(*kind, b.w, b.s0, b.s1, &one, NULL, 1, N, &how);
        assert_memory_equal(a.w, b.w, N * sizeof(float));
        free(sum);
        vectors_free(&a);
        vectors_free(&b);
    }
}

/* Vector code must round exactly as one element at a time does. The volatile operands keep the
 * compiler from turning this loop into vectors as well. */
static void vector_code_rounds_like_scalar_code(void **state)
{
    (void)state;
    vectors        v = vectors_new(at_optim_find("momentum"));
    float         *w = floats(N), *s = floats(N);
    volatile float lr = 0.01f, decay = 1e-3f, scale = 0.02f, momentum = 0.9f;
    for (size_t i = 0; i < N; i++) {
        volatile float sum = v.src[0][i] + v.src[1][i];
        sum = sum + v.src[2][i];
        volatile float data = scale * sum, pull = decay * v.w[i];
        volatile float mean = data + pull, kept = momentum * v.s0[i];
        s[i] = kept + mean;
        volatile float step = lr * s[i];
        w[i] = v.w[i] - step;
    }
    apply_slice(at_optim_find("momentum"), &v, NULL, 0, N);
    assert_memory_equal(v.s0, s, N * sizeof(float));
    assert_memory_equal(v.w, w, N * sizeof(float));
    free(w);
    free(s);
    vectors_free(&v);
}

static void sums_keep_the_order_and_weight_each_source(void **state)
{
    (void)state;
    const float  big = 1e8f, small = 1.0f, minus = -1e8f;
    const float *order[3] = {&big, &small, &minus}, *other[3] = {&big, &minus, &small};
    const float  weights[3] = {0.5f, 2.0f, 0.5f};
    float        sum = -1;
    sum_whole(&sum, order, NULL, 3, 1);
    assert_true(sum == 0.0f); /* 1e8 + 1 rounds to 1e8 */
    sum_whole(&sum, other, NULL, 3, 1);
    assert_true(sum == 1.0f);
    sum_whole(&sum, order, weights, 3, 1);
    assert_true(sum == 0.0f);
    sum_whole(&sum, order + 1, weights + 1, 1, 1);
    assert_true(sum == 2.0f);
}

/* Many steps from a nonzero start, in slices, against the closed form in double precision:
 * w(t) = w0 - lr / sqrt(t) x sum of g. */
static void dual_averaging_matches_its_closed_form(void **state)
{
    (void)state;
    enum { SIZE = 40, STEPS = 500 };
    const at_optim *optim = at_optim_find("dual-averaging");
    at_rng          rng = at_rng_stream(5, 0, AT_RNG_PURPOSE_TEST, 2);
    float           w[SIZE], z[SIZE] = {0}, start[SIZE] = {0}, sum[SIZE];
    double          w0[SIZE], exact[SIZE] = {0};
    fill(w, SIZE, 1.0, &rng);
    for (size_t i = 0; i < SIZE; i++) w0[i] = w[i];
    for (uint64_t t = 1; t <= STEPS; t++) {
        at_update how = {.lr = 0.3f, .scale = 0.125f, .step = t};
        fill(sum, SIZE, 8.0, &rng);
        for (size_t at = 0; at < SIZE; at += 20) {
            const float *src = sum + at;
            apply(optim, w + at, z + at, start + at, &src, NULL, 1, 20, &how);
        }
        for (size_t i = 0; i < SIZE; i++) {
            exact[i] += 0.125 * sum[i];
            assert_true(fabs(w[i] - (w0[i] - 0.3 / sqrt((double)t) * exact[i])) < 1e-5);
        }
    }
    for (size_t i = 0; i < SIZE; i++) assert_true(start[i] == (float)w0[i]);
}

/* Applies one update in six ranges with equal settings. */
static void apply_ranges(const at_optim *optim, vectors *v, const float *weights, size_t sources)
{
    static const size_t   cuts[] = {0, 1, 17, 1024, 1500, 4000, N};
    at_param_range_update ranges[6];
    const float          *src[SOURCES] = {v->src[0], v->src[1], v->src[2]};
    for (size_t i = 0; i < 6; i++)
        ranges[i] = (at_param_range_update){
            .at = cuts[i],
            .count = cuts[i + 1] - cuts[i],
            .how = {.lr = 0.01f, .weight_decay = 1e-3f, .scale = 0.02f, .step = 7}};
    at_optim_apply_ranges(optim, v->w, v->s0, v->s1, src, weights, sources, ranges, 6);
}

static void ranges_with_equal_settings_give_the_bits_of_one(void **state)
{
    (void)state;
    const float weights[SOURCES] = {1.0f, 0.5f, 1.0f / 3};
    at_update   how = {.lr = 0.01f, .weight_decay = 1e-3f, .scale = 0.02f, .step = 7};
    for (const at_optim *const *kind = at_optims; *kind; kind++)
        for (int way = 0; way < 4; way++) { /* one source or more, weighted or not */
            vectors      whole = vectors_new(*kind), parts = vectors_new(*kind);
            size_t       sources = way & 1 ? 1 : SOURCES;
            const float *src[SOURCES] = {whole.src[0], whole.src[1], whole.src[2]};
            apply(*kind, whole.w, whole.s0, whole.s1, src, way & 2 ? weights : NULL, sources, N,
                  &how);
            apply_ranges(*kind, &parts, way & 2 ? weights : NULL, sources);
            assert_memory_equal(whole.w, parts.w, N * sizeof(float));
            if (whole.s0) assert_memory_equal(whole.s0, parts.s0, N * sizeof(float));
            if (whole.s1) assert_memory_equal(whole.s1, parts.s1, N * sizeof(float));
            vectors_free(&whole);
            vectors_free(&parts);
        }
}

static void every_range_uses_its_own_settings(void **state)
{
    (void)state;
    const at_optim       *optim = at_optim_find("momentum");
    float                 w[5] = {1, 1, 1, 1, 1}, v[5] = {2, 2, 2, 2, 2};
    const float           sum[5] = {8, 8, 8, 8, 8}, *src = sum;
    at_param_range_update ranges[] = {
        {.at = 0, .count = 1, .how = {.lr = 0.5f, .scale = 0.25f, .step = 1}},
        {.at = 1, .count = 1, .how = {.lr = 0.5f, .scale = 0.25f, .step = 1, .momentum = 0.5f}},
        {.at = 2, .count = 1, .how = {.lr = 0.25f, .scale = 0.25f, .step = 1, .weight_decay = 2}},
        {.at = 4, .count = 1, .how = {.lr = 0, .scale = 0.25f, .step = 1}},
    };
    at_optim_apply_ranges(optim, w, v, NULL, &src, NULL, 1, ranges, 4);
    assert_true(v[0] == 0.9f * 2 + 2);
    assert_true(v[1] == 3);
    assert_true(w[1] == -0.5f);
    assert_true(fabsf(v[2] - 5.8f) < 1e-6f);
    assert_true(fabsf(w[2] + 0.45f) < 1e-6f);
    assert_true(w[3] == 1 && v[3] == 2); /* in no range */
    assert_true(w[4] == 1);
}

static void default_momentum_is_nine_tenths(void **state)
{
    (void)state;
    const at_optim *optim = at_optim_find("momentum");
    at_update       own = {.lr = 0.01f, .scale = 0.02f, .step = 7}, given = own;
    vectors         a = vectors_new(optim), b = vectors_new(optim);
    const float    *src = a.src[0];
    given.momentum = 0.9f;
    apply(optim, a.w, a.s0, NULL, &src, NULL, 1, N, &own);
    apply(optim, b.w, b.s0, NULL, &src, NULL, 1, N, &given);
    assert_memory_equal(a.w, b.w, N * sizeof(float));
    assert_memory_equal(a.s0, b.s0, N * sizeof(float));
    vectors_free(&a);
    vectors_free(&b);
}

static void a_text_sets_the_numbers_that_it_gives(void **state)
{
    (void)state;
    const at_optim *optim;
    double          number[AT_OPTIM_NUMBERS_MAX];
    at_fail         fail = {0};
    assert_int_equal(at_optim_parse("adam:0.8,,1e-6", &optim, number, &fail), AT_OK);
    assert_string_equal(optim->name, "adam");
    assert_true(number[0] == 0.8 && number[1] == 0.999 && number[2] == 1e-6);
    assert_int_equal(at_optim_parse("nesterov", &optim, number, &fail), AT_OK);
    assert_true(number[0] == 0.9);
    assert_int_equal(at_optim_parse("rmsprop:0.5", &optim, number, &fail), AT_OK);
    assert_true(number[0] == 0.5 && number[1] == 1e-10);
}

static void wrong_numbers_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"adamm",
                                        "sgd:1",
                                        "momentum:1",
                                        "momentum:x",
                                        "adam:.9,.9,0",
                                        "nesterov:-1",
                                        "adam:nan",
                                        "momentum:.9,1",
                                        "adam:1,2,3,4",
                                        ":0.9",
                                        ""};
    const at_optim          *optim;
    double                   number[AT_OPTIM_NUMBERS_MAX];
    at_fail                  fail = {0};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(at_optim_parse(wrong[i], &optim, number, &fail), AT_ERR_USAGE);
    at_optim_parse("momentum:1.5", &optim, number, &fail);
    assert_string_equal(fail.text,
                        "MOMENTUM of optimizer momentum must be from 0 to 0.999999 (got 1.5)");
    at_optim_parse("adam:0.9,x", &optim, number, &fail);
    assert_string_equal(fail.hint, "write it as adam:BETA1,BETA2,EPSILON");
}

/* One step from w = 1 and zero states with g = 2. */
static float step_with(const char *text)
{
    const at_optim *optim;
    at_update       how = {.lr = 0.5f, .scale = 0.5f, .step = 1};
    double          number[AT_OPTIM_NUMBERS_MAX];
    float           w = 1, s0 = 1, s1 = 0, sum = 4;
    const float    *src = &sum;
    assert_int_equal(at_optim_parse(text, &optim, number, NULL), AT_OK);
    how.number = number;
    apply(optim, &w, &s0, optim->states > 1 ? &s1 : NULL, &src, NULL, 1, 1, &how);
    return w;
}

static void the_numbers_of_a_text_are_used(void **state)
{
    (void)state;
    assert_true(fabs(step_with("momentum:0.5") - (1 - 0.5 * 2.5)) < 1e-6);
    assert_true(fabs(step_with("nesterov:0.5") - (1 - 0.5 * (2 + 0.5 * 2.5))) < 1e-6);
    assert_true(fabs(step_with("rmsprop:0.5,0.1") - (1 - 1 / sqrt(2.5 + 0.1))) < 1e-6);
    /* m = 0.5 + 1, bias corrections 0.5 and 0.75 */
    assert_true(fabs(step_with("adam:0.5,0.25,1") - (1 - sqrt(0.75) * 1.5 / (sqrt(3) + 1))) < 1e-6);
    assert_true(fabs(step_with("adamw:0.5,0.25,1") - (1 - 1.5 / (2 + 1))) < 1e-6);
}

/* Three workers with 2, 5 and 1 samples; the second counts half. */
static void statistics_follow_the_mean_over_weighted_samples(void **state)
{
    (void)state;
    enum { COUNT = 1500 };
    static const float samples[3] = {2, 5, 1}, weights[3] = {1, 0.5f, 1};
    static const float mean[3] = {10, -3, 4};
    const at_optim    *optim = at_optim_find("adam");
    float             *w = floats(COUNT), *s0 = floats(COUNT), *s1 = floats(COUNT);
    float             *sum[3];
    for (size_t k = 0; k < 3; k++) {
        sum[k] = floats(COUNT);
        for (size_t i = 0; i < COUNT; i++) sum[k][i] = samples[k] * mean[k];
    }
    for (size_t i = 0; i < COUNT; i++) w[i] = 20;
    const float          *src[3] = {sum[0], sum[1], sum[2]};
    at_param_range_update range = {
        .at = 3, .count = COUNT - 3, .statistics = true, .keep = 0.9f, .how.scale = 1 / 5.5f};
    at_optim_apply_ranges(optim, w, s0, s1, src, weights, 3, &range, 1);
    for (size_t i = 0; i < COUNT; i++) {
        double wanted = i < 3 ? 20 : 0.9 * 20 + 0.1 * (20 - 7.5 + 4) / 5.5;
        assert_true(fabs(w[i] - wanted) < 1e-5);
        assert_true(s0[i] == 0 && s1[i] == 0); /* statistics have no optimizer state */
    }
    for (size_t k = 0; k < 3; k++) free(sum[k]);
    free(w);
    free(s0);
    free(s1);
}

static void statistics_equal_to_the_mean_stay(void **state)
{
    (void)state;
    const at_optim       *optim = at_optim_find("sgd");
    float                 w = 0.7f, sum = 8 * 0.7f;
    const float          *src = &sum;
    at_param_range_update range = {
        .count = 1, .statistics = true, .keep = 0.99f, .how.scale = 0.125f};
    for (int i = 0; i < 100000; i++)
        at_optim_apply_ranges(optim, &w, NULL, NULL, &src, NULL, 1, &range, 1);
    assert_true(fabsf(w - 0.7f) < 1e-5f);
}

/* At every place of a vector, also behind the part that is looked at in blocks. */
static void the_first_number_that_is_not_finite_is_found(void **state)
{
    (void)state;
    const float wrong[] = {NAN, -NAN, INFINITY, -INFINITY};
    enum { SIZE = 200 };
    float v[SIZE];
    for (size_t i = 0; i < SIZE; i++) v[i] = i % 3 ? -FLT_MAX : FLT_TRUE_MIN;
    assert_int_equal(at_first_nonfinite(v, SIZE), SIZE);
    assert_int_equal(at_first_nonfinite(v, 0), 0);
    for (size_t i = 0; i < SIZE; i++) {
        float kept = v[i];
        v[i] = wrong[i % 4];
        assert_int_equal(at_first_nonfinite(v, SIZE), i);
        assert_int_equal(at_first_nonfinite(v, i), i);
        v[i] = kept;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_steps_match_the_formulas),
        cmocka_unit_test(the_first_number_that_is_not_finite_is_found),
        cmocka_unit_test(every_optimizer_is_in_the_table_once_and_has_its_defaults),
        cmocka_unit_test(updating_in_slices_changes_no_bit),
        cmocka_unit_test(apply_is_sum_then_update),
        cmocka_unit_test(vector_code_rounds_like_scalar_code),
        cmocka_unit_test(sums_keep_the_order_and_weight_each_source),
        cmocka_unit_test(dual_averaging_matches_its_closed_form),
        cmocka_unit_test(ranges_with_equal_settings_give_the_bits_of_one),
        cmocka_unit_test(every_range_uses_its_own_settings),
        cmocka_unit_test(default_momentum_is_nine_tenths),
        cmocka_unit_test(a_text_sets_the_numbers_that_it_gives),
        cmocka_unit_test(wrong_numbers_are_refused),
        cmocka_unit_test(the_numbers_of_a_text_are_used),
        cmocka_unit_test(statistics_follow_the_mean_over_weighted_samples),
        cmocka_unit_test(statistics_equal_to_the_mean_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
