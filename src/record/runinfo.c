#include "record/runinfo.h"

#include <assert.h>
#include <jansson.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "record/log/json_fields.h"
#include "record/log/snapshot_json.h"

static const at_json_field numbers[] = {
    {"k", AT_JSON_U32, offsetof(at_plan, k)},
    {"period", AT_JSON_COUNT, offsetof(at_plan, period)},
    {"staleness", AT_JSON_U32, offsetof(at_plan, staleness)},
    {"size_factor", AT_JSON_REAL, offsetof(at_plan, size_factor)},
    {"size_epochs", AT_JSON_REAL, offsetof(at_plan, size_epochs)},
    {"size_each_step", AT_JSON_FLAG, offsetof(at_plan, size_each_step)},
    {"workers", AT_JSON_U32, offsetof(at_plan, workers)},
    {"workers_min", AT_JSON_U32, offsetof(at_plan, workers_min)},
    {"workers_max", AT_JSON_U32, offsetof(at_plan, workers_max)},
    {"join_timeout", AT_JSON_COUNT, offsetof(at_plan, join_timeout)},
    {"open", AT_JSON_FLAG, offsetof(at_plan, open)},
    {"batch", AT_JSON_U32, offsetof(at_plan, batch)},
    {"micro_batch", AT_JSON_U32, offsetof(at_plan, micro_batch)},
    {"batch_min", AT_JSON_U32, offsetof(at_plan, batch_min)},
    {"batch_max", AT_JSON_U32, offsetof(at_plan, batch_max)},
    {"lr_linear", AT_JSON_FLAG, offsetof(at_plan, lr_linear)},
    {"cap", AT_JSON_U32, offsetof(at_plan, cap)},
    {"time_limit", AT_JSON_COUNT, offsetof(at_plan, time_limit)},
    {"cut_after", AT_JSON_FLAG, offsetof(at_plan, cut_after)},
    {"deal_global", AT_JSON_FLAG, offsetof(at_plan, deal_global)},
    {"lease", AT_JSON_COUNT, offsetof(at_plan, lease)},
    {"samples_epoch", AT_JSON_U64, offsetof(at_plan, samples_epoch)},
    {"eval_steps", AT_JSON_U64, offsetof(at_plan, eval_steps)},
    {"eval_samples", AT_JSON_U64, offsetof(at_plan, eval_samples)},
    {"saves", AT_JSON_FLAG, offsetof(at_plan, saves)},
    {"save_steps", AT_JSON_U64, offsetof(at_plan, save_steps)},
    {"save_time", AT_JSON_COUNT, offsetof(at_plan, save_time)},
    {"limit_steps", AT_JSON_U64, offsetof(at_plan, limits.steps)},
    {"limit_samples", AT_JSON_U64, offsetof(at_plan, limits.samples)},
    {"limit_time", AT_JSON_COUNT, offsetof(at_plan, limits.time)},
    {"limit_epochs", AT_JSON_FLAG, offsetof(at_plan, limits.epochs)},
};

enum { NUMBERS = sizeof numbers / sizeof *numbers };

/* The rule families: where a plan points to its rule, and the table of rules. Every row of every
 * table begins with its name; a row without a name ends the table. */
static const struct {
    const char *name;
    size_t      offset;
    const void *rows;
    size_t      row_size;
} families[] = {
    {"work", offsetof(at_plan, work), at_work_rules, sizeof(at_work_rule)},
    {"gather", offsetof(at_plan, gather), at_gather_rules, sizeof(at_gather_rule)},
    {"release", offsetof(at_plan, release), at_release_rules, sizeof(at_release_rule)},
    {"newer", offsetof(at_plan, newer), at_newer_rules, sizeof(at_newer_rule)},
    {"stale", offsetof(at_plan, stale), at_stale_rules, sizeof(at_stale_rule)},
    {"size", offsetof(at_plan, size), at_size_rules, sizeof(at_size_rule)},
};

enum { FAMILIES = sizeof families / sizeof *families };

static const char *row_name(const void *row)
{
    const char *name;
    memcpy(&name, row, sizeof name);
    return name;
}

/* The text may not be UTF-8 (a command line): then all non-ASCII bytes become '?'. */
static json_t *text_json(const char *text)
{
    if (!text) return json_null();
    json_t *value = json_string(text);
    char   *plain = value ? NULL : strdup(text);
    if (!plain) return value;
    for (char *c = plain; *c; c++)
        if ((unsigned char)*c >= 0x80) *c = '?';
    value = json_string(plain);
    free(plain);
    return value;
}

static json_t *targets_json(const at_limits *limits)
{
    json_t *targets = json_array();
    assert(limits->targets <= AT_TARGETS_MAX);
    for (uint32_t i = 0; i < limits->targets; i++)
        json_array_append_new(
            targets, json_pack("[i, f]", (int)limits->target[i].metric, limits->target[i].value));
    return targets;
}

static json_t *plan_json(const at_plan *plan)
{
    json_t *object = json_object();
    if (plan->strategy) json_object_set_new(object, "strategy", text_json(plan->strategy->name));
    for (size_t i = 0; i < FAMILIES; i++) {
        const void *row;
        memcpy(&row, (const char *)plan + families[i].offset, sizeof row);
        json_object_set_new(object, families[i].name, row ? text_json(row_name(row)) : json_null());
    }
    at_json_fields_write(numbers, NUMBERS, plan, object);
    json_object_set_new(object, "targets", targets_json(&plan->limits));
    return object;
}

