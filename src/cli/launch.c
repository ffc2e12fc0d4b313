#include "cli/launch.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/machine.h"
#include "base/placement.h"
#include "base/text.h"
#include "cli/loading_progress.h"
#include "cli/output.h"
#include "data/set/resolve.h"
#include "data/set/set_pair.h"
#include "step/switch.h"
#include "world/mpi/mpi_world.h"
#include "world/seat/seat_hub.h"
#include "world/tasks/tasks.h"

enum { EPOCHS_DEFAULT = 10, EPOCHS_TO_TARGET = 100 };

/* ---- single options -------------------------------------------------------------------------- */

static at_err choose(const char *option, const char *value, const char *const *names, int count,
                     int *choice, at_fail *fail)
{
    char    hint[120];
    at_text text = at_text_in(hint, sizeof hint);
    at_text_add(&text, "known:");
    for (*choice = 0; *choice < count; ++*choice) {
        if (strcmp(value, names[*choice]) == 0) return AT_OK;
        at_text_add(&text, " %s", names[*choice]);
    }
    return at_fail_set(fail, AT_ERR_USAGE, hint, "--%s: unknown value '%s'", option, value);
}

/* Checks a duration even if the strategy does not use it. `other` is a word also allowed. */
static at_err check_duration(const char *option, const char *value, const char *other,
                             at_fail *fail)
{
    at_ns duration;
    if (!value || (other && strcmp(value, other) == 0)) return AT_OK;
    if (at_text_duration(value, &duration) && duration > 0) return AT_OK;
    char hint[80];
    snprintf(hint, sizeof hint, "write it as 1ms or 50us%s%s", other ? ", or " : "",
             other ? other : "");
    return at_fail_set(fail, AT_ERR_USAGE, hint, "--%s %s is not a duration above 0", option,
                       value);
}

static at_err set_target(char *entry, at_target *target, at_fail *fail)
{
    char *equals = strchr(entry, '=');
    if (equals) *equals = '\0';
    int metric = 0;
    while (metric < AT_METRIC_COUNT && strcmp(entry, at_metric_name[metric]) != 0) metric++;
    if (!equals || metric == AT_METRIC_COUNT)
        return at_fail_set(fail, AT_ERR_USAGE,
                           "write accuracy=0.9 or loss=0.2; auc, top5 and r2 are also known",
                           "--target: '%s' is not METRIC=VALUE with a known metric", entry);
    target->metric = (at_metric)metric;
    bool number = at_text_real(equals + 1, &target->value), fraction = metric != AT_METRIC_LOSS;
    if (!number || target->value <= 0 || (fraction && target->value > 1))
        return at_fail_set(fail, AT_ERR_USAGE, "write accuracy=0.9 or loss=0.2",
                           "%s target must be above 0%s (got %s)", entry,
                           fraction ? " and at most 1" : "", equals + 1);
    return AT_OK;
}

at_err at_launch_targets(const char *text, at_limits *limits, at_fail *fail)
{
    char copy[256], *rest = copy, *entry;
    limits->targets = 0;
    if (!text) return AT_OK;
    if (strlen(text) >= sizeof copy)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "--target is too long");
    snprintf(copy, sizeof copy, "%s", text);
    while ((entry = strsep(&rest, ","))) {
        if (limits->targets == AT_TARGETS_MAX)
            return at_fail_set(fail, AT_ERR_USAGE, NULL, "more than %d targets", AT_TARGETS_MAX);
        AT_TRY(set_target(entry, &limits->target[limits->targets++], fail));
    }
    return AT_OK;
}

static const char runs_folder[] = "runs";

static at_err given_folder(const char *given, char *path, size_t size, at_fail *fail)
{
    bool exists;
    if (strlen(given) >= size)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "the folder name is too long");
    snprintf(path, size, "%s", given);
    at_err err = at_file_new_folder(path, &exists, fail);
    if (err) *path = '\0'; /* it is not ours to remove */
    if (!exists) return err;
    return at_fail_set(fail, AT_ERR_USAGE, "choose another name, or remove it first",
                       "%s already exists", given);
}

/* Two processes that look for a free name at the same moment get different ones, because creating
 * the folder is what takes the name. */
