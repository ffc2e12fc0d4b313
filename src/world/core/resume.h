/* resume.h - how a world begins: at step 0, or where a checkpoint was taken.
 *
 * A world calls the first when it has memory for the parameters and the second when host and
 * updater are built; workers then begin at at_resume_drawn.
 */
#ifndef AT_WORLD_CORE_RESUME_H
#define AT_WORLD_CORE_RESUME_H

#include "world/core/host.h"

/* Writes the first parameters: the task's own, or those of context->resume. */
at_err at_resume_params(const at_world_context *context, float *params, at_fail *fail);

/* Gives the host its saver, and puts hub and optimiser where context->resume was taken. */
at_err at_resume_host(const at_world_context *context, at_host *host, at_fail *fail);

/* The position at which a worker's walk goes on. */
uint64_t at_resume_drawn(const at_host *host, at_node worker);

#endif
