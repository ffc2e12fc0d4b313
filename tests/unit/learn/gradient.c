/* Gradients against central differences, and every engine against the reference. */
#include "fixture.h"
#include "learn/layers/layer.h"

#include <math.h>

/* An independent net in double precision: widths[0] features, ReLU between layers. */
typedef struct oracle {
    size_t count; /* of widths */
    size_t widths[6];
    double smoothing; /* of the labels */
} oracle;

static void oracle_layer(double *y, const double *x, const double *w, size_t in, size_t out)
{
    for (size_t o = 0; o < out; o++) {
        y[o] = w[in * out + o];
        for (size_t i = 0; i < in; i++) y[o] += w[o * in + i] * x[i];
    }
}

static double oracle_sample_loss(const oracle *net, const double *w, const float *x, uint32_t label)
{
    double a[2][256], sum = 0, mean = 0;
    for (size_t i = 0; i < net->widths[0]; i++) a[0][i] = x[i];
    for (size_t l = 1; l < net->count; l++) {
        size_t  in = net->widths[l - 1], out = net->widths[l];
        double *from = a[(l - 1) % 2], *to = a[l % 2];
        oracle_layer(to, from, w, in, out);
        w += in * out + out;
        for (size_t o = 0; o < out; o++)
            if (l + 1 < net->count && to[o] < 0) to[o] = 0;
    }
    double *z = a[(net->count - 1) % 2];
    size_t  classes = net->widths[net->count - 1];
    for (size_t c = 0; c < classes; c++) sum += exp(z[c] - z[label]);
    for (size_t c = 0; c < classes; c++) /* cross-entropy with every class as the label */
        mean += (log(sum) + z[label] - z[c]) / (double)classes;
    return (1 - net->smoothing) * log(sum) + net->smoothing * mean;
}

static double oracle_loss(const oracle *net, const double *w, const fixture *f)
{
    double sum = 0;
    for (size_t n = 0; n < f->rows; n++)
        sum += oracle_sample_loss(net, w, f->x + n * f->shape.features, f->labels[n]);
    return sum;
}

static double oracle_slope(const oracle *net, double *w, const fixture *f, size_t i)
{
    const double h = 1e-6;
    double       kept = w[i];
    w[i] = kept + h;
    double above = oracle_loss(net, w, f);
    w[i] = kept - h;
    double below = oracle_loss(net, w, f);
    w[i] = kept;
    return (above - below) / (2 * h);
}

static void check_net(const char *name, const oracle *net, uint32_t rows, at_engine engine)
{
    at_shape shape = {.features = (uint32_t)net->widths[0],
                      .classes = (uint32_t)net->widths[net->count - 1]};
    fixture  f = fixture_new(name, shape, engine, rows);
    size_t   params = at_model_params(f.model);
    float   *plain = floats(params), *g = floats(params);
    double  *w = calloc(params, sizeof *w);
    assert_non_null(w);
    at_model_to_plain(f.model, plain, f.w);
    for (size_t i = 0; i < params; i++) w[i] = plain[i];
    at_model_smooth_labels(f.model, net->smoothing);
    double loss = at_model_gradient(f.model, f.g, f.w, f.x, f.labels, rows);
    at_model_to_plain(f.model, g, f.g);
    assert_true(fabs(loss - oracle_loss(net, w, &f)) < 1e-5 * rows);
    for (size_t i = 0; i<params; i += params> 600 ? 7 : 1)
        assert_true(fabs(g[i] - oracle_slope(net, w, &f, i)) < 2e-5 * rows);
    free(w);
    free(g);
    free(plain);
    fixture_free(&f);
}