at_err at_launch_folder(const char *given, const char *name, char *path, size_t size, at_fail *fail)
{
    char stamp[32];
    assert(name && size > 0);
    *path = '\0';
    if (given) return given_folder(given, path, size, fail);
    at_clock_stamp(stamp, sizeof stamp);
    for (int i = 1; i < 1000; i++) {
        bool    exists;
        at_fail tried; /* a name that is taken is no failure */
        int     used = snprintf(path, size, "%s/%s-%s", runs_folder, stamp, name);
        for (char *c = path; *c; c++)
            if (strchr(":,=", *c)) *c = '-'; /* backup:5 */
        if (i > 1 && used > 0 && (size_t)used < size)
            snprintf(path + used, size - (size_t)used, "-%d", i);
        at_err err = at_file_new_folder(path, &exists, &tried);
        if (exists) continue;
        if (err) {
            *fail = tried;
            *path = '\0';
        }
        return err;
    }
    *path = '\0';
    return at_fail_set(fail, AT_ERR_USAGE, "give one with --run", "no free folder name in %s/",
                       runs_folder);
}

void at_launch_drop_folder(const char *path)
{
    assert(path);
    if (!*path) return;
    size_t length = strlen(runs_folder);
    bool   is_default = strncmp(path, runs_folder, length) == 0 && path[length] == '/';
    if (rmdir(path) == 0 && is_default) rmdir(runs_folder);
}

/* ---- ranks ----------------------------------------------------------------------------------- */

/* Ranks that act as hubs; none with all-reduce. */
static at_err hub_ranks(const at_settings *s, uint32_t *hubs, at_fail *fail)
{
    at_plan_options options = {.strategy = s->strategy, .mix = s->mix};
    return at_plan_count_hubs(&options, hubs, fail);
}

static at_err check_ranks(const at_parsed *parsed, const at_launcher *launcher, uint32_t hubs,
                          at_fail *fail)
{
    int64_t workers = parsed->settings.workers;
    if (!launcher->name)
        return at_fail_set(fail, AT_ERR_USAGE, "start it with: mpirun -n 5 anytime train ...",
                           "--world mpi: not started by mpirun or srun");
    uint32_t ranks = launcher->size;
    if (hubs > 1 && hubs >= ranks)
        return at_fail_set(fail, AT_ERR_USAGE, "start more ranks",
                           "--mix %s leaves no workers: %s started %u ranks", parsed->settings.mix,
                           launcher->name, ranks);
    if (!at_options_given(parsed, "workers") || workers == ranks - hubs) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "leave --workers out, or use --world local",
                       "--workers %lld, but %s started %u ranks: %u hub%s and %u workers",
                       (long long)workers, launcher->name, ranks, hubs, hubs == 1 ? "" : "s",
                       ranks - hubs);
}

at_err at_launch_ranks(at_parsed *parsed, const at_launcher *launcher, at_fail *fail)
{
    char workers[16];
    bool given = at_options_given(parsed, "world");
    bool wanted = given && strcmp(parsed->settings.world, "mpi") == 0;
    if (!wanted && (given || !launcher->name)) return AT_OK;
    if (wanted || launcher->size > 1) AT_TRY(at_mpi_world_check(fail));
    uint32_t hubs;
    AT_TRY(hub_ranks(&parsed->settings, &hubs, fail));
    AT_TRY(check_ranks(parsed, launcher, hubs, fail));
    snprintf(workers, sizeof workers, "%u", launcher->size - hubs);
    AT_TRY(at_options_set(parsed, AT_FOR_TRAIN, "workers", workers, fail));
    AT_TRY(
        at_options_set(parsed, AT_FOR_TRAIN, "world", launcher->size > 1 ? "mpi" : "local", fail));
    if (launcher->size == 1) return AT_OK; /* as --workers 0: hub and worker in one process */
    parsed->launcher = launcher;
    if (launcher->rank == 0) return AT_OK;
    parsed->settings.quiet = true; /* only rank 0 prints */
    parsed->settings.watch = false;
    return AT_OK;
}

/* ---- plan, task, run ------------------------------------------------------------------------- */

static uint32_t whole_or_zero(int64_t value)
{
    return value > 0 ? (uint32_t)value : 0;
}

static uint32_t workers_of(const at_settings *s)
{
    if (s->workers > 0) return (uint32_t)s->workers;
    return s->workers == 0 ? 1 : at_machine_cores();
}

