/* mpi_ranks.h - exchange among equal ranks: once per round every rank sends its turn (a message),
 * and all ranks receive the turns of all. Internal to world/.
 *
 *     rank 0  turn │ gradient ──┐                             ┌──► turns of all │ sum
 *     rank 1  turn │ gradient ──┼──► gathered │ added up ─────┼──► turns of all │ sum
 *     rank 2  turn │ gradient ──┘                             └──► turns of all │ sum
 *
 * No rank can continue without the others, so the loss of a rank ends the run. It is detected by
 * checking the process, if it is on this machine, or else by too long a silence.
 */
#ifndef AT_WORLD_MPI_MPI_RANKS_H
#define AT_WORLD_MPI_MPI_RANKS_H

#include "message/message.h"
#include "step/event.h"
#include "world/mpi/mpi_comm.h"
#include "world/process/backoff.h"
#include "world/process/failure_detector.h"

typedef struct at_mpi_ranks {
    const at_launcher  *launcher;
    at_mpi_calls       *calls;
    at_worker_note     *hello; /* of each rank */
    bool               *near;  /* on this machine: its process can be checked */
    at_turn_message    *turn;  /* last turn of each rank */
    at_ns               ahead; /* clock of rank 0 minus our clock */
    at_backoff          backoff;
    at_listening_clock  clock;
    at_failure_detector detector; /* of the other ranks */
    at_ns               watched_at, progress_at;
    bool                met;   /* all ranks take part in the exchange under way */
    size_t              begun; /* chunks of its sum */
    uint32_t            lost;  /* a rank that is gone; UINT32_MAX: none, or unknown which */
    bool                broken;
    at_fail  fail; /* why, when MPI failed or a rank sent nonsense; err AT_OK: it did not */
    uint32_t user_calls;
    uint32_t requester; /* rank whose request is to be answered; UINT32_MAX: none */
    void    *self;      /* for `answer`; both may be set after open */
    void (*answer)(void *self, uint32_t rank);
    uint32_t announced; /* notice that we send once: the lost rank */
    uint32_t notice;    /* received from another rank */
} at_mpi_ranks;

/* Exchanges the HELLOs of all ranks, which have been admitted. `calls` is the number of calls
 * reserved for the user, `lease` the silence to tolerate (0: it adapts). */
at_err at_mpi_ranks_open(at_mpi_ranks *ranks, const at_launcher *launcher,
                         const at_worker_note *hello, uint32_t calls, at_ns spin_ns, at_ns lease,
                         at_fail *fail);

/* Ends the exchange because of what a rank sent. */
void at_mpi_ranks_blame(at_mpi_ranks *ranks, uint32_t rank, const at_fail *fail);

/* Index of the i-th user call. User calls have ended after at_mpi_ranks_take_turns, or after
 * `settle`, which returns false when a rank is gone. */
uint32_t at_mpi_ranks_call(const at_mpi_ranks *ranks, uint32_t i);
bool     at_mpi_ranks_settle(at_mpi_ranks *ranks);

/* Sends a request to a rank, which answers it during its next turn. */
void at_mpi_ranks_ask(at_mpi_ranks *ranks, uint32_t rank);

/* The current time on the clock of rank 0. */
at_ns at_mpi_ranks_now(const at_mpi_ranks *ranks);

/* What the ranks add up in place; `count` 0: nothing. */
typedef struct at_mpi_sum {
    float *floats;
    size_t count;
    size_t trained; /* the rest is statistics, which are final last */
} at_mpi_sum;

/* Begins to add up what at_mpi_ranks_take_turns will be called for: `from` .. trained is final. May
 * be called often, with smaller and smaller `from`, and by some of the ranks only. */
void at_mpi_ranks_sum_early(at_mpi_ranks *ranks, const at_mpi_sum *sum, size_t from);

/* Sends `mine`, receives ranks->turn, and adds up the floats of all ranks in place. False: a rank
 * is gone (`lost`), ranks->turn is unchanged and the floats are undefined. */
bool at_mpi_ranks_take_turns(at_mpi_ranks *ranks, const at_turn_message *mine,
                             const at_mpi_sum *sum);

/* Ends the exchange: true when all ranks can end MPI together. After a loss it announces the loss,
 * returns when the other ranks have received that or after 300 ms, and nothing may be called
 * afterwards that waits for the lost rank. */
bool at_mpi_ranks_part(at_mpi_ranks *ranks);

/* After a loss, on a rank other than 0: waits until rank 0 has ended, unless that is the lost one,
 * or for 10 seconds. Rank 0 saves and explains, and launchers end all ranks when one leaves. */
void at_mpi_ranks_await_first(at_mpi_ranks *ranks);

/* After a loss: true when the process of the lost rank has certainly ended. */
bool at_mpi_ranks_is_buried(const at_mpi_ranks *ranks);

#endif
