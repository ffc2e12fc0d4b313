#include "world/core/run_checks.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/machine.h"
#include "base/text.h"
#include "model_io/checkpoint.h"

uint32_t at_run_workers_here(const at_world *world, const at_world_context *context)
{
    return world->workers_here ? world->workers_here(context) : context->plan->workers;
}

/* Whether the result of the run up to this step was written. The folder is taken from the path of
 * the checkpoint, because not every rank knows it otherwise. */
static bool has_result(const at_checkpoint *checkpoint)
{
    char    path[sizeof checkpoint->path + 16];
    at_text text = at_text_in(path, sizeof path);
    at_text_add(&text, "%s", checkpoint->path);
    for (int i = 0; i < 2; i++) { /* RUN/checkpoint/step-..  */
        char *slash = strrchr(path, '/');
        if (!slash) return false;
        *slash = '\0';
    }
    size_t used = strlen(path);
    snprintf(path + used, sizeof path - used, "/result.json");
    json_t *result = json_load_file(path, 0, NULL);
    json_t *steps = json_object_get(result, "steps");
    bool    same = json_is_integer(steps) &&
                (uint64_t)json_integer_value(steps) == checkpoint->snapshot->version;
    json_decref(result);
    return same;
}

/* A resumed run must go on with the samples that it has not drawn yet, not with others. */
static at_err check_data(const at_checkpoint *checkpoint, const at_task *task, at_fail *fail)
{
    const json_t *data = json_object_get(checkpoint->state, "data");
    json_int_t    samples = json_integer_value(json_object_get(data, "samples"));
    json_int_t    print = json_integer_value(json_object_get(data, "fingerprint"));
    if (samples == (json_int_t)task->samples && print == (json_int_t)task->fingerprint)
        return AT_OK;
    char found[64] = "the same number of samples with other contents";
    if (samples != (json_int_t)task->samples)
        snprintf(found, sizeof found, "%llu samples instead of %lld",
                 (unsigned long long)task->samples, (long long)samples);
    return at_fail_set(fail, AT_ERR_USAGE,
                       "restore the data, or start a new run from these parameters with --init RUN",
                       "%s has changed since the checkpoint was written: %s", task->data, found);
}

/* A resumed run must have something left to do: steps, or a result that was never written. */
static at_err check_resume(const at_run_options *o, const at_plan *plan, at_fail *fail)
{
    const at_limits *limits = &plan->limits;
    if (!o->resume) return AT_OK;
    AT_TRY(check_data(o->resume, o->task, fail));
    assert(o->resume->snapshot);
    const at_snapshot *snapshot = o->resume->snapshot;
    bool               steps = limits->steps > 0 && snapshot->version >= limits->steps;
    bool               samples = limits->samples > 0 && snapshot->samples_used >= limits->samples;
    bool               time = limits->time > 0 && snapshot->elapsed >= limits->time;
    bool               targets = limits->targets > 0;
    for (uint32_t i = 0; i < limits->targets; i++) targets = targets && snapshot->target[i].hit;
    if (!steps && !samples && !time && !targets) return AT_OK;
    if (!has_result(o->resume)) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE,
                       "raise the limit with --steps, --epochs, --samples, --seconds or --target",
                       "the run has already reached its limit: step %llu, %llu samples, %.1f s",
                       (unsigned long long)snapshot->version,
                       (unsigned long long)snapshot->samples_used, at_seconds(snapshot->elapsed));
}

/* ---- models ---------------------------------------------------------------------------------- */

static at_err check_hogwild(const at_run_options *o, const char *strategy, bool sgd, at_fail *fail)
{
    if (!o->task->descend)
        return at_fail_set(fail, AT_ERR_USAGE, "use --model sparse-lr, or --strategy async",
                           "--strategy %s needs a sparse model: with a dense one, workers that "
                           "write without locks overwrite each other's updates",
                           strategy);
    if (!o->world->shares_memory)
        return at_fail_set(fail, AT_ERR_USAGE, "use --world local, or --strategy async",
                           "--strategy %s needs shared memory, which %s does not have", strategy,
                           o->world->called);
    if (!sgd)
        return at_fail_set(fail, AT_ERR_USAGE, "use --optimizer sgd",
                           "--strategy %s works only with --optimizer sgd (got %s): workers share "
                           "the weights but no optimizer state",
                           strategy, o->optimizer);
    return AT_OK;
}

static at_err check_model(const at_run_options *o, const at_plan *plan, at_fail *fail)
{
    const char *optim = o->optimizer ? o->optimizer : "sgd";
    bool        sgd = strcmp(optim, "sgd") == 0, adagrad = strcmp(optim, "adagrad") == 0;
    if (o->task->sparse && !sgd && !adagrad)
        return at_fail_set(fail, AT_ERR_USAGE, "use --optimizer sgd or adagrad",
                           "--optimizer %s does not work with %s: it changes every weight in every "
                           "step",
                           optim, o->task->model);
    if (plan->topology != AT_TOPOLOGY_HOGWILD) return AT_OK;
    return check_hogwild(o, plan->strategy->name, sgd, fail);
}

/* ---- topologies ------------------------------------------------------------------------------ */

