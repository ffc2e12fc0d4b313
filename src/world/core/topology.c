#include "world/core/topology.h"

#include <stdio.h>

/* What stands before the reason: the option that asks for more than one hub. */
static const char *wish(const at_run_options *o, const at_plan *plan, char *text, size_t size)
{
    if (plan->topology == AT_TOPOLOGY_ALLREDUCE)
        snprintf(text, size, "--topology %s", at_topology_name[plan->topology]);
    else
        snprintf(text, size, "--hubs %u", o->hubs);
    return text;
}

/* What holds only where ranks share no memory. */
static at_err check_ranks(const at_run_options *o, const at_plan *plan, const char *text,
                          at_fail *fail)
{
    if (!plan->gather->waits_for_all || !plan->release->holds)
        return at_fail_set(fail, AT_ERR_USAGE, "leave it out, or use --world local",
                           "under a launcher %s is for strategies that wait for all, and "
                           "--strategy %s does not",
                           text, plan->strategy->name);
    if (plan->size->wants_norms)
        return at_fail_set(fail, AT_ERR_USAGE, "leave it out",
                           "--size %s needs whole single gradients, and with %s nobody has them",
                           plan->size->name, text);
    if (o->comm_delay > 0)
        return at_fail_set(fail, AT_ERR_USAGE, "leave one of them out",
                           "--comm-delay holds up messages between one hub and its workers, and "
                           "with %s there are none",
                           text);
    return AT_OK;
}

at_err at_topology_check(const at_run_options *o, const at_plan *plan, at_fail *fail)
{
    bool allreduce = plan->topology == AT_TOPOLOGY_ALLREDUCE;
    char text[64];
    if (!allreduce && o->hubs <= 1) return AT_OK;
    wish(o, plan, text, sizeof text);
    if (allreduce && o->hubs > 1)
        return at_fail_set(fail, AT_ERR_USAGE, "leave one of them out",
                           "--hubs %u and --topology allreduce contradict each other: all-reduce "
                           "has no hub that could be split",
                           o->hubs);
    if (o->virtual_time)
        return at_fail_set(fail, AT_ERR_USAGE, "leave it out: the bits are the same",
                           "%s is about processes, and in virtual time there is one", text);
    if (o->solo)
        return at_fail_set(fail, AT_ERR_USAGE, "give --workers 1 or more",
                           "%s is about processes, and --workers 0 has only this one", text);
    if (o->task->sparse)
        return at_fail_set(fail, AT_ERR_USAGE, "leave it out",
                           "%s cuts vectors into slices, and the gradients of %s have only the few "
                           "weights that a round has touched",
                           text, o->task->model);
    return o->launcher ? check_ranks(o, plan, text, fail) : AT_OK;
}
