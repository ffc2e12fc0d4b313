/* Convolutions: the reference against its definition and central differences, oneDNN against the
 * reference for every convolution of the published models, and the layer that uses them. */
#include "learn/conv.h"

#include "base/rng.h"
#include "learn/engine_onednn.h"
#include "learn/layer.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { SAME = -1, ROOM = 16 };

/* Square windows on square pictures; pad SAME, or that many zeros on all sides. */
typedef struct shape {
    const char *name;
    uint32_t    in, size, out, window, stride;
    int         pad;
} shape;

static at_layer layer_of(const shape *s, uint32_t in_block, uint32_t block)
{
    uint32_t pad = s->pad == SAME ? 0 : (uint32_t)s->pad;
    at_layer layer = {
        .kind = &at_layer_conv,
        .kernels = at_kernels_plain(AT_ENGINE_REF),
        .spec = {.units = s->out,
                 .window = {s->window, s->window, s->stride, pad, pad, pad, pad},
                 .same = s->pad == SAME,
                 .bias = true,
                 .relu = true,
                 .start = {AT_START_HE, 0}},
        .in = {s->in, s->size, s->size, in_block},
        .wants_dx = true,
    };
    layer.out.block = block;
    assert_int_equal(at_layer_conv.shape(&layer, NULL), AT_OK);
    return layer;
}

static at_conv_spec spec_of(const at_layer *layer)
{
    return (at_conv_spec){layer->in,        layer->out,       layer->spec.window,
                          layer->spec.bias, layer->spec.relu, layer->wants_dx};
}

static float *floats(size_t n)
{
    size_t size = (n * sizeof(float) + 127) / 64 * 64;
    float *v = aligned_alloc(64, size);
    assert_non_null(v);
    memset(v, 0, size);
    return v;
}

static float *normals(size_t n, double scale, uint64_t stream)
{
    at_rng rng = at_rng_stream(11, stream, AT_STREAM_TEST, 0);
    float *v = floats(n);
    for (size_t i = 0; i < n; i++) v[i] = (float)(scale * at_rng_normal(&rng));
    return v;
}

/* A convolution that is open, and everything its calls read and write. */
typedef struct bench {
    const at_conv_kernels *k;
    at_conv_spec           spec;
    at_conv_form           form;
    uint32_t               rows;
    at_conv               *conv;
    size_t                 in, out; /* floats of all samples */
    float                 *x, *y, *dx, *dy, *w, *dw, *b, *db, *turned, *scratch;
} bench;

static bench bench_new(const at_conv_kernels *k, const at_conv_spec *spec, uint32_t rows)
{
    at_fail fail = {0};
    bench   t = {.k = k, .spec = *spec, .rows = rows};
    if (k->choose(spec, rows, &t.form, &fail)) fail_msg("%s", fail.text);
    if (k->open(spec, &t.form, rows, &t.conv, &fail)) fail_msg("%s", fail.text);
    t.in = rows * at_picture_size(&spec->in);
    t.out = rows * at_picture_size(&spec->out);
    t.x = floats(t.in);
    t.dx = floats(t.in);
    t.y = floats(t.out);
    t.dy = floats(t.out);
    t.w = floats(t.form.floats);
    t.dw = floats(t.form.floats);
    t.b = floats(spec->out.channels);
    t.db = floats(spec->out.channels);
    t.turned = floats(k->turned(t.conv));
    t.scratch = floats(k->scratch(t.conv) / sizeof(float) + ROOM);
    return t;
}

