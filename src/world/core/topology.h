/* topology.h - who does an update: which topologies a run can have. */
#ifndef AT_WORLD_CORE_TOPOLOGY_H
#define AT_WORLD_CORE_TOPOLOGY_H

#include "world/core/run.h"

/* AT_ERR_USAGE with a sentence when this run cannot have the topology or the hubs it asks for. */
at_err at_topology_check(const at_run_options *options, const at_plan *plan, at_fail *fail);

#endif
