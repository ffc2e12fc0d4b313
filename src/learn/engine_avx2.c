/* Dense layers with few outputs, by hand for AVX2 and FMA. A general matrix product packs its
 * operands first; with ten outputs that costs as much as the product itself, so these kernels read
 * x and w where they are.
 *
 * All three products work on small tiles of the result that stay in registers:
 *     forward   2 samples x 5 outputs, each a vector of 8 partial sums along the inputs
 *     weight    5 outputs x 16 inputs, summed over the samples, then stored or added once
 *     input     4 samples x 16 inputs, summed over the outputs
 * Ten accumulators hide the latency of FMA (4 cycles, two a cycle) and leave six registers for
 * operands. Tile functions are always inlined with constant sizes, so that their loops unroll and
 * their arrays become registers. */
#include "learn/kernels.h"

#if defined(__x86_64__)

#include <assert.h>
#include <immintrin.h>
#include <math.h>

#define AVX2   __attribute__((target("avx2,fma")))
#define TILE   static inline __attribute__((always_inline, target("avx2,fma")))
#define UNROLL _Pragma("GCC unroll 8")

enum {
    LANES = 8,        /* floats in a vector */
    OUTPUTS = 5,      /* outputs in a tile */
    INPUTS_RUN = 1024 /* inputs per run: w's share of a tile row (20 kB) stays in the L1 cache */
};

static const double PRODUCT_MAX = 1e200;

/* All ones in the first n lanes (n <= 8). */
TILE __m256i mask_first(size_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}

TILE float sum_lanes(__m256 v)
{
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* y (R,C) += x (R,n) * transpose(w (C,n)); rows of x and w are I apart, rows of y O apart. */
TILE void forward_tile(float *y, const float *x, const float *w, size_t n, size_t I, size_t O,
                       const size_t R, const size_t C)
{
    __m256 acc[2][OUTPUTS];
    UNROLL for (size_t r = 0; r < R; r++) UNROLL for (size_t c = 0; c < C; c++) acc[r][c] =
        _mm256_setzero_ps();

    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        __m256 xs[2];
        UNROLL for (size_t r = 0; r < R; r++) xs[r] = _mm256_loadu_ps(x + r * I + i);
        UNROLL for (size_t c = 0; c < C; c++)
        {
            __m256 ws = _mm256_loadu_ps(w + c * I + i);
            UNROLL for (size_t r = 0; r < R; r++) acc[r][c] = _mm256_fmadd_ps(xs[r], ws, acc[r][c]);
        }
    }
    if (i < n) {
        __m256i mask = mask_first(n - i);
        UNROLL for (size_t c = 0; c < C; c++)
        {
            __m256 ws = _mm256_maskload_ps(w + c * I + i, mask);
            UNROLL for (size_t r = 0; r < R; r++) acc[r][c] =
                _mm256_fmadd_ps(_mm256_maskload_ps(x + r * I + i, mask), ws, acc[r][c]);
        }
    }
    UNROLL for (size_t r = 0; r < R; r++) UNROLL for (size_t c = 0; c < C; c++) y[r * O + c] +=
        sum_lanes(acc[r][c]);
}

/* All samples for C outputs, so that the C rows of w stay in the cache meanwhile. */
TILE void forward_outputs(float *y, const float *x, const float *w, size_t n, size_t B, size_t I,
                          size_t O, const size_t C)
{
    size_t r = 0;
    for (; r + 2 <= B; r += 2) forward_tile(y + r * O, x + r * I, w, n, I, O, 2, C);
    if (r < B) forward_tile(y + r * O, x + r * I, w, n, I, O, 1, C);
}

AVX2 static void forward_run(float *y, const float *x, const float *w, size_t n, size_t B, size_t I,
                             size_t O)
{
    size_t c = 0;
    for (; c + OUTPUTS <= O; c += OUTPUTS)
        forward_outputs(y + c, x, w + c * I, n, B, I, O, OUTPUTS);
    switch (O - c) {
    case 4: forward_outputs(y + c, x, w + c * I, n, B, I, O, 4); break;
    case 3: forward_outputs(y + c, x, w + c * I, n, B, I, O, 3); break;
    case 2: forward_outputs(y + c, x, w + c * I, n, B, I, O, 2); break;
    case 1: forward_outputs(y + c, x, w + c * I, n, B, I, O, 1); break;
    }
}

