/* layer.h - one layer of a net: a kind (a table of functions), what its line says, and what the
 * net worked out.
 *
 * A new kind is one file layer_KIND.c that fills an at_layer_kind, one line below, and one in
 * net_text.c. Layers keep no memory of their own: an at_pass brings everything one call needs.
 * Pictures are in blocks (learn/engines/activation.h); `in` and `out` say in which. A picture of
 * height and width 1 and block 1 is a line of numbers.
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

typedef struct at_layer at_layer;

/* One call: `count` samples forward (x to y), or backward (dy to dx and gradient). */
typedef struct at_pass {
    size_t       count;
    bool         training; /* forward: false when a model is only scored */
    const float *params;   /* this layer's view of the parameters */
    const float *stats;    /* its view of the running statistics */
    const float *x;        /* (count, in) */
    const float *other;    /* (count, in): second input, of kinds that have one */
    float       *y;        /* (count, out) */
    float   *dy; /* (count, out); backward may mask it in place, and overwrite it when dx is dy */
    float   *dx; /* (count, in); NULL when nobody asks for it */
    at_write dx_write;   /* ADD only for kinds with `adds_dx` */
    float   *gradient;   /* this layer's view */
    float   *stats_sums; /* its view of the sums of statistics, behind the gradients */
    at_write write;      /* how sums reach gradient and stats_sums: one addition per element */
    void    *scratch;    /* as many bytes as the kind's scratch() said; dead after the call */
    void    *keep;       /* as many bytes as the kind's keep() said; from forward to backward */
    const float *turned; /* convolutions: see learn/engines/conv_kernels.h */
    void        *conv_scratch; /* convolutions: what their engine asked for */
    at_conv     *conv;         /* convolutions: the engine's, for exactly `count` samples */
    uint64_t     noise;        /* key of this call's random numbers; the same in every world */
    bool         fresh;        /* backward: the parameters are others than in the call before */
    bool        *broken;       /* backward: set when gradients or fresh parameters are not finite,
                                * where outputs could hide it; may be NULL */
} at_pass;

/* What a number in the flat vector is for. */
typedef enum at_role { AT_ROLE_WEIGHT, AT_ROLE_BIAS, AT_ROLE_NORM, AT_ROLE_STAT } at_role;

/* A tensor of a layer. Those of role STAT lie one after the other in the view of the statistics,
 * the others in that of the parameters. */
typedef struct at_layer_tensor {
    const char         *name; /* "weight", "bias", "running_mean" */
    at_role             role;
    uint32_t            dims, shape[4]; /* in plain order */
    const at_conv_form *form;           /* NULL: it lies as it is */
} at_layer_tensor;

enum { AT_LAYER_TENSORS_MAX = 4 };

typedef struct at_layer_kind {
    const char *name;

    bool takes_blocks; /* works on pictures in blocks; the net converts where it must */
    bool takes_plain;  /* works on plain pictures or lines of numbers (both: whatever comes) */
    bool gives_plain;  /* its output is plain (block 1) */
    bool gives_blocks; /* its output is in the net's blocks (neither: in those of its input) */
    bool has_other;    /* reads a second input, of the same form as the first; its backward only
                        * masks dy, which the model then hands on to both inputs */
    bool in_place;     /* y may be x, and dx may be dy; never needs x in backward */
    bool needs_y;      /* backward reads y, so nothing after it may work in its place */
    bool adds_dx;      /* backward can add to dx */
    bool fuses_relu;   /* honours spec.relu: forward clips y, and backward drops dy where y is not
                        * positive, unless `relu_done` (then needs_y does not matter) */
    bool masks_relu;   /* backward leaves dx zero where x is not positive, given that x >= 0 */

    /* Works out `out` (channels, height, width) from `in` and the spec; otherwise fails with half
     * a sentence about the two shapes, to which the net adds line and layer. */
    at_err (*shape)(at_layer *layer, at_fail *fail);
    void (*forward)(const at_layer *layer, const at_pass *pass);
    void (*backward)(const at_layer *layer, const at_pass *pass);

    /* Optional, each for "none" when NULL. */
    size_t (*tensors)(const at_layer *layer, at_layer_tensor rows[AT_LAYER_TENSORS_MAX]);
    /* Writes the start values of all tensors, one after the other, in plain order. */
    void (*init)(const at_layer *layer, float *plain, at_rng *rng);
    uint64_t (*mults)(const at_layer *layer); /* multiply-adds of a sample, forward */
    size_t (*scratch)(const at_layer *layer, size_t count);
    size_t (*keep)(const at_layer *layer, size_t count);
} at_layer_kind;

