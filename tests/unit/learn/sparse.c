/* Loops over sparse rows against dense models, and AUC against counting pairs. */
#include "learn/sparse/sparse.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "learn/net/model.h"
#include "learn/optim/optim.h"
#include "learn/sparse/auc.h"
#include "learn/sparse/hogwild.h"

enum { ROWS = 40, DIMENSION = 30, NUMBERS_MAX = 9, FLOATS = DIMENSION + AT_SPARSE_EXTRA };

/* Rows of 0 to 9 features; feature 3 is in nearly every row that has any. */
typedef struct rig {
    uint64_t    starts[ROWS + 1], list[ROWS];
    uint32_t    indices[ROWS * NUMBERS_MAX], labels[ROWS];
    float       values[ROWS * NUMBERS_MAX];
    at_csr      rows;
    at_csr_list all;
    float       flat[FLOATS];
    at_pairs   *pairs; /* in `room` */
    _Alignas(8) char room[sizeof(at_pairs) + (ROWS * NUMBERS_MAX + ROWS) * sizeof(at_pair)];
} rig;

static float any(at_rng *rng)
{
    return (float)(at_rng_uniform(rng) * 2 - 1);
}

static void set_up(rig *r)
{
    at_rng   rng = at_rng_stream(7, 1, AT_RNG_PURPOSE_SYNTHETIC, 0);
    uint64_t at = 0;
    memset(r, 0, sizeof *r);
    r->pairs = (at_pairs *)(void *)r->room;
    for (uint32_t row = 0; row < ROWS; row++) {
        uint32_t count = row % (NUMBERS_MAX + 1), step = count > 0 ? DIMENSION / count : 0;
        r->starts[row] = at;
        r->list[row] = ROWS - 1 - row;
        r->labels[row] = (uint32_t)(at_rng_next(&rng) & 1);
        for (uint32_t k = 0; k < count; k++, at++) {
            r->indices[at] = k == 0 ? 3 : k * step + (step > 1 ? 1 : 0);
            if (k > 0 && r->indices[at] <= 3) r->indices[at] = 3 + k;
            r->values[at] = any(&rng);
        }
    }
    r->starts[ROWS] = at;
    r->rows = (at_csr){r->starts, r->indices, r->values, r->labels, AT_SPARSE_LOGISTIC};
    r->all = (at_csr_list){r->list, ROWS, 0};
    at_sparse_init(r->flat, DIMENSION);
    for (int i = 0; i <= DIMENSION; i++) r->flat[i] = any(&rng);
}

static double gradient_of(rig *r)
{
    float margins[ROWS], coefs[ROWS];
    at_sparse_margins(margins, &r->rows, &r->all, r->flat, DIMENSION);
    double loss = at_sparse_losses(coefs, &r->rows, &r->all, margins);
    r->pairs->count = 0;
    at_sparse_emit(r->pairs, &r->rows, &r->all, coefs, DIMENSION);
    return loss;
}

static void merge(const rig *r, double *dense)
{
    const at_pairs *pairs = r->pairs;
    for (int i = 0; i <= DIMENSION; i++) dense[i] = 0;
    for (uint64_t k = 0; k < pairs->count; k++)
        dense[pairs->pair[k].index] += (double)pairs->pair[k].value;
}

/* The loss in plain double precision, weights given without scale. */
static double loss_of(const rig *r, const double *weights)
{
    double loss = 0;
    for (uint32_t row = 0; row < ROWS; row++) {
        double z = weights[DIMENSION];
        for (uint64_t k = r->starts[row]; k < r->starts[row + 1]; k++)
            z += weights[r->indices[k]] * (double)r->values[k];
        loss += log1p(exp(r->labels[row] ? -z : z));
    }
    return loss;
}