static void gradients_match_finite_differences(void **state)
{
    (void)state;
    for (int e = AT_ENGINE_FAST; e <= AT_ENGINE_REF; e++) {
        check_net("softmax", &(oracle){2, {13, 10}, 0}, 7, (at_engine)e);
        check_net("softmax", &(oracle){2, {9, 2}, 0}, 3, (at_engine)e);
        check_net("softmax", &(oracle){2, {21, 40}, 0}, 4, (at_engine)e);
        check_net("mlp:5", &(oracle){3, {4, 5, 3}, 0}, 6, (at_engine)e);
        check_net("mlp:37,41", &(oracle){4, {11, 37, 41, 10}, 0}, 5, (at_engine)e);
        check_net("mlp:6,7,8,9", &(oracle){6, {3, 6, 7, 8, 9, 34}, 0}, 8, (at_engine)e);
        check_net("softmax", &(oracle){2, {9, 2}, 0.1}, 3, (at_engine)e);
        check_net("mlp:37,41", &(oracle){4, {11, 37, 41, 10}, 0.3}, 5, (at_engine)e);
        check_net("mlp:5", &(oracle){3, {4, 5, 3}, 1}, 6, (at_engine)e);
    }
}

/* One layer: with L = sum of dy * y, backward must give the gradients of L. */
typedef struct layer_case {
    const at_layer_kind *kind;
    uint32_t             in, out;
} layer_case;

typedef struct bench {
    at_layer layer;
    size_t   count;
    float   *x, *y, *dy, *dx, *params, *gradient, *scratch;
} bench;

static double bench_output(bench *b)
{
    at_layer_pass pass = {.count = b->count, .params = b->params, .x = b->x, .y = b->y};
    double        sum = 0;
    if (b->layer.kind->in_place) {
        memcpy(b->y, b->x, b->count * b->layer.in.channels * sizeof(float));
        pass.x = b->y;
    }
    b->layer.kind->forward(&b->layer, &pass);
    for (size_t i = 0; i < b->count * b->layer.out.channels; i++) sum += (double)b->dy[i] * b->y[i];
    return sum;
}

static void check_slopes(bench *b, float *at, const float *slopes, size_t n)
{
    const float h = 0.0625f; /* layers here are linear within h, so only rounding remains */
    for (size_t i = 0; i < n; i++) {
        float kept = at[i];
        at[i] = kept + h;
        double above = bench_output(b);
        at[i] = kept - h;
        double below = bench_output(b);
        at[i] = kept;
        assert_true(fabs((above - below) / (2.0 * h) - slopes[i]) < 2e-4);
    }
}

static bench bench_new(const layer_case *c, at_engine engine, size_t count)
{
    at_rng rng = at_rng_stream(5, 0, AT_RNG_PURPOSE_TEST, 2);
    bench  b = {.layer = {.kind = c->kind, .in = {c->in, 1, 1, 1}}, .count = count};
    b.layer.out.block = 1;
    b.layer.spec.units = c->out;
    assert_int_equal(c->kind->shape(&b.layer, NULL), AT_OK);
    b.layer.kernels = c->kind == &at_layer_dense ? at_kernels_dense(engine, c->in, c->out)
                                                 : at_kernels_elementwise(engine);
    b.layer.elementwise = at_kernels_elementwise(engine);
    b.layer.params = c->kind == &at_layer_dense ? (size_t)c->in * c->out + c->out : 0;
    fill(b.x = floats(count * c->in), count * c->in, 1, &rng);
    fill(b.dy = floats(count * c->out), count * c->out, 1, &rng);
    fill(b.params = floats(b.layer.params + 1), b.layer.params, 1, &rng);
    for (size_t i = 0; i < count * c->in; i++) b.x[i] += b.x[i] < 0 ? -0.1f : 0.1f; /* off kinks */
    b.y = floats(count * c->out);
    b.dx = floats(count * c->in);
    b.gradient = floats(b.layer.params + 1);
    b.scratch =
        floats((c->kind->scratch ? c->kind->scratch(&b.layer, count) / sizeof(float) : 0) + 1);
    return b;
}