static at_err resolve_plan(const at_settings *s, at_run_options *run, at_fail *fail)
{
    static const char *const deals[] = {"own", "global"};
    int                      deal;
    const at_world          *world;
    AT_TRY(check_duration("time-limit", s->time_limit, "auto", fail));
    AT_TRY(check_duration("sample-time", s->sample_time, "measure", fail));
    AT_TRY(choose("deal", s->deal, deals, 2, &deal, fail));
    AT_TRY(at_world_find(s->world, s->workers == 0, &world, fail));
    at_plan_options o = {.strategy = s->strategy,
                         .work = s->work,
                         .gather = s->gather,
                         .release = s->release,
                         .newer = s->newer,
                         .stale = s->stale,
                         .size = s->size,
                         .time_limit = s->time_limit,
                         .mix = s->mix,
                         .outer = s->outer,
                         .alone = s->workers == 0,
                         .workers = workers_of(s),
                         .workers_min = whole_or_zero(s->workers_min),
                         .workers_max = whole_or_zero(s->workers_max),
                         .join_timeout = s->join_timeout,
                         .batch = whole_or_zero(s->batch),
                         .micro_batch = whole_or_zero(s->micro_batch),
                         .lr_scale = s->lr_scale,
                         .nonfinite = s->nonfinite,
                         .deal_global = deal == 1,
                         .lease = s->lease};
    o.limits.steps = s->steps > 0 ? (uint64_t)s->steps : 0;
    o.limits.samples = s->samples > 0 ? (uint64_t)s->samples : 0;
    o.limits.time = s->seconds;
    AT_TRY(at_launch_targets(s->target, &o.limits, fail));
    AT_TRY(at_plan_resolve(&o, &run->plan, fail));
    return s->switch_to ? at_switch_resolve(&o, s->switch_to, &run->plan, &run->then, fail) : AT_OK;
}

/* After the plan and before the task, which reserves memory for the largest round. */
static at_err resolve_round_size(const at_settings *s, at_run_options *run, at_fail *fail)
{
    at_plan       *plan = &run->plan;
    at_round_size *size = &run->round_size;
    AT_TRY(at_round_size_parse(s->straggler_batch, (uint64_t)s->seed, plan->workers, size, fail));
    if (size->law == AT_ROUND_AS_ORDERED) return AT_OK;
    const at_plan *timed = plan->then && plan->then->work->timed ? plan->then : plan;
    if (timed->work->timed)
        return at_fail_set(fail, AT_ERR_USAGE, "use --straggler, or a strategy with fixed rounds",
                           "--straggler-batch draws the size of a round, but the rounds of %s end "
                           "by time",
                           timed->strategy->name);
    if (size->law == AT_ROUND_GAUSS && plan->deal_global)
        return at_fail_set(fail, AT_ERR_USAGE, "use --deal own",
                           "--straggler-batch gauss and --deal global contradict each other: a "
                           "round may need more samples than it was dealt");
    plan->drawn_extra = at_round_size_max(size, plan->batch) - plan->batch;
    if (plan->then) at_switch_share(plan, &run->then);
    return AT_OK;
}

at_err at_launch_engine(const char *text, at_engine *engine, at_fail *fail)
{
    static const char *const engines[] = {
        [AT_ENGINE_FAST] = "fast", [AT_ENGINE_EXACT] = "exact", [AT_ENGINE_REF] = "ref"};
    int choice;
    AT_TRY(choose("engine", text, engines, 3, &choice, fail));
    *engine = (at_engine)choice;
    return AT_OK;
}

static at_err resolve_bind(const at_settings *s, at_bind *bind, at_fail *fail)
{
    int kind;
    AT_TRY(choose("bind", s->bind, at_bind_name, AT_BIND_KINDS, &kind, fail));
    *bind = (at_bind)kind;
    return AT_OK;
}

/* With --deal global all workers draw from one permutation, so there are no shards. */
static at_err resolve_shard(const at_settings *s, const at_plan *plan, at_shard_kind *shard,
                            at_fail *fail)
{
    int kind;
    AT_TRY(choose("shard", s->shard, at_shard_name, AT_SHARD_KINDS, &kind, fail));
    *shard = (at_shard_kind)kind;
    if (*shard == AT_SHARD_NO || !plan->deal_global) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "use --deal own, or --no-shard",
                       "--shard %s and --deal global contradict each other", s->shard);
}