static void bench_free(bench *t)
{
    float *all[] = {t->x, t->y, t->dx, t->dy, t->w, t->dw, t->b, t->db, t->turned, t->scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    t->k->close(t->conv);
}

/* Everything there is to compute. dy stands for itself, whatever y is. */
static void bench_run(bench *t)
{
    const float *b = t->spec.bias ? t->b : NULL;
    const float *w = t->w;
    t->k->forward(t->conv, t->y, t->x, t->w, b, t->scratch);
    t->k->weight(t->conv, t->dw, t->spec.bias ? t->db : NULL, t->dy, t->x, t->scratch);
    if (!t->spec.wants_dx) return;
    if (t->k->turned(t->conv)) t->k->turn(t->conv, t->turned, t->w);
    if (t->k->turned(t->conv)) w = t->turned;
    t->k->input(t->conv, t->dx, t->dy, w, t->scratch);
}

static size_t blocked(const at_picture_form *form, size_t n, size_t c, size_t i)
{
    size_t area = at_picture_area(form), block = form->block;
    return n * at_picture_size(form) + (c / block * area + i) * block + c % block;
}

/* Plain pictures into those of the form, or back. */
static void arrange(const at_picture_form *form, uint32_t rows, float *to, float *plain, bool back)
{
    size_t area = at_picture_area(form);
    for (size_t n = 0; n < rows; n++)
        for (size_t c = 0; c < form->channels; c++)
            for (size_t i = 0; i < area; i++, plain++) {
                float *at = &to[blocked(form, n, c, i)];
                *(back ? plain : at) = *(back ? at : plain);
            }
}

static void assert_padding_zero(const at_picture_form *form, uint32_t rows, const float *v)
{
    size_t whole = at_picture_blocks(form) * form->block;
    for (size_t n = 0; n < rows; n++)
        for (size_t c = form->channels; c < whole; c++)
            for (size_t i = 0; i < at_picture_area(form); i++)
                assert_true(v[blocked(form, n, c, i)] == 0.0f);
}

static void assert_near(const char *name, const char *what, const float *a, const float *b,
                        size_t n)
{
    double most = 0, diff = 0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs(b[i]));
        diff = fmax(diff, fabs((double)a[i] - b[i]));
    }
    if (!(diff <= 2e-5 * most)) fail_msg("%s: %s differs by %g of %g", name, what, diff, most);
}

/* ---- forms ---- */

static void check_form(const at_conv_form *form)
{
    size_t n = (size_t)form->shape[0] * form->shape[1] * form->shape[2] * form->shape[3];
    float *plain = normals(n, 1, 1), *back = floats(n), *formed = floats(form->floats);
    memset(formed, 0xff, form->floats * sizeof *formed);
    at_conv_form_from_plain(form, formed, plain);
    at_conv_form_to_plain(form, back, formed);
    assert_memory_equal(plain, back, n * sizeof *plain);
    size_t zeros = 0;
    for (size_t i = 0; i < form->floats; i++) zeros += formed[i] == 0.0f;
    assert_int_equal(zeros, form->floats - n); /* so no two weights share a place */
    assert_true(formed[at_conv_form_offset(form, 1, 2, 0, 1)] ==
                plain[((1 * form->shape[1] + 2) * form->shape[2] + 0) * form->shape[3] + 1]);
    free(plain);
    free(back);
    free(formed);
}

static void weights_survive_every_form(void **state)
{
    (void)state;
    at_conv_spec spec = {.in = {20, 9, 9, 1}, .out = {50, 9, 9, 1}, .window = {3, 5, 1}};
    at_conv_form plain = at_conv_form_plain(&spec);
    check_form(&plain);
    assert_int_equal(plain.floats, 50 * 20 * 3 * 5);
    check_form(&(at_conv_form){.floats = 64 * 32 * 15,
                               .shape = {50, 20, 3, 5},
                               .stride = {2 * 15 * 256, 15 * 256, 5 * 256, 256},
                               .inner_count = 2,
                               .inner_size = {16, 16},
                               .inner_dim = {1, 0}});
    check_form(&(at_conv_form){.floats = 64 * 32 * 15,
                               .shape = {50, 20, 3, 5},
                               .stride = {2 * 15 * 256, 15 * 256, 5 * 256, 256},
                               .inner_count = 3,
                               .inner_size = {4, 16, 4},
                               .inner_dim = {1, 0, 1}});
}

/* ---- the reference ---- */

