/* Dense layers by hand for AVX2 and FMA, for few outputs or few samples. A general matrix product
 * packs its operands before it starts, which pays when they are used often; these kernels read x
 * and w where they are.
 *
 * All products work on small tiles of the result that stay in registers:
 *     forward   2 samples x 5 outputs, each a vector of 8 partial sums along the inputs
 *     weight    5 outputs x 16 inputs, summed over the samples, then stored or added once
 *     input     4 samples x 16 inputs, summed over the outputs
 * Eight to ten accumulators hide the latency of FMA (4 cycles, two a cycle) and leave registers for
 * the operands. */
#include "learn/engines/avx2.h"

#if defined(__x86_64__)

#include <assert.h>

enum {
    OUTPUTS = 5,       /* outputs in a tile */
    WIDTH = 2 * LANES, /* inputs in a tile of weights */
    INPUTS_RUN = 1024, /* inputs per run: five rows of w (20 kB) stay in the L1 cache */
    SAMPLES_RUN = 128  /* samples per run: their x stays in the L2 cache */
};

static size_t at_most(size_t n, size_t limit)
{
    return n < limit ? n : limit;
}

/* A load that is really done once. Without this the compiler folds it into every instruction that
 * uses the vector, and the loads then take longer than the arithmetic. */
TILE __m256 load_once(const float *from)
{
    __m256 v = _mm256_loadu_ps(from);
    __asm__("" : "+x"(v));
    return v;
}

/* The sums of four vectors, each over its lanes. */
TILE __m128 sum_lanes_4(__m256 a, __m256 b, __m256 c, __m256 d)
{
    __m256 sums = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
    return _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1));
}

/* y (C) = start (C) + the sums of C vectors; four at a time, because one by one they would take a
 * tenth of the whole product. */
TILE void put_sums(float *y, const float *start, const __m256 *acc, const size_t C)
{
    size_t c = 0;
    if (C >= 4) {
        __m128 sums = sum_lanes_4(acc[0], acc[1], acc[2], acc[3]);
        _mm_storeu_ps(y, _mm_add_ps(_mm_loadu_ps(start), sums));
        c = 4;
    }
    EACH(rest, C - c) y[c + rest] = start[c + rest] + sum_lanes(acc[c + rest]);
}

/* y (R,C) = start + x (R,n) * transpose(w (C,n)). Rows of x and w are I apart, rows of y are O
 * apart, and those of start too, unless it is the bias, the same for all rows. */
TILE void forward_tile(float *y, const float *start, const float *x, const float *w, size_t n,
                       size_t I, size_t O, const size_t R, const size_t C)
{
    __m256 acc[2][OUTPUTS], xs[2];
    size_t i = 0;
    assert(R <= 2);
    assert(C <= OUTPUTS);
    EACH(r, R) EACH(c, C) acc[r][c] = _mm256_setzero_ps();
    for (; i + LANES <= n; i += LANES) {
        EACH(r, R) xs[r] = _mm256_loadu_ps(x + r * I + i);
        EACH(c, C)
        {
            __m256 ws = load_once(w + c * I + i);
            EACH(r, R) acc[r][c] = _mm256_fmadd_ps(xs[r], ws, acc[r][c]);
        }
    }
    if (i < n) {
        __m256i mask = mask_first(n - i);
        EACH(r, R) xs[r] = _mm256_maskload_ps(x + r * I + i, mask);
        EACH(c, C)
        {
            __m256 ws = _mm256_maskload_ps(w + c * I + i, mask);
            EACH(r, R) acc[r][c] = _mm256_fmadd_ps(xs[r], ws, acc[r][c]);
        }
    }
    EACH(r, R) put_sums(y + r * O, start == y ? start + r * O : start, acc[r], C);
}

/* All samples for C outputs, so that the C rows of w stay in the cache meanwhile. b is the bias for
 * the first run of inputs and NULL for those that add to y. */
TILE void forward_outputs(float *y, const float *b, const float *x, const float *w, size_t n,
                          size_t B, size_t I, size_t O, const size_t C)
{
    size_t r = 0;
    for (; r + 2 <= B; r += 2)
        forward_tile(y + r * O, b ? b : y + r * O, x + r * I, w, n, I, O, 2, C);
    if (r < B) forward_tile(y + r * O, b ? b : y + r * O, x + r * I, w, n, I, O, 1, C);
}

AVX2 static void forward_run(float *y, const float *b, const float *x, const float *w, size_t n,
                             size_t B, size_t I, size_t O)
{
    for (size_t c = 0, step; c < O; c += step) {
        const float *bc = b ? b + c : NULL;
        step = at_most(O - c, OUTPUTS);
        switch (step) {
        case 5: forward_outputs(y + c, bc, x, w + c * I, n, B, I, O, 5); break;
        case 4: forward_outputs(y + c, bc, x, w + c * I, n, B, I, O, 4); break;
        case 3: forward_outputs(y + c, bc, x, w + c * I, n, B, I, O, 3); break;
        case 2: forward_outputs(y + c, bc, x, w + c * I, n, B, I, O, 2); break;
        case 1: forward_outputs(y + c, bc, x, w + c * I, n, B, I, O, 1); break;
        }
    }
}

