#include "world/core/run_checks.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/machine.h"
#include "base/text.h"
#include "model_io/checkpoint.h"
#include "world/core/graph.h"

enum { RESULT_SIZE_MAX = 64 << 20 };

uint32_t at_run_workers_here(const at_world *world, const at_world_context *context)
{
    return world->workers_here ? world->workers_here(context) : context->plan->workers;
}

/* The folder is taken from the path of the checkpoint: not every rank knows it otherwise. */
bool at_run_has_result(const at_checkpoint *checkpoint)
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
    char *bytes;
    if (at_file_read_text(path, RESULT_SIZE_MAX, &bytes, NULL)) return false;
    json_t *result = json_loads(bytes, 0, NULL);
    json_t *steps = json_object_get(result, "steps");
    bool    same = json_is_integer(steps) &&
                (uint64_t)json_integer_value(steps) == checkpoint->snapshot->version;
    json_decref(result);
    free(bytes);
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
    if (!at_run_has_result(o->resume)) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE,
                       "raise the limit with --steps, --epochs, --samples, --seconds or --target",
                       "the run has already reached its limit: step %llu, %llu samples, %.1f s",
                       (unsigned long long)snapshot->version,
                       (unsigned long long)snapshot->samples_used, at_seconds(snapshot->elapsed));
}

/* ---- models ---------------------------------------------------------------------------------- */

/* Models whose updates the workers make themselves, in shared memory (hogwild). */
static at_err check_in_place(const at_run_options *o, const at_plan *plan, at_fail *fail)
{
    char rule[AT_RULE_TEXT_SIZE];
    at_plan_rule_text(plan, AT_MIX, rule, sizeof rule);
    if (!o->task->descend)
        return at_fail_set(fail, AT_ERR_USAGE,
                           "use --model sparse-lr or sparse-linear, or --strategy async",
                           "--mix %s (--strategy %s) needs a sparse model: with a dense one, "
                           "workers that write without locks overwrite each other's updates",
                           rule, plan->strategy->name);
    if (!o->world->shares_memory)
        return at_fail_set(fail, AT_ERR_USAGE, "use --world local, or --strategy async",
                           "--mix %s (--strategy %s) needs shared memory, which %s does not have",
                           rule, plan->strategy->name, o->world->called);
    return AT_OK;
}

/* Models that workers train on their own for a while. */
static at_err check_local(const at_run_options *o, const at_plan *plan, at_fail *fail)
{
    const char *optim = at_run_optimizer(o), *schedule = o->lr_schedule;
    bool        changes = schedule && strcmp(schedule, "const") != 0;
    if (!plan->work->reports_change) return AT_OK;
    if (!o->world->steps_locally)
        return at_fail_set(fail, AT_ERR_USAGE, "use --strategy fmb or amb",
                           "--work local (--strategy %s) does not work with %s: its programs "
                           "report gradients",
                           plan->strategy->name, o->world->called);
    if (o->task->sparse)
        return at_fail_set(fail, AT_ERR_USAGE, "use a dense model, or --strategy fmb",
                           "--work local (--strategy %s) averages whole vectors, and the gradients "
                           "of %s are sparse",
                           plan->strategy->name, o->task->model);
    if (strcmp(optim, "dual-averaging") == 0)
        return at_fail_set(fail, AT_ERR_USAGE, "use --optimizer sgd, momentum or adamw",
                           "--optimizer dual-averaging does not work with --work local: its "
                           "parameters follow from all gradients of one worker, so averaging them "
                           "has no effect");
    if (changes && plan->release->self_starting)
        return at_fail_set(fail, AT_ERR_USAGE, "use --lr-schedule const, or --release barrier",
                           "--lr-schedule %s does not work with --work local and --release %s: "
                           "local steps learn from their orders how far the run is, and these "
                           "workers start without orders",
                           schedule, plan->release->rule.name);
    return AT_OK;
}

/* A target that the model cannot have would never be reached. */
static at_err check_targets(const at_task *task, const at_limits *limits, at_fail *fail)
{
    for (uint32_t i = 0; i < limits->targets; i++) {
        at_metric metric = limits->target[i].metric;
        if (metric == AT_METRIC_LOSS || (metric == AT_METRIC_R2) == task->regression) continue;
        return at_fail_set(
            fail, AT_ERR_USAGE,
            task->regression ? "use --target loss=X or r2=X" : "use --target accuracy=X or loss=X",
            "--target %s: %s predicts %s", at_metric_name[metric], task->model,
            task->regression ? "real numbers, not classes" : "classes, and r2 is for regression");
    }
    return AT_OK;
}

