/* measured.h - what was measured in a training job: the input of `advise` and `calibrate`.
 *
 *     run folder (event log) ─┐
 *     CSV, plain or packed   ─┴─► at_measured: times of every worker in every step, the link
 */
#ifndef AT_ADVISE_MEASURED_H
#define AT_ADVISE_MEASURED_H

#include "pace/step_log.h"

enum { AT_MEASURED_MICRO_BATCHES = 64 }; /* of a round, in a log without samples */

typedef struct at_measured {
    at_step_log log;
    double     *round_s; /* (steps, workers) time of a round of `batch` samples, pause included */
    char        strategy[32];
    char       *command; /* that made the run; NULL: not one of our runs */
    uint32_t    batch, micro_batch;
    uint64_t    samples_epoch;
    double      parameters; /* of the model; 0: not known */
    double      step_s;     /* measured mean time of a step, messages included */
    double      rate;       /* measured samples per second of the whole job */
    double      latency_s;  /* of a message, beyond its transfer */
    double      transfer_s; /* of one gradient on the hub's link; 0: not known */
    uint64_t    transfers;  /* from which it was estimated */
} at_measured;

/* Reads the logs of one job: run folders, or CSV files, one or several (for example one per
 * worker). AT_ERR_MISSING, AT_ERR_IO; AT_ERR_FORMAT when a log is malformed or too short. */
at_err at_measured_read(const char *const *paths, uint32_t count,
                        const at_step_log_options *options, at_measured *measured, at_fail *fail);
void   at_measured_deinit(at_measured *measured); /* accepts a zeroed one */

/* mean(slowest) and the ceiling of any gain over a step that waits for everybody,
 * mean(slowest) x mean(1/t), both over rounds of equal size. */
double at_measured_slowest(const at_measured *measured);
double at_measured_ceiling(const at_measured *measured);

#endif
