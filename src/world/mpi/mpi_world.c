#include "world/mpi/mpi_world.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/rng.h"
#include "world/mpi/mpi_comm.h"
#include "world/mpi/mpi_roles.h"

void *at_mpi_room(size_t size, size_t likely)
{
    void *room = at_large_new(size);
    assert(likely <= size);
    if (room) memset(room, 0, likely);
    return room;
}

void at_mpi_host(char name[AT_HOST_NAME_SIZE])
{
    memset(name, 0, AT_HOST_NAME_SIZE);
    gethostname(name, AT_HOST_NAME_SIZE - 1);
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '.' && *c != '-') *c = '_';
}

static void mix(uint64_t *hash, uint64_t word)
{
    *hash = at_rng_mix(*hash + 0x9e3779b97f4a7c15u + word);
}

/* Weights lie as the machine's vector units want them. Numbered weights, brought into plain order,
 * show where each of them lies. */
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
    const uint64_t words[] = {
        task->params,          task->plain,       task->samples, task->test_samples,
        task->classes,         task->slot_floats, context->seed, context->plan->micro_batch,
        context->plan->workers};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) mix(&hash, words[i]);
    for (const char *c = ANYTIME_VERSION; *c; c++) mix(&hash, (unsigned char)*c);
    if (task->to_plain && !task->sparse) mix_layout(&hash, task);
    return hash;
}

at_err at_world_mpi(const at_world_context *context, const at_launcher *launcher,
                    at_outcome *outcome, at_fail *fail)
{
    if (context->plan->topology == AT_TOPOLOGY_ALLREDUCE || context->hubs > 1)
        return at_mpi_allreduce_run(context, launcher, outcome, fail);
    assert(launcher->size == context->plan->workers + 1);
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
