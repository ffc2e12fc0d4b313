/* The MPI world in a program that goes on after its run: ranks part without ending MPI, and all get
 * what rank 0 has. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "world/mpi/mpi_allreduce.h"
#include "world/mpi/mpi_comm.h"
#include "world/mpi/mpi_hub.h"
#include "world/mpi/mpi_world.h"
#include "world/process/backoff.h"

enum { UNITS_MAX = 1 << 28 }; /* of one message */
static const at_ns SHARE_MAX = AT_SEC(60);

static bool lossy; /* a rank was lost */
static bool is_exit_set;

/* ---- the end of the process ------------------------------------------------------------------ */

/* Other exit handlers could wait for a lost rank, as MPI does. */
static void at_exit(int status, void *unused)
{
    (void)unused;
    if (!lossy) {
        at_mpi_finish();
        return;
    }
    fflush(NULL);
    _exit(status);
}

at_err at_mpi_world_check(at_fail *fail)
{
    if (lossy)
        return at_fail_set(fail, AT_ERR_USAGE, "start the program again",
                           "a rank was lost in an earlier run of this program");
    if (at_mpi_allreduce_admitted())
        return at_fail_set(fail, AT_ERR_USAGE, "leave --mix out, or train once per program",
                           "an earlier run of this program had no hub, so it cannot train again");
    return AT_OK;
}

bool at_mpi_world_leave(const at_launcher *launcher, const at_fail *fail, int *code)
{
    assert(launcher->size > 1);
    lossy = !at_mpi_world_part(launcher, fail, code);
    if (!is_exit_set) is_exit_set = on_exit(at_exit, NULL) == 0;
    return !lossy;
}

void at_mpi_world_shared(void)
{
    at_mpi_session_end();
}

/* ---- sharing --------------------------------------------------------------------------------- */

/* Starts to send to all ranks that are there, or to receive from rank 0. */
static void start(at_mpi_calls *calls, const at_launcher *launcher, void *bytes, size_t units)
{
    if (launcher->rank > 0) {
        at_mpi_receive(calls, 0, bytes, units, 0, AT_MPI_TAG_ANSWER);
        return;
    }
    for (uint32_t rank = 1; rank < launcher->size; rank++)
        if (at_mpi_hub_has(rank))
            at_mpi_send(calls, rank - 1, bytes, units, rank, AT_MPI_TAG_ANSWER);
}

static bool are_open(const at_mpi_calls *calls, uint32_t count)
{
    bool open = false;
    for (uint32_t i = 0; i < count; i++) open = open || at_mpi_is_open(calls, i);
    return open;
}

/* True when all calls have ended well, in time. */
static bool finish(at_mpi_calls *calls, uint32_t count, size_t units, bool receives)
{
    at_backoff backoff = {0};
    at_ns      until = at_clock_now() + SHARE_MAX;
    bool       good = true;
    at_fail    fail;
    while (are_open(calls, count) && at_clock_now() < until) {
        const at_mpi_done *done;
        uint32_t           ended = at_mpi_poll(calls, &done);
        for (uint32_t i = 0; i < ended; i++)
            good = good && !done[i].error && (!receives || done[i].units == units);
        if (ended == 0) at_backoff_nap(&backoff, until);
        if (at_mpi_calls_check(calls, &fail)) return false;
    }
    return good && !are_open(calls, count);
}

static bool share_part(const at_launcher *launcher, void *bytes, size_t units)
{
    uint32_t      count = launcher->rank == 0 ? launcher->size - 1 : 1;
    at_mpi_calls *calls = at_mpi_calls_new(count);
    assert(units >= 1 && units <= UNITS_MAX);
    if (!calls) return false;
    start(calls, launcher, bytes, units);
    bool good = finish(calls, count, units, launcher->rank > 0);
    if (at_mpi_calls_end(calls)) at_mpi_calls_free(calls);
    return good;
}

/* In whole units; the last one, if it is not whole, through a unit of its own. */
bool at_mpi_world_share(const at_launcher *launcher, void *bytes, size_t size)
{
    unsigned char *at = bytes, last[AT_MESSAGE_UNIT] = {0};
    size_t         units = size / AT_MESSAGE_UNIT, rest = size % AT_MESSAGE_UNIT;
    bool           good = at_mpi_has_ranks();
    assert(bytes || size == 0);
    while (good && units > 0) {
        size_t now = units < UNITS_MAX ? units : UNITS_MAX;
        good = share_part(launcher, at, now);
        at += now * AT_MESSAGE_UNIT;
        units -= now;
    }
    if (!good || rest == 0) return good;
    memcpy(last, at, rest);
    good = share_part(launcher, last, 1);
    memcpy(at, last, rest);
    return good;
}