/* Where the sums of squares start that hogwild workers share; 0: this optimizer has none. */
static float squares_start(const char *optimizer)
{
    const at_optim *optim;
    double          number[AT_OPTIM_NUMBERS_MAX];
    if (!optimizer || at_optim_parse(optimizer, &optim, number, NULL)) return 0;
    return strcmp(optim->name, "adagrad") == 0 ? optim->state_start : 0;
}

static at_err load_sparse(const at_settings *s, const at_task_net_options *o, const at_plan *plan,
                          at_task *task, at_fail *fail)
{
    if (o->smoothing > 0)
        return at_fail_set(fail, AT_ERR_USAGE, "leave it out, or use --model softmax",
                           "--label-smoothing does not work with %s: it has no softmax", o->model);
    at_task_sparse_options sparse = {.model = o->model,
                                     .feed = o->feed,
                                     .micro_batch = o->micro_batch,
                                     .samples_max = at_plan_samples_max(plan),
                                     .updates_in_place = plan->mix->updates_in_place,
                                     .squares_start = squares_start(s->optimizer),
                                     .init = o->init,
                                     .eval_size = o->eval_size};
    return at_task_sparse(&sparse, task, fail);
}

static at_err load_model(const at_settings *s, const at_plan *plan, at_task_net_options *o,
                         at_task *task, at_fail *fail)
{
    at_loading_line line;
    at_loading_line_init(&line, s->data, s->quiet);
    o->feed.read_options.progress = &line.loading;
    at_err err = at_task_is_sparse(s->model) ? load_sparse(s, o, plan, task, fail)
                                             : at_task_net(o, task, fail);
    at_loading_line_end(&line);
    return err;
}

at_err at_launch_reading(const at_settings *s, at_read_options *reading, at_fail *fail)
{
    static const char *const missing[] = {
        [AT_MISSING_REFUSE] = "refuse", [AT_MISSING_FILL] = "fill", [AT_MISSING_DROP] = "drop"};
    static const char *const header[] = {
        [AT_HEADER_AUTO] = "auto", [AT_HEADER_YES] = "yes", [AT_HEADER_NO] = "no"};
    int on_missing, has_header;
    AT_TRY(choose("missing", s->missing, missing, 3, &on_missing, fail));
    AT_TRY(choose("header", s->header, header, 3, &has_header, fail));
    *reading = (at_read_options){.label = s->label,
                                 .ignore = s->ignore,
                                 .hash_bits = (uint32_t)s->hash_bits,
                                 .missing = (at_missing)on_missing,
                                 .header = (at_header)has_header,
                                 .cache = s->data_cache};
    return AT_OK;
}

/* A model that nobody has chosen may be another one, if the labels are real numbers. */
static at_err load_task(const at_parsed *parsed, const at_plan *plan, const char *inputs,
                        at_task *task, at_fail *fail)
{
    const at_settings *s = &parsed->settings;
    bool               chosen = parsed->inherits || at_options_given(parsed, "model");
    at_engine          engine;
    at_read_options    reading;
    if (at_task_is_none(s->model)) return at_task_none(s->model, task, fail);
    AT_TRY(at_launch_engine(s->engine, &engine, fail));
    AT_TRY(at_launch_reading(s, &reading, fail));
    reading.real_labels = at_task_is_regression(s->model);
    reading.any_labels = !chosen;
    reading.unlabeled = inputs && !s->scores;
    reading.crop = s->crop;
    at_task_net_options o = {.model = s->model,
                             .net_text = s->net_text,
                             .real_model = chosen ? NULL : "linear",
                             .feed = {.data = s->data,
                                      .test_data = s->test_data,
                                      .test_split = s->test_split,
                                      .inputs = inputs,
                                      .prep = s->prep,
                                      .read_options = reading,
                                      .seed = (uint64_t)s->seed,
                                      .workers = plan->workers},
                             .engine = engine,
                             .micro_batch = plan->micro_batch,
                             .threads = (uint32_t)s->threads,
                             .smoothing = s->label_smoothing,
                             .init = s->init,
                             .eval_size = s->eval_size > 0 ? (uint64_t)s->eval_size : 0};
    AT_TRY(resolve_shard(s, plan, &o.feed.shard, fail));
    return load_model(s, plan, &o, task, fail);
}

