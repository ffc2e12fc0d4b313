/* empty_round.h - a round without computation, to measure what communication costs.
 *
 *     worker: reads all parameters, writes a gradient       hub: sums gradients, updates parameters
 *
 * The task computes nothing else, so running it in a world measures the overhead of that world. The
 * baselines are the same loops without hub, worker and record: in one process, or in two that use
 * plain MPI calls; and round trips of empty messages.
 */
#ifndef AT_WORLD_CORE_EMPTY_ROUND_H
#define AT_WORLD_CORE_EMPTY_ROUND_H

#include "base/err.h"
#include "base/time.h"
#include "task/task.h"
#include "world/core/update.h"
#include "world/process/launcher.h"

/* Creates the task with `floats` parameters. AT_ERR_FAILED: out of memory. */
at_err at_empty_round_task(size_t floats, at_task *task, at_fail *fail);

/* ---- baselines: median times in seconds, measured for the time `lasts` ----------------------- */

/* The loops of one round of one worker, in this process. AT_ERR_FAILED: out of memory. */
at_err at_empty_round_loops(const at_task *task, at_ns lasts, double *seconds, at_fail *fail);

/* A round trip between two processes through bells (bell.h), as in the local world. */
at_err at_empty_round_bells(at_ns spin, at_ns lasts, double *seconds, at_fail *fail);

/* Between ranks 0 and 1 with plain MPI calls; times of rank 0. */
typedef struct at_empty_round_mpi_times {
    double trip;  /* a vector there and back: ping-pong */
    double round; /* parameters there, gradient back, including the loops */
} at_empty_round_mpi_times;

/* Starts MPI. Ranks other than 0 and 1 return at once. */
at_err at_empty_round_mpi(const at_task *task, const at_launcher *launcher, at_ns lasts,
                          at_empty_round_mpi_times *times, at_fail *fail);

/* ---- building blocks ------------------------------------------------------------------------- */

/* Repeats `once` for the time `lasts`; returns the median time in seconds. */
double at_empty_round_time(void (*once)(void *self), void *self, at_ns lasts);

/* The loops of task, update and optimizer in one round, without anything around them. */
typedef struct at_round_loops {
    const at_task *task;
    float         *params, *gradient;
    at_learning    learning;
    at_updater     updater;
    uint64_t       step;
} at_round_loops;

/* *loops MUST NOT be moved while it is open. */
at_err at_round_loops_open(at_round_loops *loops, const at_task *task, at_fail *fail);
void   at_round_loops_close(at_round_loops *loops); /* also after open has failed */

/* The worker's loop and the hub's. */
void at_round_loops_pull(at_round_loops *loops);
void at_round_loops_apply(at_round_loops *loops);

#endif
