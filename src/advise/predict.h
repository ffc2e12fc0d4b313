/* predict.h - what every strategy would make of a measured job.
 *
 *     measured, fit ─► simulation that repeats the log    ─► gain over the log's own strategy
 *                  ├─► the same with resampled logs       ─► interval of the gain
 *                  └─► simulation with the fitted pace    ─► a second opinion
 *
 * All strategies have the same mean batch per worker and round, and compute the same number of
 * samples. A resampled log consists of blocks of consecutive steps of the log, drawn at random, so
 * that slow periods and what happens to several workers at once stay together.
 */
#ifndef AT_ADVISE_PREDICT_H
#define AT_ADVISE_PREDICT_H

#include "advise/fit.h"
#include "advise/measured.h"

enum { AT_PREDICTIONS_MAX = 32 };

typedef struct at_prediction {
    const char *strategy;
    char        settings[48];    /* what to set besides the strategy; "": nothing */
    double      step_s, rate;    /* seconds per step, used samples per second */
    double      batch;           /* mean samples per round */
    double      useful;          /* share of worker time */
    double      staleness;       /* mean */
    double      gain, low, high; /* rate relative to the log's own strategy, with 95 % interval */
    double      fitted_gain;     /* the same with the fitted pace */
} at_prediction;

typedef struct at_predictions {
    at_prediction row[AT_PREDICTIONS_MAX];
    uint32_t      count, own;    /* own: the strategy of the log */
    uint32_t      resampled;     /* logs behind the intervals */
    char          left_out[120]; /* strategies that take too long to simulate; "": none */
} at_predictions;

/* Receives progress: rounds of simulations of all strategies, and how many there are. */
typedef struct at_predict_progress {
    void (*report)(void *self, uint64_t done, uint64_t total); /* NULL: nobody wants to know */
    void *self;
} at_predict_progress;

/* Predicts all strategies that differ in time alone: those whose batches follow the loss, and those
 * that a simulation refuses, are left out. No gain over fmb exceeds `limit`. The same input gives
 * the same result. */
at_err at_predict(const at_measured *measured, const at_fit *fit, double limit,
                  at_predict_progress progress, at_predictions *predictions, at_fail *fail);

/* One simulation of the job; with `replay` of the log itself, otherwise with the fitted pace. */
at_err at_predict_one(const at_measured *measured, const at_fit *fit, const char *strategy,
                      bool replay, at_prediction *prediction, at_fail *fail);

#endif
