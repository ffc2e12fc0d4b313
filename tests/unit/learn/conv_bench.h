/* conv_bench.h - open convolutions with data, to test engines and the layer. */
#ifndef AT_TESTS_UNIT_LEARN_CONV_BENCH_H
#define AT_TESTS_UNIT_LEARN_CONV_BENCH_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rng.h"
#include "learn/engines/conv_kernels.h"
#include "learn/layers/layer.h"

enum { SAME = -1, ROOM = 16 };

/* Square windows on square images; pad is SAME, or a number of zeros on all sides. */
typedef struct conv_case {
    const char *name;
    uint32_t    in, size, out, window, stride;
    int         pad;
} conv_case;

static inline at_layer layer_of(const conv_case *s, uint32_t in_block, uint32_t block)
{
    uint32_t pad = s->pad == SAME ? 0 : (uint32_t)s->pad;
    at_layer layer = {
        .kind = &at_layer_conv,
        .kernels = at_kernels_elementwise(AT_ENGINE_REF),
        .spec = {.units = s->out,
                 .window = {s->window, s->window, s->stride, pad, pad, pad, pad},
                 .same = s->pad == SAME,
                 .bias = true,
                 .relu = true,
                 .init = {AT_INIT_HE, 0}},
        .in = {s->in, s->size, s->size, in_block},
        .wants_dx = true,
    };
    layer.out.block = block;
    assert_int_equal(at_layer_conv.shape(&layer, NULL), AT_OK);
    return layer;
}

static inline at_conv_spec spec_of(const at_layer *layer)
{
    return (at_conv_spec){layer->in,        layer->out,       layer->spec.window,
                          layer->spec.bias, layer->spec.relu, layer->wants_dx};
}

static inline float *floats(size_t n)
{
    size_t size = (n * sizeof(float) + 127) / 64 * 64;
    float *v = aligned_alloc(64, size);
    assert_non_null(v);
    memset(v, 0, size);
    return v;
}

static inline float *normals(size_t n, double scale, uint64_t stream)
{
    at_rng rng = at_rng_stream(11, stream, AT_RNG_PURPOSE_TEST, 0);
    float *v = floats(n);
    for (size_t i = 0; i < n; i++) v[i] = (float)(scale * at_rng_normal(&rng));
    return v;
}

/* An open convolution, and everything its calls read and write. */
typedef struct bench {
    const at_conv_kernels *k;
    at_conv_spec           spec;
    at_weight_layout       layout;
    uint32_t               rows;
    at_conv               *conv;
    size_t                 in, out; /* floats of all samples */
    float                 *x, *y, *dx, *dy, *w, *dw, *b, *db, *reordered, *scratch;
} bench;

static inline bench bench_new(const at_conv_kernels *k, const at_conv_spec *spec, uint32_t rows)
{
    at_fail fail = {0};
    bench   t = {.k = k, .spec = *spec, .rows = rows};
    if (k->choose(spec, rows, &t.layout, &fail)) fail_msg("%s", fail.text);
    if (k->open(spec, &t.layout, rows, &t.conv, &fail)) fail_msg("%s", fail.text);
    t.in = rows * at_activation_size(&spec->in);
    t.out = rows * at_activation_size(&spec->out);
    t.x = floats(t.in);
    t.dx = floats(t.in);
    t.y = floats(t.out);
    t.dy = floats(t.out);
    t.w = floats(t.layout.floats);
    t.dw = floats(t.layout.floats);
    t.b = floats(spec->out.channels);
    t.db = floats(spec->out.channels);
    t.reordered = floats(k->reordered_size(t.conv));
    t.scratch = floats(k->scratch(t.conv) / sizeof(float) + ROOM);
    return t;
}

