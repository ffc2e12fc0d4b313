/* norm_kernels.h - the loops that batch norm and group norm share.
 *
 * A strip is what of a picture lies side by side: a block of channels, one channel of a plain
 * picture, or 16 features of a line of numbers. In each of the samples it is one run of floats, and
 * lane l of 16 holds channel l % channels all along the run, so one loop serves every form. Numbers
 * per channel (mean, scale, ..) are spread over the lanes once per strip.
 *
 * Sums run in float for a piece of a strip that stays in the first cache and then go into double,
 * always in the same order: nothing of a float's precision is lost however many places there are.
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
    size_t valid;    /* channels that there are; the rest of a block is padding */
    size_t channels; /* lanes after which they repeat: 1, 8 or 16 */
    size_t at, run;  /* floats: where it begins in a sample, and how many it has there */
    size_t samples, step;
} at_norm_strip;

/* How many strips a picture has, and one of them, in `samples` samples. */
size_t        at_norm_strips(const at_activation *form);
at_norm_strip at_norm_strip_of(const at_activation *form, size_t index, size_t samples);

/* Places of one channel in all samples of the strip. */
size_t at_norm_places(const at_norm_strip *strip);

/* lanes[l] = per_channel[l % channels], 0 for padding. */
void at_norm_spread(const at_norm_strip *strip, float *lanes, const float *per_channel);

/* What the loops below need, by lane. */
typedef struct at_norm_lanes {
    _Alignas(64) float mean[AT_NORM_LANES];
    float scale[AT_NORM_LANES]; /* gamma over the deviation */
    float shift[AT_NORM_LANES]; /* beta */
    float pull[AT_NORM_LANES];  /* backward: what each place takes off, and .. */
    float slope[AT_NORM_LANES]; /* .. what it takes off per distance from the mean */
    float floor;                /* of y: 0 with ReLU, otherwise -infinity */
    float x_floor;              /* the same for x, when backward masks for the layer before */
} at_norm_lanes;

/* Mean and sum of squared distances from it, of the strip's channels. */
void at_norm_moments(const at_norm_strip *strip, const float *x, double mean[AT_NORM_LANES],
                     double squares[AT_NORM_LANES]);

/* y = max((x - mean) * scale + shift, floor) */
void at_norm_forward(const at_norm_strip *strip, const at_norm_lanes *lanes, float *y,
                     const float *x);

/* The sums of dy and of dy * (x - mean) over the places where y is above the floor. y is worked out
 * again from x, to the same bits, because reading it would take longer. */
void at_norm_sums(const at_norm_strip *strip, const at_norm_lanes *lanes, const float *dy,
                  const float *x, double sum[AT_NORM_LANES], double product[AT_NORM_LANES]);

/* dx = dy * scale - (pull + (x - mean) * slope), with a dy of 0 where y is not above the floor, and
 * 0 where x is not above its own; written or added. dx may be dy. */
void at_norm_backward(const at_norm_strip *strip, const at_norm_lanes *lanes, float *dx,
                      const float *dy, const float *x, at_write write);

/* to <- value or to + value, never a negative zero. */
void at_norm_put(float *to, double value, at_write write);

#endif
