#include "world/core/run.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/machine.h"
#include "base/text.h"
#include "model_io/checkpoint.h"
#include "model_io/safetensors.h"
#include "record/log/rewind.h"
#include "record/sinks/buffered_sink.h"
#include "record/tally.h"
#include "world/core/net_layers.h"
#include "world/core/result.h"
#include "world/core/topology.h"
#include "world/process/bell.h"
#include "world/process/child.h"
#include "world/process/saver.h"
#include "world/sim/faults.h"

const char *const at_keep_name[AT_KEEP_COUNT] = {
#define X(id, text) [AT_KEEP_##id] = text,
    AT_KEEP_MAP(X)
#undef X
};

enum { PROCESS_SIZE = 1 << 20 }; /* what a worker process needs by being one, about */

/* Everything a run holds while it runs. */
typedef struct run {
    const at_run_options *options;
    at_plan               plan;
    at_run_info           info;
    at_recorder           recorder;
    at_tally             *tally;
    at_pace              *pace;
    at_learning           learning;
    at_run_layer         *layers; /* of the net */
    at_outcome            outcome;
    at_ns                 began;
    at_ns                 sample_time;
    at_fault              faults[AT_FAULTS_MAX];
    size_t                fault_count;
    uint32_t              cores;
    bool                  oversubscribed;
    at_saver             *saver;
    uint64_t              saved; /* step of the newest checkpoint, UINT64_MAX: none */
} run;

/* A rank that leaves the telling to rank 0. */
static bool is_other_rank(const at_run_options *o)
{
    return o->launcher && o->launcher->rank > 0;
}

/* How many workers compute on this machine, as far as it is told. */
static uint32_t processes_here(const at_run_options *o, uint32_t workers)
{
    if (!o->launcher) return workers;
    uint32_t ranks = o->launcher->local_size;
    uint32_t hubs = o->hubs > 1 ? o->hubs : o->plan.topology != AT_TOPOLOGY_ALLREDUCE;
    if (o->launcher->rank >= hubs) hubs = 0; /* they are elsewhere, for all we know */
    return ranks > hubs ? ranks - hubs : 1;
}

/* ---- measuring ------------------------------------------------------------------------------- */

typedef struct measurement {
    const at_task *task;
    uint32_t       micro_batch;
    at_ns         *sample_time; /* shared */
} measurement;

enum { MEASURE_ROUNDS = 20 };

static int measure_main(void *self)
{
    const measurement *m = self;
    const at_task     *task = m->task;
    at_fail            fail;
    float             *params = calloc(task->params + 16, sizeof(float));
    size_t             slot = (task->slot_floats * sizeof(float) + 127) / 64 * 64;
    float             *gradient = aligned_alloc(64, slot);
    if (!params || !gradient || task->open(task->self, 1, &fail)) return AT_ERR_FAILED;
    if (task->init(task->self, params, 1, &fail)) return AT_ERR_FAILED;
    at_ns best = AT_NEVER;
    for (uint64_t i = 0; i < MEASURE_ROUNDS; i++) {
        at_draw draw = {.worker = 1, .position = i * m->micro_batch, .count = m->micro_batch};
        at_ns   begin = at_clock_now();
        task->gradient(task->self, gradient, true, (at_point){.params = params}, &draw);
        at_ns took = at_clock_now() - begin;
        if (took < best) best = took;
    }
    *m->sample_time = best / m->micro_batch > 0 ? best / m->micro_batch : 1;
    return 0;
}

at_err at_run_measure(const at_task *task, uint32_t micro_batch, at_ns *sample_time, at_fail *fail)
{
    measurement m = {.task = task, .micro_batch = micro_batch};
    m.sample_time = at_child_share(sizeof *m.sample_time, fail);
    if (!m.sample_time) return fail->err;
    pid_t  pid;
    int    status = 0;
    at_err err = at_child_fork(measure_main, &m, &pid, fail);
    if (!err) {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
        *sample_time = *m.sample_time;
        if (status != 0 || *sample_time <= 0)
            err = at_fail_set(fail, AT_ERR_FAILED, "give --sample-time",
                              "the time of one sample could not be measured");
    }
    munmap(m.sample_time, sizeof *m.sample_time);
    return err;
}

