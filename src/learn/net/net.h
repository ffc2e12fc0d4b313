/* net.h - a net: layers over one flat vector, each reading the output of an earlier one. Families
 * and .net texts build it, the model runs it.
 *
 *     at_net *net = at_net_new(engine, shape, rows);
 *     at_net_add(net, (at_layer_spec){.kind = &at_layer_dense, .from = AT_FROM_LAST, .units = 10,
 *                                     .bias = true}, fail);
 *
 * Residual block: int32_t skip = at_net_keep(net); ... layers ...; then add a layer of kind
 * at_layer_add with .from = AT_FROM_LAST and .other = skip.
 */
#ifndef AT_LEARN_NET_NET_H
#define AT_LEARN_NET_NET_H

#include "base/err.h"
#include "learn/layers/layer.h"
#include "learn/net/group.h"
#include "learn/net/model.h"

enum {
    AT_NET_LAYERS_MAX = 1024,
    AT_NET_WIDTH_MAX = 1 << 24, /* so that the product of two widths fits easily in 64 bits */
    AT_NET_PARAMS_MAX = 1 << 30 /* 4 GB of floats */
};

typedef struct at_net {
    at_engine              engine;
    at_shape               shape;
    const at_conv_kernels *conv;  /* who convolves */
    uint32_t               rows;  /* samples that weights are laid out for: the micro-batch */
    uint32_t               block; /* of channels, between layers that take blocks */
    size_t                 count;
    size_t    flat, trained; /* floats: of the flat vector; of its part before the statistics */
    size_t    params, stats; /* numbers, without padding */
    at_layer  layer[AT_NET_LAYERS_MAX];
    at_groups groups; /* settings of parameter groups, see learn/net/group.h */
    char     *text;   /* what names in layers point into; NULL: nothing */
} at_net;

/* An empty net. With plain_conv the fast engine is not used for convolutions. */
at_net *at_net_new(at_engine engine, at_shape shape, uint32_t rows,
                   bool plain_conv); /* NULL: no memory */
void    at_net_free(at_net *net);    /* accepts NULL */

/* What comes out of the last layer so far, or of the samples. */
at_activation at_net_out(const at_net *net);

/* The last layer's output will be read again: returns its index (or AT_FROM_SAMPLES), and makes
 * sure that nothing works in its place. */
int32_t at_net_keep(at_net *net);

/* Appends a layer, with conversions before it where it needs them: checks and works out shapes,
 * places parameters. A ReLU behind a layer that can clip its own output becomes part of it.
 * AT_ERR_USAGE with line, layer and shapes when it does not fit, or when the net grows past a limit
 * above. */
at_err at_net_add(at_net *net, at_layer_spec spec, at_fail *fail);

/* To be called after the last layer: flattens if need be, checks that there is an output for every
 * class, works out who wants gradients, and lays the statistics behind the parameters. */
at_err at_net_finish(at_net *net, at_fail *fail);

enum { AT_LAYER_NAME_SIZE = 48 };

/* What the names of a layer's tensors begin with: what its line says, or its kind and number. */
void at_net_layer_name(const at_layer *layer, char name[AT_LAYER_NAME_SIZE]);

/* A convolution layer as its engine sees it. */
at_conv_spec at_net_conv_spec(const at_layer *layer);

/* Builds a net from its text (see docs/reference/models.md). `name` is for messages. */
at_err at_net_read(at_net *net, const char *name, const char *text, at_fail *fail);

/* What a text says about itself. Zero where it does not say. */
typedef struct at_net_about {
    char     summary[100];            /* its first comment line */
    uint32_t channels, height, width; /* a line of numbers: so many channels of 1x1 */
    uint32_t classes;
} at_net_about;

/* Reads that without building the net: for `models list`, and for shapes when there is no data. */
at_err at_net_about_text(const char *name, const char *text, at_net_about *about, at_fail *fail);

/* The same for a net of the program or a file NAME.net; all zero for anything else, which says
 * nothing about itself. */
at_err at_net_about_find(const char *name, at_net_about *about, at_fail *fail);

/* The nets that are part of the program: models/NAME.net. */
typedef struct at_net_builtin {
    const char *name, *text;
} at_net_builtin;
extern const at_net_builtin at_net_builtins[];
extern const size_t         at_net_builtins_count;

/* The families, each in its own file family_NAME.c. */
at_err at_family_softmax(at_net *net, const char *args, at_fail *fail);
at_err at_family_mlp(at_net *net, const char *args, at_fail *fail);

#endif