static at_err check_model(const at_run_options *o, const at_plan *plan, at_fail *fail)
{
    const char *optim = at_run_optimizer(o);
    bool        sgd = strcmp(optim, "sgd") == 0, adagrad = strcmp(optim, "adagrad") == 0;
    if (o->task->sparse && !sgd && !adagrad)
        return at_fail_set(fail, AT_ERR_USAGE, "use --optimizer sgd or adagrad",
                           "--optimizer %s does not work with %s: it changes every weight in every "
                           "step",
                           optim, o->task->model);
    AT_TRY(check_targets(o->task, &plan->limits, fail));
    if (o->task->sparse && o->clip > 0)
        return at_fail_set(fail, AT_ERR_USAGE, "leave it out, or use a smaller --lr",
                           "--clip does not work with %s: its gradients are never added up as a "
                           "whole",
                           o->task->model);
    if (o->task->sparse && plan->stale->correct)
        return at_fail_set(fail, AT_ERR_USAGE, "use a dense model, or --stale use",
                           "--stale %s compares whole vectors of parameters, and the gradients of "
                           "%s are sparse",
                           plan->stale->rule.name, o->task->model);
    if (!plan->mix->updates_in_place) return AT_OK;
    return check_in_place(o, plan, fail);
}

/* Models whose workers have parameters of their own. */
static at_err check_owned(const at_run_options *o, const at_plan *plan, uint64_t seed,
                          at_fail *fail)
{
    char     rule[AT_RULE_TEXT_SIZE];
    at_graph graph;
    if (!plan->mix->owned_by_workers) return AT_OK;
    at_mixing mixing = at_plan_mixing(plan);
    at_plan_rule_text(plan, AT_MIX, rule, sizeof rule);
    if (!o->world->owns_params)
        return at_fail_set(fail, AT_ERR_USAGE, "use --world local, sim or mpi",
                           "--mix %s does not work with %s: its workers have no parameters of "
                           "their own",
                           rule, o->world->called);
    if (o->task->sparse)
        return at_fail_set(fail, AT_ERR_USAGE, "use a dense model, or --mix central",
                           "--mix %s averages whole vectors, and the gradients of %s are sparse",
                           rule, o->task->model);
    if (mixing.form == AT_MIX_DA && o->task->trained < o->task->params)
        return at_fail_set(fail, AT_ERR_USAGE, "use form=pwg, or a model without batch norm",
                           "--mix %s: dual averaging has no place for running statistics", rule);
    if (mixing.form == AT_MIX_DA && o->optimizer && strcmp(o->optimizer, "sgd") != 0)
        return at_fail_set(fail, AT_ERR_USAGE, "use --optimizer sgd, or form=pwg",
                           "--mix %s: dual averaging is its own optimizer, and %s is another one",
                           rule, o->optimizer);
    AT_TRY(at_graph_init(&graph, mixing.graph, plan->workers_max, mixing.matrix, seed, fail));
    at_graph_deinit(&graph);
    return AT_OK;
}

/* ---- slices ---------------------------------------------------------------------------------- */

