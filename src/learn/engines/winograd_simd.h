/* winograd_simd.h - the code of winograd_avx2.c and winograd_avx512.c, which differ only in the
 * length of vectors. A source file defines VECTOR_512 or not, includes this and fills its table.
 *
 * Transforms along one axis evaluate polynomials at the points 0, +-5/8, +-3/2 for windows of 3 and
 * 0, +-1/2, +-1, +-2 for windows of 5, and at infinity. Of all sets of such fractions these had the
 * smallest error in simulations. Even and odd powers are summed separately, which serves both signs
 * of a point.
 */
#ifndef AT_LEARN_ENGINES_WINOGRAD_SIMD_H
#define AT_LEARN_ENGINES_WINOGRAD_SIMD_H

#include "learn/engines/avx2.h"
#include "learn/engines/winograd_kernels.h"

#if defined(__x86_64__)

#include <assert.h>

/* KEEP forces a vector into a register; else the compiler reads it from memory at every use. */
#if defined(VECTOR_512)
#define VECTOR_TARGET "avx512f,avx512vl,avx512dq,fma"
typedef __m512 vector;
#define LOAD(from)   _mm512_loadu_ps(from)
#define STORE(to, v) _mm512_storeu_ps(to, v)
#define EVERY(x)     _mm512_set1_ps(x)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define ADD(a, b)    _mm512_add_ps(a, b)
#define SUB(a, b)    _mm512_sub_ps(a, b)
#define MUL(a, b)    _mm512_mul_ps(a, b)
#define MAX(a, b)    _mm512_max_ps(a, b)
#define KEEP(v)      __asm__("" : "+v"(v))
enum { V = 16, TILES_MAX = 14, CELL_ROWS = 8 };
#else
#define VECTOR_TARGET "avx2,fma"
typedef __m256 vector;
#define LOAD(from)    _mm256_loadu_ps(from)
#define STORE(to, v)  _mm256_storeu_ps(to, v)
#define EVERY(x)      _mm256_set1_ps(x)
#define FMA(a, b, c)  _mm256_fmadd_ps(a, b, c)
#define ADD(a, b)     _mm256_add_ps(a, b)
#define SUB(a, b)     _mm256_sub_ps(a, b)
#define MUL(a, b)     _mm256_mul_ps(a, b)
#define MAX(a, b)     _mm256_max_ps(a, b)
#define KEEP(v)       __asm__("" : "+x"(v))
enum { V = 8, TILES_MAX = 6, CELL_ROWS = 4 };
#endif

#define SIMD         static __attribute__((target(VECTOR_TARGET)))
#define PART         static inline __attribute__((always_inline, target(VECTOR_TARGET)))
#define UNROLL(i, n) _Pragma("GCC unroll 16") for (size_t i = 0; i < (n); i++)

enum { POINTS_MAX = 8, OUT = AT_WINOGRAD_TILE };

/* ---- transforms along one axis ---- */

/* Positive points, and 1 / product of the distances to all other points. */
static const float POINT[2][3] = {{0.625f, 1.5f}, {0.5f, 1.0f, 2.0f}};
static const float SCALE_0[2] = {1 / (0.390625f * 2.25f), -1.0f};
static const float SCALE[2][3] = {
    {1 / (2 * 0.390625f * (0.390625f - 2.25f)), 1 / (2 * 2.25f * (2.25f - 0.390625f))},
    {1 / (2 * 0.25f * (0.25f - 1.0f) * (0.25f - 4.0f)),
     1 / (2 * 1.0f * (1.0f - 0.25f) * (1.0f - 4.0f)),
     1 / (2 * 4.0f * (4.0f - 0.25f) * (4.0f - 1.0f))}};

/* Inputs: 6 values to 6 points. */
PART void read_axis_6(vector to[], const vector d[])
{
    const float a = 0.625f, b = 1.5f, aa = a * a, bb = b * b;
    vector      even_a = FMA(EVERY(-bb), d[2], d[4]), odd_a = FMA(EVERY(-bb), d[1], d[3]);
    vector      even_b = FMA(EVERY(-aa), d[2], d[4]), odd_b = FMA(EVERY(-aa), d[1], d[3]);
    to[0] = FMA(EVERY(aa * bb), d[0], FMA(EVERY(-aa - bb), d[2], d[4]));
    to[1] = FMA(EVERY(a), odd_a, even_a);
    to[2] = FMA(EVERY(-a), odd_a, even_a);
    to[3] = FMA(EVERY(b), odd_b, even_b);
    to[4] = FMA(EVERY(-b), odd_b, even_b);
    to[5] = FMA(EVERY(aa * bb), d[1], FMA(EVERY(-aa - bb), d[3], d[5]));
}

