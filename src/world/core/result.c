#include "world/core/result.h"

#include <assert.h>
#include <math.h>

#include "base/file.h"
#include "base/json_text.h"
#include "model_io/checkpoint.h"
#include "step/switch.h"

/* JSON has no NaN: unknown values are null. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *whole(uint64_t value)
{
    assert(value <= INT64_MAX); /* what JSON can hold */
    return json_integer((json_int_t)value);
}

static json_t *rules(const at_plan *plan)
{
    assert(plan->strategy);
    json_t *object = json_object();
    char    text[AT_RULE_TEXT_SIZE];
    for (int i = 0; i < AT_FAMILY_COUNT; i++)
        json_object_set_new(
            object, at_family_name[i],
            json_string(at_plan_rule_text(plan, (enum at_family)i, text, sizeof text)));
    return object;
}

/* What --switch asked for; `step` is null when the run ended before. */
static json_t *switched(const at_result_facts *f)
{
    const at_plan *plan = f->plan;
    char           condition[AT_SWITCH_TEXT_SIZE];
    json_t        *step = f->outcome->switched ? whole(f->outcome->switched_at) : json_null();
    assert(plan->then);
    return json_pack("{s:s, s:s, s:o, s:o}", "strategy", plan->then->strategy->name, "when",
                     at_switch_condition(plan, condition, sizeof condition), "step", step, "rules",
                     rules(plan->then));
}

static json_t *ledger(const at_result_facts *f)
{
    assert(f->outcome->drawn);
    uint64_t drawn = f->drawn_before;
    json_t  *why = json_object();
    for (uint32_t i = 0; i < f->plan->workers_max; i++) drawn += f->outcome->drawn[i];
    for (int i = 0; i < AT_DROP_COUNT; i++)
        if (f->tally->dropped_why[i] > 0)
            json_object_set_new(why, at_drop_name[i], whole(f->tally->dropped_why[i]));
    return json_pack("{s:o, s:o, s:o, s:o}", "drawn", whole(drawn), "used",
                     whole(f->tally->samples_used), "dropped", whole(f->tally->samples_dropped),
                     "dropped_why", why);
}

json_t *at_result_metrics(const double value[AT_METRIC_COUNT])
{
    json_t *object = json_pack("{s:o, s:o}", "loss", number(value[AT_METRIC_LOSS]), "accuracy",
                               number(value[AT_METRIC_ACCURACY]));
    for (int i = AT_METRIC_AUC; i < AT_METRIC_TRAIN_LOSS; i++)
        if (!isnan(value[i])) json_object_set_new(object, at_metric_name[i], number(value[i]));
    if (!isnan(value[AT_METRIC_R2])) /* the loss is half the squared error */
        json_object_set_new(object, "rmse", number(sqrt(2 * value[AT_METRIC_LOSS])));
    return object;
}

/* Of the last rounds; under gossip, if it is known, of the workers' models on the same samples. */
static json_t *train(const at_tally *tally)
{
    const double *own = tally->test;
    bool          known = !isnan(own[AT_METRIC_TRAIN_LOSS]);
    double        loss = known ? own[AT_METRIC_TRAIN_LOSS] : tally->loss_recent;
    json_t       *object = json_pack("{s:o, s:o}", "loss", number(loss), "progressive",
                                     number(at_tally_progressive(tally)));
    if (!known) return object;
    json_object_set_new(object, "loss_min", number(own[AT_METRIC_TRAIN_LOSS_MIN]));
    json_object_set_new(object, "loss_max", number(own[AT_METRIC_TRAIN_LOSS_MAX]));
    json_object_set_new(object, "loss_model", number(own[AT_METRIC_TRAIN_LOSS_MODEL]));
    return object;
}

/* Programs do not say how many samples they have evaluated. */
static json_t *test(const at_result_facts *f)
{
    const at_tally *tally = f->tally;
    bool            known = !f->options->world->runs_programs;
    json_t         *object = at_result_metrics(tally->test);
    json_object_set_new(object, "count", known ? whole(tally->test_count) : json_null());
    json_object_set_new(object, "step", whole(tally->test_step));
    return object;
}

