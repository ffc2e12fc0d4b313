#include "world/mpi/mpi_world.h"
#include "base/machine.h"

#include <assert.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"
#include "base/rng.h"
#include "world/mpi/mpi_allreduce.h"
#include "world/mpi/mpi_comm.h"
#include "world/mpi/mpi_hub.h"
#include "world/mpi/mpi_worker.h"

void at_mpi_version(char *text, size_t size)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int  length;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = '\0';
    snprintf(text, size, "%s", version);
}

/* ---- fingerprint ----------------------------------------------------------------------------- */

static void mix(uint64_t *hash, uint64_t word)
{
    *hash = at_rng_mix(*hash + 0x9e3779b97f4a7c15u + word);
}

/* The layout of the weights depends on the machine's vector units. Numbering the weights and
 * converting the numbers to plain order reveals it. */
static void mix_layout(uint64_t *hash, const at_task *task)
{
    uint32_t *flat = malloc(task->params * sizeof *flat);
    uint32_t *plain = calloc(task->plain, sizeof *plain);
    for (size_t i = 0; flat && i < task->params; i++) flat[i] = (uint32_t)i;
    if (flat && plain) task->to_plain(task->self, (float *)(void *)plain, (float *)(void *)flat);
    for (size_t i = 0; plain && i < task->plain; i++) mix(hash, plain[i]);
    free(flat);
    free(plain);
}

uint64_t at_job_fingerprint(const at_world_context *context)
{
    const at_task *task = context->task;
    const uint64_t words[] = {task->params,
                              task->plain,
                              task->samples,
                              task->test_samples,
                              task->classes,
                              task->slot_floats,
                              context->seed,
                              context->plan->micro_batch,
                              context->plan->workers_max};
    uint64_t       hash = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) mix(&hash, words[i]);
    for (const char *c = ANYTIME_VERSION; *c; c++) mix(&hash, (unsigned char)*c);
    if (task->to_plain && !task->sparse) mix_layout(&hash, task);
    return hash;
}

at_err at_job_check(const at_worker_note *hello, uint32_t rank, uint64_t fingerprint,
                    const char *host, at_fail *fail)
{
    if (hello->fail.err) {
        *fail = hello->fail;
        if (rank > 0) at_fail_wrap(fail, "rank %u on %s", rank, hello->host);
        return fail->err;
    }
    if (hello->fingerprint == fingerprint) return AT_OK;
    return at_fail_set(
        fail, AT_ERR_USAGE,
        "use the same anytime, model and data, and machines with the same vector units",
        "rank %u on %s and rank 0 on %s differ in program, model, data or vector units", rank,
        hello->host, host);
}

/* ---- run and end ----------------------------------------------------------------------------- */

static at_err run(const at_world_context *context, at_outcome *outcome, at_fail *fail)
{
    const at_launcher *launcher = context->launcher;
    if (context->plan->topology == AT_TOPOLOGY_ALLREDUCE || context->hubs > 1)
        return at_mpi_allreduce_run(context, launcher, outcome, fail);
    assert(launcher->size == context->plan->workers_max + 1);
    if (launcher->rank == 0) return at_mpi_hub_run(context, launcher, outcome, fail);
    return at_mpi_worker_run(context, launcher, fail);
}

bool at_mpi_world_end(const at_launcher *launcher, const at_fail *fail)
{
    bool in_order;
    if (at_mpi_allreduce_ran())
        in_order = at_mpi_allreduce_end(fail);
    else if (launcher->rank == 0)
        in_order = at_mpi_hub_end(launcher, fail);
    else
        in_order = at_mpi_worker_end(launcher, fail);
    if (in_order && at_mpi_is_started()) at_mpi_finish();
    return in_order;
}

/* ---- the row --------------------------------------------------------------------------------- */

/* Several hubs and all-reduce cut vectors between ranks that share no memory. */
static at_err check_slices(const at_world_context *context, const char *option, at_fail *fail)
{
    const at_plan *plan = context->plan;
    if (!plan->gather->waits_for_all || !plan->release->holds)
        return at_fail_set(fail, AT_ERR_USAGE, "leave it out, or use --world local",
                           "with --world mpi, %s needs a strategy that waits for all workers, and "
                           "--strategy %s does not",
                           option, plan->strategy->name);
    if (plan->size->wants_norms)
        return at_fail_set(fail, AT_ERR_USAGE, "leave it out",
                           "--size %s needs the whole gradient of every worker, which no process "
                           "has with %s",
                           plan->size->name, option);
    if (context->comm_delay > 0)
        return at_fail_set(fail, AT_ERR_USAGE, "leave one of them out",
                           "--comm-delay delays messages between one hub and its workers, and %s "
                           "sends none",
                           option);
    return AT_OK;
}

static at_err check(const at_world_context *context, at_fail *fail)
{
    char hubs[32];
    snprintf(hubs, sizeof hubs, "--hubs %u", context->hubs);
    if (context->plan->topology == AT_TOPOLOGY_ALLREDUCE)
        return check_slices(context, "--topology allreduce", fail);
    return context->hubs > 1 ? check_slices(context, hubs, fail) : AT_OK;
}

static bool records(const at_world_context *context)
{
    return context->launcher->rank == 0;
}

/* As far as the launcher reveals it. Hubs are the first ranks, perhaps on another machine. */
static uint32_t workers_here(const at_world_context *context)
{
    const at_launcher *launcher = context->launcher;
    uint32_t           hubs = context->plan->topology != AT_TOPOLOGY_ALLREDUCE;
    if (context->hubs > 1) hubs = context->hubs;
    if (launcher->rank >= hubs) hubs = 0;
    return launcher->local_size > hubs ? launcher->local_size - hubs : 1;
}

/* Launchers bind ranks to cores, but the ranks together use all of them. */
const at_world at_world_mpi = {.name = "mpi",
                               .called = "--world mpi",
                               .has_messages = true,
                               .has_hub = true,
                               .check = check,
                               .records = records,
                               .workers_here = workers_here,
                               .cores = at_machine_cores_all,
                               .run = run};