AVX2 static void dense_forward(float *y, const float *x, const float *w, const float *b, size_t B,
                               size_t I, size_t O)
{
    assert(B > 0);
    for (size_t n = 0; n < B; n++)
        for (size_t o = 0; o < O; o++) y[n * O + o] = b[o];
    for (size_t i = 0; i < I; i += INPUTS_RUN)
        forward_run(y, x + i, w + i, I - i < INPUTS_RUN ? I - i : INPUTS_RUN, B, I, O);
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

/* dw (C, V vectors) from transpose(dy (B,C)) * x (B, V vectors). */
TILE void weight_tile(float *dw, const float *dy, const float *x, size_t B, size_t I, size_t O,
                      at_write write, const size_t C, const size_t V)
{
    __m256 acc[OUTPUTS][2];
    UNROLL for (size_t c = 0; c < C; c++) UNROLL for (size_t v = 0; v < V; v++) acc[c][v] =
        _mm256_setzero_ps();

    for (size_t r = 0; r < B; r++) {
        __m256 xs[2];
        UNROLL for (size_t v = 0; v < V; v++) xs[v] = _mm256_loadu_ps(x + r * I + v * LANES);
        UNROLL for (size_t c = 0; c < C; c++)
        {
            __m256 d = _mm256_broadcast_ss(dy + r * O + c);
            UNROLL for (size_t v = 0; v < V; v++) acc[c][v] = _mm256_fmadd_ps(d, xs[v], acc[c][v]);
        }
    }
    UNROLL for (size_t c = 0; c < C; c++) UNROLL for (size_t v = 0; v < V; v++)
        put(dw + c * I + v * LANES, acc[c][v], write);
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

/* All outputs for V vectors of inputs: their columns of x are then in the cache. */
TILE void weight_inputs(float *dw, const float *dy, const float *x, size_t B, size_t I, size_t O,
                        at_write write, const size_t V)
{
    size_t c = 0;
    for (; c + OUTPUTS <= O; c += OUTPUTS)
        weight_tile(dw + c * I, dy + c, x, B, I, O, write, OUTPUTS, V);
    switch (O - c) {
    case 4: weight_tile(dw + c * I, dy + c, x, B, I, O, write, 4, V); break;
    case 3: weight_tile(dw + c * I, dy + c, x, B, I, O, write, 3, V); break;
    case 2: weight_tile(dw + c * I, dy + c, x, B, I, O, write, 2, V); break;
    case 1: weight_tile(dw + c * I, dy + c, x, B, I, O, write, 1, V); break;
    }
}

AVX2 static void dense_weight(float *dw, const float *dy, const float *x, size_t B, size_t I,
                              size_t O, at_write write, float *scratch)
{
    assert(B > 0);
    (void)scratch;
    size_t i = 0;
    for (; i + 2 * LANES <= I; i += 2 * LANES) weight_inputs(dw + i, dy, x + i, B, I, O, write, 2);
    for (; i + LANES <= I; i += LANES) weight_inputs(dw + i, dy, x + i, B, I, O, write, 1);
    if (i == I) return;
    __m256i mask = mask_first(I - i);
    for (size_t c = 0; c < O; c++) weight_tail(dw + c * I + i, dy + c, x + i, B, I, O, write, mask);
}

AVX2 static void dense_bias(float *db, const float *dy, size_t B, size_t O, at_write write)
{
    assert(B > 0);
    for (size_t o = 0; o < O; o += LANES) {
        __m256i mask = mask_first(O - o < LANES ? O - o : LANES);
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
    __m256 acc[4][2];
    UNROLL for (size_t r = 0; r < R; r++) UNROLL for (size_t v = 0; v < V; v++) acc[r][v] =
        _mm256_setzero_ps();

    for (size_t c = 0; c < O; c++) {
        __m256 ws[2];
        UNROLL for (size_t v = 0; v < V; v++) ws[v] = _mm256_loadu_ps(w + c * I + v * LANES);
        UNROLL for (size_t r = 0; r < R; r++)
        {
            __m256 d = _mm256_broadcast_ss(dy + r * O + c);
            UNROLL for (size_t v = 0; v < V; v++) acc[r][v] = _mm256_fmadd_ps(d, ws[v], acc[r][v]);
        }
    }
    UNROLL for (size_t r = 0; r < R; r++) UNROLL for (size_t v = 0; v < V; v++)
        _mm256_storeu_ps(dx + r * I + v * LANES, acc[r][v]);
}

/* All inputs for R samples; the last inputs, fewer than a vector, are summed one by one. */
TILE void input_samples(float *dx, const float *dy, const float *w, size_t I, size_t O,
                        const size_t R)
{
    size_t i = 0;
    for (; i + 2 * LANES <= I; i += 2 * LANES) input_tile(dx + i, dy, w + i, I, O, R, 2);
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

AVX2 static void relu_forward(float *z, size_t n)
{
    const __m256 zero = _mm256_setzero_ps();
    size_t       i = 0;
    /* The second operand is what maxps returns for a NaN: it stays visible. */
    for (; i + LANES <= n; i += LANES)
        _mm256_storeu_ps(z + i, _mm256_max_ps(zero, _mm256_loadu_ps(z + i)));
    for (; i < n; i++) z[i] = z[i] < 0 ? 0.0f : z[i];
}

AVX2 static void relu_backward(float *dy, const float *y, size_t n)
{
    const __m256 zero = _mm256_setzero_ps();
    size_t       i = 0;
    for (; i + LANES <= n; i += LANES) {
        __m256 live = _mm256_cmp_ps(_mm256_loadu_ps(y + i), zero, _CMP_GT_OQ);
        _mm256_storeu_ps(dy + i, _mm256_and_ps(live, _mm256_loadu_ps(dy + i)));
    }
    for (; i < n; i++) dy[i] = y[i] > 0 ? dy[i] : 0.0f;
}

/* exp(v) for v <= 0. v = n ln 2 + r with |r| <= ln 2 / 2; the Taylor polynomial of degree 7 is then
 * off by less than r^8 / 8! = 5e-9, a tenth of the last bit. Below -87 the result stays at 1e-38. */
TILE __m256 exp_negative(__m256 v)
{
    v = _mm256_max_ps(_mm256_set1_ps(-87.0f), v); /* a NaN in v survives as second operand */
    __m256 n = _mm256_round_ps(_mm256_mul_ps(v, _mm256_set1_ps(0x1.715476p+0f)),
                               _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0x1.62e400p-1f), v); /* ln 2, upper bits */
    r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0x1.7f7d1cp-20f), r);       /* and the rest */
    __m256 sum = _mm256_set1_ps(1.0f / 5040);
    sum = _mm256_fmadd_ps(sum, r, _mm256_set1_ps(1.0f / 720));
    sum = _mm256_fmadd_ps(sum, r, _mm256_set1_ps(1.0f / 120));
    sum = _mm256_fmadd_ps(sum, r, _mm256_set1_ps(1.0f / 24));
    sum = _mm256_fmadd_ps(sum, r, _mm256_set1_ps(1.0f / 6));
    sum = _mm256_fmadd_ps(sum, r, _mm256_set1_ps(0.5f));
    sum = _mm256_fmadd_ps(sum, r, _mm256_set1_ps(1.0f));
    sum = _mm256_fmadd_ps(sum, r, _mm256_set1_ps(1.0f));
    __m256i power = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23); /* 2^n: into the exponent */
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(sum), power));
}