static const shape SMALL[] = {{"1x1", 3, 4, 2, 1, 1, 0},       {"3x3", 2, 5, 3, 3, 1, SAME},
                              {"3x3/2", 2, 6, 3, 3, 2, SAME},  {"valid", 1, 7, 2, 5, 1, 0},
                              {"larger", 2, 2, 3, 5, 1, SAME}, {"stride 4", 1, 11, 2, 3, 4, 0},
                              {"1x1/2", 3, 5, 2, 1, 2, SAME}};
enum { SMALL_COUNT = sizeof SMALL / sizeof *SMALL };

static bench reference_of(const shape *s, uint32_t rows, bool relu)
{
    at_layer     layer = layer_of(s, 1, 1);
    at_conv_spec spec = spec_of(&layer);
    spec.relu = relu;
    bench t = bench_new(&at_conv_ref, &spec, rows);
    free(t.x), free(t.w), free(t.b), free(t.dy);
    t.x = normals(t.in, 1, 2);
    t.w = normals(t.form.floats, 1 / sqrt((double)s->in * s->window * s->window), 3);
    t.b = normals(s->out, 1, 4);
    t.dy = normals(t.out, 1, 5);
    return t;
}

/* y at one place, from the definition. */
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

static void the_reference_is_the_definition(void **state)
{
    (void)state;
    for (size_t j = 0; j < SMALL_COUNT; j++) {
        bench                  t = reference_of(&SMALL[j], 2, true);
        const at_picture_form *out = &t.spec.out;
        const float           *y = t.y;
        bench_run(&t);
        for (size_t n = 0; n < t.rows; n++)
            for (size_t o = 0; o < out->channels; o++)
                for (size_t i = 0; i < at_picture_area(out); i++, y++) {
                    double want = defined(&t, n, o, i / out->width, i % out->width);
                    assert_true(fabs(*y - fmax(want, 0)) < 1e-6);
                }
        bench_free(&t);
    }
}

/* The sum of y * dy, of which dx, dw and db are the gradient. */
static double value_of(bench *t)
{
    double sum = 0;
    t->k->forward(t->conv, t->y, t->x, t->w, t->b, t->scratch);
    for (size_t i = 0; i < t->out; i++) sum += (double)t->y[i] * t->dy[i];
    return sum;
}

static void check_slopes(bench *t, const char *name, float *v, const float *gradient, size_t n)
{
    const float h = 0.25f; /* y is linear in each number, so a large step costs no accuracy */
    for (size_t i = 0; i < n; i++) {
        float kept = v[i];
        v[i] = kept + h;
        double above = value_of(t), wide = v[i];
        v[i] = kept - h;
        double slope = (above - value_of(t)) / (wide - v[i]);
        v[i] = kept;
        if (!(fabs(slope - gradient[i]) < 2e-5 * (1 + fabs(slope))))
            fail_msg("%s: number %zu has slope %g, not %g", name, i, slope, gradient[i]);
    }
}

static void gradients_of_the_reference_are_slopes(void **state)
{
    (void)state;
    for (size_t j = 0; j < SMALL_COUNT; j++) {
        bench t = reference_of(&SMALL[j], 2, false);
        bench_run(&t);
        check_slopes(&t, SMALL[j].name, t.w, t.dw, t.form.floats);
        check_slopes(&t, SMALL[j].name, t.b, t.db, t.spec.out.channels);
        check_slopes(&t, SMALL[j].name, t.x, t.dx, t.in);
        bench_free(&t);
    }
}

/* ---- oneDNN ---- */

