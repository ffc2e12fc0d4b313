#include "record/runinfo.h"

#include <assert.h>
#include <jansson.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "record/log/json_fields.h"
#include "record/log/snapshot_json.h"
#include "step/switch.h"

static const at_json_field numbers[] = {
    {"workers", AT_JSON_U32, offsetof(at_plan, workers)},
    {"workers_min", AT_JSON_U32, offsetof(at_plan, workers_min)},
    {"workers_max", AT_JSON_U32, offsetof(at_plan, workers_max)},
    {"join_timeout", AT_JSON_COUNT, offsetof(at_plan, join_timeout)},
    {"open", AT_JSON_FLAG, offsetof(at_plan, open)},
    {"batch", AT_JSON_U32, offsetof(at_plan, batch)},
    {"micro_batch", AT_JSON_U32, offsetof(at_plan, micro_batch)},
    {"lr_linear", AT_JSON_FLAG, offsetof(at_plan, lr_linear)},
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
    if (plan->strategy)
        json_object_set_new(object, "strategy", at_text_to_json_shown(plan->strategy->name));
    for (int i = 0; i < AT_FAMILY_COUNT; i++) {
        enum at_family family = (enum at_family)i;
        char           rule[AT_RULE_TEXT_SIZE];
        bool           known = at_plan_rule(plan, family) != NULL;
        json_object_set_new(
            object, at_family_name[i],
            known ? at_text_to_json_shown(at_plan_rule_text(plan, family, rule, sizeof rule))
                  : json_null());
    }
    at_json_fields_write(numbers, NUMBERS, plan, object);
    if (plan->lr_inverse) json_object_set_new(object, "lr_inverse", json_true());
    json_object_set_new(object, "nonfinite",
                        at_text_to_json_shown(at_nonfinite_name[plan->nonfinite]));
    json_object_set_new(object, "targets", targets_json(&plan->limits));
    if (!plan->then) return object;
    char condition[AT_SWITCH_TEXT_SIZE];
    json_object_set_new(
        object, "switch",
        at_text_to_json_shown(at_switch_condition(plan, condition, sizeof condition)));
    json_object_set_new(object, "then", plan_json(plan->then));
    return object;
}

char *at_run_info_text(const at_run_info *info)
{
    assert(info->plan);
    json_t *object = json_object();
    json_object_set_new(object, "anytime", json_string(ANYTIME_VERSION));
    json_object_set_new(object, "world", at_text_to_json_shown(info->world));
    json_object_set_new(object, "command", at_text_to_json_shown(info->command));
    json_object_set_new(object, "model", at_text_to_json_shown(info->model));
    json_object_set_new(object, "data", at_text_to_json_shown(info->data));
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

static at_err read_rule(const json_t *object, enum at_family family, at_plan *plan, at_fail *fail)
{
    const char *name = at_family_name[family];
    const char *text = json_string_value(json_object_get(object, name));
    at_fail     reason;
    if (!text || at_plan_read_rule(plan, family, text, &reason)) return invalid(name, fail);
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

/* Preconditions of rules and state machines. */
static at_err check_numbers(const at_plan *plan, at_fail *fail)
{
    assert(plan->strategy);
    if (plan->workers_max < 1 || plan->workers_max > AT_WORKERS_MAX)
        return invalid("workers_max", fail);
    if (plan->workers < 1 || plan->workers > plan->workers_max) return invalid("workers", fail);
    if (plan->workers_min > plan->workers) return invalid("workers_min", fail);
    if (plan->batch < 1) return invalid("batch", fail);
    if (plan->micro_batch < 1 || plan->micro_batch > plan->batch)
        return invalid("micro_batch", fail);
    return AT_OK;
}

static at_err read_plan(const json_t *object, at_plan *plan, at_fail *fail)
{
    at_fail reason;
    *plan = (at_plan){.time_limit = AT_NEVER};
    if (!json_is_object(object)) return invalid("plan", fail);
    AT_TRY(read_strategy(object, plan, fail));
    const char *wrong = at_json_fields_read(numbers, NUMBERS, object, plan);
    if (wrong) return invalid(wrong, fail);
    plan->lr_inverse = json_is_true(json_object_get(object, "lr_inverse"));
    AT_TRY(check_numbers(plan, fail));
    const char *nonfinite = json_string_value(json_object_get(object, "nonfinite"));
    if (at_plan_read_nonfinite(nonfinite, &plan->nonfinite, &reason))
        return invalid("nonfinite", fail);
    for (int i = 0; i < AT_FAMILY_COUNT; i++)
        AT_TRY(read_rule(object, (enum at_family)i, plan, fail));
    AT_TRY(read_targets(object, &plan->limits, fail));
    return at_plan_check(plan, &reason) ? invalid("combination of rules", fail) : AT_OK;
}

/* The plan that follows, if any. */
static at_err read_then(const json_t *object, at_plan *plan, at_plan *then, at_fail *fail)
{
    const char *condition = json_string_value(json_object_get(object, "switch"));
    at_fail     reason;
    if (!condition) return AT_OK;
    AT_TRY(read_plan(json_object_get(object, "then"), then, fail));
    plan->then = then;
    if (at_switch_read_condition(condition, plan, &reason) || at_switch_check(plan, &reason))
        return invalid("switch", fail);
    at_switch_share(plan, then);
    return AT_OK;
}

at_err at_run_info_plan(const char *text, at_plan *plan, at_plan *then, at_fail *fail)
{
    assert(text);
    json_error_t error;
    json_t      *object = json_loads(text, 0, &error);
    if (!object)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "the header of the event log is not JSON: %s",
                           error.text);
    at_err err = read_plan(json_object_get(object, "plan"), plan, fail);
    if (!err) err = read_then(json_object_get(object, "plan"), plan, then, fail);
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
