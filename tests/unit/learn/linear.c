/* Linear regression, dense and sparse: the squared loss and its gradient. */
#include "fixture.h"

#include <math.h>

#include "base/label.h"
#include "learn/sparse/hogwild.h"
#include "learn/sparse/sparse.h"

enum { ROWS = 24, FEATURES = 9, FLOATS = FEATURES + AT_SPARSE_EXTRA };

static const at_shape SHAPE = {.features = FEATURES};

static float label_of(const fixture *f, uint32_t n)
{
    return at_label_real(f->labels[n]);
}

static fixture linear_fixture(at_engine engine, uint32_t rows)
{
    at_rng  rng = at_rng_stream(3, 0, AT_RNG_PURPOSE_TEST, 0);
    at_fail fail = {0};
    fixture f = {.shape = SHAPE, .rows = rows};
    assert_int_equal(at_model_new("linear", SHAPE, engine, rows, &f.model, &fail), AT_OK);
    f.params = at_model_floats(f.model);
    f.x = floats((size_t)rows * FEATURES);
    f.w = floats(f.params);
    f.g = floats(f.params);
    f.labels = calloc(rows, sizeof *f.labels);
    assert_non_null(f.labels);
    fill(f.x, (size_t)rows * FEATURES, 1.0, &rng);
    fill_params(&f, 0.5, &rng);
    at_model_install(f.model, f.w);
    for (uint32_t n = 0; n < rows; n++)
        f.labels[n] = at_label_of_real((float)(3 + 2 * at_rng_normal(&rng)));
    return f;
}

/* Half the squared errors, in double precision; the bias is the last weight. */
static double loss_of(const fixture *f, const double *w)
{
    double sum = 0;
    for (uint32_t n = 0; n < f->rows; n++) {
        double off = w[FEATURES] - (double)label_of(f, n);
        for (int i = 0; i < FEATURES; i++) off += w[i] * (double)f->x[n * FEATURES + (uint32_t)i];
        sum += off * off / 2;
    }
    return sum;
}

static double slope_of(const fixture *f, double *w, int i)
{
    const double h = 1e-4;
    double       kept = w[i];
    w[i] = kept + h;
    double above = loss_of(f, w);
    w[i] = kept - h;
    double below = loss_of(f, w);
    w[i] = kept;
    return (above - below) / (2 * h);
}

static void plain_weights(const fixture *f, double w[FEATURES + 1])
{
    float plain[FEATURES + 1];
    assert_int_equal(at_model_plain(f->model), FEATURES + 1);
    at_model_to_plain(f->model, plain, f->w);
    for (int i = 0; i <= FEATURES; i++) w[i] = (double)plain[i];
}

static void gradients_match_finite_differences(void **state)
{
    (void)state;
    for (int e = AT_ENGINE_FAST; e <= AT_ENGINE_REF; e++)
        for (uint32_t rows = 1; rows <= ROWS; rows += 23) {
            fixture f = linear_fixture((at_engine)e, rows);
            double  w[FEATURES + 1];
            float   g[FEATURES + 1];
            plain_weights(&f, w);
            double loss = at_model_gradient(f.model, f.g, f.w, f.x, f.labels, rows);
            assert_true(fabs(loss - loss_of(&f, w)) < 1e-5 * loss);
            at_model_to_plain(f.model, g, f.g);
            for (int i = 0; i <= FEATURES; i++)
                assert_true(fabs((double)g[i] - slope_of(&f, w, i)) < 1e-5 * rows * 10);
            fixture_free(&f);
        }
}

static void micro_batches_add_up_to_the_whole(void **state)
{
    (void)state;
    fixture f = linear_fixture(AT_ENGINE_FAST, ROWS);
    float  *parts = floats(f.params);
    double  whole = at_model_gradient_set(f.model, f.g, f.w, f.x, f.labels, ROWS), sum = 0;
    sum += at_model_gradient_set(f.model, parts, f.w, f.x, f.labels, 8);
    sum += at_model_gradient(f.model, parts, f.w, f.x + 8 * FEATURES, f.labels + 8, ROWS - 8);
    assert_true(fabs(sum - whole) < 1e-6 * whole);
    for (size_t i = 0; i < f.params; i++)
        assert_true(fabs((double)parts[i] - (double)f.g[i]) < 1e-4);
    free(parts);
    fixture_free(&f);
}

static void the_score_has_what_r2_needs_and_no_correct_ones(void **state)
{
    (void)state;
    fixture  f = linear_fixture(AT_ENGINE_FAST, ROWS);
    at_score score = {0};
    double   w[FEATURES + 1], sum = 0, squares = 0;
    plain_weights(&f, w);
    for (uint32_t n = 0; n < ROWS; n++) {
        sum += (double)label_of(&f, n);
        squares += (double)label_of(&f, n) * (double)label_of(&f, n);
    }
    at_model_score(f.model, &score, f.w, f.x, f.labels, ROWS);
    assert_true(score.regression);
    assert_int_equal(score.classes, 0);
    assert_int_equal(score.correct, 0);
    assert_int_equal(score.count, ROWS);
    assert_true(fabs(score.loss_sum - loss_of(&f, w)) < 1e-5 * score.loss_sum);
    assert_true(fabs(score.label_sum - sum) < 1e-9);
    assert_true(fabs(score.label_squares - squares) < 1e-9);
    fixture_free(&f);
}

static void predictions_are_the_linear_function(void **state)
{
    (void)state;
    fixture f = linear_fixture(AT_ENGINE_FAST, ROWS);
    float   values[ROWS];
    double  w[FEATURES + 1];
    plain_weights(&f, w);
    at_model_predict(f.model, values, f.w, f.x, ROWS);
    for (uint32_t n = 0; n < ROWS; n++) {
        double wanted = w[FEATURES];
        for (uint32_t i = 0; i < FEATURES; i++) wanted += w[i] * (double)f.x[n * FEATURES + i];
        assert_true(fabs((double)values[n] - wanted) < 1e-5);
    }
    fixture_free(&f);
}