static at_err resolve_sample_time(const at_settings *s, const at_launch *launch, at_ns *sample_time,
                                  at_fail *fail)
{
    *sample_time = 0;
    if (!s->sample_time) return AT_OK;
    if (strcmp(s->sample_time, "measure") == 0)
        return at_run_measure(&launch->task, launch->run.plan.micro_batch, sample_time, fail);
    bool valid = at_text_duration(s->sample_time, sample_time);
    assert(valid && *sample_time > 0); /* checked by resolve_plan */
    return AT_OK;
}

static double epochs_of(const at_settings *s)
{
    if (s->epochs > 0) return s->epochs;
    if (s->steps > 0 || s->samples > 0 || s->seconds > 0) return 0;
    return s->target ? EPOCHS_TO_TARGET : EPOCHS_DEFAULT;
}

static void note_unused(const char *option, const at_plan *plan)
{
    fprintf(stderr, "anytime: note: --%s is not used by %s\n", option, plan->strategy->name);
}

/* Notes arguments given by an alias (":k=8") that the rule in use does not have. */
static void note_unused_alias(const at_parsed *parsed, const at_plan *plan,
                              const at_option_alias *alias)
{
    const at_settings *s = &parsed->settings;
    const char *const  texts[AT_FAMILY_COUNT] = {s->work,  s->gather, s->release, s->newer,
                                                 s->stale, s->size,   s->mix,     s->outer};
    size_t             length = strcspn(alias->text, "=");
    for (int i = 0; i < AT_FAMILY_COUNT && alias->text[0] == ':'; i++) {
        const at_rule *rule = at_plan_rule(plan, (enum at_family)i);
        if (strcmp(at_family_name[i], alias->option) != 0 || !texts[i] || texts[i][0] != ':')
            continue;
        char    name[32];
        at_text text = at_text_in(name, sizeof name);
        at_text_add(&text, "%.*s=", (int)length - 1, alias->text + 1);
        if (strstr(texts[i], name) && at_rule_arg_find(rule, alias->text + 1, length - 1) < 0)
            note_unused(alias->name, plan);
    }
}

/* Notes options that were given but have no effect under this plan. */
static void note_unused_options(const at_parsed *parsed, const at_plan *plan)
{
    if (at_options_given(parsed, "time-limit") && !plan->work->timed)
        note_unused("time-limit", plan);
    if (at_options_given(parsed, "lr-scale") && !plan->size->changes_samples && !plan->lr_inverse)
        note_unused("lr-scale", plan);
    for (const at_option_alias *alias = at_option_aliases; alias->name; alias++)
        note_unused_alias(parsed, plan, alias);
}

/* Paths from the root, so that the run can be used from any folder; the model and the preparation
 * that the data asked for. */
static void echo_data(at_task *task, json_t *echo)
{
    static const char *const paths[] = {"data", "test-data", "model", "init"};
    if (!task->inputs) return;
    json_object_set_new(echo, "model", at_text_to_json(task->model));
    if (task->prep) json_object_set_new(echo, "prep", json_string(task->prep));
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char *name = at_text_of_json(json_object_get(echo, paths[i]));
        char *absolute = name ? at_resolve_absolute(name) : NULL;
        if (absolute) json_object_set_new(echo, paths[i], at_text_to_json(absolute));
        free(absolute);
        free(name);
    }
    task->data_path = json_string_value(json_object_get(echo, "data"));
    task->model_path = json_string_value(json_object_get(echo, "model"));
}

/* Echoes values chosen by a default or by this machine, so that the run can be repeated
 * elsewhere. */
static void echo_decisions(at_run_options *run, at_task *task)
{
    const at_optim *optim;
    double          number[AT_OPTIM_NUMBERS_MAX];
    const char     *optimizer = at_run_optimizer(run);
    bool            known = !at_optim_parse(optimizer, &optim, number, NULL);
    json_t         *echo = run->options;
    assert(run->plan.workers >= 1);
    json_object_set_new(echo, "workers", json_integer(run->world->has_hub ? run->plan.workers : 0));
    json_object_set_new(echo, "batch", json_integer(run->plan.batch));
    json_object_set_new(echo, "micro-batch", json_integer(run->plan.micro_batch));
    if (run->epochs > 0) json_object_set_new(echo, "epochs", json_real(run->epochs));
    echo_data(task, echo);
    json_object_set_new(echo, "optimizer", json_string(optimizer));
    if (known && run->lr <= 0) json_object_set_new(echo, "lr", json_real(optim->lr_default));
    if (run->sample_time > 0)
        json_object_set_new(echo, "sample-time",
                            json_sprintf("%.9gs", at_seconds(run->sample_time)));
}