static void bench_free(bench *b)
{
    float *all[] = {b->x, b->y, b->dy, b->dx, b->params, b->gradient, b->scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void bench_backward(bench *b)
{
    at_layer_pass pass = {.count = b->count,
                          .params = b->params,
                          .x = b->x,
                          .y = b->y,
                          .dy = b->dy,
                          .dx = b->dx,
                          .gradient = b->gradient,
                          .write = AT_WRITE_SET,
                          .scratch = b->scratch};
    bench_output(b);
    if (b->layer.kind->in_place) {
        memcpy(b->dx, b->dy, b->count * b->layer.out.channels * sizeof(float));
        pass.dy = b->dx;
    }
    b->layer.kind->backward(&b->layer, &pass);
}

static void every_layer_matches_finite_differences(void **state)
{
    (void)state;
    static const layer_case cases[] = {
        {&at_layer_dense, 6, 5}, {&at_layer_dense, 19, 37}, {&at_layer_dense, 33, 10},
        {&at_layer_relu, 9, 9},  {&at_layer_relu, 40, 40},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int e = AT_ENGINE_FAST; e <= AT_ENGINE_REF; e++) {
            bench b = bench_new(&cases[k], (at_engine)e, 5);
            bench_backward(&b);
            check_slopes(&b, b.x, b.dx, b.count * b.layer.in.channels);
            check_slopes(&b, b.params, b.gradient, b.layer.params);
            bench_free(&b);
        }
}

/* Largest difference of two vectors, over the largest element. */
static double distance(const float *a, const float *b, size_t n)
{
    double far = 0, large = 1e-3;
    for (size_t i = 0; i < n; i++) {
        far = fmax(far, fabs((double)a[i] - b[i]));
        large = fmax(large, fabs((double)b[i]));
    }
    return far / large;
}

static void check_against_reference(const char *name, at_shape shape, uint32_t rows)
{
    fixture fast = fixture_new(name, shape, AT_ENGINE_FAST, rows);
    fixture ref = fixture_new(name, shape, AT_ENGINE_REF, rows);
    double  loss = at_model_gradient(ref.model, ref.g, ref.w, ref.x, ref.labels, rows);
    double  got = at_model_gradient(fast.model, fast.g, fast.w, fast.x, fast.labels, rows);
    assert_true(fabs(got - loss) < 1e-5 * fmax(1, loss));
    assert_true(distance(fast.g, ref.g, ref.params) < 2e-5);
    fixture_free(&fast);
    fixture_free(&ref);
}

static void fast_agrees_with_the_reference_on_many_shapes(void **state)
{
    (void)state;
    static const uint32_t features[] = {1, 3, 7, 8, 9, 15, 16, 17, 24, 31, 33, 50, 784};
    static const uint32_t classes[] = {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 16, 17, 31, 33, 100};
    static const uint32_t rows[] = {1, 2, 3, 5, 10, 33};
    for (size_t f = 0; f < sizeof features / sizeof *features; f++)
        for (size_t c = 0; c < sizeof classes / sizeof *classes; c++)
            for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
                if (features[f] > 100 && rows[r] > 3) continue;
                check_against_reference(
                    "softmax", (at_shape){.features = features[f], .classes = classes[c]}, rows[r]);
            }
    check_against_reference("softmax", (at_shape){.features = 3072, .classes = 10},
                            5); /* several runs of inputs */
    check_against_reference("softmax", (at_shape){.features = 20, .classes = 10},
                            300); /* several runs of samples */
    check_against_reference("mlp:40,33", (at_shape){.features = 50, .classes = 10}, 64);
    check_against_reference("mlp:47", (at_shape){.features = 19, .classes = 35},
                            129); /* more than the AVX2 kernels take */
    check_against_reference("mlp:36,4,50", (at_shape){.features = 17, .classes = 3}, 31);
}

static void check_tables(const at_kernels *k, size_t B, size_t I, size_t O)
{
    const at_kernels *ref = &at_kernels_ref;
    at_rng            rng = at_rng_stream(9, 0, AT_RNG_PURPOSE_TEST, B * 10000 + I * 100 + O);
    float            *x = floats(B * I), *w = floats(I * O), *b = floats(O), *dy = floats(B * O);
    float            *got = floats(B * I + B * O + I * O), *want = floats(B * I + B * O + I * O);
    float            *scratch = floats((k->dense_scratch ? k->dense_scratch(B, I, O) : 0) + 1);
    fill(x, B * I, 1, &rng);
    fill(w, I * O, 1, &rng);
    fill(b, O, 1, &rng);
    fill(dy, B * O, 1, &rng);
    k->dense_forward(got, x, w, b, B, I, O);
    ref->dense_forward(want, x, w, b, B, I, O);
    assert_true(distance(got, want, B * O) < 1e-5);
    k->dense_input(got, dy, w, B, I, O);
    ref->dense_input(want, dy, w, B, I, O);
    assert_true(distance(got, want, B * I) < 1e-5);
    fill(got, I * O, 1, &rng);
    memcpy(want, got, I * O * sizeof(float));
    for (int write = AT_WRITE_ADD; write >= AT_WRITE_SET; write--) {
        k->dense_weight(got, dy, x, B, I, O, (at_write)write, scratch);
        ref->dense_weight(want, dy, x, B, I, O, (at_write)write, NULL);
        assert_true(distance(got, want, I * O) < 1e-5);
        k->dense_bias(got, dy, B, O, (at_write)write);
        ref->dense_bias(want, dy, B, O, (at_write)write);
        assert_true(distance(got, want, O) < 1e-5);
    }
    float *all[] = {x, w, b, dy, got, want, scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void every_engine_agrees_with_the_reference(void **state)
{
    (void)state;
    const at_kernels *tables[4] = {&at_kernels_portable, &at_kernels_blas};
    size_t            count = 2;
#if defined(__x86_64__)
    if (at_kernels_elementwise(AT_ENGINE_FAST) == &at_kernels_avx2) {
        tables[count++] = &at_kernels_avx2;
        tables[count++] = &at_kernels_mixed;
    }
#endif
    static const size_t sizes[] = {1, 2, 5, 8, 13, 16, 27, 40};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (size_t t = 0; t < count; t++) {
        for (size_t n = 0; n < SIZES * SIZES * SIZES; n++)
            check_tables(tables[t], sizes[n % SIZES], sizes[n / SIZES % SIZES],
                         sizes[n / SIZES / SIZES]);
        check_tables(tables[t], 130, 30, 40);
        check_tables(tables[t], 33, 1030, 7);
        check_tables(tables[t], 2, 1024, 300); /* more weights than the AVX2 kernels take */
    }
}

static void losses_of_extreme_logits_are_exact(void **state)
{
    (void)state;
    const at_kernels *tables[3] = {&at_kernels_ref, &at_kernels_portable,
                                   at_kernels_elementwise(AT_ENGINE_FAST)};
    for (size_t t = 0; t < 3; t++)
        for (size_t C = 2; C <= 40; C++) {
            float    z[40] = {0};
            uint32_t label = 1;
            z[0] = 1000;
            z[1] = -500;
            assert_true(fabs(tables[t]->softmax_loss(z, &label, 1, C) - 1500) < 1e-3);
            assert_true(z[0] == 1.0f);
            assert_true(z[1] == -1.0f);
            for (size_t c = 2; c < C; c++) assert_true(fabsf(z[c]) < 1e-30f);
        }
}

/* Many rows share one logarithm; their product must not overflow. */
static void losses_of_many_rows_add_up(void **state)
{
    (void)state;
    enum { ROWS = 3000, C = 100 };
    const at_kernels *tables[2] = {&at_kernels_portable, at_kernels_elementwise(AT_ENGINE_FAST)};
    uint32_t         *labels = calloc(ROWS, sizeof *labels);
    float            *z = floats(ROWS * C);
    assert_non_null(labels);
    for (size_t t = 0; t < 2; t++) {
        memset(z, 0, ROWS * C * sizeof *z);
        double loss = tables[t]->softmax_loss(z, labels, ROWS, C);
        assert_true(fabs(loss / (ROWS * log(C)) - 1) < 1e-12);
    }
    free(labels);
    free(z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_match_finite_differences),
        cmocka_unit_test(every_layer_matches_finite_differences),
        cmocka_unit_test(fast_agrees_with_the_reference_on_many_shapes),
        cmocka_unit_test(every_engine_agrees_with_the_reference),
        cmocka_unit_test(losses_of_extreme_logits_are_exact),
        cmocka_unit_test(losses_of_many_rows_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
