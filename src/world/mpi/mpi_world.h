/* mpi_world.h - the MPI world as seen by the program: shutdown, version, and what ranks must share.
 *
 *     rank 0       hub: decides, holds the parameters, evaluates, records, prints
 *     rank 1 ..    workers: compute; they print nothing and write nothing
 *
 * Ranks agree on how they end. A program that trains and was started by a launcher with more than
 * one rank MUST therefore call at_mpi_world_end last, even if it failed before training: the other
 * ranks wait for it.
 */
#ifndef AT_WORLD_MPI_MPI_WORLD_H
#define AT_WORLD_MPI_MPI_WORLD_H

#include <stddef.h>

#include "base/err.h"
#include "message/message.h"
#include "world/core/world.h"
#include "world/process/launcher.h"

/* Ends a rank, whether it trained or failed; the hub reports the failure of a worker. Returns true
 * when MPI was shut down. Otherwise a rank was lost, and the process MUST leave by _exit, because
 * anything that waits for the lost rank hangs. */
bool at_mpi_world_end(const at_launcher *launcher, const at_fail *fail);

/* Name and version of the MPI library; does not start it. */
void at_mpi_version(char *text, size_t size);

/* ---- internal to world/ ---------------------------------------------------------------------- */

/* A hash over what must be the same on all ranks: program, model, data and memory layout. */
uint64_t at_job_fingerprint(const at_world_context *context);

/* Checks the HELLO of a rank against the fingerprint of rank 0 on `host`. Fails if the rank cannot
 * take part or is not the same. */
at_err at_job_check(const at_worker_note *hello, uint32_t rank, uint64_t fingerprint,
                    const char *host, at_fail *fail);

#endif
