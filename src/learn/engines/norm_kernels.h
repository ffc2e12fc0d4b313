/* norm_kernels.h - the loops that batch norm and group norm share.
 *
 * A strip is a contiguous part of an activation: a block of channels, one plain channel, or 16
 * features of a flat vector. In each sample it is one run of floats, and lane l of 16 holds channel
 * l % channels along the whole run, so one loop serves every layout. Values per channel (mean,
 * scale, ..) are copied to the lanes once per strip.
 *
 * Sums are in float within a piece of a strip that fits the L1 cache and then in double, always in
 * the same order, so that no precision is lost however long the strip is.
 */
#ifndef AT_LEARN_ENGINES_NORM_KERNELS_H
#define AT_LEARN_ENGINES_NORM_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

#include "learn/engines/activation.h"
#include "learn/engines/kernels.h"

enum { AT_NORM_LANES = 16 };

typedef struct at_norm_strip {
    size_t first;    /* its first channel */
    size_t valid;    /* channels without padding of the last block */
    size_t channels; /* lanes after which channels repeat: 1, 8 or 16 */
    size_t at, run;  /* floats: position in a sample, and length */
    size_t samples, step;
} at_norm_strip;

/* The number of strips of an activation, and one of them, over `samples` samples. */
size_t        at_norm_strips(const at_activation *shape);
at_norm_strip at_norm_strip_of(const at_activation *shape, size_t index, size_t samples);

/* Values per channel in all samples of the strip. */
size_t at_norm_count(const at_norm_strip *strip);

/* lanes[l] = per_channel[l % channels], 0 for padding. */
void at_norm_spread(const at_norm_strip *strip, float *lanes, const float *per_channel);

/* The constants of the loops below, by lane. */
typedef struct at_norm_lanes {
    _Alignas(64) float mean[AT_NORM_LANES];
    float scale[AT_NORM_LANES];  /* gamma over the deviation */
    float shift[AT_NORM_LANES];  /* beta */
    float offset[AT_NORM_LANES]; /* backward: see at_norm_backward */
    float slope[AT_NORM_LANES];  /* the same */
    float floor;                 /* of y: 0 with ReLU, otherwise -infinity */
    float x_floor;               /* the same for x, if backward masks the ReLU before the layer */
} at_norm_lanes;

/* Mean and sum of squared deviations of the strip's channels. */
void at_norm_moments(const at_norm_strip *strip, const float *x, double mean[AT_NORM_LANES],
                     double squares[AT_NORM_LANES]);

/* y = max((x - mean) * scale + shift, floor) */
void at_norm_forward(const at_norm_strip *strip, const at_norm_lanes *lanes, float *y,
                     const float *x);

/* The sums of dy and of dy * (x - mean) where y is above the floor. y is recomputed from x, to the
 * same bits, because reading it would take longer. */
void at_norm_sums(const at_norm_strip *strip, const at_norm_lanes *lanes, const float *dy,
                  const float *x, double sum[AT_NORM_LANES], double product[AT_NORM_LANES]);

/* dx = dy * scale - (offset + (x - mean) * slope), with dy = 0 where y is not above floor, and dx =
 * 0 where x is not above x_floor; written or added. dx may be dy. */
void at_norm_backward(const at_norm_strip *strip, const at_norm_lanes *lanes, float *dx,
                      const float *dy, const float *x, at_write write);

/* to <- value or to + value, never a negative zero. */
void at_norm_put(float *to, double value, at_write write);

#endif
