/* The convolution layer: gradients written and added, its ReLU, shapes and initial values. */
#include "conv_bench.h"

/* A layer with everything that one backward call needs. */
typedef struct stage {
    at_layer      layer;
    at_layer_pass pass;
    bench         bench;
    size_t        params;
    float        *params_made, *gradient, *scratch;
} stage;

static stage stage_new(const conv_case *s, uint32_t block)
{
    bench  ref = reference_of(s, 3, true);
    stage  t = {.layer = layer_of(s, s->in <= 3 ? 1 : block, block),
                .bench = fast_of(s, block, 3, true)};
    size_t biases = s->out;
    copy_numbers(&t.bench, &ref);
    bench_free(&ref);
    t.layer.conv = t.bench.k;
    t.layer.layout = t.bench.layout;
    t.layer.wants_dx = t.bench.spec.wants_dx;
    t.params = t.layer.layout.floats + biases;
    t.params_made = floats(t.params);
    t.gradient = floats(t.params);
    t.scratch = floats(at_layer_conv.scratch(&t.layer, 3) / sizeof(float));
    memcpy(t.params_made, t.bench.w, t.layer.layout.floats * sizeof(float));
    memcpy(t.params_made + t.layer.layout.floats, t.bench.b, biases * sizeof(float));
    t.pass = (at_layer_pass){.count = 3,
                             .training = true,
                             .params = t.params_made,
                             .x = t.bench.x,
                             .y = t.bench.y,
                             .dy = t.bench.dy,
                             .dx = t.layer.wants_dx ? t.bench.dx : NULL,
                             .gradient = t.gradient,
                             .scratch = t.scratch,
                             .conv = t.bench.conv,
                             .conv_scratch = t.bench.scratch};
    if (t.bench.k->reordered_size(t.bench.conv)) {
        t.bench.k->reorder(t.bench.conv, t.bench.reordered, t.bench.w);
        t.pass.reordered = t.bench.reordered;
    }
    return t;
}

static void stage_free(stage *t)
{
    bench_free(&t->bench);
    free(t->params_made), free(t->gradient), free(t->scratch);
}

static void backward(stage *t, at_write write, float *gradient, bool relu_done)
{
    t->layer.relu_done = relu_done;
    t->pass.write = write;
    t->pass.gradient = gradient;
    at_layer_conv.backward(&t->layer, &t->pass);
}

static void check_writes(const conv_case *s, uint32_t block)
{
    stage  t = stage_new(s, block);
    float *set = floats(t.params), *add = floats(t.params), *twice = floats(t.params);
    memset(set, 0xff, t.params * sizeof *set);
    at_layer_conv.forward(&t.layer, &t.pass);
    backward(&t, AT_WRITE_SET, set, false);
    backward(&t, AT_WRITE_ADD, add, false);
    assert_memory_equal(set, add, t.params * sizeof *set);
    memcpy(twice, set, t.params * sizeof *set);
    backward(&t, AT_WRITE_ADD, twice, false);
    for (size_t i = 0; i < t.params; i++) assert_true(twice[i] == set[i] + set[i]);
    free(set), free(add), free(twice);
    stage_free(&t);
}

static void setting_equals_adding_to_zeros(void **state)
{
    (void)state;
    uint32_t block = block_here();
    for (size_t j = 0; j < 12 && block; j++) check_writes(&SHAPES[j], block);
    for (size_t j = 0; j < SMALL_COUNT && block; j++) check_writes(&SMALL[j], block);
}

/* Gradients so small that products underflow could leave negative zeros. */
static void no_gradient_is_a_negative_zero(void **state)
{
    (void)state;
    uint32_t block = block_here();
    for (size_t j = 0; j < 8 && block; j++) {
        stage t = stage_new(&SHAPES[j], block);
        at_layer_conv.forward(&t.layer, &t.pass);
        for (size_t i = 0; i < t.bench.out; i++) t.bench.dy[i] *= i % 3 ? -1e-44f : 0.0f;
        for (size_t i = 0; i < t.bench.in; i++) t.bench.x[i] *= i % 2 ? 1e-30f : -0.0f;
        backward(&t, AT_WRITE_SET, t.gradient, false);
        for (size_t i = 0; i < t.params; i++)
            if (t.gradient[i] == 0) assert_false(signbit(t.gradient[i]));
        stage_free(&t);
    }
}

static void a_fused_relu_masks_gradients_unless_done(void **state)
{
    (void)state;
    uint32_t block = block_here();
    if (!block) return;
    stage  t = stage_new(&SHAPES[1], block);
    float *masked = floats(t.params), *kept = floats(t.bench.out);
    memcpy(kept, t.bench.dy, t.bench.out * sizeof *kept);
    at_layer_conv.forward(&t.layer, &t.pass);
    backward(&t, AT_WRITE_SET, t.gradient, true);
    assert_memory_equal(kept, t.bench.dy, t.bench.out * sizeof *kept);
    backward(&t, AT_WRITE_SET, masked, false);
    assert_memory_not_equal(masked, t.gradient, t.params * sizeof *masked);
    for (size_t i = 0; i < t.bench.out; i++)
        assert_true(t.bench.dy[i] == (t.bench.y[i] > 0 ? kept[i] : 0.0f));
    free(masked), free(kept);
    stage_free(&t);
}

