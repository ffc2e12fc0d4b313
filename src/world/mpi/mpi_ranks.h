/* mpi_ranks.h - ranks as equals: once a round each of them says its turn, and all hear the same.
 * Internal to world/.
 *
 *     rank 0  turn │ gradient ──┐                             ┌──► turns of all │ sum
 *     rank 1  turn │ gradient ──┼──► gathered │ added up ─────┼──► turns of all │ sum
 *     rank 2  turn │ gradient ──┘                             └──► turns of all │ sum
 *
 * Nobody can go on without everybody, so a rank that is gone ends the run: it is noticed by its
 * process, where it is on this machine, and else by a silence that is too long.
 */
#ifndef AT_WORLD_MPI_MPI_RANKS_H
#define AT_WORLD_MPI_MPI_RANKS_H

#include "message/message.h"
#include "step/event.h"
#include "world/mpi/mpi_comm.h"
#include "world/process/backoff.h"
#include "world/process/evaluator.h"
#include "world/process/failure_detector.h"

/* What a rank says. All ranks run the same program, so these are the bytes that move. */
typedef struct at_mpi_turn {
    at_report     report;
    uint64_t      drawn;
    at_ns         now;            /* on the clock of rank 0 */
    uint64_t      version, trace; /* of its hub */
    uint64_t      hash;           /* of its parameters; 0: not taken this time */
    at_evaluation evaluation;     /* of rank 0, when it `has_verdict` */
    bool          has_verdict, stops;
    char          engine[AT_ENGINE_NAME_SIZE]; /* what computes there */
} at_mpi_turn;

typedef struct at_mpi_ranks {
    const at_launcher  *launcher;
    at_mpi_calls       *calls;
    at_worker_note     *hello; /* of each rank */
    bool               *near;  /* on this machine, so that its process can be looked at */
    at_mpi_turn        *turn;  /* of each rank, as heard last */
    at_ns               ahead; /* of our clock: that of rank 0 */
    at_backoff          backoff;
    at_listening_clock  ear;
    at_failure_detector detector; /* of the others */
    at_ns               watched_at, news_at;
    uint32_t            lost; /* a rank that is gone; UINT32_MAX: none, or nobody knows which */
    bool                broken;
    uint32_t            others; /* calls of our user */
    uint32_t            asker;  /* who has asked us something; UINT32_MAX: nobody */
    void               *self;   /* who answers; may be set after open */
    void (*answer)(void *self, uint32_t rank);
    uint32_t      said; /* who is lost, as we say, and as the others do: */
    unsigned char word[AT_WORKER_NOTE];
} at_mpi_ranks;

/* Starts MPI and introduces all ranks to each other; hello->fail says why this one cannot take
 * part, if so. Fails everywhere alike when one cannot, or has something else in mind
 * (`fingerprint`). */
at_err at_mpi_ranks_open(at_mpi_ranks *ranks, const at_launcher *launcher,
                         const at_worker_note *hello, uint32_t calls, at_ns spin_ns, at_fail *fail);

/* The i-th of the calls that were asked for at open. Whatever is begun with them has ended when
 * turns are taken, or by itself with `settle`, which is false when a rank is gone. */
uint32_t at_mpi_ranks_call(const at_mpi_ranks *ranks, uint32_t i);
bool     at_mpi_ranks_settle(at_mpi_ranks *ranks);

/* Asks a rank, which hears it when it takes its next turn, or is about to. */
void at_mpi_ranks_ask(at_mpi_ranks *ranks, uint32_t rank);

/* Our time on the clock of rank 0. */
at_ns at_mpi_ranks_now(const at_mpi_ranks *ranks);

/* Says `mine`, hears ranks->turn, and adds up the floats of all ranks in place. False: a rank is
 * gone (`lost`), ranks->turn is as before and the floats are void. */
bool at_mpi_ranks_take_turns(at_mpi_ranks *ranks, const at_mpi_turn *mine, float *floats,
                             size_t count);

/* The end: true when all can end MPI together. After a loss tells the others, and returns when they
 * have heard it, or after a moment; then nothing may be done that waits for the lost one. */
bool at_mpi_ranks_part(at_mpi_ranks *ranks);

/* After a loss: is it certain that the process of the lost rank is no more? */
bool at_mpi_ranks_is_buried(const at_mpi_ranks *ranks);

#endif
