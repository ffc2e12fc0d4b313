/* How rank 0 begins, over an MPI that is simulated here: this program defines what mpi_comm.h
 * declares. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_mpi.h"
#include "world/mpi/mpi_hub.h"
#include "world/process/alive.h"

enum { CALLS_MAX = 64, WORKERS = 2 };

struct at_mpi_calls {
    bool        is_open[CALLS_MAX];
    void       *inbox[CALLS_MAX];
    at_mpi_done done;
};

static pid_t    process;          /* which both workers are said to be */
static uint32_t hellos, welcomes; /* received and sent by rank 0 */

at_mpi_calls *at_mpi_calls_new(uint32_t count)
{
    assert_true(count <= CALLS_MAX);
    return calloc(1, sizeof(at_mpi_calls));
}

at_err at_mpi_calls_check(const at_mpi_calls *calls, at_fail *fail)
{
    (void)calls;
    (void)fail;
    return AT_OK;
}

/* What is sent is never received, because the process dies then. */
void at_mpi_send(at_mpi_calls *calls, uint32_t call, const void *bytes, size_t units, uint32_t rank,
                 at_mpi_tag tag)
{
    (void)bytes;
    assert_true(units >= 1 && rank >= 1 && tag == AT_MPI_TAG_MAIL);
    calls->is_open[call] = true;
    if (++welcomes < WORKERS) return;
    kill(process, SIGKILL);
    assert_int_equal(waitpid(process, NULL, 0), process);
}

void at_mpi_receive(at_mpi_calls *calls, uint32_t call, void *bytes, size_t units, uint32_t rank,
                    at_mpi_tag tag)
{
    (void)units;
    (void)rank;
    (void)tag;
    calls->is_open[call] = true;
    calls->inbox[call] = bytes;
}

bool at_mpi_is_open(const at_mpi_calls *calls, uint32_t call)
{
    return calls->is_open[call];
}

void at_mpi_cancel(at_mpi_calls *calls, uint32_t call)
{
    calls->is_open[call] = false;
}

/* The next worker says HELLO, in the first place for notes. */
uint32_t at_mpi_poll(at_mpi_calls *calls, const at_mpi_done **done)
{
    at_worker_note hello = {.kind = AT_WORKER_NOTE_HELLO, .pid = process, .host = "here"};
    if (hellos == WORKERS) return 0;
    hello.born = at_alive_born(process);
    calls->is_open[WORKERS] = false;
    calls->done = (at_mpi_done){.call = WORKERS, .rank = ++hellos};
    calls->done.units = at_worker_note_write(calls->inbox[WORKERS], &hello);
    *done = &calls->done;
    return 1;
}

static void a_rank_that_dies_before_it_was_welcomed_is_named(void **state)
{
    (void)state;
    at_fail        fail;
    at_launcher    launcher = {.size = WORKERS + 1, .rank = 0};
    at_worker_note hello = {.kind = AT_WORKER_NOTE_HELLO, .host = "here"};
    process = fork();
    if (process == 0)
        for (;;) pause();
    assert_true(process > 0);
    assert_int_equal(at_mpi_hub_admit(&launcher, &hello, &fail), AT_ERR_FAILED);
    assert_non_null(strstr(fail.text, "rank 1 ended before training began"));
    assert_int_equal(welcomes, WORKERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_that_dies_before_it_was_welcomed_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
