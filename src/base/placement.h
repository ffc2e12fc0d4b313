/* placement.h - which cores a worker may use, so that its memory stays near them. */
#ifndef AT_BASE_PLACEMENT_H
#define AT_BASE_PLACEMENT_H

#include "base/machine.h"

/* CORE: one core each. NUMA: the cores of one memory node each. Workers take turns. */
typedef enum at_bind { AT_BIND_NONE, AT_BIND_CORE, AT_BIND_NUMA, AT_BIND_KINDS } at_bind;
extern const char *const at_bind_name[AT_BIND_KINDS];

/* Where the kernel describes memory nodes. */
#define AT_PLACEMENT_NODES "/sys/devices/system/node"

/* The cores for the worker with this index, counted from 0: a part of those this thread may use.
 * Unknown when they cannot be told apart, or with NONE. `nodes`: the folder that describes memory
 * nodes; without nodes all cores are one. */
at_cores at_placement_of(at_bind how, uint32_t index, const char *nodes);

/* Keeps this thread, and those it starts, on the cores of that worker. */
void at_placement_bind(at_bind how, uint32_t index);

#endif
