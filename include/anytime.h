/* anytime.h - train your own model with many unequal workers, under any strategy.
 *
 * You write one function: the SUM of the losses over samples [first, end) and, ADDED to `gradient`,
 * the SUM of their gradients. Sums, not means: then fast and slow workers weigh by what they did
 * without further ado. anytime calls it in worker processes, for a micro-batch at a time.
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
 * Link with -lanytime. Workers are forked from the calling process, so they see your data as it was
 * when at_train was called and need no copy of it; what they write to memory of yours is lost with
 * them. Samples are walked in order, each worker from a place of its own: shuffle them beforehand.
 */
#ifndef ANYTIME_H
#define ANYTIME_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A model of your own. Zero what you do not need. */
typedef struct at_own_model {
    void    *user;         /* handed to your functions as it is */
    uint64_t parameters;   /* floats in the parameter vector, at least 1 */
    uint64_t samples;      /* training samples; one epoch */
    uint64_t test_samples; /* 0: nothing is evaluated */
    /* Returns the sum of losses over training samples first .. end-1, and adds the sum of their
     * gradients to `gradient` (which may hold earlier sums). MUST NOT keep the pointers. */
    double (*loss)(void *user, const float *params, float *gradient, uint64_t first, uint64_t end);
    /* Optional, needed when test_samples > 0: returns the sum of losses over test samples
     * first .. end-1 and adds how many of them were right to *correct. */
    double (*test)(void *user, const float *params, uint64_t *correct, uint64_t first,
                   uint64_t end);
    const char *name; /* for people; NULL: "own" */
} at_own_model;

/* How it went. */
typedef struct at_answer {
    int   code;          /* 0 done; 1 failed; 2 wrong settings; 74 cannot write; 75 stopped early */
    char  message[1024]; /* what went wrong, with a hint; empty when nothing did */
    char *result;        /* result.json as text, NULL when training never began */
} at_answer;

/* Trains from the parameters in `params`, which are replaced by the trained ones. `options` are
 * `count` words as on the command line of `anytime train`; those about models and data are refused.
 * Nothing is written to disk unless --run DIR is among them. Returns answer->code. */
int at_train(const at_own_model *model, float *params, int count, const char *const *options,
             at_answer *answer);

/* Releases what the answer holds. */
void at_answer_free(at_answer *answer);

/* "0.1.0" */
const char *at_version(void);

#ifdef __cplusplus
}
#endif

#endif
