/* slow_workers.h - which workers hold the others up, since when, and what replacing them gives.
 *
 * A worker's time is compared with the median of its step. Its sequence of ratios is split where
 * its mean changes (binary segmentation); a part whose median is well above 1 is a slow period.
 */
#ifndef AT_ADVISE_SLOW_WORKERS_H
#define AT_ADVISE_SLOW_WORKERS_H

#include "advise/measured.h"

enum { AT_SLOW_WORKERS_MAX = 16 };

typedef struct at_slow_worker {
    uint32_t worker;     /* index in the log */
    uint32_t begin, end; /* steps of the slow period that costs most: begin .. end - 1 */
    double   factor;     /* median ratio in it */
    double   gain;       /* of a step that waits for everybody, had it been as fast as the median */
} at_slow_worker;

typedef struct at_slow_workers {
    at_slow_worker worker[AT_SLOW_WORKERS_MAX]; /* the most expensive first */
    uint32_t       count;
    double         gain; /* of replacing all of them */
} at_slow_workers;

/* Finds them. AT_ERR_FAILED when out of memory. */
at_err at_slow_workers_find(const at_measured *measured, at_slow_workers *slow, at_fail *fail);

#endif