static void pairs_are_the_gradient_of_the_loss_by_finite_differences(void **state)
{
    static rig r;
    double     dense[DIMENSION + 1], weights[DIMENSION + 1];
    (void)state;
    set_up(&r);
    *at_sparse_scale(r.flat, DIMENSION) = 0.25f;
    for (int i = 0; i <= DIMENSION; i++) weights[i] = 0.25 * (double)r.flat[i];
    assert_true(fabs(gradient_of(&r) - loss_of(&r, weights)) < 1e-5);
    merge(&r, dense);
    for (int i = 0; i <= DIMENSION; i++) {
        double at = weights[i];
        weights[i] = at + 1e-4;
        double up = loss_of(&r, weights);
        weights[i] = at - 1e-4;
        double down = loss_of(&r, weights);
        weights[i] = at;
        assert_true(fabs((up - down) / 2e-4 - dense[i]) < 1e-4);
    }
}

/* Softmax of two classes with zero weights for class 0 is the same function. */
static void pairs_are_the_gradient_of_a_dense_softmax_of_two_classes(void **state)
{
    static rig r;
    at_model  *model;
    double     dense[DIMENSION + 1];
    at_shape   shape = {.features = DIMENSION, .classes = 2};
    float     *x = aligned_alloc(64, ROWS * DIMENSION * sizeof *x + 64 - ROWS * DIMENSION * 4 % 64);
    uint32_t   labels[ROWS];
    (void)state;
    set_up(&r);
    memset(x, 0, ROWS * DIMENSION * sizeof *x);
    for (uint32_t row = 0; row < ROWS; row++) {
        labels[row] = r.labels[row];
        for (uint64_t k = r.starts[row]; k < r.starts[row + 1]; k++)
            x[row * DIMENSION + r.indices[k]] = r.values[k];
    }
    assert_int_equal(at_model_new("softmax", shape, AT_ENGINE_REF, ROWS, &model, NULL), AT_OK);
    size_t    floats = at_model_floats(model), plain_count = at_model_plain(model);
    float    *params = calloc(floats + 16, sizeof *params), *plain = calloc(plain_count, 4);
    float    *gradient = calloc(floats + 16, sizeof *gradient);
    at_tensor tensor[2];
    assert_int_equal(at_model_tensors(model, tensor, 2), 2);
    /* The weight tensor is (classes, features) or (features, classes). */
    bool by_class = tensor[0].shape[0] == 2;
    for (uint32_t i = 0; i < DIMENSION; i++)
        plain[tensor[0].at + (by_class ? DIMENSION + i : 2 * i + 1)] = r.flat[i];
    plain[tensor[1].at + 1] = r.flat[DIMENSION];
    at_model_from_plain(model, params, plain);
    at_model_install(model, params);
    double loss = at_model_gradient_set(model, gradient, params, x, labels, ROWS);
    at_model_to_plain(model, plain, gradient);
    assert_true(fabs(gradient_of(&r) - loss) < 1e-4);
    merge(&r, dense);
    for (uint32_t i = 0; i < DIMENSION; i++)
        assert_true(fabs((double)plain[tensor[0].at + (by_class ? DIMENSION + i : 2 * i + 1)] -
                         dense[i]) < 1e-4);
    assert_true(fabs((double)plain[tensor[1].at + 1] - dense[DIMENSION]) < 1e-4);
    at_model_free(model);
    free(x);
    free(params);
    free(plain);
    free(gradient);
}

static double loss_at(float margin, uint32_t label, float *coef)
{
    uint64_t    start[2] = {0, 0}, row = 0;
    at_csr      rows = {start, NULL, NULL, &label, AT_SPARSE_LOGISTIC};
    at_csr_list one = {&row, 1, 0};
    return at_sparse_losses(coef, &rows, &one, &margin);
}

static void losses_are_right_over_the_whole_range(void **state)
{
    (void)state;
    for (double z = -90; z <= 90; z += 0.37) {
        float  coef;
        double e = exp(-fabs((double)(float)z)), sigmoid = z < 0 ? e / (1 + e) : 1 / (1 + e);
        double want = log1p(e) + (z > 0 ? (double)(float)z : 0);
        assert_true(fabs(loss_at((float)z, 0, &coef) - want) < 1e-6 * (1 + want));
        assert_true(fabs((double)coef - sigmoid) < 3e-7);
        loss_at((float)z, 1, &coef);
        assert_true(fabs((double)coef - (sigmoid - 1)) < 3e-7);
    }
    assert_true(isnan(loss_at(NAN, 0, NULL)));
    assert_true(isnan(loss_at(NAN, 1, NULL)));
}

