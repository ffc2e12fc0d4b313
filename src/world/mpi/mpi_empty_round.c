/* Empty rounds with plain blocking MPI calls: measures what MPI itself costs. */
#include <assert.h>
#include <limits.h>
#include <mpi.h>

#include "world/core/empty_round.h"
#include "world/mpi/mpi_comm.h"

enum { MORE = 6, LAST = 7 }; /* tags that no other message has */

typedef struct ping_pong {
    at_round_loops loops;
    int            units, tag;
    bool           computes;
    at_fail        fail; /* the first failure; err AT_OK: none */
} ping_pong;

/* After a failure nothing is sent or received any more. */
static void send_vector(ping_pong *t, const float *vector, int rank)
{
    assert(t->tag == MORE || t->tag == LAST);
    if (t->fail.err) return;
    at_mpi_check(MPI_Send(vector, t->units, MPI_FLOAT, rank, t->tag, MPI_COMM_WORLD), "MPI_Send",
                 &t->fail);
}

/* True when it was the last one, or there will be no other. */
static bool receive_vector(ping_pong *t, float *vector, int rank)
{
    MPI_Status status;
    assert(t->units >= 1);
    if (t->fail.err) return true;
    int code = MPI_Recv(vector, t->units, MPI_FLOAT, rank, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    if (at_mpi_check(code, "MPI_Recv", &t->fail)) return true;
    return status.MPI_TAG == LAST;
}

/* Rank 0: a round of the hub, or one round trip. */
static void lead(void *self)
{
    ping_pong *t = self;
    assert(t->units >= 1);
    send_vector(t, t->loops.params, 1);
    receive_vector(t, t->computes ? t->loops.gradient : t->loops.params, 1);
    if (t->computes) at_round_loops_apply(&t->loops);
}

/* Rank 1: answers until the last message. */
static void follow(ping_pong *t)
{
    bool last;
    assert(t->units >= 1);
    do {
        last = receive_vector(t, t->loops.params, 0);
        if (t->computes) at_round_loops_pull(&t->loops);
        send_vector(t, t->computes ? t->loops.gradient : t->loops.params, 0);
    } while (!last);
}

static double measure(ping_pong *t, bool computes, uint32_t rank, at_ns lasts)
{
    double seconds = 0;
    assert(rank <= 1);
    t->computes = computes;
    t->tag = MORE;
    if (rank == 1) {
        follow(t);
        return 0;
    }
    seconds = at_empty_round_time(lead, t, lasts);
    t->tag = LAST;
    lead(t);
    return seconds;
}

at_err at_empty_round_mpi(const at_task *task, const at_launcher *launcher, at_ns lasts,
                          at_empty_round_mpi_times *times, at_fail *fail)
{
    static ping_pong t; /* static, because the loops must not move */
    assert(launcher->size >= 2 && task->params <= INT_MAX);
    if (!at_mpi_is_started()) AT_TRY(at_mpi_start(launcher, fail));
    if (launcher->rank > 1) return AT_OK;
    t = (ping_pong){.units = (int)task->params};
    at_err err = at_round_loops_open(&t.loops, task, fail);
    if (!err) times->trip = measure(&t, false, launcher->rank, lasts / 2);
    if (!err) times->round = measure(&t, true, launcher->rank, lasts / 2);
    at_round_loops_close(&t.loops);
    if (!err && t.fail.err) *fail = t.fail;
    return err ? err : t.fail.err;
}
