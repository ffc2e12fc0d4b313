/* fit.h - the pace of a measured job: how fast each worker is and how it varies.
 *
 * A round of worker w takes base_w, its usual time, and now and then longer. Whether the excess is
 * a pause (the worker stands still, then computes as usual) or slow computing makes no difference
 * to a fixed round but decides how many samples a timed one has. Our runs record pauses. A CSV log
 * does not; there, delays that come and go from round to round count as pauses, and delays that
 * last count as slow computing, because a machine that shares its processor is slow for a while.
 */
#ifndef AT_ADVISE_FIT_H
#define AT_ADVISE_FIT_H

#include "advise/measured.h"
#include "base/text.h"

enum { AT_FIT_MIXTURE_MAX = 4 };

/* How to count delays of a CSV log. */
typedef enum at_delays { AT_DELAYS_AUTO, AT_DELAYS_PAUSE, AT_DELAYS_SLOW } at_delays;

typedef struct at_fit {
    double  sample_s;        /* of an average worker, in a usual round; unit of `factor` */
    double  sample_fitted_s; /* the same for the fitted pace, with the mean of all normal rounds */
    double *speed;           /* (workers) factor on it */
    double *base_s;          /* (workers) usual time of a round */
    bool    pauses;          /* delays are pauses */
    bool    recorded;        /* pauses are recorded, not guessed */
    double  persistence;     /* correlation of a worker's delays in consecutive rounds */
    /* Slow periods; start 0: none. */
    double burst_start, burst_length, burst_factor;
    double vary; /* standard deviation of the logarithm of other rounds */
    /* Pauses: component i has this weight, mean and standard deviation. */
    uint32_t components;
    struct {
        double mean, sd, weight;
    } pause[AT_FIT_MIXTURE_MAX];
    /* The log itself as a pace (steps, workers). */
    double *sleep_s, *factor;
} at_fit;

/* Fits the log. AT_ERR_FAILED when out of memory. */
at_err at_fit_new(const at_measured *measured, at_delays delays, at_fit *fit, at_fail *fail);
void   at_fit_deinit(at_fit *fit); /* accepts a zeroed one */

/* The fitted pace as a value of --straggler. */
void at_fit_straggler(const at_fit *fit, uint32_t workers, at_text *text);

/* Fits normal components to the pauses (count >= 1, each >= 0, reordered): one for those that are
 * negligible beside `scale`, up to three for the others, chosen by the Bayesian information
 * criterion. */
void at_fit_mixture(at_fit *fit, double *pauses, size_t count, double scale);

#endif