/* Inputs: 8 values to 8 points. The sums of the two others' squares are 5, 4.25 and 1.25, their
 * products 4, 1 and 0.25. */
PART void read_axis_8(vector to[], const vector d[])
{
    vector even_a = FMA(EVERY(4.0f), d[2], FMA(EVERY(-5.0f), d[4], d[6]));
    vector odd_a = FMA(EVERY(4.0f), d[1], FMA(EVERY(-5.0f), d[3], d[5]));
    vector even_b = FMA(EVERY(-4.25f), d[4], ADD(d[2], d[6]));
    vector odd_b = FMA(EVERY(-4.25f), d[3], ADD(d[1], d[5]));
    vector even_c = FMA(EVERY(0.25f), d[2], FMA(EVERY(-1.25f), d[4], d[6]));
    vector odd_c = FMA(EVERY(0.25f), d[1], FMA(EVERY(-1.25f), d[3], d[5]));
    to[0] = FMA(EVERY(5.25f), SUB(d[2], d[4]), SUB(d[6], d[0]));
    to[1] = FMA(EVERY(0.5f), odd_a, even_a);
    to[2] = FMA(EVERY(-0.5f), odd_a, even_a);
    to[3] = ADD(even_b, odd_b);
    to[4] = SUB(even_b, odd_b);
    to[5] = FMA(EVERY(2.0f), odd_c, even_c);
    to[6] = FMA(EVERY(-2.0f), odd_c, even_c);
    to[7] = FMA(EVERY(5.25f), SUB(d[3], d[5]), SUB(d[7], d[1]));
}

/* Inputs: window + 3 values to as many points. */
PART void read_axis(vector to[], const vector d[], const size_t window)
{
    if (window == 3)
        read_axis_6(to, d);
    else
        read_axis_8(to, d);
}

/* Outputs: all points to 4 values. */
PART void write_axis(vector to[OUT], const vector m[], const size_t window)
{
    const size_t f = window == 5, pairs = 2 + f;
    to[0] = m[0];
    to[3] = m[2 * pairs + 1];
    UNROLL(k, pairs)
    {
        const float p = POINT[f][k];
        vector      sum = ADD(m[2 * k + 1], m[2 * k + 2]), diff = SUB(m[2 * k + 1], m[2 * k + 2]);
        to[0] = ADD(to[0], sum);
        to[1] = k == 0 ? MUL(EVERY(p), diff) : FMA(EVERY(p), diff, to[1]);
        to[2] = k == 0 ? MUL(EVERY(p * p), sum) : FMA(EVERY(p * p), sum, to[2]);
        to[3] = FMA(EVERY(p * p * p), diff, to[3]);
    }
}

/* The transpose of write_axis: 4 values to all points. */
PART void spread_axis(vector to[], const vector d[OUT], const size_t window)
{
    const size_t f = window == 5, pairs = 2 + f;
    to[0] = d[0];
    UNROLL(k, pairs)
    {
        const float p = POINT[f][k];
        vector      even = FMA(EVERY(p * p), d[2], d[0]), odd = FMA(EVERY(p * p), d[3], d[1]);
        to[2 * k + 1] = FMA(EVERY(p), odd, even);
        to[2 * k + 2] = FMA(EVERY(-p), odd, even);
    }
    to[2 * pairs + 1] = d[3];
}

/* Weights: the window to all points. */
PART void weight_axis(vector to[], const vector g[], const size_t window)
{
    const size_t f = window == 5, pairs = 2 + f;
    to[0] = MUL(EVERY(SCALE_0[f]), g[0]);
    UNROLL(k, pairs)
    {
        const float p = POINT[f][k], pp = p * p;
        vector      even = g[2], odd = g[1];
        if (window == 5) {
            even = FMA(EVERY(pp), g[4], even);
            odd = FMA(EVERY(pp), g[3], odd);
        }
        even = MUL(EVERY(SCALE[f][k]), FMA(EVERY(pp), even, g[0]));
        to[2 * k + 1] = FMA(EVERY(SCALE[f][k] * p), odd, even);
        to[2 * k + 2] = FMA(EVERY(-SCALE[f][k] * p), odd, even);
    }
    to[2 * pairs + 1] = g[window - 1];
}

