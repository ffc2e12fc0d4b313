/* model_parts.h - the inside of a model, for the files that make up its module: model.c (running
 * it), model_plan.c (what is known without running it), convs.c (the convolutions it has open). */
#ifndef AT_LEARN_NET_MODEL_PARTS_H
#define AT_LEARN_NET_MODEL_PARTS_H

#include "base/arena.h"
#include "learn/net/graph.h"

enum { AT_CONVS_SIZES_MAX = 8 };

/* The convolutions of all layers for one number of samples. */
typedef struct at_conv_set {
    uint32_t  rows;    /* 0: not in use */
    uint64_t  used;    /* when it was last used; the oldest one makes room */
    uint64_t  version; /* of the parameters that `turned` was made from */
    at_conv **conv;    /* by layer; NULL where there is none */
    float   **turned;  /* by layer; NULL where there is none */
} at_conv_set;

typedef struct at_convs {
    at_conv_set   set[AT_CONVS_SIZES_MAX];
    at_conv_set  *now;
    uint64_t      clock, version;
    const at_net *net;
    at_use        use;
    void         *scratch;
    size_t        scratch_size;
    bool          none; /* the net has no convolutions */
} at_convs;

/* Opens them for `rows` samples. */
at_err at_convs_open(at_convs *convs, const at_net *net, uint32_t rows, at_use use, at_fail *fail);
void   at_convs_close(at_convs *convs); /* accepts a zeroed one */

/* The next calls are for `count` samples; opens convolutions of that size if there are none. */
void at_convs_size(at_convs *convs, uint32_t count);
/* Turns weights for the way back, once per version; returns whether it did. */
bool at_convs_turn(at_convs *convs, const float *params);
/* Gives a layer's call its convolution. */
void at_convs_lend(const at_convs *convs, size_t layer, at_pass *pass);

struct at_model {
    at_net   *net;
    uint32_t  rows_max;
    at_use    use;
    bool      training; /* the pass that is running */
    uint64_t  noise;
    at_graph *graph; /* NULL: only a plan */
    at_arena  arena;
    float    *y[AT_NET_LAYERS_MAX];
    float    *dy[AT_NET_LAYERS_MAX];
    void     *keep[AT_NET_LAYERS_MAX];
    void     *scratch;
    at_convs  convs;
};

#endif
