/* Convolutions: the reference against its definition and central differences, oneDNN against the
 * reference for every convolution of the built-in models. */
#include "learn/engines/conv_kernels.h"

#include "conv_bench.h"
#include "learn/engines/conv_kernels.h"

#include <dirent.h>

static void assert_padding_zero(const at_activation *shape, uint32_t rows, const float *v)
{
    size_t whole = at_activation_blocks(shape) * shape->block;
    for (size_t n = 0; n < rows; n++)
        for (size_t c = shape->channels; c < whole; c++)
            for (size_t i = 0; i < at_activation_area(shape); i++)
                assert_true(v[blocked(shape, n, c, i)] == 0.0f);
}

static double worst; /* of all comparisons since the last reset */

/* The largest difference, relative to the largest value. */
static void assert_near(const char *name, const char *what, const float *a, const float *b,
                        size_t n)
{
    double most = 0, diff = 0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs(b[i]));
        diff = fmax(diff, fabs((double)a[i] - b[i]));
    }
    if (!(diff <= 2e-5 * most)) fail_msg("%s: %s differs by %g of %g", name, what, diff, most);
    if (most > 0) worst = fmax(worst, diff / most);
}

/* ---- layouts ---- */

static void check_form(const at_weight_layout *layout)
{
    size_t n = (size_t)layout->shape[0] * layout->shape[1] * layout->shape[2] * layout->shape[3];
    float *plain = normals(n, 1, 1), *back = floats(n), *weights = floats(layout->floats);
    memset(weights, 0xff, layout->floats * sizeof *weights);
    at_weight_layout_from_plain(layout, weights, plain);
    at_weight_layout_to_plain(layout, back, weights);
    assert_memory_equal(plain, back, n * sizeof *plain);
    size_t zeros = 0;
    for (size_t i = 0; i < layout->floats; i++) zeros += weights[i] == 0.0f;
    assert_int_equal(zeros, layout->floats - n); /* so no two weights share an offset */
    assert_true(weights[at_weight_layout_offset(layout, 1, 2, 0, 1)] ==
                plain[((1 * layout->shape[1] + 2) * layout->shape[2] + 0) * layout->shape[3] + 1]);
    free(plain);
    free(back);
    free(weights);
}

static void weights_survive_every_layout(void **state)
{
    (void)state;
    at_conv_spec     spec = {.in = {20, 9, 9, 1},
                             .out = {50, 9, 9, 1},
                             .window = {.height = 3, .width = 5, .stride = 1}};
    at_weight_layout plain = at_weight_layout_plain(&spec);
    check_form(&plain);
    assert_int_equal(plain.floats, 50 * 20 * 3 * 5);
    check_form(&(at_weight_layout){.floats = 64 * 32 * 15,
                                   .shape = {50, 20, 3, 5},
                                   .stride = {2 * 15 * 256, 15 * 256, 5 * 256, 256},
                                   .inner_count = 2,
                                   .inner_size = {16, 16},
                                   .inner_dim = {1, 0}});
    check_form(&(at_weight_layout){.floats = 64 * 32 * 15,
                                   .shape = {50, 20, 3, 5},
                                   .stride = {2 * 15 * 256, 15 * 256, 5 * 256, 256},
                                   .inner_count = 3,
                                   .inner_size = {4, 16, 4},
                                   .inner_dim = {1, 0, 1}});
}

/* ---- the reference ---- */

/* y at one position, from the definition. */
static double defined(const bench *t, size_t n, size_t o, size_t v, size_t u)
{
    const at_window *k = &t->spec.window;
    size_t           C = t->spec.in.channels, H = t->spec.in.height, W = t->spec.in.width;
    double           sum = t->b[o];
    for (size_t i = 0; i < C; i++)
        for (size_t h = 0; h < k->height; h++)
            for (size_t w = 0; w < k->width; w++) {
                long y = (long)(v * k->stride + h) - (long)k->top;
                long x = (long)(u * k->stride + w) - (long)k->left;
                if (y < 0 || x < 0 || y >= (long)H || x >= (long)W) continue;
                double value = t->x[((n * C + i) * H + (size_t)y) * W + (size_t)x];
                sum += value * t->w[((o * C + i) * k->height + h) * k->width + w];
            }
    return sum;
}

