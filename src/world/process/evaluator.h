/* evaluator.h - scores parameters on the test set in a separate process.
 *
 * The hub copies the parameters to shared memory and rings; the evaluator scores the whole test set
 * and rings back. Training never waits for it: an evaluation that is due while the previous one
 * still runs is skipped and counted (decided in hub.c).
 *
 * It runs at idle priority, so where a core is free it takes nothing from training. On a busy
 * machine it would starve: one that is not done after 50 times the processor time of the previous
 * one (the first: after a second) continues at normal priority. So each is done within that time
 * plus what it takes beside training, and costs training at most 2 %.
 */
#ifndef AT_WORLD_PROCESS_EVALUATOR_H
#define AT_WORLD_PROCESS_EVALUATOR_H

#include <sys/types.h>

#include "task/task.h"
#include "world/process/bell.h"

typedef struct at_evaluator at_evaluator;

/* A finished evaluation. */
typedef struct at_evaluation {
    uint64_t step;
    at_ns    at; /* when the parameters were copied */
    at_score score;
} at_evaluation;

/* Computes the metrics of a score; NAN where a metric does not apply. score->count MUST NOT be 0.
 */
void at_score_metrics(double value[AT_METRIC_COUNT], const at_score *score);

/* Forks the evaluator; it rings `bell` after each evaluation. Without a test set
 * (task->test_samples 0) *evaluator is NULL and nothing is ever evaluated. */
at_err at_evaluator_open(const at_task *task, at_bell *bell, at_evaluator **evaluator,
                         at_fail *fail);

/* Ends and reaps it; accepts NULL. */
void at_evaluator_close(at_evaluator *evaluator);

/* Copies the parameters and starts scoring. MUST NOT be called while an evaluation runs. */
void at_evaluator_begin(at_evaluator *evaluator, const float *params, uint64_t step, at_ns now);

/* Fetches a finished evaluation; true once per evaluation. */
bool at_evaluator_take(at_evaluator *evaluator, at_evaluation *evaluation);

/* The evaluator's process; 0 when there is none. */
pid_t at_evaluator_pid(const at_evaluator *evaluator);

/* True while an evaluation runs or has not been fetched. */
bool at_evaluator_busy(const at_evaluator *evaluator);

/* Waits for the running evaluation, now at normal priority, as long as it makes progress; false
 * when it is stuck or keeps dying. */
bool at_evaluator_wait(at_evaluator *evaluator, at_evaluation *evaluation);

/* Gives up the pending evaluation. */
void at_evaluator_drop(at_evaluator *evaluator);

/* If the evaluator has died: reaps it, and has it started again (it repeats the evaluation) at most
 * twice per evaluation. Returns what to tell the user; NULL: it has not died. Accepts NULL. */
const char *at_evaluator_reap(at_evaluator *evaluator);

/* When at_evaluator_poll has something to do, on the machine's clock; AT_NEVER: nothing. */
at_ns at_evaluator_due(const at_evaluator *evaluator); /* accepts NULL */

/* Raises the priority of an evaluation that has waited for too long, and starts a new process after
 * its back-off. Returns what to tell the user; NULL: nothing. Accepts NULL. */
const char *at_evaluator_poll(at_evaluator *evaluator, at_ns now);

#endif
