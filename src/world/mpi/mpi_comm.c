#include "world/mpi/mpi_comm.h"

#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"

_Static_assert(sizeof(float) == AT_MESSAGE_UNIT, "a unit is a float");

struct at_mpi_calls {
    uint32_t     count;
    MPI_Request *request; /* MPI_REQUEST_NULL: not open */
    int         *ended;
    MPI_Status  *status;
    at_mpi_done *done;
    at_fail      fail; /* the first one; err AT_OK: none */
};

/* After a connection has broken, Open MPI may consider sockets unused and poll them only every
 * 10 ms, which would delay messages over TCP for the rest of the run. */
static const char SOCKETS_EVERY_US[] = "100";

static int  session; /* counted from 1; 0: none yet */
static bool in_session;
static bool ours; /* started here, not by the program that uses the library */

_Static_assert(MPI_SUCCESS == 0, "at_mpi_done.error");

/* A tag of this session only. */
static int tag_of(at_mpi_tag tag)
{
    const int tags = 8;
    assert(tag > 0 && (int)tag < tags);
    return session * tags + (int)tag;
}

/* ---- errors ---------------------------------------------------------------------------------- */

at_err at_mpi_check(int code, const char *call, at_fail *fail)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int  length;
    assert(call);
    if (code == MPI_SUCCESS) return AT_OK;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) text[0] = '\0';
    return at_fail_set(fail, AT_ERR_FAILED,
                       "check the machines and the network between them, then continue from the "
                       "last checkpoint with --resume",
                       "MPI failed in %s: %.200s (error %d)", call,
                       text[0] ? text : "no explanation", code);
}

/* Remembers the first failure of the set. */
static void check(at_mpi_calls *calls, int code, const char *call)
{
    assert(calls);
    if (code != MPI_SUCCESS && !calls->fail.err) at_mpi_check(code, call, &calls->fail);
}

/* For calls that only tidy up: their failure has no consequences. */
static void ignore(int code)
{
    at_fail unused;
    at_mpi_check(code, "a call that tidies up", &unused);
}

at_err at_mpi_calls_check(const at_mpi_calls *calls, at_fail *fail)
{
    assert(calls);
    if (calls->fail.err) *fail = calls->fail;
    return calls->fail.err;
}

/* ---- start and end --------------------------------------------------------------------------- */

static bool is_initialized(void)
{
    int initialized = 0;
    ignore(MPI_Initialized(&initialized));
    return initialized;
}

static bool is_finalized(void)
{
    int finalized = 0;
    ignore(MPI_Finalized(&finalized));
    return finalized;
}

bool at_mpi_is_started(void)
{
    assert(!in_session || is_initialized());
    return in_session;
}

bool at_mpi_has_ranks(void)
{
    return in_session && session > 0;
}

void at_mpi_session_end(void)
{
    in_session = false;
}

/* Threads of MPI inherit that signals are blocked, so that this one handles them: before it goes on
 * after a stop, it must have noticed that (at_host_now). */
static int init_without_signals(void)
{
    sigset_t all, before;
    int      level;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

static at_err initialize(at_fail *fail)
{
    assert(!in_session);
    if (at_mpi_check(init_without_signals(), "MPI_Init_thread", fail))
        return at_fail_set(fail, AT_ERR_FAILED, "check the installation with `anytime doctor`",
                           "cannot start MPI: MPI_Init_thread failed");
    ours = true;
    return AT_OK;
}

/* What the ranks are according to MPI, which returns errors from here on. */
static at_err ask_ranks(int *size, int *rank, at_fail *fail)
{
    AT_TRY(at_mpi_check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
                        "MPI_Comm_set_errhandler", fail));
    AT_TRY(at_mpi_check(MPI_Comm_size(MPI_COMM_WORLD, size), "MPI_Comm_size", fail));
    return at_mpi_check(MPI_Comm_rank(MPI_COMM_WORLD, rank), "MPI_Comm_rank", fail);
}

at_err at_mpi_start(const at_launcher *launcher, at_fail *fail)
{
    int size, rank;
    assert(launcher->rank < launcher->size);
    if (is_finalized())
        return at_fail_set(fail, AT_ERR_USAGE, "train before MPI_Finalize",
                           "this program has shut MPI down already");
    if (session > 0) {
        session++;
        in_session = true;
        return AT_OK;
    }
    setenv("OMPI_MCA_mpi_event_tick_rate", SOCKETS_EVERY_US, 0);
    if (!is_initialized()) AT_TRY(initialize(fail));
    in_session = true;
    AT_TRY(ask_ranks(&size, &rank, fail));
    prctl(PR_SET_TIMERSLACK, 1L); /* backoff sleeps for microseconds */
    session = (uint32_t)size == launcher->size && (uint32_t)rank == launcher->rank;
    if (session > 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE,
                       "use the mpirun of the Open MPI that anytime was built with, or an srun "
                       "--mpi that supports it",
                       "launcher and MPI library do not match: this is rank %u of %u according to "
                       "%s, but rank %d of %d according to MPI",
                       launcher->rank, launcher->size, launcher->name, rank, size);
}

void at_mpi_finish(void)
{
    in_session = false;
    if (ours && !is_finalized()) ignore(MPI_Finalize());
}

void at_mpi_abort(int code)
{
    assert(at_mpi_is_started());
    ignore(MPI_Abort(MPI_COMM_WORLD, code));
}

void at_mpi_host(char name[AT_HOST_NAME_SIZE])
{
    assert(name);
    memset(name, 0, AT_HOST_NAME_SIZE);
    gethostname(name, AT_HOST_NAME_SIZE - 1);
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '.' && *c != '-') *c = '_';
}

