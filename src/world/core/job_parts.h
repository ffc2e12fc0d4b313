/* job_parts.h - what must be the same in all processes of a job, as one hash per part.
 *
 * A worker that joins over a network or MPI sends its hashes (HELLO); the hub compares them with
 * its own and names the parts that differ.
 */
#ifndef AT_WORLD_CORE_JOB_PARTS_H
#define AT_WORLD_CORE_JOB_PARTS_H

#include "base/err.h"
#include "message/message.h"
#include "world/core/world.h"

/* Hashes of what must be the same on all ranks. */
void at_job_parts(const at_world_context *context, uint64_t part[AT_JOB_PARTS]);

/* AT_ERR_USAGE with what differs between a worker that joins and its hub. */
at_err at_job_compare(const at_worker_note *hello, const uint64_t part[AT_JOB_PARTS],
                      at_fail *fail);

/* Checks the HELLO of a rank against the parts of rank 0 on `host`. Fails if the rank cannot take
 * part, or differs, and names what differs. */
at_err at_job_check(const at_worker_note *hello, uint32_t rank, const uint64_t part[AT_JOB_PARTS],
                    const char *host, at_fail *fail);

#endif