/* ---- settings -------------------------------------------------------------------------------- */

static at_err find_optim(const char *name, const at_optim **optim, at_fail *fail)
{
    const char *names[32];
    size_t      count = 0;
    *optim = at_optim_find(name);
    if (*optim) return AT_OK;
    for (; at_optims[count]; count++) names[count] = at_optims[count]->name;
    return at_text_unknown("optimiser", name, names, count, fail);
}

/* What only some tasks can do. */
static at_err check_model(const run *r, at_fail *fail)
{
    const at_run_options *o = r->options;
    const char           *optim = o->optimizer ? o->optimizer : "sgd";
    bool                  sgd = strcmp(optim, "sgd") == 0, adagrad = strcmp(optim, "adagrad") == 0;
    if (o->task->sparse && !sgd && !adagrad)
        return at_fail_set(fail, AT_ERR_USAGE, "use --optimizer sgd or adagrad",
                           "--optimizer %s changes every weight in every step, which %s avoids",
                           optim, o->task->model);
    if (r->plan.topology != AT_TOPOLOGY_HOGWILD) return AT_OK;
    if (!o->task->descend)
        return at_fail_set(fail, AT_ERR_USAGE, "use --model sparse-lr, or --strategy async",
                           "--strategy %s is for sparse models: workers that all write a dense "
                           "vector without locks undo each other's work",
                           r->plan.strategy->name);
    if (o->virtual_time || o->launcher)
        return at_fail_set(fail, AT_ERR_USAGE, "use --world local, or --strategy async",
                           "--strategy %s is about memory that processes share, and %s none",
                           r->plan.strategy->name,
                           o->launcher ? "ranks have" : "in virtual time there is");
    if (!sgd)
        return at_fail_set(fail, AT_ERR_USAGE, "use --optimizer sgd",
                           "--strategy %s has no optimiser but sgd: workers share the weights, and "
                           "no other state",
                           r->plan.strategy->name);
    return AT_OK;
}

static void set_limits(run *r)
{
    const at_run_options *o = r->options;
    at_limits            *limits = &r->plan.limits;
    uint64_t              epoch = o->task->samples;
    if (o->epochs > 0) {
        uint64_t samples = (uint64_t)ceil(o->epochs * (double)epoch);
        if (limits->samples == 0 || samples < limits->samples) {
            limits->samples = samples;
            limits->epochs = true;
        }
    }
    r->plan.samples_epoch = epoch;
    if (o->eval_every > 0) r->plan.eval_steps = (uint64_t)o->eval_every;
    if (o->eval_every < 0) r->plan.eval_samples = epoch;
}

/* How a group learns: the run's own numbers times its factors, unless it brings its own. */
static at_err set_rate(const run *r, const at_param_group *group, double samples_end, at_rate *rate,
                       at_fail *fail)
{
    const at_run_options *o = r->options;
    const char           *schedule = o->lr_schedule ? o->lr_schedule : "const";
    double                lr = o->lr > 0 ? o->lr : r->learning.optim->lr_default;
    if (group->schedule[0]) schedule = group->schedule;
    rate->weight_decay = o->weight_decay * group->decay;
    rate->momentum = (float)group->momentum;
    return at_schedule_parse(schedule, lr * group->lr, (double)o->task->samples, samples_end,
                             &rate->schedule, fail);
}

