/* empty_round.h - a round without learning: what it costs to move parameters and gradients.
 *
 *     worker: reads all parameters, writes a gradient       hub: sums gradients, updates parameters
 *
 * The task computes nothing else, so a run of it in any world is the cost of that world. What it is
 * compared with are the same loops without a world (no machines, no record): in one process, or in
 * two with the plainest calls of MPI between them; and messages that nobody reads.
 */
#ifndef AT_WORLD_CORE_EMPTY_ROUND_H
#define AT_WORLD_CORE_EMPTY_ROUND_H

#include "base/err.h"
#include "base/time.h"
#include "task/task.h"
#include "world/core/update.h"
#include "world/process/launcher.h"

/* The task, with so many parameters. AT_ERR_FAILED: no memory. */
at_err at_empty_round_task(size_t floats, at_task *task, at_fail *fail);

/* ---- what rounds are compared with: median times in seconds ---------------------------------- */

/* The loops of one round of one worker, in this process, again and again for so long.
 * AT_ERR_FAILED: no memory. */
at_err at_empty_round_loops(const at_task *task, at_ns lasts, double *seconds, at_fail *fail);

/* From one process to another and back by bells (bell.h), as the local world has them. */
at_err at_empty_round_bells(at_ns spin, at_ns lasts, double *seconds, at_fail *fail);

/* Between ranks 0 and 1 by the plainest calls of MPI; the times are rank 0's. */
typedef struct at_empty_round_mpi_times {
    double trip;  /* a vector there and back: ping-pong */
    double round; /* parameters there, gradient back, with the loops */
} at_empty_round_mpi_times;

/* All ranks but the two come back at once. Starts MPI. */
at_err at_empty_round_mpi(const at_task *task, const at_launcher *launcher, at_ns lasts,
                          at_empty_round_mpi_times *times, at_fail *fail);

/* ---- parts of it ----------------------------------------------------------------------------- */

/* Does `once` again and again for so long: the median time in seconds. */
double at_empty_round_time(void (*once)(void *self), void *self, at_ns lasts);

/* What task, update and optimiser do in a round; nothing else. */
typedef struct at_round_loops {
    const at_task *task;
    float         *params, *gradient;
    at_learning    learning;
    at_updater     updater;
    uint64_t       step;
} at_round_loops;

/* It MUST not be moved while it is open. */
at_err at_round_loops_open(at_round_loops *loops, const at_task *task, at_fail *fail);
void   at_round_loops_close(at_round_loops *loops); /* also after open has failed */

/* The worker's part and the hub's. */
void at_round_loops_pull(at_round_loops *loops);
void at_round_loops_apply(at_round_loops *loops);

#endif