/* The transpose of weight_axis: all points to the window. */
PART void gradient_axis(vector to[], const vector s[], const size_t window)
{
    const size_t f = window == 5, pairs = 2 + f;
    to[0] = MUL(EVERY(SCALE_0[f]), s[0]);
    UNROLL(j, window - 1) to[j + 1] = j + 2 == window ? s[2 * pairs + 1] : EVERY(0.0f);
    UNROLL(k, pairs)
    {
        const float p = POINT[f][k];
        float       power = SCALE[f][k];
        vector      sum = ADD(s[2 * k + 1], s[2 * k + 2]), diff = SUB(s[2 * k + 1], s[2 * k + 2]);
        UNROLL(j, window)
        {
            to[j] = FMA(EVERY(power), j % 2 ? diff : sum, to[j]);
            power *= p;
        }
    }
}

/* ---- tiles of images ---- */

/* The part of an image that a tile covers. Rows outside of the image read the same zeros in every
 * column. */
typedef struct patch {
    const float *row[POINTS_MAX];    /* column 0 of the image */
    long         inside[POINTS_MAX]; /* all bits set, or 0 */
    long         left;               /* column of the image where the patch begins */
    size_t       first, end;         /* columns of the patch that are inside */
} patch;

/* The columns (or rows) begin+i, i < size, that are inside of 0 .. length-1. */
PART void clip(long begin, size_t size, size_t length, size_t *first, size_t *end)
{
    long inside = (long)length - begin;
    *first = begin < 0 ? (size_t)-begin : 0;
    *end = inside < 0 ? 0 : (size_t)inside < size ? (size_t)inside : size;
    if (*first > *end) *first = *end;
}

/* The patch of size x size values from (top, left) on of one block of an image. */
PART void locate(patch *at, const float *plane, const at_activation *shape, long top, long left,
                 const size_t size)
{
    static const float zeros[V];
    size_t             first, end;
    clip(top, size, shape->height, &first, &end);
    clip(left, size, shape->width, &at->first, &at->end);
    UNROLL(i, size)
    {
        bool inside = i >= first && i < end;
        at->row[i] = inside ? plane + (top + (long)i) * (long)shape->width * V : zeros;
        at->inside[i] = inside ? -1L : 0;
    }
    at->left = left;
}

/* Rows 0 .. size-1 of column j, which is inside. */
PART void load_column(vector line[], const patch *at, size_t j, const size_t size)
{
    long offset = (at->left + (long)j) * V;
    UNROLL(i, size) line[i] = LOAD(at->row[i] + (offset & at->inside[i]));
}

/* Where tile number `tile` begins. */
typedef struct place {
    size_t sample, top, left;
} place;

/* The place of a tile. */
PART place place_of(const at_winograd_pass *p, size_t tile)
{
    size_t in_image = tile % (p->down * p->across);
    return (place){tile / (p->down * p->across), in_image / p->across * OUT,
                   in_image % p->across * OUT};
}

/* Goes on to the next tile. */
PART void next_place(const at_winograd_pass *p, place *at)
{
    at->left += OUT;
    if (at->left < p->across * OUT) return;
    at->left = 0;
    at->top += OUT;
    if (at->top < p->down * OUT) return;
    at->top = 0;
    at->sample++;
}

/* Transforms a patch along both axes: to[point]. */
PART void read_tile(float *to, size_t point, const patch *at, const size_t window)
{
    const size_t n = window + OUT - 1;
    vector       half[POINTS_MAX][POINTS_MAX], line[POINTS_MAX], done[POINTS_MAX];
    for (size_t j = 0; j < n; j++) {
        bool inside = j >= at->first && j < at->end;
        if (inside) load_column(line, at, j, n);
        if (inside) read_axis(done, line, window);
        UNROLL(i, n) half[i][j] = inside ? done[i] : EVERY(0.0f);
    }
    for (size_t i = 0; i < n; i++, to += n * point) {
        read_axis(done, half[i], window);
        UNROLL(j, n) STORE(to + j * point, done[j]);
    }
}