static void the_reference_matches_the_definition(void **state)
{
    (void)state;
    for (size_t j = 0; j < SMALL_COUNT; j++) {
        bench                t = reference_of(&SMALL[j], 2, true);
        const at_activation *out = &t.spec.out;
        const float         *y = t.y;
        bench_run(&t);
        for (size_t n = 0; n < t.rows; n++)
            for (size_t o = 0; o < out->channels; o++)
                for (size_t i = 0; i < at_activation_area(out); i++, y++) {
                    double want = defined(&t, n, o, i / out->width, i % out->width);
                    assert_true(fabs(*y - fmax(want, 0)) < 1e-6);
                }
        bench_free(&t);
    }
}

/* The sum of y * dy, whose gradients are dx, dw and db. */
static double value_of(bench *t)
{
    double sum = 0;
    t->k->forward(t->conv, t->y, t->x, t->w, t->b, t->scratch);
    for (size_t i = 0; i < t->out; i++) sum += (double)t->y[i] * t->dy[i];
    return sum;
}

static void check_slopes(bench *t, const char *name, float *v, const float *gradient, size_t n)
{
    const float h = 0.25f; /* y is linear in each value, so a large step costs no accuracy */
    for (size_t i = 0; i < n; i++) {
        float kept = v[i];
        v[i] = kept + h;
        double above = value_of(t), wide = v[i];
        v[i] = kept - h;
        double slope = (above - value_of(t)) / (wide - v[i]);
        v[i] = kept;
        if (!(fabs(slope - gradient[i]) < 2e-5 * (1 + fabs(slope))))
            fail_msg("%s: value %zu has slope %g, not %g", name, i, slope, gradient[i]);
    }
}

static void gradients_of_the_reference_match_differences(void **state)
{
    (void)state;
    for (size_t j = 0; j < SMALL_COUNT; j++) {
        bench t = reference_of(&SMALL[j], 2, false);
        bench_run(&t);
        check_slopes(&t, SMALL[j].name, t.w, t.dw, t.layout.floats);
        check_slopes(&t, SMALL[j].name, t.b, t.db, t.spec.out.channels);
        check_slopes(&t, SMALL[j].name, t.x, t.dx, t.in);
        bench_free(&t);
    }
}

/* ---- oneDNN ---- */

/* Compares the outputs, in plain order, with the reference, and checks that padding is zero. */
static void compare(const char *name, const bench *t, const bench *ref)
{
    float *y = floats(ref->out), *dx = floats(ref->in), *dw = floats(ref->layout.floats);
    reorder(&t->spec.out, t->rows, t->y, y, true);
    at_weight_layout_to_plain(&t->layout, dw, t->dw);
    assert_near(name, "y", y, ref->y, ref->out);
    assert_near(name, "dw", dw, ref->dw, ref->layout.floats);
    assert_near(name, "db", t->db, ref->db, t->spec.out.channels);
    assert_padding_zero(&t->spec.out, t->rows, t->y);
    if (t->spec.wants_dx) {
        reorder(&t->spec.in, t->rows, t->dx, dx, true);
        assert_near(name, "dx", dx, ref->dx, ref->in);
        assert_padding_zero(&t->spec.in, t->rows, t->dx);
    }
    size_t zeros = 0;
    for (size_t i = 0; i < t->layout.floats; i++) zeros += t->dw[i] == 0.0f;
    size_t zeros_plain = 0;
    for (size_t i = 0; i < ref->layout.floats; i++) zeros_plain += dw[i] == 0.0f;
    assert_int_equal(zeros - zeros_plain, t->layout.floats - ref->layout.floats);
    free(y);
    free(dx);
    free(dw);
}

/* Previous content of the outputs must not matter. */
static void spoil(bench *t)
{
    memset(t->y, 0xff, t->out * sizeof(float));
    memset(t->dx, 0xff, t->in * sizeof(float));
    memset(t->dw, 0xff, t->layout.floats * sizeof(float));
}