static at_err set_learning(run *r, at_fail *fail)
{
    const at_run_options *o = r->options;
    const at_limits      *limits = &r->plan.limits;
    at_learning          *l = &r->learning;
    AT_TRY(find_optim(o->optimizer ? o->optimizer : "sgd", &l->optim, fail));
    double step = (double)r->plan.workers * r->plan.batch, end = (double)limits->samples;
    if (limits->steps > 0 && (end <= 0 || (double)limits->steps * step < end))
        end = (double)limits->steps * step;
    l->ranges = o->task->ranges;
    l->ranges_count = o->task->ranges_count;
    l->trained = o->task->timing_only ? 0 : o->task->trained;
    l->sparse = o->task->sparse;
    l->hogwild = r->plan.topology == AT_TOPOLOGY_HOGWILD;
    l->slot_floats = o->task->slot_floats;
    l->groups = o->task->groups ? o->task->groups->count : 0;
    for (uint32_t i = 0; i < l->groups; i++)
        AT_TRY(set_rate(r, &o->task->groups->group[i], end, &l->rate[i], fail));
    static const at_param_group rest = {.lr = 1, .decay = 1};
    return set_rate(r, &rest, end, &l->rate[l->groups], fail);
}

/* What a sample costs in virtual time unless it is said: multiply-adds / 10^10 seconds. */
static at_err set_time(run *r, at_fail *fail)
{
    const at_run_options *o = r->options;
    bool                  virtual_only = o->latency > 0 || o->bandwidth > 0;
    r->sample_time = o->sample_time;
    if (!o->virtual_time && (virtual_only || o->faults))
        return at_fail_set(fail, AT_ERR_USAGE, "use `anytime simulate`, or --world sim",
                           "--latency, --bandwidth and --faults are of virtual time");
    if (o->solo && o->comm_delay > 0)
        return at_fail_set(fail, AT_ERR_USAGE, "give --workers 1 or more",
                           "--workers 0 sends no messages that could be delayed");
    if (!o->virtual_time && o->task->timing_only)
        return at_fail_set(fail, AT_ERR_USAGE, "use `anytime simulate`, or --world sim",
                           "--model none:P is only for virtual time: it computes nothing");
    if (!o->virtual_time) return AT_OK;
    if (o->solo)
        return at_fail_set(fail, AT_ERR_USAGE, "give --workers 1 or more",
                           "--workers 0 is this process itself, which lives in real time");
    if (r->sample_time == 0) r->sample_time = (at_ns)((double)o->task->mults / 10.0);
    if (r->sample_time == 0) r->sample_time = 1;
    return at_faults_parse(o->faults, r->plan.workers, r->faults, &r->fault_count, fail);
}

/* A scale in percent is relative to a round's mean compute time, which is known when compute is
 * padded and measured otherwise. */
static at_err set_pace(run *r, at_fail *fail)
{
    const at_run_options *o = r->options;
    const char           *scale = o->straggler_scale ? o->straggler_scale : "1";
    at_ns                 sample_time = r->sample_time;
    if (strchr(scale, '%') && sample_time == 0)
        AT_TRY(at_run_measure(o->task, r->plan.micro_batch, &sample_time, fail));
    uint64_t        round = (uint64_t)r->plan.workers * r->plan.batch;
    uint64_t        rounds = o->task->samples / round;
    at_pace_options pace = {.model = o->straggler ? o->straggler : "none",
                            .scale = scale,
                            .seed = o->seed,
                            .workers = r->plan.workers,
                            .round_ns_mean = sample_time * r->plan.batch,
                            .rounds_per_epoch = rounds > 0 ? rounds : 1};
    return at_pace_new(&pace, &r->pace, fail);
}

/* ---- sinks ----------------------------------------------------------------------------------- */

/* What grows with every step. */
static at_err open_tables(const run *r, at_recorder *tables, at_fail *fail)
{
    bool    is_full = r->options->keep == AT_KEEP_FULL;
    at_sink sink;
    AT_TRY(at_sink_csv(&r->info, is_full, &sink, fail));
    at_recorder_add(tables, sink);
    if (!is_full) return AT_OK;
    AT_TRY(at_sink_eventlog(&r->info, &sink, fail));
    at_recorder_add(tables, sink);
    AT_TRY(at_sink_tensorboard(&r->info, &sink, fail));
    at_recorder_add(tables, sink);
    return AT_OK;
}