static void models_and_labels_must_fit(void **state)
{
    (void)state;
    at_model *model;
    at_fail   fail = {0};
    at_shape  classes = {.features = 4, .classes = 3};
    assert_int_equal(at_model_plan("linear", classes, AT_ENGINE_REF, 1, &model, &fail),
                     AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "3 classes"));
    assert_int_equal(at_model_plan("softmax", SHAPE, AT_ENGINE_REF, 1, &model, &fail),
                     AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "real numbers"));
    assert_non_null(strstr(fail.hint, "linear"));
    assert_int_equal(at_model_plan("linear:3", SHAPE, AT_ENGINE_REF, 1, &model, &fail),
                     AT_ERR_USAGE);
    assert_true(at_model_is_regression("linear"));
    assert_false(at_model_is_regression("linearly"));
    assert_false(at_model_is_regression("mlp:3"));
}

/* ---- sparse ---------------------------------------------------------------------------------- */

/* The rows of a fixture with every third number left out, which is then zero in both forms. */
typedef struct sparse_rows {
    uint64_t    starts[ROWS + 1], list[ROWS];
    uint32_t    indices[ROWS * FEATURES];
    float       values[ROWS * FEATURES];
    at_csr      rows;
    at_csr_list all;
    float       flat[FLOATS];
} sparse_rows;

static void make_sparse(sparse_rows *s, fixture *f)
{
    uint64_t at = 0;
    float    plain[FEATURES + 1];
    memset(s, 0, sizeof *s);
    for (uint32_t n = 0; n < ROWS; n++) {
        s->list[n] = n;
        for (uint32_t i = 0; i < FEATURES; i++) {
            float *x = &f->x[n * FEATURES + i];
            if ((n + i) % 3 == 0) *x = 0;
            s->indices[at] = i;
            s->values[at] = *x;
            at += *x != 0;
        }
        s->starts[n + 1] = at;
    }
    s->rows = (at_csr){s->starts, s->indices, s->values, f->labels, AT_SPARSE_SQUARED};
    s->all = (at_csr_list){s->list, ROWS, 0};
    at_model_to_plain(f->model, plain, f->w);
    at_sparse_from_plain(s->flat, plain, FEATURES);
}

static void sparse_rows_have_the_gradient_of_dense_ones(void **state)
{
    (void)state;
    static sparse_rows      s;
    static _Alignas(8) char room[sizeof(at_pairs) + (ROWS * FEATURES + 1) * sizeof(at_pair)];
    at_pairs               *pairs = (at_pairs *)(void *)room;
    fixture                 f = linear_fixture(AT_ENGINE_REF, ROWS);
    float                   margins[ROWS], coefs[ROWS], dense[FEATURES + 1];
    double                  sum[FEATURES + 1] = {0};
    make_sparse(&s, &f);
    at_sparse_margins(margins, &s.rows, &s.all, s.flat, FEATURES);
    double loss = at_sparse_losses(coefs, &s.rows, &s.all, margins);
    at_sparse_emit(pairs, &s.rows, &s.all, coefs, FEATURES);
    for (uint64_t k = 0; k < pairs->count; k++)
        sum[pairs->pair[k].index] += (double)pairs->pair[k].value;
    double wanted = at_model_gradient(f.model, f.g, f.w, f.x, f.labels, ROWS);
    at_model_to_plain(f.model, dense, f.g);
    assert_true(fabs(loss - wanted) < 1e-5 * wanted);
    for (int i = 0; i <= FEATURES; i++) assert_true(fabs(sum[i] - (double)dense[i]) < 1e-3);
    assert_true(at_sparse_losses(NULL, &s.rows, &s.all, margins) == loss);
    fixture_free(&f);
}

static void one_hogwild_process_is_sgd_row_by_row(void **state)
{
    (void)state;
    static sparse_rows s;
    fixture            f = linear_fixture(AT_ENGINE_REF, ROWS);
    at_hogwild         hogwild = {.part = 1};
    double             w[FEATURES + 1], rate = 0.0625, loss = 0;
    make_sparse(&s, &f);
    plain_weights(&f, w);
    *at_sparse_rate(s.flat, FEATURES) = (float)rate;
    for (uint32_t n = 0; n < ROWS; n++) {
        double off = w[FEATURES] - (double)label_of(&f, n);
        for (uint32_t i = 0; i < FEATURES; i++) off += w[i] * (double)f.x[n * FEATURES + i];
        loss += off * off / 2;
        for (uint32_t i = 0; i < FEATURES; i++) w[i] -= rate * off * (double)f.x[n * FEATURES + i];
        w[FEATURES] -= rate * off;
    }
    double got = at_hogwild_rows(&hogwild, &s.rows, &s.all, s.flat, FEATURES);
    assert_true(fabs(got - loss) < 1e-4 * loss);
    for (int i = 0; i <= FEATURES; i++) assert_true(fabs((double)s.flat[i] - w[i]) < 1e-4);
    fixture_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_match_finite_differences),
        cmocka_unit_test(micro_batches_add_up_to_the_whole),
        cmocka_unit_test(the_score_has_what_r2_needs_and_no_correct_ones),
        cmocka_unit_test(predictions_are_the_linear_function),
        cmocka_unit_test(models_and_labels_must_fit),
        cmocka_unit_test(sparse_rows_have_the_gradient_of_dense_ones),
        cmocka_unit_test(one_hogwild_process_is_sgd_row_by_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
