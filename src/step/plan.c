/* Turns user settings into a checked plan. */
#include "step/plan.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"

enum { MICRO_DEFAULT = 32, NAMES_MAX = 32 };

static bool given(const char *text)
{
    return text && *text;
}

/* ---- families ------------------------------------------------------------------------------- */

/* Where the plan, the options and a strategy have the rule of a family. */
static const struct {
    size_t plan, options, strategy;
} places[AT_FAMILY_COUNT] = {
#define PLACE(id, name) \
    [id] = {offsetof(at_plan, name), offsetof(at_plan_options, name), offsetof(at_strategy, name)}
    PLACE(AT_WORK, work),   PLACE(AT_GATHER, gather), PLACE(AT_RELEASE, release),
    PLACE(AT_NEWER, newer), PLACE(AT_STALE, stale),   PLACE(AT_SIZE, size),
    PLACE(AT_MIX, mix),     PLACE(AT_OUTER, outer),
#undef PLACE
};

static const char *text_at(const void *start, size_t offset)
{
    const char *text;
    memcpy(&text, (const char *)start + offset, sizeof text);
    return text;
}

const at_rule *at_plan_rule(const at_plan *plan, enum at_family family)
{
    const at_rule *rule; /* every rule begins with one, so the pointers are the same */
    assert(family < AT_FAMILY_COUNT);
    memcpy(&rule, (const char *)plan + places[family].plan, sizeof rule);
    return rule;
}

static void set_rule(at_plan *plan, enum at_family family, const at_rule *rule)
{
    assert(rule);
    memcpy((char *)plan + places[family].plan, &rule, sizeof rule);
    memset(plan->arg[family], 0, sizeof plan->arg[family]);
}

/* ---- one rule ------------------------------------------------------------------------------- */

static at_err parse_args(at_plan *plan, enum at_family family, const char *text, bool lenient,
                         at_fail *fail)
{
    return at_rule_parse(family, at_plan_rule(plan, family), text, lenient, plan->arg[family],
                         fail);
}

/* NAME[:ARGS] */
static at_err read_text(at_plan *plan, enum at_family family, const char *text, at_fail *fail)
{
    const at_rule *rule;
    size_t         length = strcspn(text, ":");
    AT_TRY(at_rule_find(family, text, length, &rule, fail));
    set_rule(plan, family, rule);
    return text[length] ? parse_args(plan, family, text + length + 1, false, fail) : AT_OK;
}

static at_err settle(at_plan *plan, enum at_family family, at_fail *fail)
{
    const at_rule *rule = at_plan_rule(plan, family);
    at_rule_complete(rule, plan, plan->arg[family]);
    return rule->settle ? rule->settle(plan, fail) : AT_OK;
}

at_err at_plan_read_rule(at_plan *plan, enum at_family family, const char *text, at_fail *fail)
{
    AT_TRY(read_text(plan, family, text, fail));
    return settle(plan, family, fail);
}

/* The rule of the strategy. Timed work without a time limit gets size rule `auto`. */
static const char *own_rule(const at_plan_options *o, const at_plan *plan, enum at_family family)
{
    static const char *const others[AT_FAMILY_COUNT] = {
        [AT_MIX] = "central", [AT_OUTER] = "average"};
    const at_strategy *s = plan->strategy;
    const char        *text = text_at(s, places[family].strategy);
    if (family == AT_SIZE && plan->work->timed && plan->time_limit == AT_NEVER) return "auto";
    if (family == AT_RELEASE && o->alone && s->release_alone) return s->release_alone;
    assert(text || others[family]);
    return text ? text : others[family];
}

