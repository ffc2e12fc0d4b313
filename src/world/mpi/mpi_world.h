/* mpi_world.h - what a program started by a launcher must know about the MPI world.
 *
 *     rank 0       hub: decides, keeps the parameters, evaluates, records, speaks to people
 *     rank 1 ..    workers: compute; they print nothing and write nothing
 *
 * Ranks agree on how they end. So whoever was started by a launcher of more than one rank, and
 * trains, MUST call at_mpi_world_end as the last thing, also when it failed before it came to
 * training: the others would wait for it.
 */
#ifndef AT_WORLD_MPI_MPI_WORLD_H
#define AT_WORLD_MPI_MPI_WORLD_H

#include <stddef.h>

#include "base/err.h"
#include "world/process/launcher.h"

/* The end of a rank that trained, or could not. A worker's failure is told by the hub. Returns
 * whether MPI was ended in order; otherwise somebody was lost, and the process MUST leave by _exit,
 * because nothing that waits for the lost one would end. */
bool at_mpi_world_end(const at_launcher *launcher, const at_fail *fail);

/* Name and version of the MPI library; does not start it. */
void at_mpi_version(char *text, size_t size);

#endif