/* Transforms all tiles of one block. */
PART void read_block(const at_winograd_pass *p, float *v, const float *x, size_t block,
                     size_t first, size_t count, const size_t window)
{
    size_t area = at_activation_area(&p->in) * V, sample = at_activation_size(&p->in);
    size_t point = at_winograd_point(p, at_activation_blocks(&p->in));
    place  at = place_of(p, first);
    v += block * at_winograd_block(p);
    for (size_t t = 0; t < count; t++, v += V, next_place(p, &at)) {
        patch part;
        locate(&part, x + at.sample * sample + block * area, &p->in, (long)at.top - (long)p->top,
               (long)at.left - (long)p->left, window + OUT - 1);
        read_tile(v, point, &part, window);
    }
}

/* See winograd_kernels.h, as for the other functions of the table. */
SIMD void read_tiles(const at_winograd_pass *p, float *v, const float *x, size_t block,
                     size_t first, size_t count)
{
    assert(count <= p->chunk);
    if (p->window == 3)
        read_block(p, v, x, block, first, count, 3);
    else
        read_block(p, v, x, block, first, count, 5);
}

/* Transforms a patch of dy; returns the sum of its values. */
PART vector spread_tile(float *to, size_t point, const patch *at, const size_t window)
{
    const size_t n = window + OUT - 1;
    vector       half[POINTS_MAX][OUT], line[OUT], done[POINTS_MAX], sum = EVERY(0.0f);
    for (size_t j = 0; j < OUT; j++) {
        UNROLL(i, OUT) line[i] = EVERY(0.0f);
        if (j < at->end) load_column(line, at, j, OUT);
        sum = ADD(sum, ADD(ADD(line[0], line[1]), ADD(line[2], line[3])));
        spread_axis(done, line, window);
        UNROLL(i, n) half[i][j] = done[i];
    }
    for (size_t i = 0; i < n; i++, to += n * point) {
        spread_axis(done, half[i], window);
        UNROLL(j, n) STORE(to + j * point, done[j]);
    }
    return sum;
}

/* Transforms all tiles of one block; returns the sum of their values. */
PART vector spread_block(const at_winograd_pass *p, float *d, const float *dy, size_t block,
                         size_t first, size_t count, const size_t window)
{
    size_t area = at_activation_area(&p->out) * V, sample = at_activation_size(&p->out);
    size_t point = at_winograd_point(p, at_activation_blocks(&p->out));
    place  at = place_of(p, first);
    vector sum = EVERY(0.0f);
    d += block * at_winograd_block(p);
    for (size_t t = 0; t < count; t++, d += V, next_place(p, &at)) {
        patch part;
        locate(&part, dy + at.sample * sample + block * area, &p->out, (long)at.top, (long)at.left,
               OUT);
        sum = ADD(sum, spread_tile(d, point, &part, window));
    }
    return sum;
}

/* See winograd_kernels.h. */
SIMD void spread_tiles(const at_winograd_pass *p, float *d, float *db, const float *dy,
                       size_t block, size_t first, size_t count)
{
    assert(count <= p->chunk);
    vector sum = p->window == 3 ? spread_block(p, d, dy, block, first, count, 3)
                                : spread_block(p, d, dy, block, first, count, 5);
    if (db) STORE(db + block * V, ADD(LOAD(db + block * V), sum));
}

/* Transforms products back along both axes and writes height x width of the 4x4 values. */
PART void write_tile(const at_winograd_pass *p, float *y, const float *m, size_t point, vector bias,
                     size_t height, size_t width, const size_t window)
{
    const size_t n = window + OUT - 1;
    vector       half[OUT][POINTS_MAX], line[POINTS_MAX], done[OUT];
    for (size_t j = 0; j < n; j++, m += point) {
        UNROLL(i, n) line[i] = LOAD(m + i * n * point);
        write_axis(done, line, window);
        UNROLL(i, OUT) half[i][j] = done[i];
    }
    for (size_t i = 0; i < height; i++, y += p->out.width * V) {
        write_axis(done, half[i], window);
        UNROLL(j, OUT)
        {
            vector v = ADD(done[j], bias);
            if (j < width) STORE(y + j * V, p->relu ? MAX(v, EVERY(0.0f)) : v);
        }
    }
}