static at_err check_topology(const at_run_options *o, const at_plan *plan, at_fail *fail)
{
    assert(plan->topology < AT_TOPOLOGY_COUNT);
    bool allreduce = plan->topology == AT_TOPOLOGY_ALLREDUCE;
    char option[64] = "--topology allreduce";
    if (!allreduce && o->hubs <= 1) return AT_OK;
    if (!allreduce) snprintf(option, sizeof option, "--hubs %u", o->hubs);
    if (allreduce && o->hubs > 1)
        return at_fail_set(fail, AT_ERR_USAGE, "leave one of them out",
                           "--hubs %u and --topology allreduce contradict each other: all-reduce "
                           "has no hub to split",
                           o->hubs);
    if (o->world->one_process && !(allreduce && o->world->virtual_time))
        return at_fail_set(fail, AT_ERR_USAGE, "leave it out: the result is the same bit for bit",
                           "%s needs several processes, and %s is one process", option,
                           o->world->called);
    if (o->task->sparse)
        return at_fail_set(
            fail, AT_ERR_USAGE, "leave it out",
            "%s splits dense vectors into slices, and the gradients of %s are sparse", option,
            o->task->model);
    return AT_OK;
}

/* ---- memory and time ------------------------------------------------------------------------- */

/* A run that would make the machine swap is refused: it would freeze everything else on it. */
static at_err check_memory(const at_run_options *o, const at_world_context *context, at_fail *fail)
{
    assert(context->plan->release);
    enum { PROCESS_SIZE = 1 << 20 }; /* overhead of a worker process, about */
    const at_task *task = o->task;
    at_memory      memory = at_machine_memory();
    double         copies = context->plan->release->holds ? 2 : 3; /* gradients, parameters */
    double         vectors = copies * (double)task->slot_likely * sizeof(float);
    uint32_t       workers = at_run_workers_here(o->world, context);
    double         needed = workers * (vectors + (double)task->scratch_size + PROCESS_SIZE);
    if (task->sparse) needed += 2.0 * (double)task->params * sizeof(float); /* and a snapshot */
    if (o->world->virtual_time || memory.available == 0 || needed < (double)memory.available)
        return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE,
                       "use fewer workers, a smaller --micro-batch or a smaller model",
                       "%u workers need %.1f GB of memory, and %.1f GB are available", workers,
                       needed / 1e9, (double)memory.available / 1e9);
}

static at_err check_time(const at_run_options *o, at_fail *fail)
{
    const char            *simulate = "use `anytime simulate`, or --world sim";
    const at_link_options *links = &o->links;
    bool                   travels = links->broadcast || links->reduce || links->allreduce ||
                   links->worker_bandwidth || links->worker_latency;
    if (!o->world->virtual_time && (o->latency > 0 || o->bandwidth > 0 || o->faults))
        return at_fail_set(fail, AT_ERR_USAGE, simulate,
                           "--latency, --bandwidth and --faults work only in simulation");
    if (!o->world->virtual_time && travels)
        return at_fail_set(fail, AT_ERR_USAGE, simulate,
                           "--broadcast, --reduce, --allreduce, --worker-bandwidth and "
                           "--worker-latency work only in simulation");
    if (!o->world->virtual_time && (o->micro_cost > 0 || o->jitter > 0))
        return at_fail_set(fail, AT_ERR_USAGE, simulate,
                           "--micro-cost and --jitter work only in simulation");
    if (!o->world->virtual_time && o->task->timing_only)
        return at_fail_set(fail, AT_ERR_USAGE, simulate,
                           "--model none:P works only in simulation: it computes nothing");
    if (!o->world->has_messages && o->comm_delay > 0)
        return at_fail_set(fail, AT_ERR_USAGE, "use --workers 1 or more",
                           "--comm-delay has no effect with %s: no messages are sent",
                           o->world->called);
    return AT_OK;
}

/* How many there may be, and who may join a run that has begun. */
static at_err check_workers(const at_run_options *o, const at_plan *plan, at_fail *fail)
{
    enum { PROCESSES_MAX = 65536 };
    if (!o->world->virtual_time && plan->workers_max > PROCESSES_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, "use fewer, or `anytime simulate`",
                           "%u workers are too many: with %s there are at most %d",
                           plan->workers_max, o->world->called, PROCESSES_MAX);
    if (o->world->admits_workers || plan->workers_max == plan->workers) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "use --world local or sim, or leave --workers-max out",
                       "--workers-max %u is above --workers %u, but with %s nobody can join later",
                       plan->workers_max, plan->workers, o->world->called);
}

at_err at_run_check(const at_run_options *o, const at_world_context *context, at_fail *fail)
{
    assert(context->task == o->task);
    assert(context->plan->workers >= 1);
    const at_plan *plan = context->plan;
    AT_TRY(check_workers(o, plan, fail));
    AT_TRY(check_resume(o, plan, fail));
    AT_TRY(check_model(o, plan, fail));
    AT_TRY(check_topology(o, plan, fail));
    if (o->world->check) AT_TRY(o->world->check(context, fail));
    AT_TRY(check_memory(o, context, fail));
    return check_time(o, fail);
}
