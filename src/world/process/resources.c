#include "world/process/resources.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

at_err at_resources_init(at_resources *resources, at_ns every, uint32_t workers, at_fail *fail)
{
    assert(every >= 0);
    *resources = (at_resources){.every = every, .due = AT_NEVER, .workers = workers};
    if (every == 0) return AT_OK;
    resources->pid = calloc(workers, sizeof *resources->pid);
    if (!resources->pid) return at_fail_memory(fail);
    resources->due = 0;
    return AT_OK;
}

void at_resources_deinit(at_resources *resources)
{
    free(resources->pid);
    *resources = (at_resources){0};
}

void at_resources_name(at_resources *resources, at_node worker, int64_t pid)
{
    assert(worker >= 1);
    assert(worker <= resources->workers);
    if (resources->pid) resources->pid[worker - 1] = pid;
}

/* Network counters are those of the machine, so they are recorded once, with the hub. */
static void record_usage(const at_recorder *recorder, at_node node, int64_t pid, at_record *record)
{
    at_usage usage;
    assert(record->kind == AT_REC_USAGE);
    bool runs = node == 0 ? at_usage_read(pid, &usage) : at_usage_read_process(pid, &usage);
    if (!runs) return; /* it has just ended; its LOST event follows */
    record->node = node;
    record->usage = &usage;
    at_recorder_put(recorder, record);
}

void at_resources_sample(at_resources *resources, const at_recorder *recorder, int64_t evaluator,
                         at_ns at, uint64_t version)
{
    assert(resources->every > 0);
    at_record record = {.kind = AT_REC_USAGE, .at = at, .version = version};
    record_usage(recorder, 0, getpid(), &record);
    if (evaluator > 0) record_usage(recorder, AT_NODE_EVALUATOR, evaluator, &record);
    for (uint32_t i = 0; i < resources->workers; i++)
        if (resources->pid[i] > 0) record_usage(recorder, i + 1, resources->pid[i], &record);
}