static json_t *targets(const at_result_facts *f)
{
    assert(f->plan->limits.targets <= AT_TARGETS_MAX);
    json_t *array = json_array();
    for (uint32_t i = 0; i < f->plan->limits.targets; i++) {
        const at_target     *target = &f->plan->limits.target[i];
        const at_target_hit *hit = &f->outcome->target[i];
        double               seconds = hit->hit ? at_seconds(hit->at) : NAN;
        json_array_append_new(array, json_pack("{s:s, s:o, s:o, s:o}", "metric",
                                               at_metric_name[target->metric], "value",
                                               number(target->value), "seconds", number(seconds),
                                               "step", hit->hit ? whole(hit->step) : json_null()));
    }
    return array;
}

static bool has_link(const at_result_facts *f, uint32_t i)
{
    assert(i < f->plan->workers_max);
    return f->tally->link && f->tally->link[i].last.address[0];
}

/* Times that are unknown are null. */
static json_t *round_trip(at_ns time)
{
    return number(time > 0 ? at_seconds(time) : NAN);
}

/* The hub's side of the connections to a worker on another machine. */
static json_t *connection(const at_link_tally *link)
{
    json_t *it = json_object();
    json_object_set_new(it, "host", json_string(link->last.host));
    json_object_set_new(it, "address", json_string(link->last.address));
    json_object_set_new(it, "losses", whole(link->losses));
    json_object_set_new(it, "round_trip_seconds", round_trip(link->last.round_trip_ns));
    json_object_set_new(it, "round_trip_seconds_min", round_trip(link->round_trip_ns_min));
    json_object_set_new(it, "sent_bytes", whole(link->sent_bytes));
    json_object_set_new(it, "received_bytes", whole(link->received_bytes));
    json_object_set_new(it, "resent_packets", whole(link->resent_packets));
    return it;
}

/* Bytes that a worker exchanged with the hub; null where there was nothing to exchange. */
static void add_exchanged(json_t *row, const at_outcome *outcome, uint32_t i)
{
    const at_traffic *all = &outcome->traffic;
    bool              known = outcome->exchanged && all->to_hub + all->to_workers > 0;
    at_traffic        own = known ? outcome->exchanged[i] : (at_traffic){0};
    json_object_set_new(row, "sent_bytes", known ? whole(own.to_hub) : json_null());
    json_object_set_new(row, "received_bytes", known ? whole(own.to_workers) : json_null());
}

static json_t *worker_row(const at_result_facts *f, uint32_t i)
{
    assert(i < f->plan->workers_max);
    const at_worker_tally *w = &f->tally->worker[i];
    json_t                *row = json_object();
    json_object_set_new(row, "id", whole(i + 1));
    json_object_set_new(row, "pid", json_integer((json_int_t)w->pid));
    json_object_set_new(row, "incarnations", whole(w->incarnations));
    json_object_set_new(row, "rounds", whole(w->rounds));
    json_object_set_new(row, "samples", whole(w->samples));
    json_object_set_new(row, "drawn", whole(f->outcome->drawn[i]));
    json_object_set_new(row, "used", whole(w->samples_used));
    json_object_set_new(row, "dropped", whole(w->samples_dropped));
    json_object_set_new(row, "compute_seconds", number(at_seconds(w->compute_ns)));
    json_object_set_new(row, "sleep_seconds", number(at_seconds(w->sleep_ns)));
    json_object_set_new(row, "idle_seconds", number(at_seconds(w->idle_ns)));
    json_object_set_new(row, "send_seconds", number(at_seconds(w->send_ns)));
    json_object_set_new(row, "state", json_string(w->state));
    if (has_link(f, i)) json_object_set_new(row, "connection", connection(&f->tally->link[i]));
    add_exchanged(row, f->outcome, i);
    return row;
}

/* Workers beyond those expected are listed when they have joined, very many are not listed. */
static bool is_listed(const at_result_facts *f, uint32_t i)
{
    assert(i < f->plan->workers_max);
    if (f->plan->workers_max > AT_WORKERS_LISTED) return false;
    return i < f->plan->workers || f->tally->worker[i].incarnations > 0;
}

static json_t *workers(const at_result_facts *f)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < f->plan->workers_max; i++)
        if (is_listed(f, i)) json_array_append_new(array, worker_row(f, i));
    return array;
}

