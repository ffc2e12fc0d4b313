/* model.h - models: loss, gradient and predictions as functions of one flat parameter vector.
 *
 *     at_model *m;
 *     at_model_new("mlp:300,100", (at_shape){784, 10}, AT_ENGINE_FAST, 32, &m, fail);
 *     float *params = ... at_model_floats(m) floats ...;
 *     at_model_init(m, params, seed);
 *     double loss_sum = at_model_gradient(m, gradient, params, x, labels, count);
 *     at_model_free(m);
 *
 * The model owns only scratch memory (sized by rows_max); parameters and gradients belong to the
 * caller. The flat vector holds the tensors of all layers in the layout that the engine needs:
 * parameters first, then running statistics (of batch norm), with padding in between. Sums, updates
 * and messages treat all of it alike. The *plain* vector is the same for files and users: tensor
 * after tensor, row-major, parameters, then statistics, no padding.
 *
 * Three engines compute the same function: `ref`, a slow reference implementation for tests;
 * `fast`, chosen at run time for the processor; `exact`, which is `fast` without Winograd's method
 * in convolutions, whose rounding errors are larger. Same engine, same call, same bits.
 */
#ifndef AT_LEARN_NET_MODEL_H
#define AT_LEARN_NET_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "learn/net/group.h"

typedef struct at_model at_model;
struct at_net;  /* see learn/net/net.h */
struct at_text; /* see base/text.h */

typedef enum at_engine { AT_ENGINE_FAST, AT_ENGINE_EXACT, AT_ENGINE_REF } at_engine;

typedef struct at_shape {
    uint32_t features;                /* numbers per sample */
    uint32_t classes;                 /* labels are 0 .. classes-1; 0: real (base/label.h) */
    uint32_t channels, height, width; /* of an image; 0: samples are flat vectors */
} at_shape;

/* What a model is used for; scoring alone needs less memory. */
typedef enum at_model_use { AT_USE_TRAIN, AT_USE_SCORE } at_model_use;

/* Sums over some samples; the caller divides. */
typedef struct at_score {
    double   loss_sum;
    uint64_t correct;      /* the largest logit is the label's */
    uint64_t correct_top5; /* the label is among the five largest */
    uint64_t count;
    uint32_t classes; /* 0: not a classifier */
    /* Regression: instead of correct ones, the sum of labels and of their squares, for R2. */
    bool   regression;
    double label_sum, label_squares;
    double auc; /* two classes, over all samples (see auc.h) */
    /* If not NULL and there are two classes: the margin of sample n of a call (logit of class 1
     * minus that of class 0) is written to margins[n]. */
    float *margins;
    /* Workers with parameters of their own; the rest is about their mean. */
    bool   apart;
    double workers_loss;               /* mean over the workers; NAN: not measured, as the next */
    double worst_loss, worst_accuracy; /* of one worker */
    double disagreement; /* root mean square distance of the workers' parameters from their mean */
    bool   trained;      /* the next are known: losses on the same training samples */
    double train_loss, train_loss_min, train_loss_max; /* mean, best and worst of the workers */
    double train_loss_model;                           /* of the mean model */
} at_score;

/* Builds a model from a family ("softmax", "mlp:H1,H2,.."), a built-in net ("mnist-cnn"), or a file
 * ("my.net"; see docs/reference/models.md), with the flat vector laid out for micro-batches of
 * `rows` samples. Enough to query sizes and to initialize and convert parameters, but not to
 * compute. AT_ERR_USAGE with the nearest name or with line and shapes; AT_ERR_MISSING. */
at_err at_model_plan(const char *name, at_shape shape, at_engine engine, uint32_t rows,
                     at_model **model, at_fail *fail);

/* The same from a text that was kept: that of the file `name`. NULL: as at_model_plan. */
at_err at_model_plan_text(const char *name, const char *text, at_shape shape, at_engine engine,
                          uint32_t rows, at_model **model, at_fail *fail);

/* Allocates what it takes to compute up to rows_max samples at a time in this process; releases
 * what was allocated before. */
at_err at_model_allocate(at_model *model, uint32_t rows_max, at_model_use use, at_fail *fail);
void   at_model_release(at_model *model); /* back to the state after at_model_plan */

/* Both at once, for training. */
at_err at_model_new(const char *name, at_shape shape, at_engine engine, uint32_t rows_max,
                    at_model **model, at_fail *fail);
void   at_model_free(at_model *model); /* accepts NULL */

/* Floats of the flat vector, and of its first part, which is trained (without statistics). */
size_t at_model_floats(const at_model *model);
size_t at_model_trained(const at_model *model);

/* Parameters of the model, without padding; and numbers of the plain vector, which includes
 * statistics. */
size_t at_model_params(const at_model *model);
size_t at_model_plain(const at_model *model);

/* Between the flat and the plain vector. */
void at_model_to_plain(const at_model *model, float *plain, const float *flat);
void at_model_from_plain(const at_model *model, float *flat, const float *plain);

/* A named part of the plain vector. */
enum { AT_TENSOR_NAME_SIZE = 200, AT_TENSOR_DIMS_MAX = 8 };
typedef struct at_tensor {
    char     name[AT_TENSOR_NAME_SIZE];
    uint32_t dims, shape[AT_TENSOR_DIMS_MAX];
    size_t   at; /* its first number */
} at_tensor;