/* The losses of many rows are computed as one product. */
static void the_loss_of_many_rows_is_the_sum_of_theirs(void **state)
{
    enum { MANY = 5000 };
    static float    margins[MANY];
    static uint32_t labels[MANY];
    static uint64_t list[MANY];
    (void)state;
    double sum = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        list[i] = i;
        labels[i] = i & 1;
        margins[i] = 0.001f * (float)i - 2;
        sum += loss_at(margins[i], labels[i], NULL);
    }
    at_csr      rows = {NULL, NULL, NULL, labels, AT_SPARSE_LOGISTIC};
    at_csr_list all = {list, MANY, 0};
    assert_true(fabs(at_sparse_losses(NULL, &rows, &all, margins) - sum) < 1e-9 * sum);
}

/* The pairs of a gradient as a dense vector, merged in float as the cells are. */
static void merge_floats(const rig *r, float *dense)
{
    memset(dense, 0, FLOATS * sizeof *dense);
    for (uint64_t k = 0; k < r->pairs->count; k++)
        dense[r->pairs->pair[k].index] += r->pairs->pair[k].value;
}

static void adagrad_on_pairs_is_dense_adagrad_on_their_sums(void **state)
{
    static rig            r;
    float                 dense[FLOATS], w[FLOATS], squares[FLOATS];
    at_sparse_cell        cells[DIMENSION + 1] = {{0}};
    const at_optim       *optim = at_optim_find("adagrad");
    at_adagrad_settings   sparse = {.mean = 1.0f / ROWS, .step = 0.3f, .start = optim->state_start};
    at_param_range_update whole = {.count = DIMENSION + 1,
                                   .how = {.lr = 0.3f, .scale = 1.0f / ROWS, .step = 1}};
    (void)state;
    set_up(&r);
    memcpy(w, r.flat, sizeof w);
    for (int i = 0; i < FLOATS; i++) squares[i] = optim->state_start;
    for (int step = 0; step < 5; step++) {
        const at_pairs *pairs = r.pairs;
        const float    *source = dense;
        gradient_of(&r);
        merge_floats(&r, dense);
        at_optim_apply_ranges(optim, w, squares, NULL, &source, NULL, 1, &whole, 1);
        at_sparse_collect(cells, pairs->pair, pairs->count, 1);
        at_sparse_adagrad(r.flat, cells, pairs->pair, pairs->count, &sparse);
        for (int i = 0; i <= DIMENSION; i++) {
            assert_true(fabsf(w[i] - r.flat[i]) < 1e-5f);
            assert_true(cells[i].sum == 0);
        }
    }
}

static void the_norm_is_that_of_sums_and_resets_them(void **state)
{
    static rig     r;
    float          dense[FLOATS];
    at_sparse_cell cells[DIMENSION + 1] = {{0}};
    double         want = 0;
    (void)state;
    set_up(&r);
    gradient_of(&r);
    merge_floats(&r, dense);
    for (int i = 0; i <= DIMENSION; i++) want += (double)dense[i] * dense[i];
    for (int again = 0; again < 2; again++) {
        at_sparse_collect(cells, r.pairs->pair, r.pairs->count, 1);
        double norm2 = at_sparse_norm2(cells, r.pairs->pair, r.pairs->count);
        assert_true(fabs(norm2 - want) < 1e-5 * want);
    }
}

static void plain_weights_include_the_scale(void **state)
{
    static rig r;
    float      plain[DIMENSION + 1], back[FLOATS];
    (void)state;
    set_up(&r);
    *at_sparse_scale(r.flat, DIMENSION) = 0.5f;
    at_sparse_to_plain(plain, r.flat, DIMENSION);
    at_sparse_from_plain(back, plain, DIMENSION);
    for (int i = 0; i <= DIMENSION; i++) assert_true(back[i] == 0.5f * r.flat[i]);
    assert_true(*at_sparse_scale(back, DIMENSION) == 1);
}

/* ---- hogwild --------------------------------------------------------------------------------- */