char *at_run_info_text(const at_run_info *info)
{
    assert(info->plan);
    json_t *object = json_object();
    json_object_set_new(object, "anytime", json_string(ANYTIME_VERSION));
    json_object_set_new(object, "world", text_json(info->world));
    json_object_set_new(object, "command", text_json(info->command));
    json_object_set_new(object, "model", text_json(info->model));
    json_object_set_new(object, "data", text_json(info->data));
    json_object_set_new(object, "parameters", json_integer((json_int_t)info->parameters));
    json_object_set_new(object, "samples_epoch", json_integer((json_int_t)info->samples_epoch));
    json_object_set_new(object, "seed", json_integer((json_int_t)info->seed));
    json_object_set_new(object, "date", json_real(info->date));
    json_object_set_new(object, "plan", plan_json(info->plan));
    if (info->resume) json_object_set_new(object, "resumed", at_snapshot_json(info->resume));
    char *text = json_dumps(object, JSON_COMPACT); /* NULL when `object` is */
    json_decref(object);
    return text;
}

static at_err invalid(const char *what, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_FORMAT,
                       "the log may have been written by another version of anytime",
                       "the plan in the event log has no valid `%s`", what);
}

static at_err read_rule(const json_t *object, size_t index, at_plan *plan, at_fail *fail)
{
    assert(index < FAMILIES);
    const char *name = json_string_value(json_object_get(object, families[index].name));
    const char *row = families[index].rows;
    if (!name) return invalid(families[index].name, fail);
    while (row_name(row) && strcmp(row_name(row), name)) row += families[index].row_size;
    if (!row_name(row)) return invalid(families[index].name, fail);
    memcpy((char *)plan + families[index].offset, &row, sizeof row);
    return AT_OK;
}

static at_err read_strategy(const json_t *object, at_plan *plan, at_fail *fail)
{
    const char *name = json_string_value(json_object_get(object, "strategy"));
    for (size_t i = 0; name && i < at_strategies_count; i++)
        if (!strcmp(at_strategies[i].name, name)) plan->strategy = &at_strategies[i];
    return plan->strategy ? AT_OK : invalid("strategy", fail);
}

static at_err read_targets(const json_t *object, at_limits *limits, at_fail *fail)
{
    const json_t *targets = json_object_get(object, "targets");
    size_t        count = json_array_size(targets);
    if (!json_is_array(targets) || count > AT_TARGETS_MAX) return invalid("targets", fail);
    for (size_t i = 0; i < count; i++) {
        int    metric;
        double value;
        if (json_unpack(json_array_get(targets, i), "[i, F]", &metric, &value) || metric < 0 ||
            metric >= AT_METRIC_COUNT)
            return invalid("targets", fail);
        limits->target[i] = (at_target){.metric = (at_metric)metric, .value = value};
    }
    limits->targets = (uint32_t)count;
    return AT_OK;
}

static at_err check_size(const at_plan *plan, at_fail *fail)
{
    assert(plan->size);
    if (!plan->size->changes_samples) return AT_OK;
    if (plan->batch_min < 1 || plan->batch_min > plan->batch) return invalid("batch_min", fail);
    if (plan->batch_max < plan->batch) return invalid("batch_max", fail);
    if (plan->size->by_factor && !(plan->size_factor > 1)) return invalid("size_factor", fail);
    if (plan->size->by_factor && !(plan->size_epochs > 0)) return invalid("size_epochs", fail);
    return AT_OK;
}

/* Preconditions of the state machines. */
static at_err check_plan(const at_plan *plan, at_fail *fail)
{
    assert(plan->gather);
    if (plan->workers_max < 1 || plan->workers_max > AT_WORKERS_MAX)
        return invalid("workers_max", fail);
    if (plan->workers < 1 || plan->workers > plan->workers_max) return invalid("workers", fail);
    if (plan->workers_min > plan->workers) return invalid("workers_min", fail);
    if (plan->batch < 1) return invalid("batch", fail);
    if (plan->micro_batch < 1 || plan->micro_batch > plan->batch)
        return invalid("micro_batch", fail);
    if (plan->gather->counts_k && plan->k < 1) return invalid("k", fail);
    return check_size(plan, fail);
}

static at_err read_plan(const json_t *object, at_plan *plan, at_fail *fail)
{
    *plan = (at_plan){0};
    if (!json_is_object(object)) return invalid("plan", fail);
    AT_TRY(read_strategy(object, plan, fail));
    for (size_t i = 0; i < FAMILIES; i++) AT_TRY(read_rule(object, i, plan, fail));
    const char *wrong = at_json_fields_read(numbers, NUMBERS, object, plan);
    if (wrong) return invalid(wrong, fail);
    AT_TRY(read_targets(object, &plan->limits, fail));
    return check_plan(plan, fail);
}

at_err at_run_info_plan(const char *text, at_plan *plan, at_fail *fail)
{
    assert(text);
    json_error_t error;
    json_t      *object = json_loads(text, 0, &error);
    if (!object)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "the header of the event log is not JSON: %s",
                           error.text);
    at_err err = read_plan(json_object_get(object, "plan"), plan, fail);
    json_decref(object);
    return err;
}

at_err at_run_info_snapshot(const char *text, at_snapshot **snapshot, at_fail *fail)
{
    assert(text);
    json_t       *object = json_loads(text, 0, NULL);
    const json_t *resumed = json_object_get(object, "resumed");
    *snapshot = NULL;
    at_err err = resumed ? at_snapshot_read(resumed, snapshot, fail) : AT_OK;
    json_decref(object);
    return err;
}

uint32_t at_run_info_workers(const char *text)
{
    assert(text);
    json_t *object = json_loads(text, 0, NULL);
    json_t *workers = json_object_get(json_object_get(object, "plan"), "workers_max");
    int64_t count = json_integer_value(workers); /* 0 when it is not a number */
    json_decref(object);
    return count >= 1 && count <= AT_WORKERS_MAX ? (uint32_t)count : 0;
}