static at_err add_file_sinks(run *r, at_fail *fail)
{
    at_keep keep = r->options->keep;
    at_sink sink;
    AT_TRY(at_sink_workers(&r->info, &sink, fail));
    at_recorder_add(&r->recorder, sink);
    if (keep == AT_KEEP_NONE) return AT_OK;
    at_recorder tables = {0};
    at_err      err = open_tables(r, &tables, fail);
    if (!err) err = at_sink_buffered(&tables, &sink, fail);
    if (!err)
        at_recorder_add(&r->recorder, sink);
    else
        at_recorder_close(&tables, NULL);
    return err;
}

static at_err open_sinks(run *r, at_fail *fail)
{
    at_sink sink;
    r->tally = at_tally_new(&r->info, &sink);
    if (!r->tally) return at_fail_memory(fail);
    at_recorder_add(&r->recorder, sink);
    if (r->options->folder) {
        AT_TRY(at_file_make_folder(r->options->folder, fail));
        AT_TRY(add_file_sinks(r, fail));
    }
    AT_TRY(at_sink_console(&r->info, &r->options->console, &sink, fail));
    at_recorder_add(&r->recorder, sink);
    return AT_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

/* A run that would make the machine swap is refused: it would freeze everything else on it. */
static at_err check_memory(const run *r, at_fail *fail)
{
    const at_task *task = r->options->task;
    at_memory      memory = at_machine_memory();
    double         copies = r->plan.release->holds ? 2 : 3; /* gradients, parameters */
    double         vectors = copies * (double)task->slot_likely * sizeof(float);
    uint32_t       workers = processes_here(r->options, r->plan.workers);
    double         needed = workers * (vectors + (double)task->scratch_size + PROCESS_SIZE);
    if (task->sparse) needed += 2.0 * (double)task->params * sizeof(float); /* and a snapshot */
    if (r->options->virtual_time || memory.available == 0 || needed < (double)memory.available)
        return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE,
                       "use fewer workers, a smaller --micro-batch or a smaller model",
                       "%u workers would need %.1f GB of memory, and %.1f GB are available",
                       workers, needed / 1e9, (double)memory.available / 1e9);
}

/* Nobody looks at what nobody keeps, and in virtual time there is nothing to see. */
static at_ns usage_every(const at_run_options *o)
{
    bool is_kept = o->folder && o->keep != AT_KEEP_NONE;
    return is_kept && !o->virtual_time ? o->resources : 0;
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

/* What a checkpoint holds beside the state of hub and optimiser. */
static void describe(void *self, json_t *state, at_ns at)
{
    const run *r = self;
    json_object_set_new(state, "anytime", json_string(ANYTIME_VERSION));
    json_object_set_new(state, "world", json_string(r->info.world));
    json_object_set_new(state, "command", json_string(r->info.command));
    json_object_set(state, "options", r->options->options);
    json_object_set_new(state, "tally", at_tally_json(r->tally, at));
}

static at_err set_saving(run *r, at_fail *fail)
{
    const at_run_options *o = r->options;
    const char           *every = o->checkpoint_every;
    at_plan              *plan = &r->plan;
    int64_t               steps;
    if (!every) every = o->virtual_time ? "0" : "60s";
    plan->saves =
        o->folder && o->keep != AT_KEEP_NONE && !o->task->timing_only && strcmp(every, "none") != 0;
    if (!plan->saves) return AT_OK;
    if (at_text_whole(every, &steps) && steps >= 0) {
        plan->save_steps = (uint64_t)steps;
        return AT_OK;
    }
    if (at_text_duration(every, &plan->save_time) && plan->save_time > 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "write 500 (steps), 60s, 0 (start and end) or none",
                       "--checkpoint-every cannot be '%s'", every);
}

static at_err open_saver(run *r, at_fail *fail)
{
    if (!r->plan.saves) return AT_OK;
    at_saver_options options = {.task = r->options->task,
                                .learning = &r->learning,
                                .workers = r->plan.workers,
                                .run = r->options->folder,
                                .describe = describe,
                                .self = r,
                                .patient = r->options->virtual_time};
    return at_saver_open(&options, &r->saver, fail);
}

/* A run that is at its end already has nothing to go on with. */
static at_err check_resume(const run *r, at_fail *fail)
{
    const at_limits *limits = &r->plan.limits;
    if (!r->options->resume) return AT_OK;
    const at_snapshot *snapshot = r->options->resume->snapshot;
    bool               steps = limits->steps > 0 && snapshot->version >= limits->steps;
    bool               samples = limits->samples > 0 && snapshot->samples_used >= limits->samples;
    bool               time = limits->time > 0 && snapshot->elapsed >= limits->time;
    if (!steps && !samples && !time) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "give --steps, --epochs, --samples or --seconds",
                       "the run has reached its end already: step %llu, %llu samples, %.1f s",
                       (unsigned long long)snapshot->version,
                       (unsigned long long)snapshot->samples_used, at_seconds(snapshot->elapsed));
}