static void descend_one_by_one(const rig *r, double *w, double rate)
{
    for (uint32_t n = 0; n < ROWS; n++) {
        uint64_t row = r->list[n];
        double   z = w[DIMENSION];
        for (uint64_t k = r->starts[row]; k < r->starts[row + 1]; k++)
            z += w[r->indices[k]] * (double)r->values[k];
        double pull = rate * (1 / (1 + exp(-z)) - r->labels[row]);
        for (uint64_t k = r->starts[row]; k < r->starts[row + 1]; k++)
            w[r->indices[k]] -= pull * (double)r->values[k];
        w[DIMENSION] -= pull;
    }
}

static void one_hogwild_process_is_sgd_row_by_row(void **state)
{
    (void)state;
    for (int hot = 0; hot < 2; hot++) {
        static rig             r;
        static at_hogwild      h;
        static at_hot_features some;
        double                 w[DIMENSION + 1];
        set_up(&r);
        *at_sparse_scale(r.flat, DIMENSION) = 0.5f;
        *at_sparse_rate(r.flat, DIMENSION) = 0.1f;
        for (int i = 0; i <= DIMENSION; i++) w[i] = 0.5 * (double)r.flat[i];
        assert_true(at_hot_features_find(&some, &r.rows, ROWS, DIMENSION, 2));
        assert_true(some.count >= 1 && some.feature[0] == 3);
        h = (at_hogwild){.hot = hot ? &some : NULL, .part = 1};
        for (int pass = 0; pass < 3; pass++) {
            at_hogwild_rows(&h, &r.rows, &r.all, r.flat, DIMENSION);
            descend_one_by_one(&r, w, 0.1);
            for (int i = 0; i <= DIMENSION; i++)
                assert_true(fabs(0.5 * (double)r.flat[i] - w[i]) < 1e-5);
        }
        at_hot_features_deinit(&some);
    }
}

/* AdaGrad in double precision; `a` are sums of squares without their start. */
static void adagrad_one_by_one(const rig *r, double *w, double *a, double rate, double start)
{
    for (uint32_t n = 0; n < ROWS; n++) {
        uint64_t row = r->list[n], end = r->starts[row + 1];
        double   z = w[DIMENSION];
        for (uint64_t k = r->starts[row]; k < end; k++)
            z += w[r->indices[k]] * (double)r->values[k];
        double off = 1 / (1 + exp(-z)) - r->labels[row];
        for (uint64_t k = r->starts[row]; k <= end; k++) {
            uint32_t i = k < end ? r->indices[k] : DIMENSION;
            double   g = off * (k < end ? (double)r->values[k] : 1);
            a[i] += g * g;
            w[i] -= rate * g / sqrt(start + a[i]);
        }
    }
}

static void one_hogwild_process_is_adagrad_row_by_row(void **state)
{
    (void)state;
    for (int hot = 0; hot < 2; hot++) {
        static rig             r;
        static at_hogwild      h;
        static at_hot_features some;
        float                  squares[DIMENSION + 1] = {0};
        double                 w[DIMENSION + 1], a[DIMENSION + 1] = {0};
        set_up(&r);
        *at_sparse_scale(r.flat, DIMENSION) = 0.5f;
        *at_sparse_rate(r.flat, DIMENSION) = 0.1f;
        for (int i = 0; i <= DIMENSION; i++) w[i] = 0.5 * (double)r.flat[i];
        assert_true(at_hot_features_find(&some, &r.rows, ROWS, DIMENSION, 2));
        h = (at_hogwild){.hot = hot ? &some : NULL, .part = 1, .squares = squares, .start = 0.1f};
        for (int pass = 0; pass < 3; pass++) {
            at_hogwild_rows(&h, &r.rows, &r.all, r.flat, DIMENSION);
            adagrad_one_by_one(&r, w, a, 0.1, 0.1);
            for (int i = 0; i <= DIMENSION; i++) {
                assert_true(fabs(0.5 * (double)r.flat[i] - w[i]) < 1e-5);
                assert_true(fabs((double)squares[i] - a[i]) < 1e-5);
            }
        }
        at_hot_features_deinit(&some);
    }
}

/* Two processes in turn, each with half of the rows: what they share of a hot feature is the mean
 * of what they saw, and of a cold one the sum. */