static void onednn_matches_the_reference(void **state)
{
    (void)state;
    uint32_t block = block_here();
    for (size_t j = 0; j < SHAPES_COUNT && block; j++) {
        const conv_case *s = &SHAPES[j];
        uint32_t         rows = s->size > 100 || s->in >= 64 ? 1 : 3;
        bool             relu = j % 2 == 0;
        bench            ref = reference_of(s, rows, relu), t = fast_of(s, block, rows, relu);
        copy_numbers(&t, &ref);
        spoil(&t);
        bench_run(&ref);
        bench_run(&t);
        compare(s->name, &t, &ref);
        bench_free(&ref);
        bench_free(&t);
    }
}

/* Windows of 3x3 and 5x5 with enough samples for Winograd to be chosen: those of the built-in
 * models, and uneven numbers of channels, rows and columns. */
static const struct tiled {
    conv_case shape;
    uint32_t  rows;
} TILED[] = {
    {{"wrn-28-2 2", 16, 32, 32, 3, 1, SAME}, 1},
    {{"wrn-28-2 3", 32, 32, 32, 3, 1, SAME}, 2},
    {{"wrn-28-2 5", 64, 16, 64, 3, 1, SAME}, 3},
    {{"wrn-28-2 7", 128, 8, 128, 3, 1, SAME}, 7},
    {{"cifar10-cnn 2", 64, 16, 128, 3, 1, SAME}, 3},
    {{"resnet18 2", 64, 32, 64, 3, 1, 1}, 1},
    {{"resnet18 4", 128, 16, 128, 3, 1, 1}, 2},
    {{"resnet18 6", 256, 8, 256, 3, 1, 1}, 6},
    {{"resnet18 8", 512, 4, 512, 3, 1, 1}, 21},
    {{"alexnet 227 3", 192, 13, 384, 3, 1, SAME}, 6},
    {{"one out", 64, 16, 16, 3, 1, SAME}, 2},
    {{"20 to 50", 20, 12, 50, 3, 1, SAME}, 3},
    {{"50 to 20, no padding", 50, 13, 20, 3, 1, 0}, 4},
    {{"40 to 40 on 15x15", 40, 15, 40, 3, 1, SAME}, 4},
    {{"mnist-cnn 2", 32, 14, 64, 5, 1, SAME}, 3},
    {{"lenet 2", 20, 12, 50, 5, 1, 0}, 5},
    {{"cifar10-cnn 3", 128, 8, 256, 5, 1, SAME}, 2},
};
enum { TILED_COUNT = sizeof TILED / sizeof *TILED };

/* Values after a ReLU have a nonzero mean, which the transforms have to cancel out. */
static void clip(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = x[i] > 0 ? x[i] : 0;
}

static void winograd_matches_the_reference(void **state)
{
    (void)state;
    uint32_t block = block_here();
    worst = 0;
    for (size_t j = 0; j < TILED_COUNT && block; j++) {
        const conv_case *s = &TILED[j].shape;
        bench            ref = reference_of(s, TILED[j].rows, j % 2);
        bench            t = fast_of(s, block, TILED[j].rows, j % 2);
        if (j % 3) clip(ref.x, ref.in);
        copy_numbers(&t, &ref);
        spoil(&t);
        bench_run(&ref);
        bench_run(&t);
        compare(s->name, &t, &ref);
        bench_free(&ref);
        bench_free(&t);
    }
    print_message("the largest difference is %.1e of the largest number\n", worst);
}

/* The outputs of two runs must be equal. */
static void check_repeats(const conv_case *s, uint32_t block, uint32_t rows)
{
    bench  ref = reference_of(s, rows, true), t = fast_of(s, block, rows, true);
    float *y = floats(t.out), *dw = floats(t.layout.floats), *dx = floats(t.in);
    copy_numbers(&t, &ref);
    bench_run(&t);
    memcpy(y, t.y, t.out * sizeof *y);
    memcpy(dw, t.dw, t.layout.floats * sizeof *dw);
    memcpy(dx, t.dx, t.in * sizeof *dx);
    bench_run(&t);
    assert_memory_equal(y, t.y, t.out * sizeof *y);
    assert_memory_equal(dw, t.dw, t.layout.floats * sizeof *dw);
    assert_memory_equal(dx, t.dx, t.in * sizeof *dx);
    free(y), free(dw), free(dx);
    bench_free(&ref);
    bench_free(&t);
}