/* How weights start. */
typedef enum at_init_kind {
    AT_INIT_ZERO,
    AT_INIT_GLOROT,    /* uniform in +-sqrt(6 / (fan in + fan out)) */
    AT_INIT_HE,        /* normal, deviation sqrt(2 / fan in) */
    AT_INIT_NORMAL,    /* normal, deviation `number` */
    AT_INIT_TRUNCATED, /* the same, but nothing beyond two deviations */
    AT_INIT_CONST      /* `number` */
} at_init_kind;
typedef struct at_init {
    at_init_kind kind;
    double       number;
} at_init;

/* Fills n numbers. */
void at_init_fill(at_init start, float *plain, size_t n, double fan_in, double fan_out,
                  at_rng *rng);

/* What the line of a layer says. Kinds take from it what they need. */
typedef struct at_layer_spec {
    const at_layer_kind *kind;
    int32_t              from;   /* layer whose output it reads; AT_FROM_LAST, AT_FROM_SAMPLES */
    int32_t              other;  /* the same for the second input, of kinds that have one */
    uint32_t             units;  /* channels of the output: conv, dense */
    at_window            window; /* conv, pools; a height of 0 in a pool: the whole picture */
    bool                 same;   /* padding is worked out so that out = ceil(in / stride) */
    bool                 bias;
    bool                 relu;
    at_init              start, bias_start;
    double               keep;          /* dropout: probability to stay */
    double               momentum;      /* batch norm: of the running statistics */
    double               epsilon;       /* norms */
    uint32_t             groups;        /* group norm */
    uint32_t             height, width; /* resize, reshape; units are the channels */
    const char          *name;  /* of its tensors, NULL: kind and number; outlives the net */
    const char          *group; /* parameter group, NULL: by role; outlives the net */
    uint32_t             line;  /* of its text, for messages; 0: none */
} at_layer_spec;

enum { AT_FROM_LAST = -2, AT_FROM_SAMPLES = -1 };

struct at_layer {
    const at_layer_kind   *kind;
    const at_kernels      *kernels; /* dense layers: for products; else the same as plain */
    const at_kernels      *plain;   /* for everything that works number by number */
    const at_conv_kernels *conv;    /* of convolutions */
    at_layer_spec          spec;    /* from and other are resolved */
    at_activation          in, out;
    size_t                 params_at, params; /* the view into the flat vector, with padding */
    size_t                 stats_at, stats;   /* of the statistics, from their begin */
    at_conv_form           form;              /* of convolutions: where weights lie */
    bool                   wants_dx;          /* something before it has parameters */
    bool                   kept;      /* its output is read again later: nothing may change it */
    bool                   trains;    /* it or something before it has parameters */
    bool                   masks;     /* it masks ReLU's gradient for the layer before it */
    bool                   relu_done; /* whoever reads its output masks ReLU's gradient for it */
    uint32_t               number;    /* of its kind in this net, from 1 */
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
extern const at_layer_kind at_layer_flatten; /* a picture as a line of numbers */
extern const at_layer_kind at_layer_arrange; /* a plain picture into blocks; the net inserts it */
extern const at_layer_kind at_layer_reshape; /* a line of numbers as a picture */
extern const at_layer_kind at_layer_resize;  /* of the samples: bilinear; has no backward */
extern const at_layer_kind at_layer_rgb;     /* of the samples: grey to three channels */

#endif