static void same_padding_is_smaller_before_than_after(void **state)
{
    (void)state;
    at_layer a = layer_of(&(conv_case){"", 1, 32, 1, 3, 2, SAME}, 1, 1);
    at_layer b = layer_of(&(conv_case){"", 1, 28, 1, 5, 1, SAME}, 1, 1);
    at_layer c = layer_of(&(conv_case){"", 1, 5, 1, 2, 3, SAME}, 1, 1);
    assert_int_equal(a.out.height, 16);
    assert_int_equal(a.spec.window.top, 0);
    assert_int_equal(a.spec.window.bottom, 1);
    assert_int_equal(b.out.width, 28);
    assert_int_equal(b.spec.window.left, 2);
    assert_int_equal(b.spec.window.right, 2);
    assert_int_equal(c.out.height, 2);
    assert_int_equal(c.spec.window.top, 0);
    assert_int_equal(c.spec.window.bottom, 0);
    assert_int_equal(at_layer_conv.mults(&b), 28 * 28 * 25);
}

static void windows_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    at_fail  fail = {0};
    at_layer layer = {.in = {3, 4, 4, 1}, .spec = {.units = 8, .window = {5, 5, 1, 0, 0, 0, 0}}};
    assert_int_equal(at_layer_conv.shape(&layer, &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "5x5"));
    assert_non_null(strstr(fail.text, "4x4"));
    layer.spec.window = (at_window){3, 3, 1, 3, 3, 3, 3};
    assert_int_equal(at_layer_conv.shape(&layer, &fail), AT_ERR_USAGE);
    layer.spec.window = (at_window){1u << 31, 1u << 31, 1, 0, 0, 0, 0};
    layer.spec.same = true;
    layer.spec.units = UINT32_MAX;
    assert_int_equal(at_layer_conv.shape(&layer, &fail), AT_ERR_USAGE);
}

/* ---- initial values ---- */

static double spread(at_initializer start, double *largest)
{
    enum { N = 20000 };
    float *v = floats(N);
    at_rng rng = at_rng_stream(1, 0, AT_RNG_PURPOSE_INIT, 0);
    double squares = 0;
    *largest = 0;
    at_initializer_fill(start, v, N, 50, 100, &rng);
    for (size_t i = 0; i < N; i++) {
        squares += (double)v[i] * v[i];
        *largest = fmax(*largest, fabs(v[i]));
    }
    free(v);
    return sqrt(squares / N);
}

static void initial_values_have_the_right_deviation(void **state)
{
    (void)state;
    double largest;
    assert_true(spread((at_initializer){AT_INIT_ZERO, 7}, &largest) == 0);
    assert_true(fabs(spread((at_initializer){AT_INIT_CONST, 0.5}, &largest) - 0.5) < 1e-9);
    double limit = sqrt(6.0 / 150);
    assert_true(fabs(spread((at_initializer){AT_INIT_GLOROT, 0}, &largest) - limit / sqrt(3)) <
                0.002);
    assert_true(largest <= limit && largest > 0.99 * limit);
    assert_true(fabs(spread((at_initializer){AT_INIT_HE, 0}, &largest) - 0.2) < 0.004);
    assert_true(fabs(spread((at_initializer){AT_INIT_NORMAL, 0.08}, &largest) - 0.08) < 0.002);
    assert_true(largest > 0.2);
    /* A normal distribution truncated at two deviations has 0.88 of the deviation. */
    assert_true(fabs(spread((at_initializer){AT_INIT_TRUNCATED, 0.1}, &largest) - 0.088) < 0.002);
    assert_true(largest <= 0.2f && largest > 0.19);
}

static void init_fills_weights_and_biases(void **state)
{
    (void)state;
    at_layer        layer = layer_of(&(conv_case){"", 3, 8, 4, 5, 1, SAME}, 1, 1);
    at_layer_tensor rows[AT_LAYER_TENSORS_MAX];
    at_rng          rng = at_rng_stream(1, 0, AT_RNG_PURPOSE_INIT, 0);
    float           plain[4 * 3 * 25 + 4];
    layer.spec.bias_init = (at_initializer){AT_INIT_CONST, 0.25};
    at_layer_conv.init(&layer, plain, &rng);
    for (size_t i = 0; i < 300; i++) assert_true(plain[i] != 0);
    for (size_t i = 300; i < 304; i++) assert_true(plain[i] == 0.25f);
    assert_int_equal(at_layer_conv.tensors(&layer, rows), 2);
    assert_int_equal(rows[0].shape[1], 3);
    assert_ptr_equal(rows[0].layout, &layer.layout);
    assert_int_equal(rows[1].shape[0], 4);
    layer.spec.bias = false;
    assert_int_equal(at_layer_conv.tensors(&layer, rows), 1);
}
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(setting_equals_adding_to_zeros),
        cmocka_unit_test(no_gradient_is_a_negative_zero),
        cmocka_unit_test(a_fused_relu_masks_gradients_unless_done),
        cmocka_unit_test(same_padding_is_smaller_before_than_after),
        cmocka_unit_test(windows_that_do_not_fit_are_refused),
        cmocka_unit_test(initial_values_have_the_right_deviation),
        cmocka_unit_test(init_fills_weights_and_biases),
    };
    (void)argc;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : once_more(argv);
}
