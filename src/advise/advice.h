/* advice.h - from a log to a sentence: what would help a job, by how much, and how sure that is.
 *
 *     logs ─► measured ─► fit ─► predictions ─┐
 *                    └─► slow workers        ─┴─► advice: sentence, command, JSON, web page
 */
#ifndef AT_ADVISE_ADVICE_H
#define AT_ADVISE_ADVICE_H

#include <jansson.h>

#include "advise/fit.h"
#include "advise/measured.h"
#include "advise/predict.h"
#include "advise/slow_workers.h"

typedef struct at_advice_options {
    at_step_log_options log;
    at_delays           delays;
    double              cost; /* of one worker per hour; 0: not given */
    at_predict_progress progress;
} at_advice_options;

typedef struct at_advice {
    at_advice_options options;
    const char       *path; /* of the first log; borrowed */
    at_measured       measured;
    at_fit            fit;
    at_slow_workers   slow;
    at_predictions    predictions;
    double            ceiling; /* of any gain over fmb, computation alone */
    double            limit;   /* the same, messages included */
    double            room;    /* of any gain over the log's own strategy, messages included */
    uint32_t          best;    /* row of the predictions; the log's own when nothing helps */
    char              sentence[1200];
    char              command[4096]; /* "": change nothing */
} at_advice;

/* Reads the logs of one job (see at_measured_read) and gives advice. AT_ERR_FORMAT also when there
 * is only one worker. */
at_err at_advice_new(const char *const *paths, uint32_t count, const at_advice_options *options,
                     at_advice *advice, at_fail *fail);
void   at_advice_deinit(at_advice *advice); /* accepts a zeroed one */

/* "slow from step 181 to 194" or, when it lasts to the end, "slow since step 181". */
void at_advice_period(const at_advice *advice, const at_slow_worker *slow, char *text, size_t size);

/* What the log cannot tell and what was assumed: sentence `index`, or NULL after the last one. The
 * text is valid until the next call with the same buffer. */
const char *at_advice_note(const at_advice *advice, uint32_t index, char *buffer, size_t size);

/* Cost of a million samples under this prediction. */
double at_advice_cost(const at_advice *advice, const at_prediction *prediction);

/* Everything as one object; NULL when out of memory. */
json_t *at_advice_json(const at_advice *advice);

/* Writes a self-contained web page. */
at_err at_advice_page(const at_advice *advice, const char *path, at_fail *fail);

#endif