static void hot_sums_of_squares_are_means_over_processes(void **state)
{
    (void)state;
    static rig             r;
    static at_hogwild      both[2], alone;
    static at_hot_features some;
    float squares[DIMENSION + 1] = {0}, half[2][DIMENSION + 1] = {{0}}, flat[FLOATS];
    set_up(&r);
    *at_sparse_rate(r.flat, DIMENSION) = 0; /* so that neither sees what the other has learnt */
    memcpy(flat, r.flat, sizeof flat);
    assert_true(at_hot_features_find(&some, &r.rows, ROWS, DIMENSION, 2));
    for (uint32_t p = 0; p < 2; p++) {
        at_csr_list list = {r.list + p * (ROWS / 2), ROWS / 2, 0};
        alone = (at_hogwild){.part = 1, .squares = half[p], .start = 0.1f};
        at_hogwild_rows(&alone, &r.rows, &list, flat, DIMENSION);
        both[p] = (at_hogwild){.hot = &some, .part = 0.5f, .squares = squares, .start = 0.1f};
        at_hogwild_rows(&both[p], &r.rows, &list, r.flat, DIMENSION);
    }
    for (uint32_t i = 0; i <= DIMENSION; i++) {
        bool  hot = i == DIMENSION;
        float sum = half[0][i] + half[1][i];
        for (uint32_t k = 0; k < some.count; k++) hot = hot || some.feature[k] == i;
        assert_true(fabsf(squares[i] - (hot ? 0.5f * sum : sum)) < 1e-5f);
    }
    at_hot_features_deinit(&some);
}

/* ---- AUC ------------------------------------------------------------------------------------- */

static double count_auc(const float *margins, const uint32_t *labels, int count)
{
    double good = 0, pairs = 0;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++) {
            if (labels[i] != 1 || labels[j] != 0) continue;
            pairs++;
            good += margins[i] > margins[j] ? 1 : margins[i] == margins[j] ? 0.5 : 0;
        }
    return good / pairs;
}

static void auc_counts_pairs_and_ties_half(void **state)
{
    enum { COUNT = 300 };
    float    margins[COUNT];
    uint32_t labels[COUNT];
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        at_rng rng = at_rng_stream(seed, 1, AT_RNG_PURPOSE_SYNTHETIC, 0);
        for (int i = 0; i < COUNT; i++) {
            labels[i] = (uint32_t)(at_rng_next(&rng) & 1);
            margins[i] = seed % 2 ? any(&rng) : truncf(any(&rng) * 4); /* many ties, and -0 */
        }
        assert_true(fabs(at_auc(margins, labels, COUNT) - count_auc(margins, labels, COUNT)) <
                    1e-12);
    }
}

static void auc_is_nan_where_undefined(void **state)
{
    const float    margins[] = {1, 2, NAN};
    const uint32_t ones[] = {1, 1, 1}, both[] = {0, 1, 1};
    (void)state;
    assert_true(isnan(at_auc(margins, ones, 2)));
    assert_true(isnan(at_auc(margins, both, 3)));
    assert_true(isnan(at_auc(margins, both, 0)));
    assert_true(at_auc(margins, both, 2) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_the_gradient_of_the_loss_by_finite_differences),
        cmocka_unit_test(pairs_are_the_gradient_of_a_dense_softmax_of_two_classes),
        cmocka_unit_test(losses_are_right_over_the_whole_range),
        cmocka_unit_test(the_loss_of_many_rows_is_the_sum_of_theirs),
        cmocka_unit_test(adagrad_on_pairs_is_dense_adagrad_on_their_sums),
        cmocka_unit_test(the_norm_is_that_of_sums_and_resets_them),
        cmocka_unit_test(plain_weights_include_the_scale),
        cmocka_unit_test(one_hogwild_process_is_sgd_row_by_row),
        cmocka_unit_test(one_hogwild_process_is_adagrad_row_by_row),
        cmocka_unit_test(hot_sums_of_squares_are_means_over_processes),
        cmocka_unit_test(auc_counts_pairs_and_ties_half),
        cmocka_unit_test(auc_is_nan_where_undefined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