/* Transforms all tiles of one block back. */
PART void write_block(const at_winograd_pass *p, float *y, const float *m, vector bias,
                      size_t blocks, size_t first, size_t count, const size_t window)
{
    size_t point = at_winograd_point(p, blocks), sample = at_activation_size(&p->out);
    place  at = place_of(p, first);
    for (size_t t = 0; t < count; t++, m += V, next_place(p, &at)) {
        size_t height = p->out.height - at.top, width = p->out.width - at.left;
        write_tile(p, y + at.sample * sample + (at.top * p->out.width + at.left) * V, m, point,
                   bias, height < OUT ? height : OUT, width < OUT ? width : OUT, window);
    }
}

/* See winograd_kernels.h. */
SIMD void write_tiles(const at_winograd_pass *p, float *y, const float *m, const float *bias,
                      size_t block, size_t blocks, size_t first, size_t count)
{
    size_t area = at_activation_area(&p->out) * V;
    for (size_t b = block; b < block + blocks; b++, m += at_winograd_block(p)) {
        vector add = bias ? LOAD(bias + b * V) : EVERY(0.0f);
        if (p->window == 3)
            write_block(p, y + b * area, m, add, AT_WINOGRAD_GROUP_BLOCKS, first, count, 3);
        else
            write_block(p, y + b * area, m, add, AT_WINOGRAD_GROUP_BLOCKS, first, count, 5);
    }
}

/* ---- weights ---- */

/* Transforms the weights of one input and a block of outputs; the elements of the window are V * V
 * floats apart. */
PART void read_window(float *u, size_t point, const float *w, const size_t window)
{
    const size_t n = window + OUT - 1;
    vector       half[POINTS_MAX][5], line[5], done[POINTS_MAX];
    for (size_t j = 0; j < window; j++) {
        UNROLL(i, window) line[i] = LOAD(w + (i * window + j) * V * V);
        weight_axis(done, line, window);
        UNROLL(i, n) half[i][j] = done[i];
    }
    for (size_t i = 0; i < n; i++, u += n * point) {
        weight_axis(done, half[i], window);
        UNROLL(j, n) STORE(u + j * point, done[j]);
    }
}

/* Swaps the two channels of a block of weights and turns the window by 180 degrees. */
PART void swap_block(float *to, const float *w, const size_t window)
{
    for (size_t e = 0; e < window * window; e++, w += V * V) {
        float *at = to + (window * window - 1 - e) * V * V;
        for (size_t i = 0; i < V; i += LANES)
            for (size_t o = 0; o < V; o += LANES) {
                __m256 v[LANES];
                EACH(k, LANES) v[k] = _mm256_loadu_ps(w + (i + k) * V + o);
                transpose(v);
                EACH(k, LANES) _mm256_storeu_ps(at + (o + k) * V + i, v[k]);
            }
    }
}

/* One block of outputs and one of inputs. */
PART void read_weight_block(const at_winograd_pass *p, float *u, const float *w,
                            const size_t window)
{
    float  swapped[5 * 5 * V * V];
    size_t point = at_winograd_panel_point(p);
    if (p->swapped) swap_block(swapped, w, window);
    for (size_t i = 0; i < V; i++, u += 2 * V)
        read_window(u, point, (p->swapped ? swapped : w) + i * V, window);
}

/* See winograd_kernels.h. */
SIMD void read_weights(const at_winograd_pass *p, float *u, const float *w, size_t panel)
{
    size_t blocks = at_activation_blocks(&p->out);
    for (size_t o = 2 * panel; o < 2 * panel + 2 && o < blocks; o++, u += V) {
        for (size_t i = 0; i < at_activation_blocks(&p->in); i++) {
            const float *from = w + (p->swapped ? i : o) * p->weight_stride[0] +
                                (p->swapped ? o : i) * p->weight_stride[1];
            if (p->window == 3)
                read_weight_block(p, u + i * V * 2 * V, from, 3);
            else
                read_weight_block(p, u + i * V * 2 * V, from, 5);
        }
    }
}

