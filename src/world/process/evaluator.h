/* evaluator.h - scoring snapshots beside the training, in a process of its own at idle priority.
 *
 * The hub copies the parameters into a snapshot and rings; the evaluator scores the whole test set
 * and rings back. It is never waited for while training goes on: an evaluation that is due while
 * the last one still runs is skipped (hub.c decides that).
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
    at_ns    at; /* when the snapshot was taken */
    at_score score;
} at_evaluation;

/* A score as metrics; those that it does not have are not numbers. score->count MUST not be 0. */
void at_score_metrics(double value[AT_METRIC_COUNT], const at_score *score);

/* Forks the evaluator; it rings `bell` when it has something. NULL test set (task->test_samples 0):
 * *evaluator is NULL and nothing is ever evaluated. */
at_err at_evaluator_open(const at_task *task, at_bell *bell, at_evaluator **evaluator,
                         at_fail *fail);

/* Ends and reaps it; accepts NULL. */
void at_evaluator_close(at_evaluator *evaluator);

/* Takes a snapshot and starts scoring. MUST NOT be called while one is under way. */
void at_evaluator_begin(at_evaluator *evaluator, const float *params, uint64_t step, at_ns now);

/* True once per evaluation, when it is there. */
bool at_evaluator_take(at_evaluator *evaluator, at_evaluation *evaluation);

/* Its process; 0 when there is none. */
pid_t at_evaluator_pid(const at_evaluator *evaluator);

/* Is one under way? */
bool at_evaluator_busy(const at_evaluator *evaluator);

/* Waits until the evaluation under way is there, as long as it makes progress; false when it was
 * stuck or died twice. */
bool at_evaluator_wait(at_evaluator *evaluator, at_evaluation *evaluation);

/* Did this child end? Then the evaluator is started anew and repeats what it was doing. */
bool at_evaluator_reap(at_evaluator *evaluator);

#endif