void *at_mpi_alloc(size_t size, size_t likely)
{
    void *memory = at_large_new(size);
    assert(likely <= size);
    if (memory) memset(memory, 0, likely);
    return memory;
}

/* ---- calls ----------------------------------------------------------------------------------- */

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
    free(calls->request); /* handles only */
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
    assert(calls->count >= 1);
    for (uint32_t i = 0; i < calls->count; i++)
        if (at_mpi_is_open(calls, i)) ignore(MPI_Cancel(&calls->request[i]));
    while (open > 0 && at_clock_now() < until) {
        at_mpi_poll(calls, &done);
        open = 0;
        for (uint32_t i = 0; i < calls->count; i++) open += at_mpi_is_open(calls, i);
    }
    return open == 0;
}

/* A call that could not be started is not open, whatever its request was set to. */
static void started(at_mpi_calls *calls, uint32_t call, int code, const char *name)
{
    assert(call < calls->count);
    if (code != MPI_SUCCESS) calls->request[call] = MPI_REQUEST_NULL;
    check(calls, code, name);
}

void at_mpi_send(at_mpi_calls *calls, uint32_t call, const void *bytes, size_t units, uint32_t rank,
                 at_mpi_tag tag)
{
    assert(!at_mpi_is_open(calls, call));
    assert(units >= 1 && units <= INT_MAX);
    int code = MPI_Issend(bytes, (int)units, MPI_FLOAT, (int)rank, tag_of(tag), MPI_COMM_WORLD,
                          &calls->request[call]);
    started(calls, call, code, "MPI_Issend");
}

void at_mpi_receive(at_mpi_calls *calls, uint32_t call, void *bytes, size_t units, uint32_t rank,
                    at_mpi_tag tag)
{
    assert(!at_mpi_is_open(calls, call));
    assert(units >= 1 && units <= INT_MAX);
    int from = rank == AT_MPI_ANY_RANK ? MPI_ANY_SOURCE : (int)rank;
    int code = MPI_Irecv(bytes, (int)units, MPI_FLOAT, from, tag_of(tag), MPI_COMM_WORLD,
                         &calls->request[call]);
    started(calls, call, code, "MPI_Irecv");
}

void at_mpi_gather_all(at_mpi_calls *calls, uint32_t call, const void *mine, void *all,
                       size_t units)
{
    assert(!at_mpi_is_open(calls, call));
    assert(units >= 1 && units <= INT_MAX);
    int code = MPI_Iallgather(mine, (int)units, MPI_FLOAT, all, (int)units, MPI_FLOAT,
                              MPI_COMM_WORLD, &calls->request[call]);
    started(calls, call, code, "MPI_Iallgather");
}

void at_mpi_sum_all(at_mpi_calls *calls, uint32_t call, float *floats, size_t count)
{
    assert(!at_mpi_is_open(calls, call));
    assert(count >= 1 && count <= INT_MAX);
    int code = MPI_Iallreduce(MPI_IN_PLACE, floats, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                              &calls->request[call]);
    started(calls, call, code, "MPI_Iallreduce");
}

void at_mpi_broadcast(at_mpi_calls *calls, uint32_t call, float *floats, size_t count,
                      uint32_t root)
{
    assert(!at_mpi_is_open(calls, call));
    assert(count >= 1 && count <= INT_MAX);
    int code =
        MPI_Ibcast(floats, (int)count, MPI_FLOAT, (int)root, MPI_COMM_WORLD, &calls->request[call]);
    started(calls, call, code, "MPI_Ibcast");
}

bool at_mpi_is_open(const at_mpi_calls *calls, uint32_t call)
{
    assert(call < calls->count);
    return calls->request[call] != MPI_REQUEST_NULL;
}

void at_mpi_cancel(at_mpi_calls *calls, uint32_t call)
{
    if (!at_mpi_is_open(calls, call)) return;
    ignore(MPI_Cancel(&calls->request[call]));
    ignore(MPI_Request_free(&calls->request[call]));
    calls->request[call] = MPI_REQUEST_NULL;
}

/* Fills in one that has ended. MPI_UNDEFINED: not whole units, which no peer of ours sends. */
static at_mpi_done ended_call(const at_mpi_calls *calls, int i, int error)
{
    const MPI_Status *status = &calls->status[i];
    int               units = 0;
    at_mpi_done       done = {.call = (uint32_t)calls->ended[i]};
    assert(done.call < calls->count);
    done.rank = (uint32_t)status->MPI_SOURCE;
    if (error == MPI_ERR_IN_STATUS) done.error = status->MPI_ERROR;
    if (!done.error) done.error = MPI_Get_count(status, MPI_FLOAT, &units);
    /* Sends and collectives have no count. What was received is checked by its reader. */
    if (units == MPI_UNDEFINED) units = 0;
    done.units = units > 0 ? (size_t)units : 0;
    return done;
}

uint32_t at_mpi_poll(at_mpi_calls *calls, const at_mpi_done **done)
{
    int ended = 0;
    int error =
        MPI_Testsome((int)calls->count, calls->request, &ended, calls->ended, calls->status);
    bool valid = error == MPI_SUCCESS || error == MPI_ERR_IN_STATUS;
    assert(calls->count <= INT_MAX);
    if (!valid) check(calls, error, "MPI_Testsome");
    if (!valid || ended == MPI_UNDEFINED) ended = 0;
    for (int i = 0; i < ended; i++) calls->done[i] = ended_call(calls, i, error);
    *done = calls->done;
    return (uint32_t)ended;
}
