/* fault_trace.h - faults of real clusters, for --faults trace:FILE.
 *
 * Two kinds of files:
 *
 *   fault events   CSV with a header and the columns days (or hours, seconds), node (or worker) and
 *                  event (start or end); others are ignored. Node W is worker W; nodes above
 *                  --workers-max are left out. From start to end the worker is dead; a fault
 *                  without an end lasts until the run ends.
 *
 *   availability   JSON {"metadata": {"gap_seconds": S}, "data": [c0, c1, ..]}: how many spot
 *                  instances could be had every S seconds. With c instances, workers 1 .. c are
 *                  present, up to --workers-max. Time 0 of the run is when --workers instances
 *                  could be had for the first time.
 *
 * All times are multiplied by the trace scale.
 */
#ifndef AT_WORLD_SIM_FAULT_TRACE_H
#define AT_WORLD_SIM_FAULT_TRACE_H

#include "world/sim/faults.h"

/* Reads a file of either kind. AT_ERR_MISSING, AT_ERR_IO, AT_ERR_FORMAT with the line number. The
 * caller frees *faults, also after a failure. */
at_err at_fault_trace_read(const char *path, const at_fault_options *options, at_fault **faults,
                           size_t *count, at_fail *fail);

#endif
