#include "learn/engines/norm_kernels.h"

#include <assert.h>
#include <string.h>

#include "learn/engines/vectorize.h"

/* Floats of a piece: at most 128 additions per lane, and two pieces fit the L1 cache. */
enum { LANES = AT_NORM_LANES, PIECE = 128 * LANES };

/* Flat vectors have one value per channel, so 16 of them make a strip. */
static size_t strip_channels(const at_activation *shape)
{
    assert(shape->block == 1 || shape->block == 8 || shape->block == LANES);
    return shape->block == 1 && at_activation_area(shape) == 1 ? (size_t)LANES : shape->block;
}

size_t at_norm_strips(const at_activation *shape)
{
    size_t channels = strip_channels(shape);
    return (shape->channels + channels - 1) / channels;
}

at_norm_strip at_norm_strip_of(const at_activation *shape, size_t index, size_t samples)
{
    size_t channels = strip_channels(shape), first = index * channels, run, valid;
    assert(first < shape->channels);
    assert(samples > 0);
    valid = shape->channels - first < channels ? shape->channels - first : channels;
    run = shape->block == 1 ? valid * at_activation_area(shape)
                            : channels * at_activation_area(shape);
    return (at_norm_strip){.first = first,
                           .valid = valid,
                           .channels = channels,
                           .at = first * at_activation_area(shape),
                           .run = run,
                           .samples = samples,
                           .step = at_activation_size(shape)};
}

/* The channel of a lane: channels are a power of two. */
static size_t channel_of(const at_norm_strip *strip, size_t lane)
{
    return lane & (strip->channels - 1);
}

/* Values per channel in `floats` floats of a run. */
static size_t values_in(const at_norm_strip *strip, size_t floats)
{
    return (floats + strip->channels - 1) / strip->channels;
}

size_t at_norm_count(const at_norm_strip *strip)
{
    return strip->samples * values_in(strip, strip->run);
}

void at_norm_spread(const at_norm_strip *strip, float *lanes, const float *per_channel)
{
    assert(strip->valid <= strip->channels);
    for (size_t l = 0; l < LANES; l++) {
        size_t c = channel_of(strip, l);
        lanes[l] = c < strip->valid ? per_channel[c] : 0.0f;
    }
}

/* A part of a strip: `size` floats from `at` on in each of `runs` samples. */
typedef struct piece {
    size_t at, size, runs, step;
} piece;

/* Advances to the next piece: short runs of several samples, or a part of a long one. False after
 * the last. */
static bool next_piece(const at_norm_strip *strip, piece *p, size_t *sample, size_t *from)
{
    *from += p->size; /* 0 at the start */
    if (*from == strip->run) {
        *sample += p->runs;
        *from = 0;
    }
    if (*sample == strip->samples) return false;
    size_t left = strip->run - *from, samples = strip->samples - *sample;
    size_t runs = strip->run < PIECE ? PIECE / strip->run : 1;
    p->at = *sample * strip->step + strip->at + *from;
    p->size = left < PIECE ? left : PIECE;
    p->runs = runs < samples ? runs : samples;
    p->step = strip->step;
    assert(p->size > 0);
    return true;
}