AVX2 static void dense_forward(float *y, const float *x, const float *w, const float *b, size_t B,
                               size_t I, size_t O)
{
    assert(B > 0);
    for (size_t n = 0; n < B; n += SAMPLES_RUN)
        for (size_t i = 0; i < I; i += INPUTS_RUN)
            forward_run(y + n * O, i ? NULL : b, x + n * I + i, w + i, at_most(I - i, INPUTS_RUN),
                        at_most(B - n, SAMPLES_RUN), I, O);
}

/* One vector of a finished sum to the gradient. Adding zero turns a negative zero into zero, as
 * adding to a zeroed vector would. */
TILE void put(float *to, __m256 sum, at_write write)
{
    __m256 old = write == AT_WRITE_ADD ? _mm256_loadu_ps(to) : _mm256_setzero_ps();
    _mm256_storeu_ps(to, _mm256_add_ps(old, sum));
}

TILE void put_first(float *to, __m256 sum, at_write write, __m256i mask)
{
    __m256 old = write == AT_WRITE_ADD ? _mm256_maskload_ps(to, mask) : _mm256_setzero_ps();
    _mm256_maskstore_ps(to, mask, _mm256_add_ps(old, sum));
}

/* dw (C, V vectors) from transpose(dy (B,C)) * x (B, V vectors); rows of x are `stride` apart. Of
 * dw only the first n columns are touched. */
TILE void weight_tile(float *dw, const float *dy, const float *x, size_t stride, size_t n, size_t B,
                      size_t I, size_t O, at_write write, const size_t C, const size_t V)
{
    __m256 acc[OUTPUTS][2], xs[2];
    assert(C <= OUTPUTS);
    assert(V <= 2);
    EACH(c, C) EACH(v, V) acc[c][v] = _mm256_setzero_ps();
    for (size_t r = 0; r < B; r++) {
        EACH(v, V) xs[v] = load_once(x + r * stride + v * LANES);
        EACH(c, C)
        {
            __m256 d = _mm256_broadcast_ss(dy + r * O + c);
            EACH(v, V) acc[c][v] = _mm256_fmadd_ps(d, xs[v], acc[c][v]);
        }
    }
    if (n >= V * LANES) {
        EACH(c, C) EACH(v, V) put(dw + c * I + v * LANES, acc[c][v], write);
    } else {
        EACH(v, V)
        {
            __m256i mask = mask_first(n > v * LANES ? at_most(n - v * LANES, LANES) : 0);
            EACH(c, C) put_first(dw + c * I + v * LANES, acc[c][v], write, mask);
        }
    }
}

/* All outputs for V vectors of inputs: their columns of x are then in the cache. */
TILE void weight_inputs(float *dw, const float *dy, const float *x, size_t B, size_t I, size_t O,
                        at_write write, const size_t V)
{
    size_t c = 0, n = V * LANES;
    for (; c + OUTPUTS <= O; c += OUTPUTS)
        weight_tile(dw + c * I, dy + c, x, I, n, B, I, O, write, OUTPUTS, V);
    switch (O - c) {
    case 4: weight_tile(dw + c * I, dy + c, x, I, n, B, I, O, write, 4, V); break;
    case 3: weight_tile(dw + c * I, dy + c, x, I, n, B, I, O, write, 3, V); break;
    case 2: weight_tile(dw + c * I, dy + c, x, I, n, B, I, O, write, 2, V); break;
    case 1: weight_tile(dw + c * I, dy + c, x, I, n, B, I, O, write, 1, V); break;
    }
}

/* The last inputs, fewer than a vector, for one output. */
AVX2 static void weight_tail(float *dw, const float *dy, const float *x, size_t B, size_t I,
                             size_t O, at_write write, __m256i mask)
{
    __m256 acc = _mm256_setzero_ps();
    for (size_t r = 0; r < B; r++)
        acc = _mm256_fmadd_ps(_mm256_broadcast_ss(dy + r * O), _mm256_maskload_ps(x + r * I, mask),
                              acc);
    put_first(dw, acc, write, mask);
}

AVX2 static void dense_weight(float *dw, const float *dy, const float *x, size_t B, size_t I,
                              size_t O, at_write write, float *scratch)
{
    assert(B > 0);
    (void)scratch;
    size_t i = 0;
    for (; i + WIDTH <= I; i += WIDTH) weight_inputs(dw + i, dy, x + i, B, I, O, write, 2);
    for (; i + LANES <= I; i += LANES) weight_inputs(dw + i, dy, x + i, B, I, O, write, 1);
    if (i == I) return;
    __m256i mask = mask_first(I - i);
    for (size_t c = 0; c < O; c++) weight_tail(dw + c * I + i, dy + c, x + i, B, I, O, write, mask);
}