static inline void bench_free(bench *t)
{
    float *all[] = {t->x, t->y, t->dx, t->dy, t->w, t->dw, t->b, t->db, t->reordered, t->scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    t->k->close(t->conv);
}

/* Runs everything. dy is independent of y. */
static inline void bench_run(bench *t)
{
    const float *b = t->spec.bias ? t->b : NULL;
    const float *w = t->w;
    t->k->forward(t->conv, t->y, t->x, t->w, b, t->scratch);
    t->k->weight(t->conv, t->dw, t->spec.bias ? t->db : NULL, t->dy, t->x, t->scratch);
    if (!t->spec.wants_dx) return;
    if (t->k->reordered_size(t->conv)) t->k->reorder(t->conv, t->reordered, t->w);
    if (t->k->reordered_size(t->conv)) w = t->reordered;
    t->k->input(t->conv, t->dx, t->dy, w, t->scratch);
}

static inline size_t blocked(const at_activation *shape, size_t n, size_t c, size_t i)
{
    size_t area = at_activation_area(shape), block = shape->block;
    return n * at_activation_size(shape) + (c / block * area + i) * block + c % block;
}

/* From plain order into blocks, or back. */
static inline void reorder(const at_activation *shape, uint32_t rows, float *to, float *plain,
                           bool back)
{
    size_t area = at_activation_area(shape);
    for (size_t n = 0; n < rows; n++)
        for (size_t c = 0; c < shape->channels; c++)
            for (size_t i = 0; i < area; i++, plain++) {
                float *at = &to[blocked(shape, n, c, i)];
                *(back ? plain : at) = *(back ? at : plain);
            }
}

static const conv_case SMALL[] = {{"1x1", 3, 4, 2, 1, 1, 0},       {"3x3", 2, 5, 3, 3, 1, SAME},
                                  {"3x3/2", 2, 6, 3, 3, 2, SAME},  {"valid", 1, 7, 2, 5, 1, 0},
                                  {"larger", 2, 2, 3, 5, 1, SAME}, {"stride 4", 1, 11, 2, 3, 4, 0},
                                  {"1x1/2", 3, 5, 2, 1, 2, SAME}};
enum { SMALL_COUNT = sizeof SMALL / sizeof *SMALL };

static inline bench reference_of(const conv_case *s, uint32_t rows, bool relu)
{
    at_layer     layer = layer_of(s, 1, 1);
    at_conv_spec spec = spec_of(&layer);
    spec.relu = relu;
    bench t = bench_new(&at_conv_ref, &spec, rows);
    free(t.x), free(t.w), free(t.b), free(t.dy);
    t.x = normals(t.in, 1, 2);
    t.w = normals(t.layout.floats, 1 / sqrt((double)s->in * s->window * s->window), 3);
    t.b = normals(s->out, 1, 4);
    t.dy = normals(t.out, 1, 5);
    return t;
}

/* Every convolution of the built-in models, and some unusual ones. */
static const conv_case SHAPES[] = {
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
    {"wide window", 1, 16, 24, 7, 1, SAME},
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

/* Channels per block on this processor, or 0 with a message. */
static inline uint32_t block_here(void)
{
    uint32_t block = at_conv_onednn.block();
    if (block == 0) print_message("oneDNN has no fast convolutions on this processor\n");
    return block;
}

static inline bench fast_of(const conv_case *s, uint32_t block, uint32_t rows, bool relu)
{
    at_layer     layer = layer_of(s, s->in <= 3 ? 1 : block, block);
    at_conv_spec spec = spec_of(&layer);
    spec.relu = relu;
    spec.wants_dx = s->in > 3;
    return bench_new(&at_conv_onednn, &spec, rows);
}

/* The same data as the reference. */
static inline void copy_numbers(bench *to, const bench *ref)
{
    reorder(&to->spec.in, to->rows, to->x, ref->x, false);
    reorder(&to->spec.out, to->rows, to->dy, ref->dy, false);
    at_weight_layout_from_plain(&to->layout, to->w, ref->w);
    memcpy(to->b, ref->b, to->spec.out.channels * sizeof *to->b);
}

/* With AVX-512 the whole program runs again with AVX2 only. */
static inline int once_more(char **argv)
{
    if (at_conv_onednn.block() != 16 || getenv("ANYTIME_ISA")) return 0;
    setenv("ANYTIME_ISA", "avx2", 1);
    print_message("once more, with AVX2\n");
    fflush(NULL);
    execv("/proc/self/exe", argv);
    return 1;
}

#endif