/* `args` are those of --strategy NAME:ARGS, or NULL. */
static at_err resolve_rule(const at_plan_options *o, const char *args, enum at_family family,
                           at_plan *plan, at_fail *fail)
{
    const char *text = text_at(o, places[family].options);
    bool        nameless = given(text) && text[0] == ':', named = given(text) && !nameless;
    bool        takes = args && plan->strategy->takes == family;
    if (named && takes)
        return at_fail_set(fail, AT_ERR_USAGE, "leave one of them out",
                           "--strategy %s:%s sets --%s, and so does --%s %s", plan->strategy->name,
                           args, at_family_name[family], at_family_name[family], text);
    AT_TRY(read_text(plan, family, named ? text : own_rule(o, plan, family), fail));
    if (takes) AT_TRY(parse_args(plan, family, args, false, fail));
    if (nameless) AT_TRY(parse_args(plan, family, text + 1, true, fail));
    return AT_OK;
}

/* ---- strategies ----------------------------------------------------------------------------- */

/* NAME[:ARGS]; *args is NULL without arguments. */
static at_err find_strategy(const char *text, const at_strategy **strategy, const char **args,
                            at_fail *fail)
{
    const char *names[NAMES_MAX];
    size_t      length = strcspn(text, ":");
    assert(at_strategies_count <= NAMES_MAX);
    *args = text[length] ? text + length + 1 : NULL;
    for (size_t i = 0; i < at_strategies_count; i++) {
        names[i] = at_strategies[i].name;
        if (strlen(names[i]) != length || strncmp(names[i], text, length) != 0) continue;
        *strategy = &at_strategies[i];
        return AT_OK;
    }
    char    name[64];
    at_text only = at_text_in(name, sizeof name);
    at_text_add(&only, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), text);
    return at_text_unknown("strategy", name, names, at_strategies_count, fail);
}

static const char *strategy_text(const at_plan_options *o)
{
    return given(o->strategy) ? o->strategy : "fmb";
}

/* ---- settings that belong to no rule --------------------------------------------------------- */

/* The number of workers: expected, maximum and minimum. */
static at_err resolve_workers(const at_plan_options *o, at_plan *plan, at_fail *fail)
{
    static const at_ns JOIN_TIMEOUT = AT_SEC(60);
    plan->workers = o->workers;
    plan->workers_min = o->workers_min > 0 ? o->workers_min : 1;
    plan->workers_max = o->workers_max > 0 ? o->workers_max : o->workers;
    plan->join_timeout = o->join_timeout > 0 ? o->join_timeout : JOIN_TIMEOUT;
    if (plan->workers < 1 || plan->workers_max > AT_WORKERS_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "--workers must be 1 .. %d", AT_WORKERS_MAX);
    if (plan->workers_max < plan->workers)
        return at_fail_set(fail, AT_ERR_USAGE, "raise --workers-max, or lower --workers",
                           "--workers-max %u is below --workers %u", plan->workers_max,
                           plan->workers);
    if (plan->workers_min > plan->workers)
        return at_fail_set(fail, AT_ERR_USAGE, "lower --workers-min, or raise --workers",
                           "--workers-min %u is above --workers %u", plan->workers_min,
                           plan->workers);
    return AT_OK;
}

/* The time limit that --time-limit asks for; the work rule may have its own. */
static at_err resolve_time_limit(const char *text, at_plan *plan, at_fail *fail)
{
    plan->time_limit = AT_NEVER;
    if (!given(text) || strcmp(text, "auto") == 0) return AT_OK;
    if (!at_text_duration(text, &plan->time_limit))
        return at_fail_set(fail, AT_ERR_USAGE, "write it as 50ms or 5.5s",
                           "--time-limit %s is not a duration", text);
    if (plan->time_limit > 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, NULL, "--time-limit must be above 0");
}

static at_err resolve_micro_batch(const at_plan_options *o, at_plan *plan, at_fail *fail)
{
    uint32_t micro_default = at_plan_micro_default(plan);
    if (plan->batch < micro_default) micro_default = plan->batch;
    if (plan->local_batch > 0 && plan->local_batch < micro_default)
        micro_default = plan->local_batch;
    plan->micro_batch = o->micro_batch > 0 ? o->micro_batch : micro_default;
    if (plan->micro_batch <= plan->batch) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "lower --micro-batch, or raise --batch",
                       "--micro-batch %u is larger than --batch %u", plan->micro_batch,
                       plan->batch);
}