/* Every convolution of the published models, and some odd ones. */
static const shape SHAPES[] = {
    {"mnist-cnn 1", 1, 28, 32, 5, 1, SAME},
    {"mnist-cnn 2", 32, 14, 64, 5, 1, SAME},
    {"cifar10-cnn 1", 3, 32, 64, 3, 1, SAME},
    {"cifar10-cnn 2", 64, 16, 128, 3, 1, SAME},
    {"cifar10-cnn 3", 128, 8, 256, 5, 1, SAME},
    {"cifar10-cnn 4", 256, 4, 512, 5, 1, SAME},
    {"lenet 1", 1, 28, 20, 5, 1, 0},
    {"lenet 2", 20, 12, 50, 5, 1, 0},
    {"wrn-28-2 1", 3, 32, 16, 3, 1, SAME},
    {"wrn-28-2 2", 16, 32, 32, 3, 1, SAME},
    {"wrn-28-2 3", 32, 32, 32, 3, 1, SAME},
    {"wrn-28-2 4", 32, 32, 64, 3, 2, SAME},
    {"wrn-28-2 5", 64, 16, 64, 3, 1, SAME},
    {"wrn-28-2 6", 64, 16, 128, 3, 2, SAME},
    {"wrn-28-2 7", 128, 8, 128, 3, 1, SAME},
    {"wrn-28-2 8", 16, 32, 32, 1, 1, SAME},
    {"wrn-28-2 9", 32, 32, 64, 1, 2, SAME},
    {"wrn-28-2 10", 64, 16, 128, 1, 2, SAME},
    {"resnet18 1", 3, 32, 64, 3, 1, 1},
    {"resnet18 2", 64, 32, 64, 3, 1, 1},
    {"resnet18 3", 64, 32, 128, 3, 2, 1},
    {"resnet18 4", 128, 16, 128, 3, 1, 1},
    {"resnet18 5", 128, 16, 256, 3, 2, 1},
    {"resnet18 6", 256, 8, 256, 3, 1, 1},
    {"resnet18 7", 256, 8, 512, 3, 2, 1},
    {"resnet18 8", 512, 4, 512, 3, 1, 1},
    {"resnet18 9", 64, 32, 128, 1, 2, 0},
    {"resnet18 10", 128, 16, 256, 1, 2, 0},
    {"resnet18 11", 256, 8, 512, 1, 2, 0},
    {"resnet101 1", 64, 32, 64, 1, 1, 0},
    {"resnet101 2", 64, 32, 256, 1, 1, 0},
    {"resnet101 3", 256, 32, 64, 1, 1, 0},
    {"resnet101 4", 256, 32, 128, 1, 1, 0},
    {"resnet101 5", 128, 32, 128, 3, 2, 1},
    {"resnet101 6", 128, 16, 512, 1, 1, 0},
    {"resnet101 7", 256, 32, 512, 1, 2, 0},
    {"resnet101 8", 512, 16, 128, 1, 1, 0},
    {"resnet101 9", 512, 16, 256, 1, 1, 0},
    {"resnet101 10", 256, 16, 256, 3, 2, 1},
    {"resnet101 11", 256, 8, 1024, 1, 1, 0},
    {"resnet101 12", 512, 16, 1024, 1, 2, 0},
    {"resnet101 13", 1024, 8, 256, 1, 1, 0},
    {"resnet101 14", 1024, 8, 512, 1, 1, 0},
    {"resnet101 15", 512, 8, 512, 3, 2, 1},
    {"resnet101 16", 512, 4, 2048, 1, 1, 0},
    {"resnet101 17", 1024, 8, 2048, 1, 2, 0},
    {"resnet101 18", 2048, 4, 512, 1, 1, 0},
    {"alexnet 227 1", 3, 227, 64, 11, 4, 0},
    {"alexnet 227 2", 64, 27, 192, 5, 1, SAME},
    {"alexnet 227 3", 192, 13, 384, 3, 1, SAME},
    {"alexnet 227 4", 384, 13, 256, 3, 1, SAME},
    {"alexnet 227 5", 256, 13, 256, 3, 1, SAME},
    {"alexnet 256 1", 3, 256, 64, 11, 4, 0},
    {"alexnet 256 2", 64, 30, 192, 5, 1, SAME},
    {"alexnet 256 3", 192, 14, 384, 3, 1, SAME},
    {"10 channels", 10, 9, 10, 3, 1, SAME},
    {"20 to 50, stride 2", 20, 7, 50, 3, 2, SAME},
    {"two channels", 2, 8, 10, 3, 1, SAME},
    {"one to five", 1, 8, 5, 3, 1, SAME},
    {"wide row of taps", 1, 16, 24, 7, 1, SAME},
    {"one to eleven, stride 2", 1, 9, 11, 4, 2, SAME},
    {"even window", 64, 8, 64, 2, 1, SAME},
    {"even window, stride 2", 10, 6, 20, 2, 2, SAME},
    {"7x7 stride 2", 3, 32, 64, 7, 2, 3},
    {"5x5 on 2x2", 50, 2, 20, 5, 1, SAME},
    {"5x5 on 3x3", 16, 3, 16, 5, 1, SAME},
    {"5x5 on 5x5", 24, 5, 40, 5, 1, SAME},
    {"5x5 on 32x32", 16, 32, 16, 5, 1, SAME},
};
enum { SHAPES_COUNT = sizeof SHAPES / sizeof *SHAPES };

