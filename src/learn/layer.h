/* layer.h - one layer of a net: a kind (a table of functions) and its numbers.
 *
 * A new kind is one file layer_KIND.c that fills an at_layer_kind, and one line below. Layers keep
 * no memory of their own: an at_pass brings them everything one call needs.
 */
#ifndef AT_LEARN_LAYER_H
#define AT_LEARN_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "learn/kernels.h"

typedef struct at_layer at_layer;

/* One call: `count` samples forward (x to y), or backward (dy to dx and gradient). */
typedef struct at_pass {
    size_t       count;
    const float *params;   /* this layer's view */
    const float *x;        /* (count, in) */
    float       *y;        /* (count, out) */
    float       *dy;       /* (count, out) */
    float       *dx;       /* (count, in); NULL when nobody asks for it */
    float       *gradient; /* this layer's view */
    at_write     write;    /* how the sums reach the gradient */
    float       *scratch;  /* as many floats as the kind's scratch() said */
} at_pass;

typedef struct at_layer_kind {
    const char *name;
    bool        in_place; /* x and y are one buffer, and so are dx and dy; in equals out */
    void (*forward)(const at_layer *layer, const at_pass *pass);
    void (*backward)(const at_layer *layer, const at_pass *pass);

    /* Optional, each for "none" when NULL. */
    size_t (*params)(const at_layer *layer);
    uint64_t (*mults)(const at_layer *layer);
    size_t (*scratch)(const at_layer *layer, size_t count);
    void (*init)(const at_layer *layer, float *params, at_rng *rng);
} at_layer_kind;

typedef enum at_start { AT_START_ZERO, AT_START_GLOROT } at_start;

struct at_layer {
    const at_layer_kind *kind;
    const at_kernels    *kernels;
    uint32_t             in, out;
    size_t               params_at, params; /* the view into the flat vector */
    at_start             start;
};

extern const at_layer_kind at_layer_dense;
extern const at_layer_kind at_layer_relu;

#endif
