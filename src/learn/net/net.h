/* net.h - a net: layers whose parameters share one flat vector, each reading the output of an
 * earlier one. Families and .net texts build it, the model runs it.
 *
 *     at_net *net = at_net_new(engine, shape, rows);
 *     at_net_add(net, (at_layer_spec){.kind = &at_layer_dense, .from = AT_FROM_LAST, .units = 10,
 *                                     .bias = true}, fail);
 *
 * Residual block: int32_t skip = at_net_keep_output(net); ... layers ...; then add a layer of kind
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
    AT_NET_WIDTH_MAX = 1 << 24,  /* so that the product of two widths fits easily in 64 bits */
    AT_NET_PARAMS_MAX = 1 << 30, /* 4 GB of floats */
    AT_NET_TEXT_MAX = 1 << 16    /* bytes of a .net text; enough for AT_NET_LAYERS_MAX lines */
};

typedef struct at_net {
    at_engine              engine;
    at_shape               shape;
    const at_conv_kernels *conv;  /* convolution engine */
    uint32_t               rows;  /* micro-batch size that weight layouts are chosen for */
    uint32_t               block; /* channels per block between layers that take blocks */
    size_t                 count;
    size_t   flat, trained; /* floats: of the flat vector; of its part before the statistics */
    size_t   params, stats; /* numbers, without padding */
    at_layer layer[AT_NET_LAYERS_MAX];
    at_param_groups groups; /* settings of parameter groups, see learn/net/group.h */
    char           *text;   /* the text that names in layers point into, or NULL */
} at_net;

/* An empty net; NULL: no memory. With reference_conv the reference engine does convolutions. */
at_net *at_net_new(at_engine engine, at_shape shape, uint32_t rows, bool reference_conv);
void    at_net_free(at_net *net); /* accepts NULL */

/* The output of the last layer so far, or the input without layers. */
at_activation at_net_output(const at_net *net);

/* Keeps the last layer's output for a second reader: no later layer works in its buffer. Returns
 * the layer's index, or AT_FROM_SAMPLES. */
int32_t at_net_keep_output(at_net *net);

/* Appends a layer, after layout conversions where it needs them: computes shapes and places
 * parameters. A ReLU after a layer that can clip its own output is fused into it. AT_ERR_USAGE with
 * line, layer and shapes when the layer does not fit or the net exceeds a limit above. */
at_err at_net_add(at_net *net, at_layer_spec spec, at_fail *fail);

/* To be called after the last layer: flattens if necessary, checks that there is an output for
 * every class, and places the statistics after the parameters. */
at_err at_net_finish(at_net *net, at_fail *fail);

enum { AT_LAYER_NAME_SIZE = 48 };

/* The name of a layer, the prefix of its tensors: from its line, or its kind and number. */
void at_net_layer_name(const at_layer *layer, char name[AT_LAYER_NAME_SIZE]);

/* The convolution of a layer, for its engine. */
at_conv_spec at_net_conv_spec(const at_layer *layer);

/* Builds an empty net from its text (see docs/reference/models.md). `name` is for messages. */
at_err at_net_parse(at_net *net, const char *name, const char *text, at_fail *fail);

/* What a text was written for; zero where it does not say. */
typedef struct at_net_info {
    char     summary[100];            /* its first comment line */
    uint32_t channels, height, width; /* flat samples: channels x 1 x 1 */
    uint32_t classes;
} at_net_info;

/* Reads the info without building the net. */
at_err at_net_info_parse(const char *name, const char *text, at_net_info *info, at_fail *fail);

/* The same for a built-in net or a file NAME.net; all zero for any other model. */
at_err at_net_info_find(const char *name, at_net_info *info, at_fail *fail);

/* The text of a built-in net or of a file NAME.net, to be freed; *text is NULL for any other model.
 * AT_ERR_MISSING. */
at_err at_net_text_find(const char *name, char **text, at_fail *fail);

/* Built-in nets: models/NAME.net. */
typedef struct at_net_builtin {
    const char *name, *text;
} at_net_builtin;
extern const at_net_builtin at_net_builtins[];
extern const size_t         at_net_builtins_count;

#endif
