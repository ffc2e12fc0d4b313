/* The weight gradient of a convolution on plain images of few channels, with AVX2: oneDNN has one
 * only for exactly three channels. x includes its padding, so every window is inside of it:
 *     dw[o][i][h][w] = sum over n, v, u of dy[n][o][v][u] * x[n][i][v * stride + h][u * stride + w]
 * A tile of 2 blocks of outputs x up to 6 columns of a row of the window is summed in registers
 * over all positions of all samples: each position costs two loads, and one broadcast per
 * column. */
#include "learn/engines/avx2_conv.h"

#include <assert.h>
#include <string.h>

#if defined(__x86_64__)

#include "learn/engines/avx2.h"

enum { COLUMNS = 6 };

/* What one tile reads: x at its first column, dy at its first block. */
typedef struct tile {
    const at_avx2_conv *conv;
    const float        *x, *dy;
    size_t              block_step; /* floats from one block of dy to the next */
} tile;

/* Adds one row of positions. */
TILE void sum_row(__m256 *acc, const float *x, const float *dy, const tile *t, const size_t blocks,
                  const size_t columns)
{
    size_t width = t->conv->spec->out.width, stride = t->conv->spec->window.stride;
    for (size_t u = 0; u < width; u++, x += stride, dy += LANES) {
        __m256 d[2];
        EACH(b, blocks) d[b] = _mm256_loadu_ps(dy + b * t->block_step);
        EACH(w, columns)
        {
            __m256 v = _mm256_broadcast_ss(x + w);
            EACH(b, blocks) acc[b * columns + w] = _mm256_fmadd_ps(d[b], v, acc[b * columns + w]);
        }
    }
}

/* to[b][w] = the sums over all samples and positions. */
TILE void sum_all(float *to, const tile *t, const size_t blocks, const size_t columns)
{
    const at_avx2_conv *conv = t->conv;
    size_t in = at_activation_size(&conv->padded), out = at_activation_size(&conv->spec->out);
    __m256 acc[2 * COLUMNS];
    EACH(b, blocks) EACH(w, columns) acc[b * columns + w] = _mm256_setzero_ps();
    for (size_t n = 0; n < conv->rows; n++)
        for (size_t v = 0; v < conv->spec->out.height; v++)
            sum_row(acc, t->x + n * in + v * conv->spec->window.stride * conv->padded.width,
                    t->dy + n * out + v * conv->spec->out.width * LANES, t, blocks, columns);
    EACH(b, blocks)
    EACH(w, columns) _mm256_storeu_ps(to + (b * columns + w) * LANES, acc[b * columns + w]);
}

/* One function per number of columns, so that everything stays in registers. */
TILE void sum_columns(float *to, const tile *t, const size_t blocks, size_t columns)
{
    switch (columns) {
    case 1: sum_all(to, t, blocks, 1); return;
    case 2: sum_all(to, t, blocks, 2); return;
    case 3: sum_all(to, t, blocks, 3); return;
    case 4: sum_all(to, t, blocks, 4); return;
    case 5: sum_all(to, t, blocks, 5); return;
    default:
        assert(columns == COLUMNS);
        sum_all(to, t, blocks, COLUMNS);
        return;
    }
}

AVX2 static void sum_one(float *to, const tile *t, size_t columns)
{
    sum_columns(to, t, 1, columns);
}

AVX2 static void sum_two(float *to, const tile *t, size_t columns)
{
    sum_columns(to, t, 2, columns);
}

/* A row of the window, at most COLUMNS at a time, for one or two blocks of outputs from o on. */
static void weight_row(const at_avx2_conv *conv, float *dw, const tile *t, uint32_t o, uint32_t i,
                       uint32_t h, uint32_t blocks)
{
    uint32_t width = conv->spec->window.width;
    for (uint32_t w = 0; w < width; w += COLUMNS) {
        float    sums[2 * COLUMNS * LANES];
        uint32_t columns = width - w < COLUMNS ? width - w : COLUMNS;
        tile     at = *t;
        at.x += w;
        (blocks == 2 ? sum_two : sum_one)(sums, &at, columns);
        for (uint32_t b = 0; b < blocks; b++)
            for (uint32_t k = 0; k < columns; k++)
                memcpy(dw + at_weight_layout_offset(conv->layout, o + b * LANES, i, h, w + k),
                       sums + (b * columns + k) * LANES, LANES * sizeof *sums);
    }
}

static void weight_gradient(const at_avx2_conv *conv, float *dw, const float *dy, const float *x)
{
    const at_conv_spec *spec = conv->spec;
    size_t out = at_activation_area(&spec->out), in = at_activation_area(&conv->padded);
    for (uint32_t o = 0; o < spec->out.channels; o += 2 * LANES) {
        uint32_t blocks = spec->out.channels - o > LANES ? 2 : 1;
        for (uint32_t i = 0; i < spec->in.channels; i++)
            for (uint32_t h = 0; h < spec->window.height; h++) {
                tile t = {.conv = conv,
                          .x = x + i * in + h * conv->padded.width,
                          .dy = dy + o * out,
                          .block_step = out * LANES};
                weight_row(conv, dw, &t, o, i, h, blocks);
            }
    }
}

#else

enum { LANES = 8 };

static void weight_gradient(const at_avx2_conv *conv, float *dw, const float *dy, const float *x)
{
    (void)conv, (void)dw, (void)dy, (void)x;
    assert(!"only AVX2 has blocks of 8");
}

#endif

/* db: the sums of dy over samples and positions. */
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

bool at_avx2_conv_supports(const at_conv_spec *spec, const at_weight_layout *layout)
{
    return spec->in.block == 1 && spec->out.block == LANES && layout->inner_count == 1 &&
           layout->inner_dim[0] == 0 && layout->inner_size[0] == LANES;
}

void at_avx2_conv_weight(const at_avx2_conv *conv, float *dw, float *db, const float *dy,
                         const float *x)
{
    assert(at_avx2_conv_supports(conv->spec, conv->layout));
    assert(conv->rows > 0);
    weight_gradient(conv, dw, dy, x);
    if (db) sum_bias(conv, db, dy);
}