static at_err check_slices(const at_run_options *o, const at_plan *plan, at_fail *fail)
{
    char rule[AT_RULE_TEXT_SIZE], option[AT_RULE_TEXT_SIZE + 8];
    if (!at_plan_splits_update(plan)) return AT_OK;
    snprintf(option, sizeof option, "--mix %s", at_plan_rule_text(plan, AT_MIX, rule, sizeof rule));
    if (o->world->one_process && !(plan->mix->updates_by_workers && o->world->virtual_time))
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

/* ---- messages -------------------------------------------------------------------------------- */

/* Through one hub, every vector is encoded once and decoded once. Sums that are formed in transit
 * are not, nor are vectors that several hubs exchange in parts. */
static at_err check_compress(const at_run_options *o, const at_world_context *context,
                             at_fail *fail)
{
    char           rule[AT_RULE_TEXT_SIZE];
    const at_plan *plan = context->plan;
    if (context->compress.kind == AT_COMPRESS_NONE) return AT_OK;
    if (!o->world->sends_vectors)
        return at_fail_set(fail, AT_ERR_USAGE,
                           "leave it out, or use `anytime hub`, --world mpi or sim",
                           "--compress %s does not work with %s: it is for messages between "
                           "machines, and shared memory has none",
                           o->compress, o->world->called);
    for (; plan; plan = plan->then)
        if (at_plan_splits_update(plan) || plan->mix->owned_by_workers)
            return at_fail_set(fail, AT_ERR_USAGE, "use --mix central, or leave --compress out",
                               "--compress %s does not work with --mix %s", o->compress,
                               at_plan_rule_text(plan, AT_MIX, rule, sizeof rule));
    if (context->links.reduce && strcmp(context->links.reduce, "each") != 0)
        return at_fail_set(fail, AT_ERR_USAGE, "leave one of them out",
                           "--compress %s does not work with --reduce %s: gradients that were "
                           "added up on their way would have to be compressed again",
                           o->compress, context->links.reduce);
    if (o->task->sparse)
        return at_fail_set(fail, AT_ERR_USAGE, "leave it out",
                           "--compress %s does not work with %s: its messages have only the few "
                           "weights that change",
                           o->compress, o->task->model);
    return AT_OK;
}

/* ---- memory and time ------------------------------------------------------------------------- */

double at_run_memory(const at_run_options *o, const at_world_context *context)
{
    assert(context->plan->release);
    enum { PROCESS_SIZE = 1 << 20 }; /* overhead of a worker process, about */
    const at_task *task = o->task;
    double         copies = at_plan_has_one_slot(context->plan) ? 2 : 3; /* gradients, parameters */
    if (context->plan->work->reports_change) copies += 1; /* a gradient beside the change */
    double   vectors = copies * (double)task->slot_likely * sizeof(float);
    uint32_t workers = at_run_workers_here(o->world, context);
    double   needed = workers * (vectors + (double)task->scratch_size + PROCESS_SIZE);
    if (context->plan->stale->correct) /* past versions */
        needed +=
            context->plan->stale->versions(context->plan) * (double)task->params * sizeof(float);
    if (task->sparse) needed += 2.0 * (double)task->params * sizeof(float); /* and a snapshot */
    return needed;
}

/* A run that would make the machine swap is refused: it would freeze everything else on it. */
static at_err check_memory(const at_run_options *o, const at_world_context *context, at_fail *fail)
{
    at_memory memory = at_machine_memory();
    double    needed = at_run_memory(o, context);
    if (o->world->virtual_time || memory.available == 0 || needed < (double)memory.available)
        return AT_OK;
    return at_fail_set(
        fail, AT_ERR_USAGE, "use fewer workers, a smaller --micro-batch or a smaller model",
        "%u workers need %.1f GB of memory, and %.1f GB are available",
        at_run_workers_here(o->world, context), needed / 1e9, (double)memory.available / 1e9);
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
    if (o->bind != AT_BIND_NONE && !o->world->binds_workers)
        return at_fail_set(fail, AT_ERR_USAGE, "leave it out; mpirun and srun have --bind-to",
                           "--bind %s does not work with %s", at_bind_name[o->bind],
                           o->world->called);
    if (!o->world->has_messages && o->world->has_hub && o->comm_delay > 0)
        return at_fail_set(fail, AT_ERR_USAGE, "leave it out, or use --world local, mpi or sim",
                           "--comm-delay does not work with %s", o->world->called);
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
    return at_fail_set(
        fail, AT_ERR_USAGE, "use --world local or sim, or leave --workers-max out",
        "--workers-max %u is above --workers %u, but with %s no worker can join later",
        plan->workers_max, plan->workers, o->world->called);
}

/* Conditions of --switch that would never hold, or always. */
static at_err check_switch(const at_run_options *o, const at_plan *plan, at_fail *fail)
{
    if (!plan->then) return AT_OK;
    if (plan->switch_by == AT_SWITCH_LOSS && o->task->timing_only)
        return at_fail_set(fail, AT_ERR_USAGE, "switch by step or time",
                           "--switch by loss needs a model that has one");
    if (plan->switch_by != AT_SWITCH_EPOCH || plan->samples_epoch > 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "switch by step or time",
                       "--switch by epoch needs data whose number of samples is known");
}

at_err at_run_check(const at_run_options *o, const at_world_context *context, at_fail *fail)
{
    assert(context->task == o->task);
    assert(context->plan->workers >= 1);
    const at_plan *plan = context->plan;
    AT_TRY(check_workers(o, plan, fail));
    AT_TRY(check_resume(o, plan, fail));
    AT_TRY(check_model(o, plan, fail));
    AT_TRY(check_local(o, plan, fail));
    AT_TRY(check_owned(o, plan, context->seed, fail));
    AT_TRY(check_slices(o, plan, fail));
    AT_TRY(check_compress(o, context, fail));
    AT_TRY(check_switch(o, plan, fail));
    if (o->world->check) AT_TRY(o->world->check(context, fail));
    AT_TRY(check_memory(o, context, fail));
    return check_time(o, fail);
}
