/* layer.h - one layer of a net: its kind (a table of functions), the settings of its line, and what
 * the net derives from both.
 *
 * A new kind is a file layers/KIND.c that fills an at_layer_kind, a line below, and a row in
 * net_words.c. Layers own no memory: an at_layer_pass holds everything that one call needs.
 * Activations are in blocks of channels (learn/engines/activation.h), given by `in` and `out`. A
 * flat vector has height, width and block 1.
 */
#ifndef AT_LEARN_LAYERS_LAYER_H
#define AT_LEARN_LAYERS_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/rng.h"
#include "learn/engines/activation.h"
#include "learn/engines/conv_kernels.h"
#include "learn/engines/kernels.h"
#include "learn/net/model.h"

typedef struct at_layer at_layer;

/* One call: `count` samples forward (x to y), or backward (dy to dx and gradient). */
typedef struct at_layer_pass {
    size_t            count;
    bool              training; /* forward: false when a model is only scored */
    const float      *params;   /* the layer's parameters */
    const float      *stats;    /* its running statistics */
    const float      *x;        /* (count, in) */
    const float      *other;    /* (count, in): second input, of kinds that have one */
    float            *y;        /* (count, out) */
    float            *dy; /* (count, out); backward may mask it, and overwrite it if dx is dy */
    float            *dx; /* (count, in); NULL: not needed */
    at_write          dx_write;   /* ADD only for kinds with `adds_dx` */
    float            *gradient;   /* the layer's part of the gradient */
    float            *stats_sums; /* the layer's part of the sums of statistics */
    at_write          write; /* how sums reach gradient and stats_sums: one addition per element */
    void             *scratch;      /* scratch() bytes; undefined after the call */
    void             *saved;        /* saved() bytes, kept from forward to backward */
    const float      *reordered;    /* convolutions: see learn/engines/conv_kernels.h */
    void             *conv_scratch; /* convolutions: scratch of their engine */
    at_conv          *conv;         /* convolutions: the engine's, for exactly `count` samples */
    uint64_t          noise;  /* seed of this call's random numbers; the same in every world */
    bool              fresh;  /* backward: the parameters have changed since the last call */
    bool             *broken; /* backward: set when gradients or fresh parameters are not finite,
                                * where outputs could hide it; may be NULL */
    at_gradient_watch watch;  /* backward: see at_layer_tell */
} at_layer_pass;

/* What a tensor is for. */
typedef enum at_tensor_role {
    AT_ROLE_WEIGHT,
    AT_ROLE_BIAS,
    AT_ROLE_NORM,
    AT_ROLE_STAT
} at_tensor_role;

/* A tensor of a layer. Those of role STAT are placed one after the other among the statistics, the
 * others among the parameters. */
typedef struct at_layer_tensor {
    const char             *name; /* "weight", "bias", "running_mean" */
    at_tensor_role          role;
    uint32_t                dims, shape[4]; /* in plain order */
    const at_weight_layout *layout;         /* NULL: plain */
} at_layer_tensor;

enum { AT_LAYER_TENSORS_MAX = 4 };

typedef struct at_layer_kind {
    const char *name;

    bool takes_blocks; /* reads blocked activations; the net converts where necessary */
    bool takes_plain;  /* reads plain activations (both: any) */
    bool gives_plain;  /* its output is plain (block 1) */
    bool gives_blocks; /* its output is in the net's blocks (neither: as its input) */
    bool has_other;    /* reads a second input of the same shape as the first; its backward only
                        * masks dy, which the model then passes on to both inputs */
    bool samples_only; /* has no gradient: no layer before it may have parameters */
    bool in_place;     /* y may be x, and dx may be dy; backward never reads x */
    bool needs_y;      /* backward reads y, so no later layer may overwrite it */
    bool adds_dx;      /* backward can add to dx */
    bool fuses_relu;   /* supports spec.relu: forward clips y, and backward zeroes dy where y is not
                        * positive, unless `relu_done` */
    bool masks_relu;   /* backward can zero dx where x is not positive, given that x >= 0 */

    /* Computes `out` (channels, height, width) from `in` and the spec. Errors name the two shapes;
     * the net adds line and layer in front. */
    at_err (*shape)(at_layer *layer, at_fail *fail);
    void (*forward)(const at_layer *layer, const at_layer_pass *pass);
    void (*backward)(const at_layer *layer, const at_layer_pass *pass);

    /* Optional. */
    size_t (*tensors)(const at_layer *layer, at_layer_tensor rows[AT_LAYER_TENSORS_MAX]);
    /* Writes the initial values of all tensors, one after the other, in plain order. */
    void (*init)(const at_layer *layer, float *plain, at_rng *rng);
    uint64_t (*mults)(const at_layer *layer);               /* multiply-adds per sample, forward */
    size_t (*scratch)(const at_layer *layer, size_t count); /* bytes */
    size_t (*saved)(const at_layer *layer, size_t count);   /* bytes */
} at_layer_kind;