/* Resource usage of one node; null when it was not sampled. */
static json_t *usage(const at_usage_tally *t)
{
    if (t->last.pid == 0) return json_null();
    return json_pack("{s:o, s:o, s:o, s:o}", "cpu_seconds", number(at_seconds(t->cpu_ns)),
                     "peak_bytes", whole(t->peak_bytes), "read_bytes", whole(t->read_bytes),
                     "write_bytes", whole(t->write_bytes));
}

static json_t *resources(const at_result_facts *f)
{
    const at_tally *t = f->tally;
    at_ns           cpu = t->hub_usage.cpu_ns + t->evaluator_usage.cpu_ns;
    json_t         *worker = json_array();
    for (uint32_t i = 0; i < f->plan->workers_max; i++) {
        if (!is_listed(f, i)) continue;
        cpu += t->usage[i].cpu_ns;
        json_array_append_new(worker, usage(&t->usage[i]));
    }
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:{s:o, s:o, s:o}}", "cpu_seconds", number(at_seconds(cpu)), "hub",
        usage(&t->hub_usage), "evaluator", usage(&t->evaluator_usage), "worker", worker, "network",
        "in_bytes", whole(t->hub_usage.net_in_bytes), "out_bytes",
        whole(t->hub_usage.net_out_bytes), "loopback_bytes", whole(t->hub_usage.loopback_bytes));
}

/* Rounds lost with their machines; their reported samples count as dropped. */
static json_t *lost_rounds(const at_outcome *outcome)
{
    assert(outcome->lost || outcome->lost_count == 0);
    json_t *array = json_array();
    for (size_t i = 0; i < outcome->lost_count; i++) {
        const at_lost_round *lost = &outcome->lost[i];
        json_array_append_new(array,
                              json_pack("{s:o, s:o, s:o}", "worker", whole(lost->worker), "round",
                                        whole(lost->round), "samples", whole(lost->samples)));
    }
    return array;
}

/* Null where no vectors are sent to or by a hub. */
static json_t *messages(const at_traffic *traffic)
{
    if (traffic->to_workers == 0 && traffic->to_hub == 0) return json_null();
    return json_pack("{s:o, s:o}", "to_workers_bytes", whole(traffic->to_workers), "to_hub_bytes",
                     whole(traffic->to_hub));
}

static json_t *spread(at_duration_stats s)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "mean", number(s.mean), "p50", number(s.p50), "p95",
                     number(s.p95), "max", number(s.max));
}

static double mean_of(double sum, uint64_t count)
{
    return count > 0 ? sum / (double)count : 0;
}

/* Supervisors repeat a command after each crash, and a checkpoint has 1 MB for its state. */
json_t *at_result_earlier_commands(const at_run_options *options)
{
    if (!options->resume) return NULL;
    const json_t *state = options->resume->state;
    json_t       *all = json_copy(json_object_get(state, "earlier_commands"));
    json_t       *last = json_object_get(state, "command");
    if (!all) all = json_array();
    size_t count = json_array_size(all);
    bool   again = count > 0 && json_equal(json_array_get(all, count - 1), last);
    if (json_is_string(last) && !again) json_array_append(all, last);
    return all;
}

static void add_identity(json_t *root, const at_result_facts *f)
{
    assert(f->plan->mix);
    uint32_t              hubs = at_plan_hubs(f->plan);
    const at_run_options *o = f->options;
    json_object_set_new(root, "anytime", json_string(ANYTIME_VERSION));
    json_object_set_new(root, "world", json_string(f->info->world));
    json_object_set_new(root, "hubs", json_integer(hubs > 1 ? (int)hubs : 1));
    json_object_set_new(root, "strategy", json_string(f->plan->strategy->name));
    json_object_set_new(root, "rules", rules(f->plan));
    if (f->plan->then) json_object_set_new(root, "switch", switched(f));
    json_object_set_new(root, "command", at_text_to_json_shown(o->command ? o->command : ""));
    if (o->resume) json_object_set_new(root, "earlier_commands", at_result_earlier_commands(o));
    json_object_set_new(root, "options", o->options ? json_incref(o->options) : json_object());
    json_object_set_new(
        root, "machine",
        json_pack("{s:i, s:b}", "cores", (int)f->cores, "oversubscribed", (int)f->oversubscribed));
    json_object_set_new(root, "model", at_text_to_json_shown(f->info->model));
    json_object_set_new(root, "parameters", whole(f->info->parameters));
    json_object_set_new(root, "data", at_text_to_json_shown(f->info->data));
    json_object_set_new(root, "workers",
                        json_integer(o->world->has_hub ? (int)f->plan->workers : 0));
    json_object_set_new(root, "seed", whole(o->seed));
    json_object_set_new(root, "engine", json_string(f->outcome->engine));
}

