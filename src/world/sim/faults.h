/* faults.h - parses the faults injected into workers in virtual time (--faults). */
#ifndef AT_WORLD_SIM_FAULTS_H
#define AT_WORLD_SIM_FAULTS_H

#include "world/core/world.h"

enum { AT_FAULTS_MAX = 1024, AT_FAULTS_TRACE_MAX = 200000 };

/* The run that the faults are for. */
typedef struct at_fault_options {
    uint32_t workers, workers_max;
    bool     respawn;     /* dead workers are replaced */
    double   trace_scale; /* times of a trace are multiplied by this; 0 means 1 */
} at_fault_options;

/* Reads --faults: "trace:FILE" (fault_trace.h), or faults as at_faults_parse expects them. *faults
 * is in order of time and released with free(); NULL when there are none. */
at_err at_faults_read(const char *text, const at_fault_options *options, at_fault **faults,
                      size_t *count, at_fail *fail);

/* Sorts in order of time, then by worker. */
void at_faults_sort(at_fault *faults, size_t count);

/* Parses "die:W@T, die:W@T+D, freeze:W@T+D, late:W@T+D, join:W@T, ..": worker W (1 .. workers_max)
 * dies at time T (and is replaced after D), is stopped at T for D, sends its next report after T
 * with D more delay, or joins at T. Fills the array (AT_FAULTS_MAX long) in order of time. NULL: no
 * faults. */
at_err at_faults_parse(const char *text, uint32_t workers_max, at_fault *faults, size_t *count,
                       at_fail *fail);

/* Checks joins in a run that starts with workers 1 .. workers: AT_ERR_USAGE when a worker certainly
 * joins while it is present. Whether it is evicted is known only in the run. `respawn`: dead
 * workers are replaced. */
at_err at_faults_check(const at_fault *faults, size_t count, uint32_t workers, bool respawn,
                       at_fail *fail);

/* Whether any worker joins later. */
bool at_faults_have_joins(const at_fault *faults, size_t count);

/* Whether a worker has joined before `now`, and has not died since for good. */
bool at_faults_joined(const at_fault *faults, size_t count, at_node worker, bool respawn,
                      at_ns now);

#endif
