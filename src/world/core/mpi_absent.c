/* In place of world/mpi when anytime is built without MPI: every use of it is refused. */
#include <assert.h>
#include <stdio.h>

#include "base/machine.h"
#include "world/core/empty_round.h"
#include "world/mpi/mpi_world.h"

at_err at_mpi_world_check(at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_USAGE,
                       "start it without mpirun or srun (`anytime hub` and `anytime work` connect "
                       "machines without MPI), or build it again with libopenmpi-dev installed",
                       "this anytime was built without MPI");
}

static at_err refuse(const at_world_context *context, at_fail *fail)
{
    (void)context;
    return at_mpi_world_check(fail);
}

static at_err run(const at_world_context *context, at_outcome *outcome, at_fail *fail)
{
    (void)outcome;
    return refuse(context, fail);
}

/* As a row of the worlds, it is known and refused; no other field is used. */
const at_world at_world_mpi = {.name = "mpi",
                               .called = "--world mpi",
                               .has_messages = true,
                               .has_hub = true,
                               .check = refuse,
                               .cores = at_machine_cores_all,
                               .run = run};

at_err at_empty_round_mpi(const at_task *task, const at_launcher *launcher, at_ns lasts,
                          at_empty_round_mpi_times *times, at_fail *fail)
{
    (void)task;
    (void)launcher;
    (void)lasts;
    (void)times;
    return at_mpi_world_check(fail);
}

void at_mpi_version(char *text, size_t size)
{
    assert(text && size >= 1);
    snprintf(text, size, "built without MPI");
}

/* ---- ends of ranks: there is nothing to end -------------------------------------------------- */

bool at_mpi_world_end(const at_launcher *launcher, const at_fail *fail, int *code)
{
    (void)launcher;
    (void)fail;
    (void)code;
    return true;
}

bool at_mpi_world_leave(const at_launcher *launcher, const at_fail *fail, int *code)
{
    return at_mpi_world_end(launcher, fail, code);
}

bool at_mpi_world_share(const at_launcher *launcher, void *bytes, size_t size)
{
    (void)launcher;
    (void)bytes;
    (void)size;
    return false;
}

void at_mpi_world_shared(void)
{
}
