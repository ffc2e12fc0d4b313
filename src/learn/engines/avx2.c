/* Kernels with AVX2 and FMA intrinsics: dense layers with few outputs or few samples, ReLU,
 * softmax. A general matrix product first packs its operands, which pays off when they are used
 * often; these kernels read x and w in place.
 *
 * Products work on small tiles of the result that stay in registers:
 *     forward   2 samples x 5 outputs, each a vector of 8 partial sums along the inputs
 *     weight    5 outputs x 16 inputs, summed over the samples, then stored or added once
 *     input     4 samples x 16 inputs, summed over the outputs
 * Eight to ten accumulators hide the latency of FMA (4 cycles, two per cycle) and leave registers
 * for the operands. */
#include "learn/engines/avx2.h"

#if defined(__x86_64__)

#include <assert.h>
#include <math.h>
#include <stdbool.h>

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

/* A load that is executed once. Otherwise the compiler folds it into every instruction that uses
 * the vector, and the loads take longer than the arithmetic. */
TILE __m256 load_once(const float *from)
{
    __m256 v = _mm256_loadu_ps(from);
    __asm__("" : "+x"(v));
    return v;
}

/* The lane sums of four vectors. */
TILE __m128 sum_lanes_4(__m256 a, __m256 b, __m256 c, __m256 d)
{
    __m256 sums = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
    return _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1));
}

/* y (C) = start (C) + the lane sums of C vectors; four at a time, because one by one they would
 * take a tenth of the time of the product. */
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

/* Stores a vector of a finished sum. Adding zero turns a negative zero into zero, as adding to a
 * zeroed vector does. */
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

/* dw (C, V vectors) from transpose(dy (B,C)) * x (B, V vectors); rows of x are `stride` apart. Only
 * the first n columns of dw are written. */
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

/* All outputs for V vectors of inputs, whose columns of x stay in the cache. */
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

/* Columns of x, WIDTH at a time, one block after the other, the last one padded with zeros. Rows of
 * x are far apart, often a multiple of 4096 bytes, and would evict each other from the cache. */
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

/* All inputs for C outputs, along the rows of dw, with x from the packed blocks. */
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

/* ---- ReLU and softmax ------------------------------------------------------------------------ */

/* Products of sums are kept below this before their logarithm is taken: the next factor is at most
 * the number of classes, far from overflow. */
static const double PRODUCT_MAX = 1e200;

AVX2 static void relu_forward(float *z, size_t n)
{
    const __m256 zero = _mm256_setzero_ps();
    size_t       i = 0;
    /* For a NaN maxps returns the second operand, so a NaN stays visible. */
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
 * off by less than r^8 / 8! = 5e-9, a tenth of the last bit. Below -87 the result is 1e-38. */
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

/* Logits c .. c+7, minus infinity after the last one. */
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

/* The same for 8 to 16 classes, in registers: two overlapping vectors cover the row, so only the
 * second one's share of the sum is masked. */
TILE float softmax_row_short(float *z, uint32_t label, size_t C, double *margin, __m256i fresh)
{
    assert(C >= LANES);
    assert(C <= 2 * LANES);
    __m256 a = _mm256_loadu_ps(z), b = _mm256_loadu_ps(z + C - LANES);
    float  largest = max_lanes(_mm256_max_ps(a, b));
    *margin += z[label] - largest;
    a = exp_negative(_mm256_sub_ps(a, _mm256_set1_ps(largest)));
    b = exp_negative(_mm256_sub_ps(b, _mm256_set1_ps(largest)));
    float  total = sum_lanes(_mm256_add_ps(a, _mm256_and_ps(b, _mm256_castsi256_ps(fresh))));
    __m256 scale = _mm256_set1_ps(1.0f / total);
    _mm256_storeu_ps(z, _mm256_mul_ps(a, scale));
    _mm256_storeu_ps(z + C - LANES, _mm256_mul_ps(b, scale));
    z[label] -= 1.0f;
    return total;
}

/* log(a) + log(b) = log(a b): the sums of many rows share one logarithm. */
AVX2 static double softmax_loss(float *z, const uint32_t *labels, size_t B, size_t C)
{
    double  loss = 0, margin = 0, product = 1;
    bool    is_short = C >= LANES && C <= 2 * LANES;
    __m256i fresh = is_short
                        ? _mm256_xor_si256(mask_first(2 * LANES - C), _mm256_set1_epi32(-1))
                        : _mm256_setzero_si256(); /* lanes that are only in the second vector */
    for (size_t n = 0; n < B; n++) {
        assert(labels[n] < C);
        product *= is_short ? softmax_row_short(z + n * C, labels[n], C, &margin, fresh)
                            : softmax_row(z + n * C, labels[n], C, &margin);
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