/* Lists at most `max` tensors in the order of the plain vector; returns how many there are. */
size_t at_model_tensors(const at_model *model, at_tensor *tensors, size_t max);

/* Its net (learn/net/net.h); owned by the model. */
const struct at_net *at_model_net(const at_model *model);

/* How to update the flat vector: ranges that cover it (at most `max`; returns how many there are),
 * and the settings of the groups they refer to. */
size_t at_model_param_ranges(const at_model *model, at_param_range *ranges, size_t max);
const at_param_groups *at_model_groups(const at_model *model);

/* Floats of the widest layer output; and an estimate of the floats that one sample needs in all
 * buffers, forward and backward. */
size_t at_model_widest(const at_model *model);
size_t at_model_scratch(const at_model *model);

/* Sets how many threads the engine uses in this process; 1 starts none. */
void at_model_threads(uint32_t threads);

/* Whether it has batch norm, which does not work with tiny micro-batches. */
bool at_model_has_batch_norm(const at_model *model);

/* Multiply-adds per sample, forward. */
uint64_t at_model_mults(const at_model *model);

/* The kernels in use: "avx2", "portable", "openblas", "ref", .. for result.json and doctor. */
const char *at_model_engine(const at_model *model);

/* Writes the initial parameters; the same for the same seed in every world. Fails only without
 * memory. */
at_err at_model_init(const at_model *model, float *params, uint64_t seed, at_fail *fail);

/* Announces new parameters for the next at_model_gradient calls; MUST be called before the first
 * one and after every change of the parameters. */
void at_model_install(at_model *model, const float *params);

/* Sets the part of each label that the next at_model_gradient calls spread evenly over all classes
 * (Szegedy et al. 2016), 0 .. 1; 0 at first. Scores and predictions do not depend on it. */
void at_model_smooth_labels(at_model *model, double part);

/* Sets the seed of the random numbers (dropout) of the next at_model_gradient call. */
void at_model_noise(at_model *model, uint64_t key);

/* ADDS to gradient the sum over `count` samples (1 .. rows_max) of the gradient of the loss, and
 * returns the sum of the losses; NaN when weights or gradients of a convolution are not finite,
 * even if the logits are. The loss of a sample is the softmax cross-entropy or, in regression,
 * 1/2 (label - prediction)^2. x is (count, features), row-major, 32-byte aligned. The
 * sum over this call's samples is computed first and then added in one addition per element, so n
 * calls into one vector equal n vectors added in the same order, bit for bit. */
double at_model_gradient(at_model *model, float *gradient, const float *params, const float *x,
                         const uint32_t *labels, uint32_t count);

/* The same, but WRITES the sum instead of adding it: the same bits as adding to a zeroed gradient,
 * without the pass that zeroes it. For the first micro-batch of a round. */
double at_model_gradient_set(at_model *model, float *gradient, const float *params, const float *x,
                             const uint32_t *labels, uint32_t count);

/* Who is told how far a gradient is: `final` comes after each layer of the backward pass, which
 * runs from the end of the vector to its start. From `from` to the end of the trained part, numbers
 * have what this call gives them, and may be read meanwhile by others. */
typedef struct at_gradient_watch {
    void *self;
    void (*final)(void *self, size_t from); /* NULL: nobody is told */
} at_gradient_watch;

/* Sets who is told about the next gradient calls; nobody at first. */
void at_model_watch(at_model *model, at_gradient_watch watch);

/* Adds the score of `count` samples (1 .. rows_max) to *score. */
void at_model_score(at_model *model, at_score *score, const float *params, const float *x,
                    const uint32_t *labels, uint32_t count);

/* Predicted class probabilities, (count, classes), of up to rows_max samples; in regression the
 * predicted values, (count). */
void at_model_predict(at_model *model, float *probabilities, const float *params, const float *x,
                      uint32_t count);

/* One layer for `anytime models show`. */
typedef struct at_layer_info {
    char     kind[16], detail[64]; /* "conv", "5x5x32 relu" */
    uint32_t in[3], out[3];        /* channels, height, width */
    size_t   params;               /* without padding and statistics */
    uint64_t mults;
    char     engine[16];
} at_layer_info;

/* Fills at most `max` rows and returns how many layers there are. */
size_t at_model_layers(const at_model *model, at_layer_info *rows, size_t max);

/* Families of models, for `anytime models list` and for suggestions. */
typedef struct at_model_family {
    const char *name;  /* "softmax" or "mlp" */
    const char *usage; /* "mlp:H1,H2,.." */
    const char *summary;
    /* Appends the layers to an empty net. `args` is the text after the colon, NULL without one. */
    at_err (*build)(struct at_net *net, const char *args, at_fail *fail);
    bool regression; /* predicts a real number, with the squared loss */
    /* Writes the same layers as lines of a .net text; NULL: such a text cannot express them. */
    void (*write)(const char *args, struct at_text *text);
} at_model_family;
extern const at_model_family at_model_families[];
extern const size_t          at_model_families_count;

/* The family of NAME[:ARGS]; NULL: it is of none. */
const at_model_family *at_model_family_find(const char *name);

/* Whether a model of this name is for regression, which needs data with real-valued labels. */
bool at_model_is_regression(const char *name);

#endif
