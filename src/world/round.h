/* round.h - a round without learning: what it costs to move parameters and gradients.
 *
 *     worker: reads all parameters, writes a gradient       hub: sums gradients, updates parameters
 *
 * The task computes nothing else, so a run of it in any world is the cost of that world. What it is
 * compared with are the same loops in one process (no messages, no machines, no record), and a
 * wake-up that carries nothing.
 */
#ifndef AT_WORLD_ROUND_H
#define AT_WORLD_ROUND_H

#include "base/err.h"
#include "base/time.h"
#include "world/task.h"

/* The task, with so many parameters. AT_ERR_FAILED: no memory. */
at_err at_round_task(size_t floats, at_task *task, at_fail *fail);

/* The loops of one round of one worker, in this process, again and again for so long: the median
 * time in seconds. AT_ERR_FAILED: no memory. */
at_err at_round_loops(const at_task *task, at_ns lasts, double *seconds, at_fail *fail);

/* From one process to another and back by bells (bell.h), as the local world has them: the median
 * time in seconds. */
at_err at_round_bells(at_ns spin, at_ns lasts, double *seconds, at_fail *fail);

#endif