/* A sample takes about 50 us per process, so a very short interval would slow the run down. */
static at_err resolve_resources(const char *text, at_ns *every, at_fail *fail)
{
    const at_ns least = AT_MS(10);
    if (at_text_duration(text, every) && (*every == 0 || *every >= least)) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "use 10ms or more, or 0 to disable it",
                       "--resources %s is not a valid interval", text);
}

/* A smaller limit would hold no sample of a run with a few workers. */
static at_err resolve_record_limit(const char *text, uint64_t *limit, at_fail *fail)
{
    const uint64_t least = 100000;
    *limit = AT_RECORD_UNLIMITED;
    if (strcmp(text, "none") == 0) return AT_OK;
    if (at_text_bytes(text, limit) && *limit >= least) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "for example 200MB or 5GB, at least 100kB; or none",
                       "--record-limit %s is not a valid size", text);
}

static at_err fill_run(at_launch *launch, const at_parsed *parsed, const char *command,
                       at_fail *fail)
{
    const at_settings       *s = &parsed->settings;
    at_run_options          *run = &launch->run;
    int                      keep, style;
    static const char *const styles[] = {"lines", "classic"};
    AT_TRY(choose("record", s->record, at_recording_name, AT_RECORDING_COUNT, &keep, fail));
    run->recording = (at_recording)keep;
    AT_TRY(resolve_resources(s->resources, &run->resources, fail));
    AT_TRY(resolve_record_limit(s->record_limit, &run->record_limit, fail));
    run->task = &launch->task;
    AT_TRY(at_world_find(s->world, s->workers == 0, &run->world, fail));
    run->checkpoint_every = s->checkpoint_every;
    run->optimizer = s->optimizer;
    run->lr = s->lr;
    run->lr_schedule = s->lr_schedule;
    run->weight_decay = s->weight_decay;
    run->clip = s->clip;
    run->straggler = s->straggler;
    run->straggler_scale = s->straggler_scale;
    run->launcher = parsed->launcher;
    if (run->world == &at_world_mpi && !run->launcher)
        return at_fail_set(fail, AT_ERR_USAGE, "use `mpirun -n 5 anytime train ...`",
                           "--world mpi works only with `anytime train` under mpirun or srun");
    run->latency = s->latency;
    run->bandwidth = s->bandwidth;
    run->links = (at_link_options){.broadcast = s->broadcast,
                                   .reduce = s->reduce,
                                   .allreduce = s->allreduce,
                                   .worker_bandwidth = s->worker_bandwidth,
                                   .worker_latency = s->worker_latency};
    run->micro_cost = s->micro_cost;
    run->jitter = s->jitter;
    run->comm_delay = at_seconds(s->comm_delay);
    run->compress = s->compress;
    run->faults = s->faults;
    run->trace_scale = s->trace_scale;
    run->epochs = epochs_of(s);
    run->eval_every = s->eval_every;
    run->seed = (uint64_t)s->seed;
    run->respawn = s->respawn;
    AT_TRY(resolve_bind(s, &run->bind, fail));
    run->started = parsed->started;
    run->skips_hints = s->quiet;
    AT_TRY(choose("log-style", s->log_style, styles, 2, &style, fail));
    run->classic = style == 1 && !s->json ? stdout : NULL;
    run->console = at_console_detect(stderr, s->quiet || run->classic);
    run->command = command;
    run->options = at_options_echo(parsed, AT_FOR_TRAIN);
    AT_TRY(resolve_sample_time(s, launch, &run->sample_time, fail));
    echo_decisions(run, &launch->task);
    return AT_OK;
}

static at_err load_own(const at_settings *s, const at_plan *plan, at_task_own_options *own,
                       at_task *task, at_fail *fail)
{
    at_shard_kind shard;
    AT_TRY(resolve_shard(s, plan, &shard, fail));
    if (shard == AT_SHARD_BY_CLASS)
        return at_fail_set(fail, AT_ERR_USAGE, "use --shard yes",
                           "--shard by-class works only with built-in models");
    own->seed = (uint64_t)s->seed;
    own->workers = plan->workers;
    own->shard = shard == AT_SHARD_YES;
    return at_task_own(own, task, fail);
}

static void note_chosen_model(const at_settings *s, const at_task *task)
{
    if (s->quiet || !task->inputs || strcmp(task->model, s->model) == 0) return;
    at_say("anytime: note: the labels of %s are real numbers, so the model is %s instead of %s\n",
           task->data, task->model, s->model);
}