/* The blocks that this processor wants, or 0 with a word about it. */
static uint32_t block_here(void)
{
    uint32_t block = at_conv_onednn.block();
    if (block == 0) print_message("oneDNN has no fast convolutions on this processor\n");
    return block;
}

static bench fast_of(const shape *s, uint32_t block, uint32_t rows, bool relu)
{
    at_layer     layer = layer_of(s, s->in <= 3 ? 1 : block, block);
    at_conv_spec spec = spec_of(&layer);
    spec.relu = relu;
    spec.wants_dx = s->in > 3;
    return bench_new(&at_conv_onednn, &spec, rows);
}

/* The same numbers as the reference has. */
static void copy_numbers(bench *to, const bench *ref)
{
    arrange(&to->spec.in, to->rows, to->x, ref->x, false);
    arrange(&to->spec.out, to->rows, to->dy, ref->dy, false);
    at_conv_form_from_plain(&to->form, to->w, ref->w);
    memcpy(to->b, ref->b, to->spec.out.channels * sizeof *to->b);
}

/* What comes out, plain, against the reference; and what must be zero. */
static void compare(const char *name, const bench *t, const bench *ref)
{
    float *y = floats(ref->out), *dx = floats(ref->in), *dw = floats(ref->form.floats);
    arrange(&t->spec.out, t->rows, t->y, y, true);
    at_conv_form_to_plain(&t->form, dw, t->dw);
    assert_near(name, "y", y, ref->y, ref->out);
    assert_near(name, "dw", dw, ref->dw, ref->form.floats);
    assert_near(name, "db", t->db, ref->db, t->spec.out.channels);
    assert_padding_zero(&t->spec.out, t->rows, t->y);
    if (t->spec.wants_dx) {
        arrange(&t->spec.in, t->rows, t->dx, dx, true);
        assert_near(name, "dx", dx, ref->dx, ref->in);
        assert_padding_zero(&t->spec.in, t->rows, t->dx);
    }
    size_t zeros = 0;
    for (size_t i = 0; i < t->form.floats; i++) zeros += t->dw[i] == 0.0f;
    size_t zeros_plain = 0;
    for (size_t i = 0; i < ref->form.floats; i++) zeros_plain += dw[i] == 0.0f;
    assert_int_equal(zeros - zeros_plain, t->form.floats - ref->form.floats);
    free(y);
    free(dx);
    free(dw);
}

/* Whatever was in the outputs before must not matter. */
static void spoil(bench *t)
{
    memset(t->y, 0xff, t->out * sizeof(float));
    memset(t->dx, 0xff, t->in * sizeof(float));
    memset(t->dw, 0xff, t->form.floats * sizeof(float));
}

static void onednn_computes_what_the_reference_computes(void **state)
{
    (void)state;
    uint32_t block = block_here();
    for (size_t j = 0; j < SHAPES_COUNT && block; j++) {
        const shape *s = &SHAPES[j];
        uint32_t     rows = s->size > 100 || s->in >= 64 ? 1 : 3;
        bool         relu = j % 2 == 0;
        bench        ref = reference_of(s, rows, relu), t = fast_of(s, block, rows, relu);
        copy_numbers(&t, &ref);
        spoil(&t);
        bench_run(&ref);
        bench_run(&t);
        compare(s->name, &t, &ref);
        bench_free(&ref);
        bench_free(&t);
    }
}

