/* model.h - a net as a function of one flat parameter vector.
 *
 *     at_model *m;
 *     at_model_new("mlp:300,100", (at_shape){784, 10}, AT_ENGINE_FAST, 32, &m, fail);
 *     at_model_init(m, params, seed);
 *     double loss_sum = at_model_gradient(m, gradient, params, x, labels, count);
 *     at_model_free(m);
 *
 * The model owns only scratch memory (sized by rows_max); parameters and gradients belong to the
 * caller. Layers are views into the flat vector: weight (out, in) row-major, then bias (out), layer
 * after layer, no padding. So the plain layout is the only layout here, and sending the model is
 * one memcpy. Two engines compute the same function: `ref`, plain loops, the oracle of the tests;
 * `fast`, chosen at run time from what the processor has. Same engine, same call, same bits.
 */
#ifndef AT_LEARN_MODEL_H
#define AT_LEARN_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct at_model at_model;
struct at_net; /* what a family builds; see learn/net.h */

typedef enum at_engine { AT_ENGINE_FAST, AT_ENGINE_REF } at_engine;

typedef struct at_shape {
    uint32_t features; /* numbers per sample */
    uint32_t classes;  /* labels are 0 .. classes-1 */
} at_shape;

/* Sums over some samples; dividing is the caller's business. */
typedef struct at_score {
    double   loss_sum;
    uint64_t correct;      /* the largest logit is the label's */
    uint64_t correct_top5; /* the label is among the five largest */
    uint64_t count;
} at_score;

/* Names: "softmax" (one dense layer, zero start) and "mlp:H1,H2,.." (dense layers with ReLU
 * between them, Glorot-uniform start, zero bias). AT_ERR_USAGE with the nearest name otherwise, and
 * when there are fewer than two classes. */
at_err at_model_new(const char *name, at_shape shape, at_engine engine, uint32_t rows_max,
                    at_model **model, at_fail *fail);
void   at_model_free(at_model *model); /* accepts NULL */

/* How many floats the flat vector has. */
size_t at_model_params(const at_model *model);

/* Multiply-adds of one sample, forward. */
uint64_t at_model_mults(const at_model *model);

/* What computes: "avx2", "portable", "openblas", "ref", .. for result.json and doctor. */
const char *at_model_engine(const at_model *model);

/* Writes the initial parameters; the same for the same seed in every world. */
void at_model_init(const at_model *model, float *params, uint64_t seed);

/* ADDS to gradient the sum over `count` samples (1 .. rows_max) of the gradient of the softmax
 * cross-entropy, and returns the sum of the losses. x is (count, features), row-major, 32-byte
 * aligned. The sum over this call's samples is formed first and then added in one addition per
 * element, so n calls into one vector equal n vectors added in the same order, bit for bit. */
double at_model_gradient(at_model *model, float *gradient, const float *params, const float *x,
                         const uint32_t *labels, uint32_t count);

/* The same, but WRITES the sum instead of adding it: bit for bit what zeroing the gradient first
 * would give, without the pass that zeroes it. For the first micro-batch of a round. */
double at_model_gradient_set(at_model *model, float *gradient, const float *params, const float *x,
                             const uint32_t *labels, uint32_t count);

/* Adds the score of `count` samples (1 .. rows_max) to *score. */
void at_model_score(at_model *model, at_score *score, const float *params, const float *x,
                    const uint32_t *labels, uint32_t count);

/* One line a layer for `anytime models show`: name, shapes, parameters, multiply-adds. */
typedef struct at_layer_info {
    char     kind[16];
    uint32_t in, out;
    size_t   params_at, params; /* the view into the flat vector */
    uint64_t mults;
} at_layer_info;

/* Fills at most `max` rows and returns how many layers there are. */
size_t at_model_layers(const at_model *model, at_layer_info *rows, size_t max);

/* The families that at_model_new knows, for `anytime models list` and for suggestions. */
typedef struct at_model_family {
    const char *name;  /* "softmax" or "mlp" */
    const char *usage; /* "mlp:H1,H2,.." */
    const char *summary;
    /* Appends the layers to an empty net. `args` is what follows the colon, NULL without one. */
    at_err (*build)(struct at_net *net, const char *args, at_fail *fail);
} at_model_family;
extern const at_model_family at_model_families[];
extern const size_t          at_model_families_count;

#endif
