/* anytime.h - distributed training of your own model, with any strategy.
 *
 * You write one function that returns the SUM of the losses over samples [first, end) and ADDS the
 * SUM of their gradients to `gradient`. With sums instead of means, every worker is weighted by the
 * number of samples it computed. anytime calls the function in worker processes, once per
 * micro-batch.
 *
 *     static double loss(void *user, const float *params, float *gradient,
 *                        uint64_t first, uint64_t end);
 *
 *     at_own_model model = { .parameters = 11, .samples = 100000, .loss = loss };
 *     const char *options[] = { "--strategy", "amb", "--workers", "4", "--epochs", "3" };
 *     float params[11] = { 0 };
 *     at_answer answer;
 *     if (at_train(&model, params, 6, options, &answer)) fprintf(stderr, "%s\n", answer.message);
 *     at_answer_free(&answer);
 *
 * Link with -lanytime. Workers are forked from the calling process: they see your data as it was
 * when at_train was called, without copying it, and what they write to your memory is lost when
 * they exit. Each worker reads the samples in order, from its own starting point: shuffle them
 * first.
 */
#ifndef ANYTIME_H
#define ANYTIME_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Your model. Set unused members to zero. */
typedef struct at_own_model {
    void    *user;         /* passed to your functions */
    uint64_t parameters;   /* floats in the parameter vector, at least 1 */
    uint64_t samples;      /* number of training samples, one epoch */
    uint64_t test_samples; /* number of test samples; 0: no evaluation */
    /* Returns the sum of losses over training samples first .. end-1, and adds the sum of their
     * gradients to `gradient` (which may hold earlier sums). MUST NOT keep the pointers. */
    double (*loss)(void *user, const float *params, float *gradient, uint64_t first, uint64_t end);
    /* Optional, needed when test_samples > 0: returns the sum of losses over test samples
     * first .. end-1 and adds the number of correct predictions to *correct. */
    double (*test)(void *user, const float *params, uint64_t *correct, uint64_t first,
                   uint64_t end);
    const char *name; /* shown in results; NULL: "own" */
} at_own_model;

/* The outcome of a training. */
typedef struct at_answer {
    int   code; /* 0 done; 1 failed; 2 invalid options; 65 a damaged file, 66 a missing one (--init,
                 --resume); 74 cannot write; 75 stopped early */
    char  message[1024]; /* the error with a hint; empty on success */
    char *result;        /* result.json as text; NULL if training did not start */
} at_answer;

/* Trains the model, starting from `params` and storing the trained parameters there. `options` are
 * `count` words as on the command line of `anytime train`; options for models and data are refused.
 * Writes nothing to disk without --run DIR. With --init FILE or --resume RUN it starts from the
 * weights of that file, or from the newest checkpoint of that run, instead of `params`.
 *
 * One call at a time per process: a second one, from another thread or from your own functions, is
 * refused (code 2). Returns answer->code. */
int at_train(const at_own_model *model, float *params, int count, const char *const *options,
             at_answer *answer);

/* Releases the memory of an answer. */
void at_answer_free(at_answer *answer);

/* "0.1.0" */
const char *at_version(void);

#ifdef __cplusplus
}
#endif

#endif