static void note_unused_split(const at_parsed *parsed)
{
    const at_settings *s = &parsed->settings;
    if (s->quiet || s->resume || !at_options_given(parsed, "test-split")) return;
    if (s->test_data || at_dataset_has_test(s->data))
        fprintf(stderr, "anytime: note: --test-split is not used: %s\n",
                s->test_data ? "--test-data is given" : "the data has a test part");
}

/* Samples that are a hundred times as large as their pictures learn nothing more, and take a
 * hundred times the memory and time. Said once: a comparison opens many runs. */
static void warn_of_enlarged(const at_settings *s, const at_launch *launch)
{
    static bool    said;
    at_image_shape before, after;
    const at_task *task = &launch->task;
    if (said || !task->sample_form || !at_dataset_enlarges(s->data, &before, &after)) return;
    said = true;
    double worker = (double)task->scratch_size + 2.0 * (double)task->params * sizeof(float);
    at_say("anytime: warning: the pictures in %s are enlarged from %ux%u (the first one) to %ux%u; "
           "each worker needs %.2g GB\n"
           "  hint: --data %s,%u keeps their size\n",
           s->data, before.height, before.width, after.height, after.width, worker / 1e9, s->data,
           before.height > before.width ? before.height : before.width);
}

/* Creates the task after the plan, which sets the micro-batch, and before the run options. */
static at_err open_launch(at_launch *launch, const at_parsed *parsed, const char *command,
                          at_task_own_options *own, const char *inputs, at_fail *fail)
{
    const at_settings *s = &parsed->settings;
    const at_plan     *plan = &launch->run.plan;
    *launch = (at_launch){0};
    AT_TRY(resolve_plan(s, &launch->run, fail));
    AT_TRY(resolve_round_size(s, &launch->run, fail));
    if (own) {
        AT_TRY(load_own(s, plan, own, &launch->task, fail));
    } else {
        AT_TRY(load_task(parsed, plan, inputs, &launch->task, fail));
    }
    at_err err = fill_run(launch, parsed, command, fail);
    if (err)
        at_launch_close(launch);
    else if (!parsed->launcher || parsed->launcher->rank == 0) {
        note_unused_options(parsed, plan);
        note_chosen_model(s, &launch->task);
        if (!inputs && !own) note_unused_split(parsed);
        if (!inputs && !own) warn_of_enlarged(s, launch);
    }
    return err;
}

at_err at_launch_open(at_launch *launch, const at_parsed *parsed, const char *command,
                      at_fail *fail)
{
    return open_launch(launch, parsed, command, NULL, NULL, fail);
}

at_err at_launch_open_inputs(at_launch *launch, const at_parsed *parsed, const char *command,
                             const char *inputs, at_fail *fail)
{
    return open_launch(launch, parsed, command, NULL, inputs, fail);
}

/* A forked process has only the thread that forked it. One that needs the others, as thread pools
 * of math libraries do, waits for ever. */
static void note_threads(const at_settings *s)
{
    uint32_t threads = at_machine_threads();
    if (s->workers == 0 || threads == 1) return;
    fprintf(stderr,
            "anytime: note: this process has %u threads, which workers forked from it lack; if "
            "they hang, call at_train before threads are started (OMP_NUM_THREADS=1)\n",
            threads);
}

at_err at_launch_own(at_launch *launch, const at_parsed *parsed, const at_own_model *model,
                     float *params, at_fail *fail)
{
    static const char *const built_in[] = {
        "model",  "data",    "test-data", "prep",   "label",     "hash-bits",       "data-cache",
        "ignore", "missing", "header",    "engine", "eval-size", "label-smoothing", "test-split"};
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++)
        if (at_options_given(parsed, built_in[i]))
            return at_fail_set(fail, AT_ERR_USAGE, "leave it out",
                               "--%s works only with built-in models", built_in[i]);
    at_task_own_options own = {.model = *model, .start = params};
    AT_TRY(open_launch(launch, parsed, "at_train", &own, NULL, fail));
    if (!parsed->launcher) note_threads(&parsed->settings);
    launch->run.params_final = params;
    launch->run.folder =
        parsed->launcher && parsed->launcher->rank > 0 ? NULL : parsed->settings.run;
    return AT_OK;
}