/* Tables and logs lose what came after the checkpoint: it will come again. */
static at_err rewind_records(run *r, at_fail *fail)
{
    const at_run_options *o = r->options;
    if (!o->resume) return AT_OK;
    r->info.resume = o->resume->snapshot;
    AT_TRY(at_rewind_tables(o->folder, o->resume->snapshot->version, fail));
    return at_rewind_logs(o->folder, o->resume->snapshot->version, fail);
}

static at_err resume_tally(run *r, at_fail *fail)
{
    const at_checkpoint *resume = r->options->resume;
    if (!resume) return AT_OK;
    return at_tally_resume(r->tally, json_object_get(resume->state, "tally"), fail);
}

/* What workers drew that were there before and are not any more. */
static uint64_t drawn_before(const run *r)
{
    if (!r->options->resume) return 0;
    const at_snapshot *snapshot = r->options->resume->snapshot;
    uint64_t           drawn = snapshot->samples_used + snapshot->samples_dropped;
    for (uint32_t i = 0; i < snapshot->workers && i < r->plan.workers; i++)
        drawn -= snapshot->member[i].used + snapshot->member[i].dropped;
    return drawn;
}

static at_err prepare(run *r, at_fail *fail)
{
    const at_run_options *o = r->options;
    r->plan = o->plan;
    r->cores = o->launcher ? at_machine_cores_all() : at_machine_cores();
    r->oversubscribed = !o->solo && !o->virtual_time && o->sample_time == 0 &&
                        processes_here(o, r->plan.workers) > r->cores;
    if (o->solo && (r->plan.workers != 1 || r->plan.release->self_starting))
        return at_fail_set(fail, AT_ERR_USAGE, "give --workers 1 or more",
                           "--workers 0 has one loop, which cannot run ahead of itself: "
                           "--release %s makes no sense",
                           r->plan.release->name);
    if (!o->virtual_time && !o->launcher && r->plan.workers > AT_BELL_RINGS_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, "use `anytime simulate`",
                           "%u worker processes are more than one machine can use",
                           r->plan.workers);
    r->saved = UINT64_MAX;
    set_limits(r);
    AT_TRY(check_resume(r, fail));
    AT_TRY(set_saving(r, fail));
    AT_TRY(check_model(r, fail));
    AT_TRY(at_topology_check(o, &r->plan, fail));
    AT_TRY(check_memory(r, fail));
    AT_TRY(set_learning(r, fail));
    AT_TRY(set_time(r, fail));
    AT_TRY(set_pace(r, fail));
    r->info = (at_run_info){.folder = o->folder,
                            .plan = &r->plan,
                            .world = o->virtual_time ? "sim"
                                     : o->launcher   ? "mpi"
                                                     : "local",
                            .command = o->command ? o->command : "",
                            .model = o->task->model,
                            .data = o->task->data,
                            .parameters = o->task->parameters,
                            .samples_epoch = o->task->samples,
                            .seed = o->seed,
                            .date = at_clock_date(),
                            .progressive = o->task->sparse,
                            .hubs = o->hubs,
                            .usage = usage_every(o) > 0,
                            .options = o->options};
    r->info.layers = r->layers = at_layers_of(o->task, &r->info.layer_count);
    if (is_other_rank(o)) return AT_OK; /* rank 0 tells and saves */
    AT_TRY(rewind_records(r, fail));
    AT_TRY(open_sinks(r, fail));
    AT_TRY(resume_tally(r, fail));
    return open_saver(r, fail);
}

