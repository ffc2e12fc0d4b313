#include "world/mpi/mpi_comm.h"

#include <assert.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "message/message.h"
#include "world/mpi/mpi_world.h"

_Static_assert(sizeof(float) == AT_MESSAGE_UNIT, "a unit is a float");

struct at_mpi_calls {
    uint32_t     count;
    MPI_Request *request; /* MPI_REQUEST_NULL: not open */
    int         *ended;
    MPI_Status  *status;
    at_mpi_done *done;
};

/* When a connection has broken, Open MPI may take sockets for unused and look at them every 10 ms
 * only. Messages over TCP would then be that late for the rest of the run. */
static const char SOCKETS_EVERY_US[] = "100";

static int season;

/* A tag that only this season knows. */
static int tag_of(at_mpi_tag tag)
{
    const int tags = 8;
    assert(tag > 0 && (int)tag < tags);
    return season * tags + (int)tag;
}

/* ---- beginning and end --------------------------------------------------------------------- */

bool at_mpi_is_started(void)
{
    int started = 0;
    MPI_Initialized(&started);
    return started;
}

void at_mpi_version(char *text, size_t size)
{
    char whole[MPI_MAX_LIBRARY_VERSION_STRING];
    int  length;
    MPI_Get_library_version(whole, &length);
    whole[strcspn(whole, ",\n")] = '\0';
    snprintf(text, size, "%s", whole);
}

at_err at_mpi_start(const at_launcher *launcher, at_fail *fail)
{
    int level, size, rank;
    if (at_mpi_is_started()) {
        season++;
        return AT_OK;
    }
    setenv("OMPI_MCA_mpi_event_tick_rate", SOCKETS_EVERY_US, 0);
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
        return at_fail_set(fail, AT_ERR_FAILED, NULL, "MPI could not be started");
    prctl(PR_SET_TIMERSLACK, 1L); /* naps are of microseconds */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if ((uint32_t)size == launcher->size && (uint32_t)rank == launcher->rank) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE,
                       "use the mpirun of the Open MPI that anytime was built with, or an srun "
                       "--mpi that belongs to it",
                       "%s says that this is rank %u of %u, but MPI says %d of %d: launcher and "
                       "library do not belong together",
                       launcher->name, launcher->rank, launcher->size, rank, size);
}

void at_mpi_finish(void)
{
    assert(at_mpi_is_started());
    MPI_Finalize();
}

void at_mpi_abort(int code)
{
    MPI_Abort(MPI_COMM_WORLD, code);
}

/* ---- calls --------------------------------------------------------------------------------- */

at_mpi_calls *at_mpi_calls_new(uint32_t count)
{
    at_mpi_calls *calls = calloc(1, sizeof *calls);
    assert(count >= 1);
    if (!calls) return NULL;
    calls->count = count;
    calls->request = calloc(count, sizeof *calls->request);
    calls->ended = calloc(count, sizeof *calls->ended);
    calls->status = calloc(count, sizeof *calls->status);
    calls->done = calloc(count, sizeof *calls->done);
    if (!calls->request || !calls->ended || !calls->status || !calls->done) {
        free(calls->request);
        calls->request = NULL;
        at_mpi_calls_free(calls);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) calls->request[i] = MPI_REQUEST_NULL;
    return calls;
}

void at_mpi_calls_free(at_mpi_calls *calls)
{
    if (!calls) return;
    free(calls->request); /* only names of what is open */
    free(calls->ended);
    free(calls->status);
    free(calls->done);
    free(calls);
}

bool at_mpi_calls_end(at_mpi_calls *calls)
{
    const at_ns        until = at_clock_now() + AT_MS(20);
    const at_mpi_done *done;
    uint32_t           open = calls->count;
    for (uint32_t i = 0; i < calls->count; i++)
        if (at_mpi_is_open(calls, i)) MPI_Cancel(&calls->request[i]);
    while (open > 0 && at_clock_now() < until) {
        at_mpi_poll(calls, &done);
        open = 0;
        for (uint32_t i = 0; i < calls->count; i++) open += at_mpi_is_open(calls, i);
    }
    return open == 0;
}

void at_mpi_send(at_mpi_calls *calls, uint32_t call, const void *bytes, size_t units, uint32_t rank,
                 at_mpi_tag tag)
{
    assert(!at_mpi_is_open(calls, call));
    assert(units >= 1 && units <= INT_MAX);
    MPI_Issend(bytes, (int)units, MPI_FLOAT, (int)rank, tag_of(tag), MPI_COMM_WORLD,
               &calls->request[call]);
}

void at_mpi_receive(at_mpi_calls *calls, uint32_t call, void *bytes, size_t units, uint32_t rank,
                    at_mpi_tag tag)
{
    assert(!at_mpi_is_open(calls, call));
    assert(units >= 1 && units <= INT_MAX);
    int from = rank == AT_MPI_ANYBODY ? MPI_ANY_SOURCE : (int)rank;
    MPI_Irecv(bytes, (int)units, MPI_FLOAT, from, tag_of(tag), MPI_COMM_WORLD,
              &calls->request[call]);
}

void at_mpi_gather_all(at_mpi_calls *calls, uint32_t call, const void *mine, void *all,
                       size_t units)
{
    assert(!at_mpi_is_open(calls, call));
    assert(units >= 1 && units <= INT_MAX);
    MPI_Iallgather(mine, (int)units, MPI_FLOAT, all, (int)units, MPI_FLOAT, MPI_COMM_WORLD,
                   &calls->request[call]);
}

void at_mpi_sum_all(at_mpi_calls *calls, uint32_t call, float *floats, size_t count)
{
    assert(!at_mpi_is_open(calls, call));
    assert(count >= 1 && count <= INT_MAX);
    MPI_Iallreduce(MPI_IN_PLACE, floats, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                   &calls->request[call]);
}

void at_mpi_cast_all(at_mpi_calls *calls, uint32_t call, float *floats, size_t count, uint32_t root)
{
    assert(!at_mpi_is_open(calls, call));
    assert(count >= 1 && count <= INT_MAX);
    MPI_Ibcast(floats, (int)count, MPI_FLOAT, (int)root, MPI_COMM_WORLD, &calls->request[call]);
}

bool at_mpi_is_open(const at_mpi_calls *calls, uint32_t call)
{
    assert(call < calls->count);
    return calls->request[call] != MPI_REQUEST_NULL;
}

void at_mpi_cancel(at_mpi_calls *calls, uint32_t call)
{
    if (!at_mpi_is_open(calls, call)) return;
    MPI_Cancel(&calls->request[call]);
    MPI_Request_free(&calls->request[call]);
    assert(calls->request[call] == MPI_REQUEST_NULL);
}

/* A call that failed belongs to somebody who is gone. It is not told as done: silence says the
 * same, and is what everybody has to deal with anyway. */
uint32_t at_mpi_poll(at_mpi_calls *calls, const at_mpi_done **done)
{
    int ended = 0, units;
    int error =
        MPI_Testsome((int)calls->count, calls->request, &ended, calls->ended, calls->status);
    uint32_t count = 0;
    for (int i = 0; ended != MPI_UNDEFINED && i < ended; i++) {
        if (error == MPI_ERR_IN_STATUS && calls->status[i].MPI_ERROR != MPI_SUCCESS) continue;
        MPI_Get_count(&calls->status[i], MPI_FLOAT, &units);
        calls->done[count++] = (at_mpi_done){.call = (uint32_t)calls->ended[i],
                                             .rank = (uint32_t)calls->status[i].MPI_SOURCE,
                                             .units = units > 0 ? (size_t)units : 0};
    }
    *done = calls->done;
    return count;
}
