/* The weight gradient of a convolution on plain pictures of few channels, for AVX2: oneDNN has one
 * for exactly three channels only. x brings its border of zeros along, so every tap of the window
 * is inside of it everywhere:
 *     dw[o][i][h][w] = sum over n, v, u of dy[n][o][v][u] * x[n][i][v * stride + h][u * stride + w]
 * A tile of 2 blocks of outputs x up to 6 taps of a row of the window stays in registers while all
 * places of all samples pass by: each place costs two loads, and one broadcast a tap. */
#include "learn/engines/avx2_conv.h"

#include <assert.h>
#include <string.h>

#if defined(__x86_64__)

#include "learn/engines/avx2.h"

enum { TAPS = 6 };

/* Where one tile reads: x at its first tap, dy at its first block. */
typedef struct tile {
    const at_avx2_conv *conv;
    const float        *x, *dy;
    size_t              block_step; /* floats from one block of dy to the next */
} tile;

/* The sums over one row of places. */
TILE void sum_row(__m256 *acc, const float *x, const float *dy, const tile *t, const size_t blocks,
                  const size_t taps)
{
    size_t width = t->conv->spec->out.width, stride = t->conv->spec->window.stride;
    for (size_t u = 0; u < width; u++, x += stride, dy += LANES) {
        __m256 d[2];
        EACH(b, blocks) d[b] = _mm256_loadu_ps(dy + b * t->block_step);
        EACH(w, taps)
        {
            __m256 v = _mm256_broadcast_ss(x + w);
            EACH(b, blocks) acc[b * taps + w] = _mm256_fmadd_ps(d[b], v, acc[b * taps + w]);
        }
    }
}

/* to[b][w] = the sums over all samples and places, for `blocks` blocks and `taps` taps. */
TILE void sum_all(float *to, const tile *t, const size_t blocks, const size_t taps)
{
    const at_avx2_conv *conv = t->conv;
    size_t in = at_activation_size(&conv->wide), out = at_activation_size(&conv->spec->out);
    __m256 acc[2 * TAPS];
    EACH(b, blocks) EACH(w, taps) acc[b * taps + w] = _mm256_setzero_ps();
    for (size_t n = 0; n < conv->rows; n++)
        for (size_t v = 0; v < conv->spec->out.height; v++)
            sum_row(acc, t->x + n * in + v * conv->spec->window.stride * conv->wide.width,
                    t->dy + n * out + v * conv->spec->out.width * LANES, t, blocks, taps);
    EACH(b, blocks)
    EACH(w, taps) _mm256_storeu_ps(to + (b * taps + w) * LANES, acc[b * taps + w]);
}

/* One function for each number of taps, so that everything stays in registers. */
TILE void sum_taps(float *to, const tile *t, const size_t blocks, size_t taps)
{
    switch (taps) {
    case 1: sum_all(to, t, blocks, 1); return;
    case 2: sum_all(to, t, blocks, 2); return;
    case 3: sum_all(to, t, blocks, 3); return;
    case 4: sum_all(to, t, blocks, 4); return;
    case 5: sum_all(to, t, blocks, 5); return;
    default:
        assert(taps == TAPS);
        sum_all(to, t, blocks, TAPS);
        return;
    }
}

AVX2 static void sum_one(float *to, const tile *t, size_t taps)
{
    sum_taps(to, t, 1, taps);
}

AVX2 static void sum_two(float *to, const tile *t, size_t taps)
{
    sum_taps(to, t, 2, taps);
}

/* A row of the window, in runs of at most TAPS taps, for one or two blocks of outputs from o. */
static void weigh_row(const at_avx2_conv *conv, float *dw, const tile *t, uint32_t o, uint32_t i,
                      uint32_t h, uint32_t blocks)
{
    uint32_t width = conv->spec->window.width;
    for (uint32_t w = 0; w < width; w += TAPS) {
        float    sums[2 * TAPS * LANES];
        uint32_t taps = width - w < TAPS ? width - w : TAPS;
        tile     at = *t;
        at.x += w;
        (blocks == 2 ? sum_two : sum_one)(sums, &at, taps);
        for (uint32_t b = 0; b < blocks; b++)
            for (uint32_t k = 0; k < taps; k++)
                memcpy(dw + at_conv_form_offset(conv->form, o + b * LANES, i, h, w + k),
                       sums + (b * taps + k) * LANES, LANES * sizeof *sums);
    }
}

static void weigh(const at_avx2_conv *conv, float *dw, const float *dy, const float *x)
{
    const at_conv_spec *spec = conv->spec;
    size_t              out = at_activation_area(&spec->out), in = at_activation_area(&conv->wide);
    for (uint32_t o = 0; o < spec->out.channels; o += 2 * LANES) {
        uint32_t blocks = spec->out.channels - o > LANES ? 2 : 1;
        for (uint32_t i = 0; i < spec->in.channels; i++)
            for (uint32_t h = 0; h < spec->window.height; h++) {
                tile t = {.conv = conv,
                          .x = x + i * in + h * conv->wide.width,
                          .dy = dy + o * out,
                          .block_step = out * LANES};
                weigh_row(conv, dw, &t, o, i, h, blocks);
            }
    }
}

#else

enum { LANES = 8 };

static void weigh(const at_avx2_conv *conv, float *dw, const float *dy, const float *x)
{
    (void)conv, (void)dw, (void)dy, (void)x;
    assert(!"only AVX2 has blocks of 8");
}

#endif

/* db: the sums of dy over samples and places. */
static void sum_bias(const at_avx2_conv *conv, float *db, const float *dy)
{
    const at_activation *out = &conv->spec->out;
    for (uint32_t o = 0; o < out->channels; o++) db[o] = 0;
    for (size_t n = 0; n < conv->rows; n++, dy += at_activation_size(out))
        for (size_t o = 0; o < out->channels; o += LANES) {
            const float *d = dy + o * at_activation_area(out);
            float        sum[LANES] = {0};
            for (size_t i = 0; i < at_activation_area(out); i++)
                for (size_t j = 0; j < LANES; j++) sum[j] += d[i * LANES + j];
            for (size_t j = 0; j < LANES && o + j < out->channels; j++) db[o + j] += sum[j];
        }
}

bool at_avx2_conv_can(const at_conv_spec *spec, const at_conv_form *form)
{
    return spec->in.block == 1 && spec->out.block == LANES && form->inner_count == 1 &&
           form->inner_dim[0] == 0 && form->inner_size[0] == LANES;
}

void at_avx2_conv_weight(const at_avx2_conv *conv, float *dw, float *db, const float *dy,
                         const float *x)
{
    assert(at_avx2_conv_can(conv->spec, conv->form));
    assert(conv->rows > 0);
    weigh(conv, dw, dy, x);
    if (db) sum_bias(conv, db, dy);
}