static void say(const run *r, const char *text)
{
    at_recorder_put(&r->recorder, &(at_record){.kind = AT_REC_TEXT, .text = text});
}

/* Batch norm takes mean and variance from one micro-batch: of a few samples they are mostly chance
 * (docs/reference/models.md has what that costs). */
static void warn_of_small_batches(const run *r)
{
    enum { BATCH_NORM_ROWS_MIN = 16 };
    char text[200];
    if (!r->options->task->wants_large_batches || r->plan.micro_batch >= BATCH_NORM_ROWS_MIN)
        return;
    snprintf(text, sizeof text,
             "note: batch norm learns badly from micro-batches of %u samples; use --micro-batch %d "
             "or more, or a model with group norm (gn)",
             r->plan.micro_batch, BATCH_NORM_ROWS_MIN);
    say(r, text);
}

/* What is as the user wants it and may still surprise; said when nothing was refused. */
static void warn(const run *r)
{
    const at_run_options *o = r->options;
    bool                  scaled = o->straggler_scale && strcmp(o->straggler_scale, "1") != 0;
    if (scaled && (!o->straggler || strcmp(o->straggler, "none") == 0))
        say(r, "note: --straggler-scale has no --straggler to scale");
    warn_of_small_batches(r);
    if (!r->oversubscribed) return;
    char text[200];
    snprintf(text, sizeof text,
             "%u workers share %u cores: they slow each other down (use --sample-time to make them "
             "behave like machines of their own)",
             processes_here(o, r->plan.workers), r->cores);
    say(r, text);
}

static at_err run_world(run *r, at_fail *fail)
{
    const at_run_options *o = r->options;
    at_world_context      context = {.plan = &r->plan,
                                     .task = o->task,
                                     .pace = r->pace,
                                     .learning = &r->learning,
                                     .recorder = &r->recorder,
                                     .seed = o->seed,
                                     .sample_time = r->sample_time,
                                     .comm_delay = o->comm_delay,
                                     .usage_every = usage_every(o),
                                     .latency = o->latency,
                                     .bandwidth = o->bandwidth,
                                     .faults = r->faults,
                                     .fault_count = r->fault_count,
                                     .cores = r->cores,
                                     .saver = r->saver,
                                     .resume = o->resume,
                                     .hubs = o->hubs,
                                     .respawn = o->respawn};
    warn(r);
    if (o->launcher) return at_world_mpi(&context, o->launcher, &r->outcome, fail);
    if (o->virtual_time) return at_world_sim(&context, &r->outcome, fail);
    return o->solo ? at_world_solo(&context, &r->outcome, fail)
                   : at_world_local(&context, &r->outcome, fail);
}

