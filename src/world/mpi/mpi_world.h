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
#include "world/core/world.h"
#include "world/process/launcher.h"

/* Ends a rank, whether it trained or failed; the hub reports the failure of a worker. *code is the
 * exit code of this rank: when the job failed, that of rank 0 on all ranks, so that it does not
 * matter to the launcher which one ends first. Returns true when MPI was shut down. Otherwise a
 * rank was lost, and the process MUST leave by _exit, because anything that waits for the lost rank
 * hangs. */
bool at_mpi_world_end(const at_launcher *launcher, const at_fail *fail, int *code);

/* ---- programs that go on after a run (the library) ---- */

/* AT_ERR_USAGE when this process cannot run in the MPI world once more: a rank was lost, or a run
 * without a hub of its own has used the connections. */
at_err at_mpi_world_check(at_fail *fail);

/* As at_mpi_world_end, but MPI stays up: at_mpi_world_share and another run may follow. MPI is shut
 * down when the process exits. Returns false after the loss of a rank. */
bool at_mpi_world_leave(const at_launcher *launcher, const at_fail *fail, int *code);

/* After at_mpi_world_leave, on all ranks: gives them the bytes of rank 0. False: not received; on
 * rank 0: some rank that was not lost has not taken them in a minute. */
bool at_mpi_world_share(const at_launcher *launcher, void *bytes, size_t size);

/* Ends what at_mpi_world_leave has kept open for sharing. */
void at_mpi_world_shared(void);

/* Name and version of the MPI library; does not start it. */
void at_mpi_version(char *text, size_t size);

/* ---- internal to world/ ---------------------------------------------------------------------- */

/* Ends this rank's part of the job without ending MPI. True: all ranks are there. */
bool at_mpi_world_part(const at_launcher *launcher, const at_fail *fail, int *code);

#endif
