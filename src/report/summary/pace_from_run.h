/* pace_from_run.h - worker speeds of a recorded run, for `simulate --from` and `advise`. */
#ifndef AT_REPORT_SUMMARY_PACE_FROM_RUN_H
#define AT_REPORT_SUMMARY_PACE_FROM_RUN_H

#include <stdint.h>

#include "base/err.h"
#include "base/time.h"

typedef struct at_run_pace {
    uint32_t workers;
    uint32_t rounds;    /* rows of sleep_s */
    double  *sample_ns; /* (workers) mean time per sample, without induced sleep */
    double  *sleep_s;   /* (rounds, workers) induced sleep; 0 where a worker had no such round */
    double  *compute_s; /* (rounds, workers) computing without the sleep; 0: no such round */
    double  *samples;   /* (rounds, workers) */
    uint64_t steps;     /* after the first */
    at_ns    steps_ns;  /* their duration */
    uint64_t used;      /* samples used in them */
    at_ns    message;   /* time of an order plus its report beyond the work: median over steps */
} at_run_pace;

/* Reads the event log of a run folder. AT_ERR_MISSING when it has none, AT_ERR_FORMAT when it is
 * damaged or contains no computed samples. */
at_err at_run_pace_read(const char *folder, at_run_pace *pace, at_fail *fail);
void   at_run_pace_deinit(at_run_pace *pace); /* accepts a zeroed one */

/* Writes the sleeps as a trace for --straggler trace:FILE. */
at_err at_run_pace_write_trace(const at_run_pace *pace, const char *path, at_fail *fail);

#endif