static void the_same_call_gives_the_same_bits(void **state)
{
    (void)state;
    uint32_t block = block_here();
    for (size_t j = 0; j < 8 && block; j++) {
        bench  ref = reference_of(&SHAPES[j], 4, true), t = fast_of(&SHAPES[j], block, 4, true);
        float *y = floats(t.out), *dw = floats(t.form.floats), *dx = floats(t.in);
        copy_numbers(&t, &ref);
        bench_run(&t);
        memcpy(y, t.y, t.out * sizeof *y);
        memcpy(dw, t.dw, t.form.floats * sizeof *dw);
        memcpy(dx, t.dx, t.in * sizeof *dx);
        bench_run(&t);
        assert_memory_equal(y, t.y, t.out * sizeof *y);
        assert_memory_equal(dw, t.dw, t.form.floats * sizeof *dw);
        assert_memory_equal(dx, t.dx, t.in * sizeof *dx);
        free(y), free(dw), free(dx);
        bench_free(&ref);
        bench_free(&t);
    }
}

/* Weights chosen for one number of samples serve any other, and do not change y. */
static void another_number_of_samples_uses_the_same_weights(void **state)
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
        assert_int_equal(t.k->open(&t.spec, &t.form, 4, &half, NULL), AT_OK);
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
    at_fail      fail = {0};
    at_conv_form form;
    at_layer     layer = layer_of(&(shape){"many plain channels", 40, 9, 16, 3, 1, SAME}, 1, block);
    at_conv_spec spec = spec_of(&layer);
    assert_int_equal(at_conv_onednn.choose(&spec, 4, &form, &fail), AT_ERR_FAILED);
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

/* ---- the layer ---- */

/* A layer with what one backward call needs. */
typedef struct stage {
    at_layer layer;
    at_pass  pass;
    bench    bench;
    size_t   params;
    float   *params_made, *gradient, *scratch;
} stage;

