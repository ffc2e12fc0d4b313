/* mpi_comm.h - non-blocking MPI communication.
 *
 * MPI does not report the death of a rank: calls to and from it stay open forever, and whatever
 * waits for them hangs. So calls are only started here, and one function polls for those that have
 * ended. All sends are synchronous: they end when the receiver has started to receive, which bounds
 * the amount of data in transit.
 *
 * Errors: MPI returns them instead of ending the program, and every return code goes through
 * at_mpi_check. A call that cannot be started, or a poll that fails, is remembered by its set
 * (at_mpi_calls_check), and the owner of the set ends its part of the run. A call that fails after
 * it was started ends as any other, with its error: usually the other rank is gone, or has sent
 * more than fits.
 */
#ifndef AT_WORLD_MPI_MPI_COMM_H
#define AT_WORLD_MPI_MPI_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "message/message.h"
#include "world/process/launcher.h"

/* AT_OK for MPI_SUCCESS; else *fail says which call failed and what MPI says about `code`. */
at_err at_mpi_check(int code, const char *call, at_fail *fail);

/* Starts MPI. Later calls in the same process start a new session, which does not receive messages
 * of the previous one. Fails when MPI and the launcher disagree about the ranks: then the program
 * was built with another MPI than the launcher's. */
at_err at_mpi_start(const at_launcher *launcher, at_fail *fail);

/* True while a session is open: between at_mpi_start and at_mpi_session_end. */
bool at_mpi_is_started(void);

/* True in a session whose ranks are those of the launcher. */
bool at_mpi_has_ranks(void);

/* Ends the session; MPI itself stays up, for a later one. */
void at_mpi_session_end(void);

/* Shuts MPI down together with all other ranks, none of which may be lost. Does nothing when the
 * program had started MPI by itself, or has shut it down. */
void at_mpi_finish(void);

/* Kills all ranks; does not return. */
void at_mpi_abort(int code);

/* Name of this machine, with unusual characters replaced. */
void at_mpi_host(char name[AT_HOST_NAME_SIZE]);

/* Memory for messages. The first `likely` bytes are touched now, so that the first steps do not pay
 * for page faults. NULL: out of memory. */
void *at_mpi_alloc(size_t size, size_t likely);

typedef enum at_mpi_tag {
    AT_MPI_TAG_MAIL = 1,
    AT_MPI_TAG_REPORT,
    AT_MPI_TAG_NOTE,
    AT_MPI_TAG_VECTOR,
    AT_MPI_TAG_ANSWER,
    AT_MPI_TAG_PART
} at_mpi_tag;

#define AT_MPI_ANY_RANK UINT32_MAX

/* A fixed number of calls (MPI requests), identified by index; each is open or not. */
typedef struct at_mpi_calls at_mpi_calls;
at_mpi_calls               *at_mpi_calls_new(uint32_t count); /* NULL: out of memory */
/* Releases the set. MPI may still use the memory of messages whose calls are open. */
void at_mpi_calls_free(at_mpi_calls *calls);
/* Cancels all receives at the end of a session. True: no call is open any more, and the memory of
 * all messages may be released. */
bool at_mpi_calls_end(at_mpi_calls *calls);

/* The first failure of a call of this set to start, or of a poll; AT_OK: there was none. */
at_err at_mpi_calls_check(const at_mpi_calls *calls, at_fail *fail);

/* Starts to send. The bytes MUST NOT change while the call is open. */
void at_mpi_send(at_mpi_calls *calls, uint32_t call, const void *bytes, size_t units, uint32_t rank,
                 at_mpi_tag tag);

/* Starts to receive at most `units` units. */
void at_mpi_receive(at_mpi_calls *calls, uint32_t call, void *bytes, size_t units, uint32_t rank,
                    at_mpi_tag tag);

/* Starts a collective operation; all ranks MUST start them in the same order.
 * gather: every rank gets the `units` of all ranks, in rank order.
 * sum: adds up the floats of all ranks in place; the same bits on every rank, in no fixed order.
 * broadcast: all ranks get the floats of rank `root`. */
void at_mpi_gather_all(at_mpi_calls *calls, uint32_t call, const void *mine, void *all,
                       size_t units);
void at_mpi_sum_all(at_mpi_calls *calls, uint32_t call, float *floats, size_t count);
void at_mpi_broadcast(at_mpi_calls *calls, uint32_t call, float *floats, size_t count,
                      uint32_t root);

/* True while a call has been started and has not ended. */
bool at_mpi_is_open(const at_mpi_calls *calls, uint32_t call);

/* Cancels a receive. Its memory MUST NOT be used again. */
void at_mpi_cancel(at_mpi_calls *calls, uint32_t call);

/* A call that has ended. */
typedef struct at_mpi_done {
    uint32_t call;
    uint32_t rank;  /* receives: the sender */
    size_t   units; /* receives: the length */
    int      error; /* for at_mpi_check; 0: it ended well */
} at_mpi_done;

/* Lets MPI make progress and lists the calls that have ended; valid until the next poll. Returns
 * their number. */
uint32_t at_mpi_poll(at_mpi_calls *calls, const at_mpi_done **done);

#endif