static at_err resolve_lr_scale(const char *text, at_plan *plan, at_fail *fail)
{
    plan->lr_linear = given(text) && strcmp(text, "linear") == 0;
    plan->lr_inverse = given(text) && strcmp(text, "inverse") == 0;
    if (!given(text) || plan->lr_linear || plan->lr_inverse || strcmp(text, "none") == 0)
        return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "known: none linear inverse", "unknown --lr-scale '%s'",
                       text);
}

/* ---- the whole plan -------------------------------------------------------------------------- */

at_err at_plan_check(const at_plan *plan, at_fail *fail)
{
    for (int i = 0; i < AT_FAMILY_COUNT; i++) {
        const at_rule *rule = at_plan_rule(plan, (enum at_family)i);
        if (rule->check) AT_TRY(rule->check(plan, fail));
    }
    if (plan->deal_global && (plan->work->timed || !plan->release->holds))
        return at_fail_set(fail, AT_ERR_USAGE, "use --deal own, or --strategy fmb",
                           "--deal global needs fixed work and a barrier: otherwise the samples of "
                           "a step are not known in advance");
    return AT_OK;
}

at_err at_plan_resolve(const at_plan_options *o, at_plan *plan, at_fail *fail)
{
    const char *args;
    *plan = (at_plan){.deal_global = o->deal_global,
                      .lease = o->lease,
                      .batch = o->batch,
                      .micro_batch = o->micro_batch, /* 0 until the rules are settled: default */
                      .eval_steps = o->eval_steps,
                      .eval_samples = o->eval_samples,
                      .limits = o->limits};
    AT_TRY(resolve_workers(o, plan, fail));
    AT_TRY(find_strategy(strategy_text(o), &plan->strategy, &args, fail));
    AT_TRY(resolve_time_limit(o->time_limit, plan, fail));
    for (int i = 0; i < AT_FAMILY_COUNT; i++) {
        AT_TRY(resolve_rule(o, args, (enum at_family)i, plan, fail));
        AT_TRY(settle(plan, (enum at_family)i, fail));
    }
    AT_TRY(resolve_micro_batch(o, plan, fail));
    AT_TRY(resolve_lr_scale(o->lr_scale, plan, fail));
    AT_TRY(at_plan_check(plan, fail));
    assert(plan->workers_min <= plan->workers);
    assert(plan->workers <= plan->workers_max);
    assert(plan->micro_batch >= 1);
    assert(plan->batch <= plan->cap);
    assert(plan->batch_min >= 1);
    return AT_OK;
}

at_err at_plan_count_hubs(const at_plan_options *o, uint32_t *hubs, at_fail *fail)
{
    at_plan     plan = {.time_limit = AT_NEVER};
    const char *args;
    AT_TRY(find_strategy(strategy_text(o), &plan.strategy, &args, fail));
    AT_TRY(resolve_rule(o, args, AT_MIX, &plan, fail));
    AT_TRY(settle(&plan, AT_MIX, fail));
    *hubs = at_plan_hubs(&plan);
    return AT_OK;
}

/* ---- queries -------------------------------------------------------------------------------- */

uint32_t at_plan_micro_default(const at_plan *plan)
{
    const at_strategy *strategy = plan->strategy;
    return strategy && strategy->micro_batch > 0 ? strategy->micro_batch : MICRO_DEFAULT;
}

const char *at_plan_rule_text(const at_plan *plan, enum at_family family, char *buffer, size_t size)
{
    assert(size >= 1);
    at_text text = at_text_in(buffer, size);
    at_rule_show(at_plan_rule(plan, family), plan->arg[family], &text);
    return buffer;
}

uint32_t at_plan_samples_max(const at_plan *plan)
{
    assert(plan->batch >= 1);
    uint32_t most = plan->size->changes_samples ? plan->batch_max : plan->batch;
    uint32_t then = plan->then ? at_plan_samples_max(plan->then) : 0;
    most = plan->work->timed ? plan->cap : most + plan->drawn_extra;
    return most > then ? most : then;
}
