/* run_checks.h - refuses settings that do not fit together, before a run starts. */
#ifndef AT_WORLD_CORE_RUN_CHECKS_H
#define AT_WORLD_CORE_RUN_CHECKS_H

#include "model_io/checkpoint.h"
#include "world/core/run.h"

/* AT_ERR_USAGE with a sentence when a run cannot be done with these options in their world. The
 * context has its plan, task, launcher and delays. */
at_err at_run_check(const at_run_options *options, const at_world_context *context, at_fail *fail);

/* Whether the result of the run up to this step was written. */
bool at_run_has_result(const at_checkpoint *checkpoint);

/* Bytes that the workers on this machine need besides the data, about. */
double at_run_memory(const at_run_options *options, const at_world_context *context);

/* Number of workers that compute on this machine. */
uint32_t at_run_workers_here(const at_world *world, const at_world_context *context);

#endif
