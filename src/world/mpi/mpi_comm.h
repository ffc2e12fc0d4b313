/* mpi_comm.h - the few calls of MPI that we need. Nothing here waits.
 *
 * A death is never told by MPI: calls to and from the dead stay open for ever, and anything that
 * waits for them hangs. So there are only calls that begin something and one that looks what has
 * ended. All sends are synchronous ones: they end when the other side has begun to take the
 * message, which is the acknowledgement that bounds how much is under way.
 */
#ifndef AT_WORLD_MPI_MPI_COMM_H
#define AT_WORLD_MPI_MPI_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "world/process/launcher.h"

/* Starts MPI for this process, once; afterwards a new season, in which no message of the one before
 * is heard. Refuses when it does not find the ranks that the launcher has told: then launcher and
 * library do not belong together. */
at_err at_mpi_start(const at_launcher *launcher, at_fail *fail);
bool   at_mpi_is_started(void);

/* Ends MPI together with all other ranks, which MUST all be there. */
void at_mpi_finish(void);

/* Ends all ranks, wherever they are, in whatever state; does not return. */
void at_mpi_abort(int code);

typedef enum at_mpi_tag { AT_MPI_TAG_MAIL = 1, AT_MPI_TAG_REPORT, AT_MPI_TAG_NOTE } at_mpi_tag;

#define AT_MPI_ANYBODY UINT32_MAX

/* A fixed number of calls, each of which can be open. They are known by their index. */
typedef struct at_mpi_calls at_mpi_calls;
at_mpi_calls               *at_mpi_calls_new(uint32_t count); /* NULL: not enough memory */
/* Releases them. Calls that are open keep their memory: MPI may still use it. */
void at_mpi_calls_free(at_mpi_calls *calls);
/* At the end of a season nothing is under way any more: takes all receives back, so that their
 * memory is free. False when a call is still open: then it is not. */
bool at_mpi_calls_end(at_mpi_calls *calls);

/* Begins to send. The bytes MUST stay as they are while the call is open. */
void at_mpi_send(at_mpi_calls *calls, uint32_t call, const void *bytes, size_t units, uint32_t rank,
                 at_mpi_tag tag);

/* Begins to receive up to so many units. */
void at_mpi_receive(at_mpi_calls *calls, uint32_t call, void *bytes, size_t units, uint32_t rank,
                    at_mpi_tag tag);

/* Begins what all ranks do together, in the same order everywhere. To gather: `units` of each rank
 * come to every rank, in the order of ranks. To sum: the floats of all ranks are added up in place,
 * with the same bits at every rank, but not those of any fixed order. */
void at_mpi_gather_all(at_mpi_calls *calls, uint32_t call, const void *mine, void *all,
                       size_t units);
void at_mpi_sum_all(at_mpi_calls *calls, uint32_t call, float *floats, size_t count);
/* To cast: the floats of rank `root` come to all. */
void at_mpi_cast_all(at_mpi_calls *calls, uint32_t call, float *floats, size_t count,
                     uint32_t root);

/* Has it begun, and not ended? */
bool at_mpi_is_open(const at_mpi_calls *calls, uint32_t call);

/* Takes a receive back. Its memory MUST not be used again. */
void at_mpi_cancel(at_mpi_calls *calls, uint32_t call);

/* A call that has ended. */
typedef struct at_mpi_done {
    uint32_t call;
    uint32_t rank;  /* receives: from whom */
    size_t   units; /* receives: how much */
} at_mpi_done;

/* Moves messages along and looks what has ended; valid until the next poll. Returns how many. */
uint32_t at_mpi_poll(at_mpi_calls *calls, const at_mpi_done **done);

#endif