static void add_totals(json_t *root, const at_result_facts *f)
{
    assert(f->outcome->end != AT_END_RUNNING);
    assert(f->outcome->end < AT_END_COUNT);
    const at_tally *t = f->tally;
    double          seconds = at_tally_seconds(t);
    json_object_set_new(root, "stopped", json_string(at_end_name[f->outcome->end]));
    json_object_set_new(root, "steps", whole(f->outcome->version));
    json_object_set_new(root, "seconds", number(seconds));
    json_object_set_new(root, "wall_seconds", number(f->wall_seconds));
    if (f->options->started > 0 && f->outcome->first_order != AT_NEVER)
        json_object_set_new(root, "startup_seconds",
                            number(at_seconds(f->outcome->first_order - f->options->started)));
    json_object_set_new(root, "samples", ledger(f));
    json_object_set_new(root, "samples_per_second",
                        number(seconds > 0 ? (double)t->samples_used / seconds : 0));
    json_object_set_new(root, "mean_batch",
                        number(mean_of((double)t->samples_used, t->staleness_count)));
    json_object_set_new(root, "train", train(t));
    json_object_set_new(root, "test", test(f));
    json_object_set_new(root, "evaluations",
                        json_pack("{s:o, s:o}", "done", whole(t->evaluations), "skipped",
                                  whole(f->outcome->evaluations_skipped)));
    json_object_set_new(root, "targets", targets(f));
    json_object_set_new(root, "step_seconds", spread(at_tally_steps(t)));
    json_object_set_new(root, "useful_fraction", number(at_tally_useful(t)));
    json_object_set_new(root, "overshoot_seconds",
                        json_pack("{s:o, s:o}", "mean",
                                  number(mean_of(t->overshoot_sum, t->overshoot_count)), "max",
                                  number(t->overshoot_max)));
    json_object_set_new(root, "staleness",
                        json_pack("{s:o, s:o}", "mean",
                                  number(mean_of(t->staleness_sum, t->staleness_count)), "max",
                                  whole(t->staleness_max)));
    json_object_set_new(root, "respawns", whole(t->respawns));
    json_object_set_new(root, "evictions", whole(t->evictions));
    json_object_set_new(root, "lost_rounds", lost_rounds(f->outcome));
    json_object_set_new(root, "messages", messages(&f->outcome->traffic));
    json_object_set_new(root, "worker", workers(f));
    if (f->info->resume) json_object_set_new(root, "resumed_at", whole(f->info->resume->version));
    if (f->saved != UINT64_MAX) json_object_set_new(root, "checkpoint", whole(f->saved));
    json_object_set_new(root, "resources", f->info->usage ? resources(f) : json_null());
}

static void add_hashes(json_t *root, const at_result_facts *f)
{
    assert(f->outcome->params || f->outcome->floats == 0);
    char hex[65], trace[17];
    /* Parameters are float32 in plain layout; every machine this builds for is little-endian. */
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "params_hash covers these bytes");
    at_file_sha256(f->outcome->params, f->outcome->floats * sizeof(float), hex);
    snprintf(trace, sizeof trace, "%016llx", (unsigned long long)f->outcome->trace);
    json_object_set_new(root, "params_hash", json_string(hex));
    json_object_set_new(root, "trace_hash", json_string(trace));
}

json_t *at_result_json(const at_result_facts *f)
{
    assert(f->wall_seconds >= 0);
    assert(f->cores >= 1);
    json_t *root = json_object();
    if (!root) return NULL;
    add_identity(root, f);
    add_totals(root, f);
    add_hashes(root, f);
    return root;
}