static stage stage_new(const shape *s, uint32_t block)
{
    bench  ref = reference_of(s, 3, true);
    stage  t = {.layer = layer_of(s, s->in <= 3 ? 1 : block, block),
                .bench = fast_of(s, block, 3, true)};
    size_t biases = s->out;
    copy_numbers(&t.bench, &ref);
    bench_free(&ref);
    t.layer.conv = t.bench.k;
    t.layer.form = t.bench.form;
    t.layer.wants_dx = t.bench.spec.wants_dx;
    t.params = t.layer.form.floats + biases;
    t.params_made = floats(t.params);
    t.gradient = floats(t.params);
    t.scratch = floats(at_layer_conv.scratch(&t.layer, 3) / sizeof(float));
    memcpy(t.params_made, t.bench.w, t.layer.form.floats * sizeof(float));
    memcpy(t.params_made + t.layer.form.floats, t.bench.b, biases * sizeof(float));
    t.pass = (at_pass){.count = 3,
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
    if (t.bench.k->turned(t.bench.conv)) {
        t.bench.k->turn(t.bench.conv, t.bench.turned, t.bench.w);
        t.pass.turned = t.bench.turned;
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

static void check_writes(const shape *s, uint32_t block)
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

/* Gradients so small that their products vanish could leave negative zeros. */
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

static void a_fused_relu_stops_gradients_unless_done(void **state)
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
    at_layer a = layer_of(&(shape){"", 1, 32, 1, 3, 2, SAME}, 1, 1);
    at_layer b = layer_of(&(shape){"", 1, 28, 1, 5, 1, SAME}, 1, 1);
    at_layer c = layer_of(&(shape){"", 1, 5, 1, 2, 3, SAME}, 1, 1);
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

/* ---- start values ---- */

static double spread(at_start start, double *largest)
{
    enum { N = 20000 };
    float *v = floats(N);
    at_rng rng = at_rng_stream(1, 0, AT_STREAM_INIT, 0);
    double squares = 0;
    *largest = 0;
    at_start_fill(start, v, N, 50, 100, &rng);
    for (size_t i = 0; i < N; i++) {
        squares += (double)v[i] * v[i];
        *largest = fmax(*largest, fabs(v[i]));
    }
    free(v);
    return sqrt(squares / N);
}

static void start_values_have_the_spread_they_should(void **state)
{
    (void)state;
    double largest;
    assert_true(spread((at_start){AT_START_ZERO, 7}, &largest) == 0);
    assert_true(fabs(spread((at_start){AT_START_CONST, 0.5}, &largest) - 0.5) < 1e-9);
    double limit = sqrt(6.0 / 150);
    assert_true(fabs(spread((at_start){AT_START_GLOROT, 0}, &largest) - limit / sqrt(3)) < 0.002);
    assert_true(largest <= limit && largest > 0.99 * limit);
    assert_true(fabs(spread((at_start){AT_START_HE, 0}, &largest) - 0.2) < 0.004);
    assert_true(fabs(spread((at_start){AT_START_NORMAL, 0.08}, &largest) - 0.08) < 0.002);
    assert_true(largest > 0.2);
    /* A normal distribution cut at two deviations has 0.88 of the deviation. */
    assert_true(fabs(spread((at_start){AT_START_TRUNCATED, 0.1}, &largest) - 0.088) < 0.002);
    assert_true(largest <= 0.2f && largest > 0.19);
}

static void init_fills_weights_and_biases(void **state)
{
    (void)state;
    at_layer        layer = layer_of(&(shape){"", 3, 8, 4, 5, 1, SAME}, 1, 1);
    at_layer_tensor rows[AT_LAYER_TENSORS_MAX];
    at_rng          rng = at_rng_stream(1, 0, AT_STREAM_INIT, 0);
    float           plain[4 * 3 * 25 + 4];
    layer.spec.bias_start = (at_start){AT_START_CONST, 0.25};
    at_layer_conv.init(&layer, plain, &rng);
    for (size_t i = 0; i < 300; i++) assert_true(plain[i] != 0);
    for (size_t i = 300; i < 304; i++) assert_true(plain[i] == 0.25f);
    assert_int_equal(at_layer_conv.tensors(&layer, rows), 2);
    assert_int_equal(rows[0].shape[1], 3);
    assert_ptr_equal(rows[0].form, &layer.form);
    assert_int_equal(rows[1].shape[0], 4);
    layer.spec.bias = false;
    assert_int_equal(at_layer_conv.tensors(&layer, rows), 1);
}

/* On a processor with AVX-512 all of it runs once more as on one without. */
static int once_more(char **argv)
{
    if (at_conv_onednn.block() != 16 || getenv("ONEDNN_MAX_CPU_ISA")) return 0;
    setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
    print_message("once more, with AVX2\n");
    fflush(NULL);
    execv("/proc/self/exe", argv);
    return 1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_survive_every_form),
        cmocka_unit_test(the_reference_is_the_definition),
        cmocka_unit_test(gradients_of_the_reference_are_slopes),
        cmocka_unit_test(onednn_computes_what_the_reference_computes),
        cmocka_unit_test(the_same_call_gives_the_same_bits),
        cmocka_unit_test(another_number_of_samples_uses_the_same_weights),
        cmocka_unit_test(a_slow_implementation_is_refused),
        cmocka_unit_test(one_thread_stays_one_thread),
        cmocka_unit_test(setting_equals_adding_to_zeros),
        cmocka_unit_test(no_gradient_is_a_negative_zero),
        cmocka_unit_test(a_fused_relu_stops_gradients_unless_done),
        cmocka_unit_test(same_padding_is_smaller_before_than_after),
        cmocka_unit_test(windows_that_do_not_fit_are_refused),
        cmocka_unit_test(start_values_have_the_spread_they_should),
        cmocka_unit_test(init_fills_weights_and_biases),
    };
    (void)argc;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : once_more(argv);
}