/* Half a row of lanes. Compilers split it for processors with shorter vectors. */
typedef float   half __attribute__((vector_size(32)));
typedef int32_t half_mask __attribute__((vector_size(32)));
typedef float   half_at __attribute__((vector_size(32), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

/* Adds a row of deviations from `origin` and of their squares. */
INLINE void moments_row(half sum[2], half squares[2], const half origin[2], const float *x)
{
    for (size_t h = 0; h < 2; h++) {
        half d = ((const half_at *)x)[h] - origin[h];
        sum[h] += d;
        squares[h] += d * d;
    }
}

AT_VECTORIZED static void moments_of(float *sum, float *squares, const float *origin,
                                     const float *x, const piece *p)
{
    half   s[2] = {{0}}, q[2] = {{0}}, o[2];
    half   s2[2] = {{0}}, q2[2] = {{0}}; /* of every other row: a shorter dependency chain */
    size_t rest = p->size % LANES, whole = p->size - rest, i;
    memcpy(o, origin, sizeof o);
    for (size_t r = 0; r < p->runs; r++, x += p->step) {
        for (i = 0; i + 2 * LANES <= whole; i += 2 * LANES) {
            moments_row(s, q, o, x + i);
            moments_row(s2, q2, o, x + i + LANES);
        }
        if (i < whole) moments_row(s, q, o, x + i);
        if (rest) {
            float row[LANES];
            memcpy(row, origin, sizeof row);
            memcpy(row, x + whole, rest * sizeof *row);
            moments_row(s2, q2, o, row);
        }
    }
    for (size_t h = 0; h < 2; h++) {
        s[h] += s2[h];
        q[h] += q2[h];
    }
    memcpy(sum, s, sizeof s);
    memcpy(squares, q, sizeof q);
}

/* Adds up the lanes of each channel. */
static void gather(const at_norm_strip *strip, double *channel, const float *lanes)
{
    for (size_t c = 0; c < strip->channels; c++) channel[c] = lanes[c];
    for (size_t l = strip->channels; l < LANES; l++) channel[channel_of(strip, l)] += lanes[l];
}

/* Chan, Golub and LeVeque 1979: combines the moments of n values with those of m more, given as
 * sums of deviations from `origin`. */
AT_VECTORIZED static void join(double *restrict mean, double *restrict squares, double n,
                               const float *restrict origin, const double *restrict sum,
                               const double *restrict sum_squares, double m)
{
    double share = m / (n + m), cross = n * share, over = 1.0 / m;
    for (size_t c = 0; c < LANES; c++) {
        double part = sum[c] * over, delta = origin[c] + part - mean[c];
        mean[c] += delta * share;
        squares[c] += (sum_squares[c] - sum[c] * part) + delta * delta * cross;
    }
}

void at_norm_moments(const at_norm_strip *strip, const float *x, double mean[AT_NORM_LANES],
                     double squares[AT_NORM_LANES])
{
    piece  p = {0};
    size_t sample = 0, from = 0;
    double n = 0;
    /* Deviations are taken from the mean so far, which keeps their squares small; at first from the
     * first value. */
    for (size_t c = 0; c < LANES; c++) mean[c] = squares[c] = 0;
    for (size_t c = 0; c < strip->valid; c++) mean[c] = x[strip->at + c];
    while (next_piece(strip, &p, &sample, &from)) {
        float  origin[LANES], s[LANES], q[LANES];
        double sum[LANES] = {0}, sum_squares[LANES] = {0};
        double m = (double)(p.runs * values_in(strip, p.size));
        for (size_t l = 0; l < LANES; l++) origin[l] = (float)mean[channel_of(strip, l)];
        moments_of(s, q, origin, x + p.at, &p);
        gather(strip, sum, s);
        gather(strip, sum_squares, q);
        join(mean, squares, n, origin, sum, sum_squares, m);
        n += m;
    }
    assert(n == (double)at_norm_count(strip));
    for (size_t c = 0; c < LANES; c++)
        if (squares[c] < 0) squares[c] = 0; /* rounding */
}

/* The constants of at_norm_lanes in registers. */
typedef struct constants {
    half mean[2], scale[2], shift[2], offset[2], slope[2], floor, x_floor;
} constants;

/* Writes to `k` instead of returning it: each clone passes vectors differently. */
INLINE void load_constants(constants *k, const at_norm_lanes *lanes)
{
    memcpy(k->mean, lanes->mean, sizeof k->mean);
    memcpy(k->scale, lanes->scale, sizeof k->scale);
    memcpy(k->shift, lanes->shift, sizeof k->shift);
    memcpy(k->offset, lanes->offset, sizeof k->offset);
    memcpy(k->slope, lanes->slope, sizeof k->slope);
    for (size_t l = 0; l < LANES / 2; l++) {
        k->floor[l] = lanes->floor;
        k->x_floor[l] = lanes->x_floor;
    }
}

INLINE void forward_row(const constants *k, float *y, const float *x)
{
    for (size_t h = 0; h < 2; h++) {
        half      z = (((const half_at *)x)[h] - k->mean[h]) * k->scale[h] + k->shift[h];
        half_mask above = z > k->floor;
        ((half_at *)y)[h] = (half)(((half_mask)z & above) | ((half_mask)k->floor & ~above));
    }
}

AT_VECTORIZED static void forward_runs(const at_norm_lanes *lanes, float *y, const float *x,
                                       const at_norm_strip *strip)
{
    constants k;
    size_t    rest = strip->run % LANES, whole = strip->run - rest;
    load_constants(&k, lanes);
    for (size_t n = 0; n < strip->samples; n++, x += strip->step, y += strip->step) {
        for (size_t i = 0; i < whole; i += LANES) forward_row(&k, y + i, x + i);
        if (rest) {
            float row[LANES] = {0};
            memcpy(row, x + whole, rest * sizeof *row);
            forward_row(&k, row, row);
            memcpy(y + whole, row, rest * sizeof *row);
        }
    }
}

void at_norm_forward(const at_norm_strip *strip, const at_norm_lanes *lanes, float *y,
                     const float *x)
{
    assert(lanes->floor <= 0);
    forward_runs(lanes, y + strip->at, x + strip->at, strip);
}

/* The deviation from the mean, and dy masked by the ReLU. */
INLINE void deviation_and_dy(const constants *k, size_t h, half *deviation, half *d,
                             const float *dy, const float *x)
{
    *deviation = ((const half_at *)x)[h] - k->mean[h];
    half_mask above = *deviation * k->scale[h] + k->shift[h] > k->floor;
    *d = (half)((half_mask)((const half_at *)dy)[h] & above);
}

INLINE void sums_row(const constants *k, half sum[2], half product[2], const float *dy,
                     const float *x)
{
    for (size_t h = 0; h < 2; h++) {
        half deviation, d;
        deviation_and_dy(k, h, &deviation, &d, dy, x);
        sum[h] += d;
        product[h] += d * deviation;
    }
}

AT_VECTORIZED static void sums_of(float *sum, float *product, const at_norm_lanes *lanes,
                                  const float *dy, const float *x, const piece *p)
{
    constants k;
    half      s[2] = {{0}}, q[2] = {{0}};
    size_t    rest = p->size % LANES, whole = p->size - rest;
    load_constants(&k, lanes);
    for (size_t r = 0; r < p->runs; r++, x += p->step, dy += p->step) {
        for (size_t i = 0; i < whole; i += LANES) sums_row(&k, s, q, dy + i, x + i);
        if (rest) {
            float x_row[LANES] = {0}, dy_row[LANES] = {0};
            memcpy(x_row, x + whole, rest * sizeof *x_row);
            memcpy(dy_row, dy + whole, rest * sizeof *dy_row);
            sums_row(&k, s, q, dy_row, x_row);
        }
    }
    memcpy(sum, s, sizeof s);
    memcpy(product, q, sizeof q);
}

void at_norm_sums(const at_norm_strip *strip, const at_norm_lanes *lanes, const float *dy,
                  const float *x, double sum[AT_NORM_LANES], double product[AT_NORM_LANES])
{
    piece  p = {0};
    size_t sample = 0, from = 0;
    for (size_t c = 0; c < LANES; c++) sum[c] = product[c] = 0;
    while (next_piece(strip, &p, &sample, &from)) {
        float  s[LANES], q[LANES];
        double channel[LANES];
        sums_of(s, q, lanes, dy + p.at, x + p.at, &p);
        gather(strip, channel, s);
        for (size_t c = 0; c < strip->channels; c++) sum[c] += channel[c];
        gather(strip, channel, q);
        for (size_t c = 0; c < strip->channels; c++) product[c] += channel[c];
    }
}

INLINE void backward_row(const constants *k, float *dx, const float *dy, const float *x, bool add)
{
    for (size_t h = 0; h < 2; h++) {
        half deviation, d;
        deviation_and_dy(k, h, &deviation, &d, dy, x);
        d = d * k->scale[h] - (k->offset[h] + deviation * k->slope[h]);
        d = (half)((half_mask)d & (((const half_at *)x)[h] > k->x_floor));
        if (add) d += ((half_at *)dx)[h];
        ((half_at *)dx)[h] = d;
    }
}

INLINE void backward_runs(const at_norm_lanes *lanes, float *dx, const float *dy, const float *x,
                          const at_norm_strip *strip, bool add)
{
    constants k;
    size_t    rest = strip->run % LANES, whole = strip->run - rest, step = strip->step;
    load_constants(&k, lanes);
    for (size_t n = 0; n < strip->samples; n++, x += step, dy += step, dx += step) {
        for (size_t i = 0; i < whole; i += LANES) backward_row(&k, dx + i, dy + i, x + i, add);
        if (rest) {
            float row[3][LANES] = {{0}};
            memcpy(row[0], dx + whole, rest * sizeof **row);
            memcpy(row[1], dy + whole, rest * sizeof **row);
            memcpy(row[2], x + whole, rest * sizeof **row);
            backward_row(&k, row[0], row[1], row[2], add);
            memcpy(dx + whole, row[0], rest * sizeof **row);
        }
    }
}

AT_VECTORIZED static void backward_set(const at_norm_lanes *lanes, float *dx, const float *dy,
                                       const float *x, const at_norm_strip *strip)
{
    backward_runs(lanes, dx, dy, x, strip, false);
}

AT_VECTORIZED static void backward_add(const at_norm_lanes *lanes, float *dx, const float *dy,
                                       const float *x, const at_norm_strip *strip)
{
    backward_runs(lanes, dx, dy, x, strip, true);
}

void at_norm_backward(const at_norm_strip *strip, const at_norm_lanes *lanes, float *dx,
                      const float *dy, const float *x, at_write write)
{
    assert(lanes->floor <= 0);
    assert(lanes->x_floor <= 0);
    (write == AT_WRITE_ADD ? backward_add : backward_set)(lanes, dx + strip->at, dy + strip->at,
                                                          x + strip->at, strip);
}

void at_norm_put(float *to, double value, at_write write)
{
    *to = (write == AT_WRITE_ADD ? *to : 0.0f) + (float)value;
}
