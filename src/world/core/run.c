#include "world/core/run.h"

#include <assert.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/folder_guard.h"
#include "base/json_text.h"
#include "base/machine.h"
#include "base/text.h"
#include "learn/net/net.h"
#include "learn/optim/sum.h"
#include "model_io/checkpoint.h"
#include "model_io/safetensors.h"
#include "record/log/append_file.h"
#include "record/log/rewind.h"
#include "record/sinks/buffered_sink.h"
#include "record/tally.h"
#include "step/switch.h"
#include "world/core/hints.h"
#include "world/core/result.h"
#include "world/core/run_checks.h"
#include "world/process/saver.h"
#include "world/seat/seat_hub.h"
#include "world/sim/faults.h"

const char *const at_recording_name[AT_RECORDING_COUNT] = {
#define X(id, text) [AT_RECORDING_##id] = text,
    AT_RECORDING_MAP(X)
#undef X
};

/* The state of a run. */
typedef struct run {
    const at_run_options *options;
    at_plan               plan, then;
    at_world_context      context;
    at_run_info           info;
    at_recorder           recorder;
    at_tally             *tally;
    at_pace              *pace;
    at_pace_options       pace_options;
    at_learning           learning;
    at_learning           inner;  /* of local steps */
    at_optim              outer;  /* then: what the outer rule keeps */
    at_run_layer         *layers; /* of the net */
    at_outcome            outcome;
    at_ns                 began;
    at_ns                 sample_time;
    at_fault             *faults;
    size_t                fault_count;
    uint32_t              cores;
    bool                  oversubscribed;
    at_saver             *saver;
    uint64_t              saved; /* step of the newest checkpoint, UINT64_MAX: none */
    bool                  gap;   /* logs of earlier parts lack records */
} run;

static bool records(const run *r)
{
    const at_world *world = r->options->world;
    return !world->records || world->records(&r->context);
}

/* ---- plan ------------------------------------------------------------------------------------ */