/* Transforms the gradient of one input and a block of outputs back. */
PART void write_window(float *dw, const float *s, size_t point, const size_t window)
{
    const size_t n = window + OUT - 1;
    vector       half[5][POINTS_MAX], line[POINTS_MAX], done[5];
    for (size_t j = 0; j < n; j++, s += point) {
        UNROLL(i, n) line[i] = LOAD(s + i * n * point);
        gradient_axis(done, line, window);
        UNROLL(i, window) half[i][j] = done[i];
    }
    for (size_t i = 0; i < window; i++) {
        gradient_axis(done, half[i], window);
        UNROLL(j, window) STORE(dw + (i * window + j) * V * V, done[j]);
    }
}

/* See winograd_kernels.h. */
SIMD void write_cell(const at_winograd_pass *p, float *dw, const float *s,
                     const at_winograd_cell *cell)
{
    size_t point = at_winograd_cell_point(p);
    for (size_t o = 0; o < cell->out_count; o++)
        for (size_t i = 0; i < cell->in_count * V; i++) {
            const float *from = s + i * AT_WINOGRAD_CELL_OUT * V + o * V;
            float       *to = dw + (cell->out + o) * p->weight_stride[0] +
                        (cell->in + i / V) * p->weight_stride[1] + i % V * V;
            if (p->window == 3)
                write_window(to, from, point, 3);
            else
                write_window(to, from, point, 5);
        }
}

/* ---- products ---- */

/* How many products are summed before the sum is added to the others: partial sums keep rounding
 * errors small, and few weights at a time stay in the first cache. */
enum { SUM_BLOCKS = 64 / V, SUM_TILES = 48 };

/* m <- sums over `blocks` blocks of inputs for some tiles and the `outs` blocks of a panel, or
 * added to it. */
PART void product(float *m, const float *v, const float *u, size_t block, size_t blocks, bool add,
                  const size_t tiles, const size_t outs)
{
    vector acc[TILES_MAX][2];
    UNROLL(t, tiles) UNROLL(o, outs) acc[t][o] = EVERY(0.0f);
    for (size_t b = 0; b < blocks; b++, v += block)
        for (size_t k = 0; k < V; k++, u += 2 * V) {
            vector w[2];
            UNROLL(o, outs)
            {
                w[o] = LOAD(u + o * V);
                KEEP(w[o]);
            }
            UNROLL(t, tiles)
            {
                vector x = EVERY(v[t * V + k]);
                UNROLL(o, outs) acc[t][o] = FMA(x, w[o], acc[t][o]);
            }
        }
    UNROLL(t, tiles)
    UNROLL(o, outs)
    {
        float *to = m + o * block + t * V;
        STORE(to, add ? ADD(LOAD(to), acc[t][o]) : acc[t][o]);
    }
}

/* One function per number of tiles, so that the sums stay in registers. */
#define PRODUCT_OF(n) \
    case n: product(m, v, u, block, blocks, add, n, outs); break;

/* Fewer tiles than TILES_MAX. */
PART void product_rest(float *m, const float *v, const float *u, size_t block, size_t blocks,
                       bool add, size_t tiles, const size_t outs)
{
    switch (tiles) {
        PRODUCT_OF(1)
        PRODUCT_OF(2)
        PRODUCT_OF(3)
        PRODUCT_OF(4)
        PRODUCT_OF(5)
#if defined(VECTOR_512)
        PRODUCT_OF(6)
        PRODUCT_OF(7)
        PRODUCT_OF(8)
        PRODUCT_OF(9)
        PRODUCT_OF(10)
        PRODUCT_OF(11)
        PRODUCT_OF(12)
        PRODUCT_OF(13)
#endif
    default: assert(tiles == 0);
    }
}

/* Products of one point: all tiles with one panel, summed over some blocks of inputs. */
PART void multiply_point(float *m, const float *v, const float *u, size_t block, size_t blocks,
                         bool add, size_t count, const size_t outs)
{
    size_t t = 0;
    for (; t + TILES_MAX <= count; t += TILES_MAX)
        product(m + t * V, v + t * V, u, block, blocks, add, TILES_MAX, outs);
    product_rest(m + t * V, v + t * V, u, block, blocks, add, count - t, outs);
}

/* Products of one point with a panel of one block. */
SIMD void multiply_one(float *m, const float *v, const float *u, size_t block, size_t blocks,
                       bool add, size_t count)
{
    multiply_point(m, v, u, block, blocks, add, count, 1);
}