/* Initial weights. */
typedef enum at_initializer_kind {
    AT_INIT_ZERO,
    AT_INIT_GLOROT,    /* uniform in +-sqrt(6 / (fan in + fan out)) */
    AT_INIT_HE,        /* normal, deviation sqrt(2 / fan in) */
    AT_INIT_NORMAL,    /* normal, deviation `number` */
    AT_INIT_TRUNCATED, /* the same, truncated at two deviations */
    AT_INIT_CONST      /* `number` */
} at_initializer_kind;
typedef struct at_initializer {
    at_initializer_kind kind;
    double              number;
} at_initializer;

/* Fills n numbers. */
void at_initializer_fill(at_initializer init, float *plain, size_t n, double fan_in, double fan_out,
                         at_rng *rng);

/* The settings of a layer; each kind uses some of them. */
typedef struct at_layer_spec {
    const at_layer_kind *kind;
    int32_t              from;   /* the layer it reads, AT_FROM_LAST or AT_FROM_SAMPLES */
    int32_t              other;  /* the same for the second input, of kinds that have one */
    uint32_t             units;  /* channels of the output: conv, dense */
    at_window            window; /* conv, pools; a pool of height 0: the whole image */
    bool                 same;   /* padding is chosen so that out = ceil(in / stride) */
    bool                 bias;
    bool                 relu;
    at_initializer       init, bias_init;
    double               keep;          /* dropout: probability to keep a value */
    double               momentum;      /* batch norm: of the running statistics */
    double               epsilon;       /* norms */
    uint32_t             groups;        /* group norm */
    uint32_t             height, width; /* resize, reshape; units are the channels */
    const char          *name;  /* prefix of its tensors, NULL: kind and number; outlives the net */
    const char          *group; /* parameter group, NULL: by role; outlives the net */
    uint32_t             line;  /* in the .net text, for messages; 0: none */
} at_layer_spec;

enum { AT_FROM_LAST = -2, AT_FROM_SAMPLES = -1 };

struct at_layer {
    const at_layer_kind *kind;
    const at_kernels    *kernels; /* dense layers: matrix products; else the same as elementwise */
    const at_kernels    *elementwise;
    const at_conv_kernels *conv; /* convolutions */
    at_layer_spec          spec; /* from and other are resolved */
    at_activation          in, out;
    size_t           params_at, params; /* position and size in the flat vector, with padding */
    size_t           stats_at, stats;   /* the same, within the statistics */
    at_weight_layout layout;            /* convolutions: of the weights */
    bool             wants_dx;          /* a layer before it has parameters */
    bool             kept;        /* its output has a second reader: no layer may overwrite it */
    bool             trains;      /* it or a layer before it has parameters */
    bool             masks_input; /* it masks the gradient of the ReLU before it */
    bool             relu_done;   /* the next layer masks its ReLU's gradient */
    uint32_t         number;      /* among layers of its kind, from 1 */
};

extern const at_layer_kind at_layer_dense;
extern const at_layer_kind at_layer_relu;
extern const at_layer_kind at_layer_conv;
extern const at_layer_kind at_layer_maxpool;
extern const at_layer_kind at_layer_avgpool;
extern const at_layer_kind at_layer_bn;
extern const at_layer_kind at_layer_gn;
extern const at_layer_kind at_layer_dropout;
extern const at_layer_kind at_layer_add;     /* x + other: the end of a residual block */
extern const at_layer_kind at_layer_flatten; /* an image to a flat vector */
extern const at_layer_kind at_layer_reorder; /* plain to blocked; inserted by the net */
extern const at_layer_kind at_layer_reshape; /* a flat vector to an image */
extern const at_layer_kind at_layer_resize;  /* of samples: bilinear; no backward */
extern const at_layer_kind at_layer_rgb;     /* of samples: gray to three channels */

/* The layer's gradient is complete: for those whose dx, which follows, takes long. The model tells
 * it after every layer. */
static inline void at_layer_tell(const at_layer *layer, const at_layer_pass *pass)
{
    if (pass->watch.final) pass->watch.final(pass->watch.self, layer->params_at);
}

#endif
