/* The row of the MPI world: how its ranks run and end. */
#include "world/mpi/mpi_world.h"

#include <assert.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "base/machine.h"
#include "step/switch.h"
#include "world/mpi/mpi_allreduce.h"
#include "world/mpi/mpi_comm.h"
#include "world/mpi/mpi_hub.h"
#include "world/mpi/mpi_worker.h"

void at_mpi_version(char *text, size_t size)
{
    char    version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    at_fail fail;
    int     length;
    assert(text && size >= 1);
    if (at_mpi_check(MPI_Get_library_version(version, &length), "MPI_Get_library_version", &fail))
        snprintf(version, sizeof version, "an MPI that does not tell its version");
    version[strcspn(version, ",\n")] = '\0';
    snprintf(text, size, "%s", version);
}

/* ---- run and end ----------------------------------------------------------------------------- */

static at_err run(const at_world_context *context, at_outcome *outcome, at_fail *fail)
{
    const at_launcher *launcher = context->launcher;
    assert(launcher);
    if (at_plan_splits_update(context->plan))
        return at_mpi_allreduce_run(context, launcher, outcome, fail);
    assert(launcher->size == context->plan->workers_max + 1);
    if (launcher->rank == 0) return at_mpi_hub_run(context, launcher, outcome, fail);
    return at_mpi_worker_run(context, launcher, fail);
}

bool at_mpi_world_part(const at_launcher *launcher, const at_fail *fail, int *code)
{
    bool   in_order;
    at_err err = AT_OK;
    assert(launcher->rank < launcher->size);
    if (at_mpi_allreduce_admitted())
        in_order = at_mpi_allreduce_end(fail);
    else if (launcher->rank == 0)
        in_order = at_mpi_hub_end(launcher, fail);
    else
        in_order = at_mpi_worker_end(launcher, fail, &err);
    if (launcher->rank > 0) *code = (int)err;
    return in_order;
}

bool at_mpi_world_end(const at_launcher *launcher, const at_fail *fail, int *code)
{
    bool in_order = at_mpi_world_part(launcher, fail, code);
    if (in_order && at_mpi_is_started()) at_mpi_finish();
    return in_order;
}

/* ---- the row --------------------------------------------------------------------------------- */

/* Several hubs and all-reduce cut vectors between ranks that share no memory. */
static at_err check(const at_world_context *context, at_fail *fail)
{
    const at_plan *plan = context->plan;
    char           rule[AT_RULE_TEXT_SIZE];
    if (!at_plan_splits_update(plan)) return AT_OK;
    at_plan_rule_text(plan, AT_MIX, rule, sizeof rule);
    if (plan->then && !at_plan_waits_for_all(plan->then)) plan = plan->then;
    if (!at_plan_waits_for_all(plan))
        return at_fail_set(fail, AT_ERR_USAGE, "leave it out, or use --world local",
                           "with --world mpi, --mix %s needs a strategy that waits for all "
                           "workers, and --strategy %s does not",
                           rule, plan->strategy->name);
    if (plan->size->wants_norms)
        return at_fail_set(fail, AT_ERR_USAGE, "leave it out",
                           "--size %s needs the whole gradient of every worker, which no process "
                           "has with --mix %s",
                           plan->size->rule.name, rule);
    if (context->comm_delay > 0)
        return at_fail_set(fail, AT_ERR_USAGE, "leave one of them out",
                           "--comm-delay delays messages between one hub and its workers, and "
                           "--mix %s sends none",
                           rule);
    return AT_OK;
}

static bool records(const at_world_context *context)
{
    assert(context->launcher);
    return context->launcher->rank == 0;
}

/* As far as the launcher reveals it. Hubs are the first ranks, perhaps on another machine. */
static uint32_t workers_here(const at_world_context *context)
{
    const at_launcher *launcher = context->launcher;
    uint32_t           hubs = at_plan_hubs(context->plan);
    if (launcher->rank >= hubs) hubs = 0;
    return launcher->local_size > hubs ? launcher->local_size - hubs : 1;
}

/* Launchers bind ranks to cores, but the ranks together use all of them. */
const at_world at_world_mpi = {.name = "mpi",
                               .called = "--world mpi",
                               .has_messages = true,
                               .sends_vectors = true,
                               .steps_locally = true,
                               .has_hub = true,
                               .owns_params = true,
                               .check = check,
                               .records = records,
                               .workers_here = workers_here,
                               .cores = at_machine_cores_all,
                               .run = run};