TILE float max_lanes(__m256 v)
{
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/* Logits from c on, minus infinity behind the last one. */
TILE __m256 load_logits(const float *z, size_t c, size_t C)
{
    if (c + LANES <= C) return _mm256_loadu_ps(z + c);
    __m256i mask = mask_first(C - c);
    return _mm256_blendv_ps(_mm256_set1_ps(-INFINITY), _mm256_maskload_ps(z + c, mask),
                            _mm256_castsi256_ps(mask));
}

TILE void store_logits(float *z, __m256 v, size_t c, size_t C)
{
    if (c + LANES <= C)
        _mm256_storeu_ps(z + c, v);
    else
        _mm256_maskstore_ps(z + c, mask_first(C - c), v);
}

/* z <- softmax - one at the label; returns the sum of exponentials, *margin += z[label] - max. */
TILE float softmax_row(float *z, uint32_t label, size_t C, double *margin)
{
    __m256 top = _mm256_set1_ps(-INFINITY), sum = _mm256_setzero_ps();
    for (size_t c = 0; c < C; c += LANES) top = _mm256_max_ps(top, load_logits(z, c, C));
    float largest = max_lanes(top);
    *margin += z[label] - largest;
    for (size_t c = 0; c < C; c += LANES) {
        __m256 e = exp_negative(_mm256_sub_ps(load_logits(z, c, C), _mm256_set1_ps(largest)));
        if (c + LANES > C) e = _mm256_and_ps(e, _mm256_castsi256_ps(mask_first(C - c)));
        sum = _mm256_add_ps(sum, e);
        store_logits(z, e, c, C);
    }
    float  total = sum_lanes(sum);
    __m256 scale = _mm256_set1_ps(1.0f / total);
    for (size_t c = 0; c < C; c += LANES)
        store_logits(z, _mm256_mul_ps(load_logits(z, c, C), scale), c, C);
    z[label] -= 1.0f;
    return total;
}

/* log(a) + log(b) = log(a b): the sums of many rows share one logarithm. */
AVX2 static double softmax_loss(float *z, const uint32_t *labels, size_t B, size_t C)
{
    double loss = 0, margin = 0, product = 1;
    for (size_t n = 0; n < B; n++) {
        assert(labels[n] < C);
        product *= softmax_row(z + n * C, labels[n], C, &margin);
        if (!(product < PRODUCT_MAX)) {
            loss += log(product);
            product = 1;
        }
    }
    return loss + log(product) - margin;
}

const at_kernels at_kernels_avx2 = {
    .name = "avx2",
    .dense_forward = dense_forward,
    .dense_weight = dense_weight,
    .dense_bias = dense_bias,
    .dense_input = dense_input,
    .relu_forward = relu_forward,
    .relu_backward = relu_backward,
    .softmax_loss = softmax_loss,
};

#endif