/* Windows about as large as the image, with enough samples for onednn_weight_gemm.c. */
static const struct tiled LARGE[] = {
    {{"cifar10-cnn 4", 256, 4, 512, 5, 1, SAME}, 8},
    {{"5x5 on 2x2, uneven", 70, 2, 90, 5, 1, SAME}, 17},
    {{"5x5 on 3x3", 64, 3, 64, 5, 1, SAME}, 11},
    {{"4x4 on 3x3", 80, 3, 64, 4, 1, SAME}, 12},
    {{"7x7 on 4x4", 64, 4, 64, 7, 1, SAME}, 9},
    {{"3x3 on 2x2", 64, 2, 80, 3, 1, 1}, 16},
};
enum { LARGE_COUNT = sizeof LARGE / sizeof *LARGE };

static void windows_as_large_as_images_match_the_reference(void **state)
{
    (void)state;
    uint32_t block = block_here();
    for (size_t j = 0; j < LARGE_COUNT && block; j++) {
        const conv_case *s = &LARGE[j].shape;
        bench            ref = reference_of(s, LARGE[j].rows, j % 2);
        bench            t = fast_of(s, block, LARGE[j].rows, j % 2);
        copy_numbers(&t, &ref);
        spoil(&t);
        bench_run(&ref);
        bench_run(&t);
        compare(s->name, &t, &ref);
        bench_free(&ref);
        bench_free(&t);
        check_repeats(s, block, LARGE[j].rows);
    }
}

static void the_environment_can_request_direct_convolutions(void **state)
{
    (void)state;
    uint32_t block = block_here();
    for (size_t j = 1; j < 4 && block; j++) {
        const struct tiled *c = &TILED[j];
        bench               ref = reference_of(&c->shape, c->rows, true);
        bench               t = fast_of(&c->shape, block, c->rows, true);
        setenv("ANYTIME_CONV", "direct", 1);
        bench direct = fast_of(&c->shape, block, c->rows, true);
        unsetenv("ANYTIME_CONV");
        copy_numbers(&t, &ref);
        copy_numbers(&direct, &ref);
        bench_run(&t);
        bench_run(&direct);
        assert_near(c->shape.name, "y", t.y, direct.y, t.out);
        assert_near(c->shape.name, "dw", t.dw, direct.dw, t.layout.floats);
        assert_near(c->shape.name, "dx", t.dx, direct.dx, t.in);
        bool same = memcmp(t.y, direct.y, t.out * sizeof *t.y) == 0;
        assert_false(same);
        bench_free(&ref);
        bench_free(&t);
        bench_free(&direct);
    }
}

static void an_unknown_convolution_algorithm_is_refused(void **state)
{
    (void)state;
    uint32_t block = block_here();
    if (!block) return;
    at_fail          fail = {0};
    at_weight_layout layout;
    at_layer         layer = layer_of(&TILED[0].shape, block, block);
    at_conv_spec     spec = spec_of(&layer);
    setenv("ANYTIME_CONV", "fourier", 1);
    assert_int_equal(at_conv_onednn.choose(&spec, 4, &layout, &fail), AT_ERR_USAGE);
    unsetenv("ANYTIME_CONV");
    assert_non_null(strstr(fail.text, "fourier"));
    assert_non_null(strstr(fail.hint, "direct"));
    assert_non_null(strstr(fail.hint, "winograd"));
}

static void the_same_call_gives_the_same_bits(void **state)
{
    (void)state;
    uint32_t block = block_here();
    for (size_t j = 0; j < 8 && block; j++) check_repeats(&SHAPES[j], block, 4);
    for (size_t j = 0; j < TILED_COUNT && block; j++)
        check_repeats(&TILED[j].shape, block, TILED[j].rows);
}