static void set_limits(run *r)
{
    const at_run_options *o = r->options;
    assert(o->task->samples >= 1 || o->epochs <= 0);
    at_limits *limits = &r->plan.limits;
    uint64_t   epoch = o->task->samples;
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

static at_err set_saving(run *r, at_fail *fail)
{
    const at_run_options *o = r->options;
    const char           *every = o->checkpoint_every;
    at_plan              *plan = &r->plan;
    int64_t               steps;
    if (!every) every = o->world->virtual_time ? "0" : "60s";
    plan->saves = o->folder && o->recording != AT_RECORDING_NONE && !o->task->timing_only &&
                  strcmp(every, "none") != 0;
    if (!plan->saves) return AT_OK;
    if (at_text_whole(every, &steps) && steps >= 0) {
        plan->save_steps = (uint64_t)steps;
        return AT_OK;
    }
    if (at_text_duration(every, &plan->save_time) && plan->save_time > 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE,
                       "use a number of steps (500), a time (60s), 0 (start and end only) or none",
                       "--checkpoint-every '%s' is neither a number of steps nor a time", every);
}

/* Settings of a group: those of the run times the group's factors, or the group's own. */
static at_err set_rate(const run *r, const at_param_group *group, double samples_end, at_rate *rate,
                       at_fail *fail)
{
    assert(r->learning.optim);
    const at_run_options *o = r->options;
    const char           *schedule = o->lr_schedule ? o->lr_schedule : "const";
    double                lr = o->lr > 0 ? o->lr : r->learning.optim->lr_default;
    if (group->schedule[0]) schedule = group->schedule;
    rate->weight_decay = o->weight_decay * group->decay;
    rate->momentum = (float)group->momentum;
    double epoch = o->task->samples > 0 ? (double)o->task->samples : 1; /* unknown: seats */
    AT_TRY(at_schedule_parse(schedule, lr * group->lr, epoch, samples_end, &rate->schedule, fail));
    return at_schedule_set_steps(&rate->schedule, (double)r->plan.limits.steps, fail);
}

const char *at_run_optimizer(const at_run_options *o)
{
    const at_strategy *strategy = o->plan.strategy;
    if (o->optimizer) return o->optimizer;
    return strategy && strategy->optimizer ? strategy->optimizer : "sgd";
}

/* Where workers make local steps, the optimizer is theirs, and the hub follows the outer rule. */
static at_err set_outer(run *r, at_fail *fail)
{
    const at_outer_rule *rule = r->plan.outer;
    for (uint32_t i = 0; i <= r->learning.groups; i++)
        if (r->learning.rate[i].schedule.by_steps)
            return at_fail_set(fail, AT_ERR_USAGE, "use a schedule that counts samples",
                               "--work local does not work with a learning-rate schedule that "
                               "counts steps: a step of the run is many local steps");
    r->inner = r->learning;
    r->outer = (at_optim){.name = rule->rule.name,
                          .summary = rule->rule.summary,
                          .states = rule->keeps_momentum ? 1 : 0};
    r->learning.optim = &r->outer;
    r->learning.outer = &r->plan;
    r->learning.inner = &r->inner;
    r->learning.clip = 0;
    return AT_OK;
}

static at_err set_learning(run *r, at_fail *fail)
{
    const at_run_options *o = r->options;
    const at_limits      *limits = &r->plan.limits;
    at_learning          *l = &r->learning;
    l->torch = o->task->torch;
    if (l->torch)
        l->optim = &l->torch->optim;
    else
        AT_TRY(at_optim_parse(at_run_optimizer(o), &l->optim, l->number, fail));
    double step = (double)r->plan.workers * r->plan.batch, end = (double)limits->samples;
    if (limits->steps > 0 && (end <= 0 || (double)limits->steps * step < end))
        end = (double)limits->steps * step;
    l->ranges = o->task->ranges;
    l->ranges_count = o->task->ranges_count;
    l->trained = o->task->timing_only ? 0 : o->task->trained;
    l->clip = o->clip;
    l->sparse = o->task->sparse;
    l->updates_in_place = r->plan.mix->updates_in_place;
    l->shared_state = o->task->shared_state;
    l->stale = r->plan.stale->correct ? &r->plan : NULL;
    l->slot_floats = o->task->slot_floats;
    l->groups = o->task->groups ? o->task->groups->count : 0;
    assert(l->groups <= AT_GROUPS_MAX);
    assert(l->trained <= o->task->params);
    for (uint32_t i = 0; i < l->groups; i++)
        AT_TRY(set_rate(r, &o->task->groups->group[i], end, &l->rate[i], fail));
    static const at_param_group rest = {.lr = 1, .decay = 1};
    AT_TRY(set_rate(r, &rest, end, &l->rate[l->groups], fail));
    return r->plan.work->reports_change ? set_outer(r, fail) : AT_OK;
}

/* The default cost of a sample in virtual time is multiply-adds / 10^10 seconds. */
static at_err set_time(run *r, at_fail *fail)
{
    const at_run_options *o = r->options;
    r->sample_time = o->sample_time;
    if (!o->world->virtual_time) return AT_OK;
    if (r->sample_time == 0) r->sample_time = (at_ns)((double)o->task->mults / 10.0);
    if (r->sample_time == 0) r->sample_time = 1;
    at_fault_options faults = {.workers = r->plan.workers,
                               .workers_max = r->plan.workers_max,
                               .respawn = o->respawn,
                               .trace_scale = o->trace_scale};
    AT_TRY(at_faults_read(o->faults, &faults, &r->faults, &r->fault_count, fail));
    r->context.faults = r->faults;
    r->plan.open = at_faults_have_joins(r->faults, r->fault_count);
    return at_faults_check(r->faults, r->fault_count, r->plan.workers, o->respawn, fail);
}

/* A scale in percent refers to the mean compute time of a round, which is known if computation is
 * padded and measured otherwise. */
static at_err set_pace(run *r, at_fail *fail)
{
    assert(!r->pace);
    const at_run_options *o = r->options;
    const char           *scale = o->straggler_scale ? o->straggler_scale : "1";
    at_ns                 sample_time = r->sample_time;
    if (strchr(scale, '%') && sample_time == 0)
        AT_TRY(at_run_measure(o->task, r->plan.micro_batch, &sample_time, fail));
    if (o->pace) return AT_OK;
    uint64_t round = (uint64_t)r->plan.workers * r->plan.batch;
    assert(round >= 1);
    uint64_t rounds = o->task->samples / round;
    uint32_t micros = (r->plan.batch + r->plan.micro_batch - 1) / r->plan.micro_batch;
    r->pace_options =
        (at_pace_options){.model = o->straggler ? o->straggler : "none",
                          .scale = scale,
                          .seed = o->seed,
                          .workers = r->plan.workers_max,
                          .round_ns_mean = sample_time * r->plan.batch + o->micro_cost * micros,
                          .rounds_per_epoch = rounds > 0 ? rounds : 1,
                          .trace_scale = o->trace_scale};
    return at_pace_new(&r->pace_options, &r->pace, fail);
}

/* Usage is sampled only if it is recorded; in virtual time it means nothing. */
static at_ns usage_every(const at_run_options *o)
{
    bool recorded = o->folder && o->recording != AT_RECORDING_NONE;
    return recorded && !o->world->virtual_time ? o->resources : 0;
}

static at_err set_plan(run *r, at_fail *fail)
{
    assert(r->options->task);
    assert(r->options->world);
    const at_run_options *o = r->options;
    r->plan = o->plan;
    r->then = o->then;
    if (r->plan.then) r->plan.then = &r->then;
    r->cores = o->world->cores ? o->world->cores() : at_machine_cores();
    assert(r->cores >= 1);
    r->context = (at_world_context){.plan = &r->plan,
                                    .task = o->task,
                                    .learning = &r->learning,
                                    .recorder = &r->recorder,
                                    .seed = o->seed,
                                    .round_size = o->round_size,
                                    .comm_delay = o->comm_delay,
                                    .usage_every = usage_every(o),
                                    .latency = o->latency,
                                    .bandwidth = o->bandwidth,
                                    .links = o->links,
                                    .micro_cost = o->micro_cost,
                                    .jitter = o->jitter,
                                    .cores = r->cores,
                                    .resume = o->resume,
                                    .launcher = o->launcher,
                                    .seats = o->seats,
                                    .joins = o->joins,
                                    .pace_options = &r->pace_options,
                                    .respawn = o->respawn,
                                    .bind = o->bind};
    uint32_t here = at_run_workers_here(o->world, &r->context);
    r->oversubscribed = !o->world->one_process && o->sample_time == 0 && here > r->cores;
    set_limits(r);
    AT_TRY(at_compress_read(o->compress, &r->context.compress, fail));
    AT_TRY(at_run_check(o, &r->context, fail));
    AT_TRY(set_saving(r, fail));
    AT_TRY(set_learning(r, fail));
    AT_TRY(set_time(r, fail));
    AT_TRY(set_pace(r, fail));
    if (r->plan.then) at_switch_share(&r->plan, &r->then);
    return AT_OK;
}

/* ---- description of the run ------------------------------------------------------------------ */

_Static_assert((int)AT_RUN_LAYER_SAMPLES == (int)AT_FROM_SAMPLES, "both count layers from 0");

static void describe_layer(at_run_layer *row, const at_layer *layer, const at_layer_info *info)
{
    assert(layer->kind);
    bool has_other = layer->kind->has_other;
    *row = (at_run_layer){.from = {layer->spec.from, AT_RUN_LAYER_NONE},
                          .shape = {info->out[0], info->out[1], info->out[2]},
                          .parameters = info->params};
    if (has_other) row->from[1] = layer->spec.other;
    at_net_layer_name(layer, row->name);
    snprintf(row->kind, sizeof row->kind, "%s", info->kind);
    snprintf(row->detail, sizeof row->detail, "%s", info->detail);
}

/* The layers of the task's net in order; NULL when it has none or memory is short. */
static at_run_layer *list_layers(const at_task *task, uint32_t *count)
{
    *count = 0;
    if (!task->net) return NULL;
    const at_net *net = at_model_net(task->net);
    assert(net->count >= 1);
    at_layer_info *infos = calloc(net->count, sizeof *infos);
    at_run_layer  *rows = calloc(net->count, sizeof *rows);
    if (infos && rows) {
        size_t found = at_model_layers(task->net, infos, net->count);
        assert(found == net->count);
        for (size_t i = 0; i < found; i++) describe_layer(&rows[i], &net->layer[i], &infos[i]);
        *count = (uint32_t)found;
    }
    free(infos);
    if (*count > 0) return rows;
    free(rows);
    return NULL;
}

static void set_info(run *r)
{
    assert(!r->layers);
    const at_run_options *o = r->options;
    r->info = (at_run_info){.folder = o->folder,
                            .plan = &r->plan,
                            .world = o->world->name,
                            .command = o->command ? o->command : "",
                            .model = o->task->model,
                            .data = o->task->data,
                            .parameters = o->task->parameters,
                            .samples_epoch = o->task->samples,
                            .seed = o->seed,
                            .date = at_clock_date(),
                            .progressive = o->task->sparse,
                            .usage = usage_every(o) > 0,
                            .links = o->seats && o->seats->net_fd >= 0,
                            .options = o->options};
    r->info.layers = r->layers = list_layers(o->task, &r->info.layer_count);
}

/* ---- sinks ----------------------------------------------------------------------------------- */

/* The sinks that write something in every step. */
static at_err open_tables(const run *r, at_recorder *tables, at_fail *fail)
{
    assert(r->options->folder);
    bool    is_full = r->options->recording == AT_RECORDING_FULL;
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

static at_err open_thinner(const run *r, at_thinner **thinner, at_fail *fail)
{
    uint64_t limit = r->options->record_limit;
    *thinner = at_thinner_new(&(at_thinner_options){.folder = r->options->folder,
                                                    .limit = limit ? limit : AT_RECORD_LIMIT,
                                                    .tally = r->tally,
                                                    .gap = r->gap});
    return *thinner ? AT_OK : at_fail_memory_for(fail, "for records");
}

/* Room on the disk that is kept for the next checkpoint and the files written at the end. */
static uint64_t bytes_reserved(const run *r)
{
    enum { STATE_SIZE = 2 << 20 };
    const at_task *task = r->options->task;
    if (!r->plan.saves) return 0;
    return (uint64_t)task->plain * sizeof(float) * (2 + r->learning.optim->states) + STATE_SIZE;
}

static at_err add_file_sinks(run *r, at_fail *fail)
{
    assert(r->options->recording < AT_RECORDING_COUNT);
    at_sink sink;
    at_append_file_reserve(bytes_reserved(r));
    if (r->plan.workers_max <= AT_WORKERS_LISTED) {
        AT_TRY(at_sink_workers(&r->info, &sink, fail));
        at_recorder_add(&r->recorder, sink);
    }
    if (r->options->recording == AT_RECORDING_NONE) return AT_OK;
    at_recorder tables = {0};
    at_thinner *thinner = NULL;
    at_err      err = open_tables(r, &tables, fail);
    if (!err) err = open_thinner(r, &thinner, fail);
    if (!err) err = at_sink_buffered(&tables, &r->recorder, thinner, &sink, fail);
    if (!err) {
        at_recorder_add(&r->recorder, sink);
        return AT_OK;
    }
    at_thinner_free(thinner);
    at_recorder_close(&tables, NULL);
    return err;
}

static at_err open_sinks(run *r, at_fail *fail)
{
    assert(!r->tally);
    at_sink sink;
    r->tally = at_tally_new(&r->info, &sink);
    if (!r->tally) return at_fail_memory(fail);
    at_recorder_add(&r->recorder, sink);
    if (r->options->folder) {
        AT_TRY(at_file_make_folder(r->options->folder, fail));
        at_folder_guard_set(r->options->folder);
        AT_TRY(add_file_sinks(r, fail));
    }
    at_console_options console = r->options->console;
    if (!r->info.resume) console.tally = r->tally; /* else it includes the steps before */
    AT_TRY(at_sink_console(&r->info, &console, &sink, fail));
    at_recorder_add(&r->recorder, sink);
    if (!r->options->classic) return AT_OK;
    AT_TRY(at_sink_classic(r->options->classic, &sink, fail));
    at_recorder_add(&r->recorder, sink);
    return AT_OK;
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

/* Fields of a checkpoint besides the state of hub and optimizer. */
static void describe_run(void *self, json_t *state, at_ns at)
{
    assert(state);
    assert(at >= 0);
    const run *r = self;
    json_object_set_new(state, "anytime", json_string(ANYTIME_VERSION));
    json_object_set_new(state, "world", json_string(r->info.world));
    json_object_set_new(state, "command", at_text_to_json_shown(r->info.command));
    if (r->options->resume)
        json_object_set_new(state, "earlier_commands", at_result_earlier_commands(r->options));
    json_object_set(state, "options", r->options->options);
    json_object_set_new(state, "data",
                        json_pack("{s:I, s:I}", "samples", (json_int_t)r->options->task->samples,
                                  "fingerprint", (json_int_t)r->options->task->fingerprint));
    json_object_set_new(state, "tally", at_tally_json(r->tally, at));
}

static void take_note(void *self, const char *text)
{
    at_recorder_put(&((run *)self)->recorder, &(at_record){.kind = AT_REC_TEXT, .text = text});
}

static at_err open_saver(run *r, at_fail *fail)
{
    assert(!r->saver);
    if (!r->plan.saves) return AT_OK;
    assert(r->options->folder);
    at_saver_options options = {.task = r->options->task,
                                .learning = &r->learning,
                                .workers = r->plan.workers_max,
                                .run = r->options->folder,
                                .describe = describe_run,
                                .say = take_note,
                                .self = r,
                                .patient = r->options->world->virtual_time};
    if (r->options->world->reaches_params && !r->options->task->timing_only)
        options.own_vectors = at_gossip_vectors(&r->plan, &r->learning);
    if (r->options->seats) options.extra_size = at_seat_hub_kept_max(r->options->seats);
    return at_saver_open(&options, &r->saver, fail);
}

/* Removes from tables and logs what came after the checkpoint: it will be repeated. */
static at_err rewind_records(run *r, at_fail *fail)
{
    const at_run_options *o = r->options;
    if (!o->resume) return AT_OK;
    assert(o->folder);
    r->info.resume = o->resume->snapshot;
    at_folder_guard_set(o->folder);
    at_atomic_file_remove_drafts(o->folder); /* a table as large as the limit, or a model */
    const at_snapshot *last = o->resume->snapshot;
    AT_TRY(at_rewind_tables(o->folder, last->version, last->clock, fail));
    return at_rewind_logs(o->folder, last->version, last->clock, &r->gap, fail);
}

static at_err resume_tally(run *r, at_fail *fail)
{
    const at_checkpoint *resume = r->options->resume;
    if (!resume) return AT_OK;
    assert(r->tally);
    return at_tally_resume(r->tally, json_object_get(resume->state, "tally"), fail);
}

/* Samples drawn by former workers that the resumed run does not have. */
static uint64_t drawn_before(const run *r)
{
    if (!r->options->resume) return 0;
    const at_snapshot *snapshot = r->options->resume->snapshot;
    uint64_t           drawn = snapshot->samples_used + snapshot->samples_dropped;
    for (uint32_t i = 0; i < snapshot->workers && i < r->plan.workers_max; i++)
        drawn -= snapshot->member[i].used + snapshot->member[i].dropped;
    return drawn;
}

/* ---- world ----------------------------------------------------------------------------------- */

/* Everything before the first event. */
static at_err prepare(run *r, at_fail *fail)
{
    r->saved = UINT64_MAX;
    AT_TRY(set_plan(r, fail));
    set_info(r);
    if (!records(r)) return AT_OK;
    AT_TRY(rewind_records(r, fail));
    AT_TRY(open_sinks(r, fail));
    AT_TRY(resume_tally(r, fail));
    return open_saver(r, fail);
}

static void say(const run *r, const char *text)
{
    at_recorder_put(&r->recorder, &(at_record){.kind = AT_REC_TEXT, .text = text});
}

/* Batch norm estimates mean and variance from one micro-batch; with few samples the estimates are
 * mostly noise (docs/reference/models.md shows the effect). */
static void warn_of_small_batches(const run *r)
{
    enum { BATCH_NORM_ROWS_MIN = 16 };
    char text[200];
    if (!r->options->task->wants_large_batches || r->plan.micro_batch >= BATCH_NORM_ROWS_MIN)
        return;
    snprintf(text, sizeof text,
             "note: batch norm works poorly with micro-batches of %u samples; use --micro-batch %d "
             "or more, or a model with group norm (gn)",
             r->plan.micro_batch, BATCH_NORM_ROWS_MIN);
    say(r, text);
}

static void warn_of_fresh_state(const run *r)
{
    if (!r->context.resume || !r->learning.inner || r->learning.inner->optim->states == 0) return;
    say(r, "note: checkpoints do not hold the workers' optimizer states; they start anew");
}

/* Prints notes about settings that are allowed but may surprise. */
static void warn(const run *r)
{
    const at_run_options *o = r->options;
    bool                  scaled = o->straggler_scale && strcmp(o->straggler_scale, "1") != 0;
    if (scaled && (!o->straggler || strcmp(o->straggler, "none") == 0))
        say(r, "note: --straggler-scale has no effect without --straggler");
    warn_of_small_batches(r);
    warn_of_fresh_state(r);
    if (!r->oversubscribed) return;
    char text[200];
    snprintf(text, sizeof text,
             "%u workers share %u cores and slow each other down (use --sample-time to make them "
             "behave like separate machines)",
             at_run_workers_here(o->world, &r->context), r->cores);
    say(r, text);
}

static at_err run_world(run *r, at_fail *fail)
{
    assert(r->pace || r->options->pace);
    assert(r->context.plan == &r->plan); /* a run is not moved */
    at_world_context *context = &r->context;
    context->pace = r->options->pace ? r->options->pace : r->pace;
    context->sample_time = r->sample_time;
    context->fault_count = r->fault_count;
    context->saver = r->saver;
    warn(r);
    bool hints = r->tally && !r->options->skips_hints;
    if (hints) at_hints_before(r->options, &r->plan, take_note, r);
    AT_TRY(r->options->world->run(context, &r->outcome, fail));
    const char *unsaved = r->saver ? at_saver_trouble(r->saver) : NULL;
    if (unsaved) say(r, unsaved); /* the last checkpoint: nobody has polled since */
    if (hints) at_hints_after(&r->plan, r->tally, take_note, r);
    return AT_OK;
}

/* ---- result ---------------------------------------------------------------------------------- */

/* Converts the final parameters to the plain order, which is the same on every machine. */
static at_err to_plain(run *r, at_fail *fail)
{
    const at_task *task = r->options->task;
    if (!task->to_plain || r->outcome.floats == 0) return AT_OK;
    assert(r->outcome.params);
    assert(r->outcome.floats == task->params);
    float *plain = malloc(task->plain * sizeof *plain);
    if (!plain) return at_fail_memory_for(fail, "for the final parameters");
    task->to_plain(task->self, plain, r->outcome.params);
    free(r->outcome.params);
    r->outcome.params = plain;
    r->outcome.floats = task->plain;
    return AT_OK;
}

static at_err write_model(const run *r, at_fail *fail)
{
    char path[4096];
    bool wanted =
        r->options->folder && r->options->recording != AT_RECORDING_NONE && r->outcome.floats > 0;
    if (!wanted) return AT_OK;
    assert(r->outcome.params);
    size_t bad = at_first_nonfinite(r->outcome.params, r->outcome.floats);
    if (bad < r->outcome.floats && r->outcome.end == AT_END_DIVERGED) return AT_OK; /* says why */
    if (bad < r->outcome.floats)
        return at_fail_set(fail, AT_ERR_FAILED,
                           "use a smaller --lr or --clip; older checkpoints are intact",
                           "the trained model was not written: its weights are not finite");
    snprintf(path, sizeof path, "%s/model.safetensors", r->options->folder);
    return at_safetensors_write(path, r->options->task, r->outcome.params, fail);
}

static at_err write_result(const run *r, const json_t *result, at_fail *fail)
{
    assert(result);
    char path[4096];
    if (!r->options->folder) return AT_OK;
    snprintf(path, sizeof path, "%s/result.json", r->options->folder);
    char *text = json_dumps(result, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    if (!text) return at_fail_memory(fail);
    at_err err = at_file_write(path, text, strlen(text), fail);
    free(text);
    return err;
}

static at_err finish(run *r, json_t **result, at_fail *fail)
{
    assert(r->tally);
    assert(r->outcome.drawn);
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
    AT_TRY(to_plain(r, fail));
    assert(r->outcome.floats == 0 || r->outcome.floats == r->options->task->plain);
    if (r->options->params_final)
        memcpy(r->options->params_final, r->outcome.params, r->outcome.floats * sizeof(float));
    *result = at_result_json(&facts);
    if (!*result) return at_fail_memory(fail);
    at_fail unwritten = {0};
    at_err  err = write_model(r, &unwritten); /* the result is written even if the model is not */
    AT_TRY(write_result(r, *result, fail));
    if (err) *fail = unwritten;
    return err;
}

static at_err stopped(const run *r, const char *why, at_fail *fail)
{
    char hint[300];
    bool hub = r->options->seats && r->plan.open; /* others start its workers */
    bool programs = r->options->world->runs_programs && !hub;
    snprintf(hint, sizeof hint, "resume with: anytime %s --resume %.250s%s",
             hub        ? "hub"
             : programs ? "run"
                        : "train",
             r->options->folder ? r->options->folder : "", programs ? " -- COMMAND" : "");
    return at_fail_set(fail, AT_ERR_STOPPED, r->saved != UINT64_MAX ? hint : NULL,
                       "%s after step %llu", why, (unsigned long long)r->outcome.version);
}

static at_err too_few(const run *r, at_fail *fail)
{
    char why[120];
    snprintf(why, sizeof why, "too few workers (fewer than --workers-min %u for %g s)",
             r->plan.workers_min, at_seconds(r->plan.join_timeout));
    return stopped(r, why, fail);
}

static at_err diverged(const run *r, at_fail *fail)
{
    char hint[300], kept[80] = "";
    if (r->saved != UINT64_MAX)
        snprintf(kept, sizeof kept, "; the checkpoint of step %llu is intact",
                 (unsigned long long)r->saved);
    bool skips = r->plan.nonfinite == AT_NONFINITE_SKIP;
    snprintf(hint, sizeof hint, "use a smaller --lr%s%s",
             skips ? " or --clip" : ", --clip or, for single bad samples, --nonfinite skip", kept);
    if (r->outcome.nonfinite[0])
        return at_fail_set(fail, AT_ERR_FAILED, hint, "training diverged in %s",
                           r->outcome.nonfinite);
    return at_fail_set(fail, AT_ERR_FAILED, hint,
                       "training diverged in step %llu: the sum of the losses is not finite",
                       (unsigned long long)r->outcome.version);
}

/* Turns the end of the run into an error where it is one. */
static at_err check_end(const run *r, at_fail *fail)
{
    switch (r->outcome.end) {
    case AT_END_SIGNAL: return stopped(r, "stopped by a signal", fail);
    case AT_END_LOST: return stopped(r, "a rank was lost", fail);
    case AT_END_FEW: return too_few(r, fail);
    case AT_END_WORKERS:
        return at_fail_set(fail, AT_ERR_FAILED, "see the messages above for how they ended",
                           "no worker is left%s%s", r->outcome.last_lost[0] ? ": " : "",
                           r->outcome.last_lost);
    case AT_END_DIVERGED: return diverged(r, fail);
    case AT_END_RUNNING: assert(!"a world returns when its hub has finished"); break;
    case AT_END_STEPS:
    case AT_END_SAMPLES:
    case AT_END_EPOCHS:
    case AT_END_SECONDS:
    case AT_END_TARGET:
    case AT_END_LEFT:
    case AT_END_COUNT: break;
    }
    return AT_OK;
}

/* ---- run ------------------------------------------------------------------------------------- */

at_err at_run(const at_run_options *options, json_t **result, at_fail *fail)
{
    run     r = {.options = options, .began = at_clock_now()};
    at_fail ignored;
    *result = NULL;
    signal(SIGXFSZ, SIG_IGN); /* a file beyond `ulimit -f` is an error of write, not a death */
    at_err err = prepare(&r, fail);
    if (!err) err = run_world(&r, fail);
    if (r.saver) r.saved = at_saver_newest(r.saver);
    at_saver_close(r.saver);
    bool   ran = !err && records(&r);
    at_err closed = at_recorder_close(&r.recorder, ran ? fail : &ignored);
    /* The result is written even if a table could not be. */
    if (ran) err = finish(&r, result, closed ? &ignored : fail);
    if (ran && closed) err = closed;
    if (ran && !err) err = check_end(&r, fail);
    at_folder_guard_set(NULL);
    at_tally_free(r.tally);
    free(r.layers);
    at_pace_free(r.pace);
    free(r.faults);
    free(r.outcome.params);
    free(r.outcome.drawn);
    free(r.outcome.lost);
    free(r.outcome.exchanged);
    return err;
}

at_err at_run_preview_make(const at_run_options *options, at_run_preview *preview, at_fail *fail)
{
    run    r = {.options = options};
    at_err err = set_plan(&r, fail);
    if (!err)
        *preview = (at_run_preview){.limits = r.plan.limits,
                                    .memory = at_run_memory(options, &r.context),
                                    .cores = r.cores};
    if (!err && options->world->virtual_time) /* one process computes for all workers */
        preview->memory /= at_run_workers_here(options->world, &r.context);
    at_pace_free(r.pace);
    free(r.faults);
    return err;
}