/* Products of one point with a whole panel. */
SIMD void multiply_two(float *m, const float *v, const float *u, size_t block, size_t blocks,
                       bool add, size_t count)
{
    multiply_point(m, v, u, block, blocks, add, count, 2);
}

/* See winograd_kernels.h. */
SIMD void multiply(const at_winograd_pass *p, float *m, const float *v, const float *u, size_t outs,
                   size_t count)
{
    size_t block = at_winograd_block(p), blocks = at_activation_blocks(&p->in);
    assert(outs == 1 || outs == 2);
    for (size_t e = 0; e < at_winograd_points(p); e++) {
        for (size_t b = 0; b < blocks; b += SUM_BLOCKS) {
            size_t some = blocks - b < SUM_BLOCKS ? blocks - b : SUM_BLOCKS;
            (outs == 2 ? multiply_two : multiply_one)(m, v + b * block, u + b * V * 2 * V, block,
                                                      some, b > 0, count);
        }
        m += at_winograd_point(p, AT_WINOGRAD_GROUP_BLOCKS);
        v += at_winograd_point(p, blocks);
        u += at_winograd_panel_point(p);
    }
}

/* s <- sums over at most SUM_TILES tiles for CELL_ROWS inputs and `outs` blocks of outputs, or
 * added to it. */
PART void cell_product(float *s, const float *v, const float *d, size_t block, size_t count,
                       bool add, const size_t outs)
{
    vector acc[CELL_ROWS][AT_WINOGRAD_CELL_OUT];
    UNROLL(i, CELL_ROWS) UNROLL(o, outs) acc[i][o] = EVERY(0.0f);
    for (size_t t = 0; t < count; t++, v += V, d += V) {
        vector g[AT_WINOGRAD_CELL_OUT];
        UNROLL(o, outs)
        {
            g[o] = LOAD(d + o * block);
            KEEP(g[o]);
        }
        UNROLL(i, CELL_ROWS)
        {
            vector x = EVERY(v[i]);
            UNROLL(o, outs) acc[i][o] = FMA(x, g[o], acc[i][o]);
        }
    }
    UNROLL(i, CELL_ROWS)
    UNROLL(o, outs)
    {
        float *to = s + (i * AT_WINOGRAD_CELL_OUT + o) * V;
        STORE(to, add ? ADD(LOAD(to), acc[i][o]) : acc[i][o]);
    }
}

/* Products of one point: all inputs of the cell. */
PART void cell_point(float *s, const float *v, const float *d, size_t block, size_t blocks,
                     size_t count, bool add, const size_t outs)
{
    for (size_t i = 0; i < blocks; i++, v += block)
        for (size_t k = 0; k < V; k += CELL_ROWS, s += CELL_ROWS * AT_WINOGRAD_CELL_OUT * V)
            for (size_t t = 0; t < count; t += SUM_TILES)
                cell_product(s, v + t * V + k, d + t * V, block,
                             count - t < SUM_TILES ? count - t : SUM_TILES, add || t > 0, outs);
}

/* See winograd_kernels.h. */
SIMD void multiply_cell(const at_winograd_pass *p, float *s, const float *v, const float *d,
                        const at_winograd_cell *cell, size_t count, bool add)
{
    size_t block = at_winograd_block(p), in = cell->in_count;
    v += cell->in * block;
    d += cell->out * block;
    for (size_t e = 0; e < at_winograd_points(p); e++) {
        if (cell->out_count == 3)
            cell_point(s, v, d, block, in, count, add, 3);
        else if (cell->out_count == 2)
            cell_point(s, v, d, block, in, count, add, 2);
        else
            cell_point(s, v, d, block, in, count, add, 1);
        s += at_winograd_cell_point(p);
        v += at_winograd_point(p, at_activation_blocks(&p->in));
        d += at_winograd_point(p, at_activation_blocks(&p->out));
    }
}

#define WINOGRAD_KERNELS                                                                          \
    {                                                                                             \
        .lanes = V, .read_tiles = read_tiles, .read_weights = read_weights, .multiply = multiply, \
        .write_tiles = write_tiles, .spread_tiles = spread_tiles, .multiply_cell = multiply_cell, \
        .write_cell = write_cell,                                                                 \
    }

#endif

#endif