/* ---- seats ----------------------------------------------------------------------------------- */

at_err at_launch_check_seats(const at_parsed *parsed, at_fail *fail)
{
    const at_settings *s = &parsed->settings;
    at_run_options     run = {0};
    AT_TRY(at_options_refuse_for_seats(parsed, fail));
    if (s->sample_time && strcmp(s->sample_time, "measure") == 0)
        return at_fail_set(fail, AT_ERR_USAGE, "give a time, such as --sample-time 100us",
                           "--sample-time measure works only with built-in models");
    if (s->straggler_scale && strchr(s->straggler_scale, '%') && !s->sample_time)
        return at_fail_set(fail, AT_ERR_USAGE, "give a time, such as --sample-time 100us",
                           "--straggler-scale %s needs --sample-time: the hub cannot measure a "
                           "program",
                           s->straggler_scale);
    if (s->switch_to)
        return at_fail_set(fail, AT_ERR_USAGE, "leave it out",
                           "--switch does not work with programs that have their own loop: they "
                           "learn the rules of a run when they join it");
    return resolve_plan(s, &run, fail);
}

/* By default a round is one batch of the program, and in a resumed run what it was. */
static at_err set_batch(at_parsed *parsed, uint32_t batch, at_fail *fail)
{
    char number[32];
    snprintf(number, sizeof number, "%u", batch);
    if (!at_options_given(parsed, "batch") && !parsed->inherits)
        AT_TRY(at_options_set(parsed, AT_FOR_TRAIN, "batch", number, fail));
    if (batch > parsed->settings.batch)
        snprintf(number, sizeof number, "%lld", (long long)parsed->settings.batch);
    return at_options_set(parsed, AT_FOR_TRAIN, "micro-batch", number, fail);
}

static at_err check_spec(const at_settings *s, const at_spec *spec, at_fail *fail)
{
    if (s->epochs > 0 && spec->samples == 0)
        return at_fail_set(fail, AT_ERR_USAGE, "use --steps, --samples or --seconds",
                           "--epochs needs the number of training samples, and the program did "
                           "not give it");
    return AT_OK;
}

/* Seats that update must all get the same mean gradients. */
static at_err check_place(const at_spec *spec, const at_plan *plan, at_fail *fail)
{
    if (!spec->at_workers || (plan->release->holds && plan->gather->waits_for_all)) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE,
                       "use a strategy that waits for everybody (fmb, amb), or update at the hub",
                       "updates at the workers need --gather all and --release barrier; %s has "
                       "others",
                       plan->strategy->name);
}

at_err at_launch_seats(at_launch *launch, at_parsed *parsed, const char *command,
                       struct at_seat_hub *seats, at_fail *fail)
{
    const at_settings *s = &parsed->settings;
    const at_spec     *spec = &seats->spec;
    *launch = (at_launch){0};
    AT_TRY(check_spec(s, spec, fail));
    AT_TRY(set_batch(parsed, spec->batch, fail));
    AT_TRY(at_options_set(parsed, AT_FOR_TRAIN, "optimizer", spec->optimizer, fail));
    AT_TRY(resolve_plan(s, &launch->run, fail));
    launch->run.plan.own_batches = true;
    AT_TRY(check_place(spec, &launch->run.plan, fail));
    AT_TRY(at_task_seat(spec, seats->params, &launch->task, fail));
    at_err err = fill_run(launch, parsed, command, fail);
    if (err) {
        at_launch_close(launch);
        return err;
    }
    note_unused_options(parsed, &launch->run.plan);
    at_run_options *run = &launch->run;
    run->seats = seats;
    run->epochs = s->epochs;
    run->eval_every = 0;
    run->lr = run->weight_decay = 1; /* the groups of the task have the numbers */
    run->lr_schedule = NULL;
    /* Unknown where workers update, and 0 where a warm-up begins. */
    json_object_set_new(run->options, "lr",
                        spec->group[0].lr > 0 ? json_real(spec->group[0].lr) : json_null());
    json_object_set_new(run->options, "weight-decay", json_real(spec->group[0].weight_decay));
    json_object_set_new(run->options, "epochs", s->epochs > 0 ? json_real(s->epochs) : json_null());
    return AT_OK;
}

void at_launch_close(at_launch *launch)
{
    if (launch->task.free) launch->task.free(launch->task.self);
    json_decref(launch->run.options);
    *launch = (at_launch){0};
}