static at_err write_result(const run *r, const json_t *result, at_fail *fail)
{
    char path[4096];
    if (!r->options->folder) return AT_OK;
    snprintf(path, sizeof path, "%s/result.json", r->options->folder);
    char *text = json_dumps(result, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    if (!text) return at_fail_memory(fail);
    at_err err = at_file_write(path, text, strlen(text), fail);
    free(text);
    return err;
}

/* What leaves the run is in plain order: the same on every machine. */
static at_err straighten(run *r, at_fail *fail)
{
    const at_task *task = r->options->task;
    if (!task->to_plain || r->outcome.floats == 0) return AT_OK;
    float *plain = malloc(task->plain * sizeof *plain);
    if (!plain) return at_fail_memory_for(fail, "for the result");
    task->to_plain(task->self, plain, r->outcome.params);
    free(r->outcome.params);
    r->outcome.params = plain;
    r->outcome.floats = task->plain;
    return AT_OK;
}

static at_err write_weights(const run *r, at_fail *fail)
{
    char path[4096];
    bool wanted = r->options->folder && r->options->keep != AT_KEEP_NONE && r->outcome.floats > 0;
    if (!wanted) return AT_OK;
    snprintf(path, sizeof path, "%s/model.safetensors", r->options->folder);
    return at_safetensors_write(path, r->options->task, r->outcome.params, fail);
}

static at_err stopped(const run *r, const char *why, at_fail *fail)
{
    char hint[300];
    snprintf(hint, sizeof hint, "go on with: anytime train --resume %.250s",
             r->options->folder ? r->options->folder : "");
    return at_fail_set(fail, AT_ERR_STOPPED, r->saved != UINT64_MAX ? hint : NULL,
                       "%s after step %llu", why, (unsigned long long)r->outcome.version);
}

/* How the run ended, as an error where it is one. */
static at_err evaluation(const run *r, at_fail *fail)
{
    switch (r->outcome.end) {
    case AT_END_SIGNAL: return stopped(r, "stopped by a signal", fail);
    case AT_END_LOST: return stopped(r, "a rank was lost", fail);
    case AT_END_FEW: return stopped(r, "too few workers", fail);
    case AT_END_WORKERS:
        return at_fail_set(fail, AT_ERR_FAILED, "look at the lines above for how they ended",
                           "no worker is left");
    case AT_END_DIVERGED:
        return at_fail_set(fail, AT_ERR_FAILED, "use a smaller --lr",
                           "training diverged: the loss was not a number in step %llu",
                           (unsigned long long)r->outcome.version);
    case AT_END_RUNNING: assert(!"a world returns when its hub has finished"); break;
    case AT_END_STEPS:
    case AT_END_SAMPLES:
    case AT_END_EPOCHS:
    case AT_END_SECONDS:
    case AT_END_TARGET:
    case AT_END_COUNT: break;
    }
    return AT_OK;
}

static at_err finish(run *r, json_t **result, at_fail *fail)
{
    at_result_facts facts = {.options = r->options,
                             .plan = &r->plan,
                             .info = &r->info,
                             .tally = r->tally,
                             .outcome = &r->outcome,
                             .wall_seconds = at_seconds(at_clock_now() - r->began),
                             .cores = r->cores,
                             .oversubscribed = r->oversubscribed,
                             .drawn_before = drawn_before(r),
                             .saved = r->saved};
    assert(r->tally->samples_used + r->tally->samples_dropped > 0 || r->outcome.version == 0);
    AT_TRY(straighten(r, fail));
    if (r->options->params_final)
        memcpy(r->options->params_final, r->outcome.params, r->outcome.floats * sizeof(float));
    *result = at_result_json(&facts);
    if (!*result) return at_fail_memory(fail);
    AT_TRY(write_weights(r, fail));
    return write_result(r, *result, fail);
}

at_err at_run(const at_run_options *options, json_t **result, at_fail *fail)
{
    run     r = {.options = options, .began = at_clock_now()};
    at_fail untold;
    *result = NULL;
    at_err err = prepare(&r, fail);
    if (!err) err = run_world(&r, fail);
    if (r.saver) r.saved = at_saver_newest(r.saver);
    at_saver_close(r.saver);
    bool   ran = !err && !is_other_rank(options);
    at_err closed = at_recorder_close(&r.recorder, ran ? fail : &untold);
    /* A table that could not be written does not take the result with it. */
    if (ran) err = finish(&r, result, closed ? &untold : fail);
    if (ran && closed) err = closed;
    if (ran && !err) err = evaluation(&r, fail);
    at_tally_free(r.tally);
    free(r.layers);
    at_pace_free(r.pace);
    at_outcome_deinit(&r.outcome);
    return err;
}
