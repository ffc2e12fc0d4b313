/* net_layers.h - the net of a task, as sinks show it. */
#ifndef AT_WORLD_CORE_NET_LAYERS_H
#define AT_WORLD_CORE_NET_LAYERS_H

#include "record/record.h"
#include "task/task.h"

/* Its layers in order, to be freed by the caller; NULL when the task has no net, or there is no
 * memory, and then *count is 0. */
at_run_layer *at_layers_of(const at_task *task, uint32_t *count);

#endif