/* More threads change how sums are grouped, but not from call to call. */
static void several_threads_give_the_same_bits(void **state)
{
    (void)state;
    uint32_t block = block_here();
    at_onednn_threads(2);
    for (size_t j = 0; j < TILED_COUNT && block; j++)
        check_repeats(&TILED[j].shape, block, TILED[j].rows);
    for (size_t j = 0; j < LARGE_COUNT && block; j++)
        check_repeats(&LARGE[j].shape, block, LARGE[j].rows);
    at_onednn_threads(1);
}

/* A layout chosen for one micro-batch size works for any other, and does not change y. */
static void another_micro_batch_size_uses_the_same_weights(void **state)
{
    (void)state;
    uint32_t block = block_here();
    size_t   equal = 0, count = 0;
    for (size_t j = 0; j < 28 && block; j++, count++) {
        bench    ref = reference_of(&SHAPES[j], 8, true), t = fast_of(&SHAPES[j], block, 8, true);
        float   *y = floats(t.out), *scratch = NULL;
        at_conv *half = NULL;
        copy_numbers(&t, &ref);
        t.k->forward(t.conv, t.y, t.x, t.w, t.b, t.scratch);
        assert_int_equal(t.k->open(&t.spec, &t.layout, 4, &half, NULL), AT_OK);
        scratch = floats(t.k->scratch(half) / sizeof(float) + ROOM);
        for (size_t i = 0; i < 2; i++)
            t.k->forward(half, y + i * t.out / 2, t.x + i * t.in / 2, t.w, t.b, scratch);
        assert_near(SHAPES[j].name, "y of halves", y, t.y, t.out);
        equal += memcmp(y, t.y, t.out * sizeof *y) == 0;
        t.k->close(half);
        free(y), free(scratch);
        bench_free(&ref);
        bench_free(&t);
    }
    print_message("%zu of %zu convolutions: 8 samples and 2 x 4 give the same bits\n", equal,
                  count);
}

static void a_slow_implementation_is_refused(void **state)
{
    (void)state;
    uint32_t block = block_here();
    if (!block) return;
    at_fail          fail = {0};
    at_weight_layout layout;
    at_layer layer = layer_of(&(conv_case){"many plain channels", 40, 9, 16, 3, 1, SAME}, 1, block);
    at_conv_spec spec = spec_of(&layer);
    assert_int_equal(at_conv_onednn.choose(&spec, 4, &layout, &fail), AT_ERR_FAILED);
    assert_non_null(strstr(fail.text, "40x9x9"));
    assert_non_null(strstr(fail.text, "3x3"));
}

static size_t threads_now(void)
{
    size_t count = 0;
    DIR   *folder = opendir("/proc/self/task");
    if (!folder) return 1;
    for (struct dirent *e; (e = readdir(folder));) count += e->d_name[0] != '.';
    closedir(folder);
    return count;
}

static void one_thread_stays_one_thread(void **state)
{
    (void)state;
    uint32_t block = block_here();
    if (!block) return;
    size_t before = threads_now();
    at_onednn_threads(1);
    bench t = fast_of(&SHAPES[3], block, 8, true);
    bench_run(&t);
    assert_int_equal(threads_now(), before);
    bench_free(&t);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_survive_every_layout),
        cmocka_unit_test(the_reference_matches_the_definition),
        cmocka_unit_test(gradients_of_the_reference_match_differences),
        cmocka_unit_test(onednn_matches_the_reference),
        cmocka_unit_test(winograd_matches_the_reference),
        cmocka_unit_test(windows_as_large_as_images_match_the_reference),
        cmocka_unit_test(the_environment_can_request_direct_convolutions),
        cmocka_unit_test(an_unknown_convolution_algorithm_is_refused),
        cmocka_unit_test(the_same_call_gives_the_same_bits),
        cmocka_unit_test(another_micro_batch_size_uses_the_same_weights),
        cmocka_unit_test(a_slow_implementation_is_refused),
        cmocka_unit_test(one_thread_stays_one_thread),
        cmocka_unit_test(several_threads_give_the_same_bits),
    };
    (void)argc;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : once_more(argv);
}