size_t at_avx2_packed(size_t B, size_t I)
{
    return (I + WIDTH - 1) / WIDTH * WIDTH * B;
}

/* Columns of x, WIDTH at a time, one block behind the other; zeros fill the last one. Rows of x lie
 * far apart, often by a multiple of 4096 bytes, and would push each other out of the cache. */
AVX2 static void pack(float *to, const float *x, size_t B, size_t I)
{
    for (size_t i = 0; i < I; i += LANES) {
        __m256i mask = mask_first(at_most(I - i, LANES));
        float  *block = to + i / WIDTH * WIDTH * B + i % WIDTH;
        for (size_t r = 0; r < B; r++)
            _mm256_store_ps(block + r * WIDTH, _mm256_maskload_ps(x + r * I + i, mask));
    }
    if (I % WIDTH == 0 || I % WIDTH > LANES) return;
    float *last = to + I / WIDTH * WIDTH * B + LANES;
    for (size_t r = 0; r < B; r++) _mm256_store_ps(last + r * WIDTH, _mm256_setzero_ps());
}

/* All inputs for C outputs: dw is walked along its rows, x comes from the packed blocks. */
TILE void weight_outputs(float *dw, const float *dy, const float *packed, size_t B, size_t I,
                         size_t O, at_write write, const size_t C)
{
    for (size_t i = 0; i < I; i += WIDTH)
        weight_tile(dw + i, dy, packed + i * B, WIDTH, I - i, B, I, O, write, C, 2);
}

AVX2 void at_avx2_weight_wide(float *dw, const float *dy, const float *x, size_t B, size_t I,
                              size_t O, at_write write, float *scratch)
{
    assert(B > 0);
    assert((uintptr_t)scratch % 32 == 0);
    size_t c = 0;
    pack(scratch, x, B, I);
    for (; c + OUTPUTS <= O; c += OUTPUTS)
        weight_outputs(dw + c * I, dy + c, scratch, B, I, O, write, OUTPUTS);
    for (; c < O; c++) weight_outputs(dw + c * I, dy + c, scratch, B, I, O, write, 1);
}

AVX2 static void dense_bias(float *db, const float *dy, size_t B, size_t O, at_write write)
{
    assert(B > 0);
    for (size_t o = 0; o < O; o += LANES) {
        __m256i mask = mask_first(at_most(O - o, LANES));
        __m256  sum = _mm256_setzero_ps();
        for (size_t r = 0; r < B; r++)
            sum = _mm256_add_ps(sum, _mm256_maskload_ps(dy + r * O + o, mask));
        put_first(db + o, sum, write, mask);
    }
}

/* dx (R, V vectors) = dy (R,O) * w (O, V vectors) */
TILE void input_tile(float *dx, const float *dy, const float *w, size_t I, size_t O, const size_t R,
                     const size_t V)
{
    __m256 acc[4][2], ws[2];
    assert(R <= 4);
    assert(V <= 2);
    EACH(r, R) EACH(v, V) acc[r][v] = _mm256_setzero_ps();
    for (size_t c = 0; c < O; c++) {
        EACH(v, V) ws[v] = load_once(w + c * I + v * LANES);
        EACH(r, R)
        {
            __m256 d = _mm256_broadcast_ss(dy + r * O + c);
            EACH(v, V) acc[r][v] = _mm256_fmadd_ps(d, ws[v], acc[r][v]);
        }
    }
    EACH(r, R) EACH(v, V) _mm256_storeu_ps(dx + r * I + v * LANES, acc[r][v]);
}

/* All inputs for R samples; the last ones, fewer than a vector, are summed one by one. */
TILE void input_samples(float *dx, const float *dy, const float *w, size_t I, size_t O,
                        const size_t R)
{
    size_t i = 0;
    for (; i + WIDTH <= I; i += WIDTH) input_tile(dx + i, dy, w + i, I, O, R, 2);
    for (; i + LANES <= I; i += LANES) input_tile(dx + i, dy, w + i, I, O, R, 1);
    for (; i < I; i++)
        for (size_t r = 0; r < R; r++) {
            float sum = 0;
            for (size_t c = 0; c < O; c++) sum += dy[r * O + c] * w[c * I + i];
            dx[r * I + i] = sum;
        }
}

AVX2 static void dense_input(float *dx, const float *dy, const float *w, size_t B, size_t I,
                             size_t O)
{
    assert(B > 0);
    size_t r = 0;
    for (; r + 4 <= B; r += 4) input_samples(dx + r * I, dy + r * O, w, I, O, 4);
    for (; r < B; r++) input_samples(dx + r * I, dy + r * O, w, I, O, 1);
}

const at_kernels at_kernels_avx2 = {
    .name = "avx2",
    .dense_forward = dense_forward,
    .dense_weight = dense_weight,
    .dense_bias = dense_bias,
    .dense_input = dense_input,
    .relu_forward = at_avx2_relu_forward,
    .relu_backward = at_avx2_relu_backward,
    .softmax_loss = at_avx2_softmax_loss,
};

#endif
