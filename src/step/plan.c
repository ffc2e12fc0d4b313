/* Turns user settings into a checked plan. */
#include "step/plan.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"

const char *const at_topology_name[AT_TOPOLOGY_COUNT] = {
#define X(id, text) [AT_TOPOLOGY_##id] = text,
    AT_TOPOLOGY_MAP(X)
#undef X
};

enum {
    BATCH_DEFAULT = 64,
    MICRO_DEFAULT = 32,
    CAP_FACTOR = 4,
    RANGE_FACTOR = 16, /* default limits of size rules: batch / 16 .. batch x 16 */
    STALENESS_DEFAULT = 3,
    K_MAX = AT_PIECES_MAX, /* the hub reserves memory for K pieces */
    NAMES_MAX = 32
};

const char *const at_family_name[AT_FAMILY_COUNT] = {"work",  "gather", "release",
                                                     "newer", "stale",  "size"};

static bool given(const char *text)
{
    return text && *text;
}

/* ---- looking up rules and strategies -------------------------------------------------------- */

/* All rule tables start with the columns name, summary, number and end with a row of zeros. */
typedef struct family_table {
    const void *rows;
    size_t      row_size;
} family_table;

static family_table table_of(enum at_family family)
{
    switch (family) {
    case AT_WORK: return (family_table){at_work_rules, sizeof *at_work_rules};
    case AT_GATHER: return (family_table){at_gather_rules, sizeof *at_gather_rules};
    case AT_RELEASE: return (family_table){at_release_rules, sizeof *at_release_rules};
    case AT_NEWER: return (family_table){at_newer_rules, sizeof *at_newer_rules};
    case AT_STALE: return (family_table){at_stale_rules, sizeof *at_stale_rules};
    case AT_SIZE: return (family_table){at_size_rules, sizeof *at_size_rules};
    case AT_FAMILY_COUNT: break;
    }
    assert(!"not a family");
    return (family_table){0};
}

typedef struct rule_head {
    const char *name, *summary, *number;
} rule_head;

static const rule_head *row_at(family_table table, size_t index)
{
    assert(index <= NAMES_MAX);
    return (const rule_head *)(const void *)((const char *)table.rows + index * table.row_size);
}

/* Splits "first:9" and finds the row; *number points behind the colon, or is NULL. */
static at_err find_rule(enum at_family family, const char *text, const void **row,
                        const char **number, at_fail *fail)
{
    const char  *colon = strchr(text, ':');
    size_t       length = colon ? (size_t)(colon - text) : strlen(text);
    family_table table = table_of(family);
    const char  *names[NAMES_MAX];
    size_t       count = 0;
    for (; row_at(table, count)->name; count++) {
        const rule_head *head = row_at(table, count);
        assert(count < NAMES_MAX);
        names[count] = head->name;
        if (strlen(head->name) != length || strncmp(head->name, text, length) != 0) continue;
        if (colon && !head->number)
            return at_fail_set(fail, AT_ERR_USAGE, NULL, "--%s %s takes no number",
                               at_family_name[family], head->name);
        *row = head;
        *number = colon ? colon + 1 : NULL;
        return AT_OK;
    }
    char    name[64];
    at_text only = at_text_in(name, sizeof name);
    at_text_add(&only, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), text);
    return at_text_unknown(at_family_name[family], name, names, count, fail);
}

static at_err find_strategy(const char *name, const at_strategy **strategy, at_fail *fail)
{
    const char *names[NAMES_MAX];
    assert(at_strategies_count <= NAMES_MAX);
    for (size_t i = 0; i < at_strategies_count; i++) {
        names[i] = at_strategies[i].name;
        if (strcmp(names[i], name) != 0) continue;
        *strategy = &at_strategies[i];
        return AT_OK;
    }
    return at_text_unknown("strategy", name, names, at_strategies_count, fail);
}

/* ---- parsing numbers ------------------------------------------------------------------------ */

/* A number comes with the rule (first:9) or from its option (--k 9); if both are given they must
 * agree. */
static at_err whole_number(const char *rule, const char *text, const char *option, int64_t separate,
                           int64_t fallback, uint32_t *value, at_fail *fail)
{
    assert(fallback >= 0);
    int64_t inside = -1;
    if (text && (!at_text_whole(text, &inside) || inside < 0))
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "%s:%s is not a whole number", rule, text);
    if (inside >= 0 && separate >= 0 && inside != separate)
        return at_fail_set(fail, AT_ERR_USAGE, "give the number once",
                           "%s:%s and --%s %lld contradict each other", rule, text, option,
                           (long long)separate);
    int64_t result = inside >= 0 ? inside : separate >= 0 ? separate : fallback;
    if (result < 0 || result > 1000000000)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "--%s is out of range", option);
    *value = (uint32_t)result;
    return AT_OK;
}

static at_err duration(const char *rule, const char *text, const char *option, const char *separate,
                       at_ns *value, at_fail *fail)
{
    at_ns inside = -1, outside = -1;
    if (text && !at_text_duration(text, &inside))
        return at_fail_set(fail, AT_ERR_USAGE, "write it as 50ms or 5.5s",
                           "%s:%s is not a duration", rule, text);
    if (given(separate) && !at_text_duration(separate, &outside))
        return at_fail_set(fail, AT_ERR_USAGE, "write it as 50ms or 5.5s",
                           "--%s %s is not a duration", option, separate);
    if (inside >= 0 && outside >= 0 && inside != outside)
        return at_fail_set(fail, AT_ERR_USAGE, "give the duration once",
                           "%s:%s and --%s %s contradict each other", rule, text, option, separate);
    *value = inside >= 0 ? inside : outside;
    if (*value == 0) return at_fail_set(fail, AT_ERR_USAGE, NULL, "--%s must be above 0", option);
    return AT_OK;
}

static uint32_t batch_default(const at_plan *plan)
{
    assert(plan->strategy);
    return plan->strategy->batch > 0 ? plan->strategy->batch : BATCH_DEFAULT;
}

/* ---- one function per family ---------------------------------------------------------------- */

/* Limits of size rules. */
static at_err resolve_range(const at_plan_options *o, at_plan *plan, at_fail *fail)
{
    assert(plan->batch >= 1);
    uint64_t widest = (uint64_t)plan->batch * RANGE_FACTOR;
    uint32_t least = plan->batch / RANGE_FACTOR;
    plan->batch_min = o->batch_min > 0 ? o->batch_min : least > 0 ? least : 1;
    plan->batch_max = o->batch_max > 0      ? o->batch_max
                      : widest < UINT32_MAX ? (uint32_t)widest
                                            : UINT32_MAX;
    if (plan->size->changes_samples &&
        (plan->batch < plan->batch_min || plan->batch > plan->batch_max))
        return at_fail_set(fail, AT_ERR_USAGE, "choose limits that include --batch",
                           "--batch %u is not between --batch-min %u and --batch-max %u",
                           plan->batch, plan->batch_min, plan->batch_max);
    assert(plan->batch_min >= 1);
    assert(plan->batch_max >= 1);
    return AT_OK;
}

static at_err resolve_sizes(const at_plan_options *o, at_plan *plan, at_fail *fail)
{
    assert(plan->size);
    if (plan->batch == 0) plan->batch = o->batch > 0 ? o->batch : batch_default(plan);
    uint32_t micro_default =
        plan->strategy->micro_batch > 0 ? plan->strategy->micro_batch : MICRO_DEFAULT;
    if (plan->batch < micro_default) micro_default = plan->batch;
    plan->micro_batch = o->micro_batch > 0 ? o->micro_batch : micro_default;
    if (plan->micro_batch > plan->batch)
        return at_fail_set(fail, AT_ERR_USAGE, "lower --micro-batch, or raise --batch",
                           "--micro-batch %u is larger than --batch %u", plan->micro_batch,
                           plan->batch);
    uint32_t factor = plan->size->finds_time_limit ? CAP_FACTOR : 1;
    uint64_t cap = o->cap > 0 ? o->cap : (uint64_t)plan->batch * factor;
    if (cap > UINT32_MAX) cap = UINT32_MAX;
    if (cap < plan->batch)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "--cap %llu is below --batch %u",
                           (unsigned long long)cap, plan->batch);
    plan->cap = (uint32_t)cap;
    return resolve_range(o, plan, fail);
}

static at_err resolve_work(const at_plan_options *o, const char *text, at_plan *plan, at_fail *fail)
{
    const void *row;
    const char *number;
    AT_TRY(find_rule(AT_WORK, text, &row, &number, fail));
    plan->work = row;
    plan->time_limit = AT_NEVER;
    if (!plan->work->timed) {
        int64_t batch = o->batch > 0 ? (int64_t)o->batch : -1;
        AT_TRY(
            whole_number("fixed", number, "batch", batch, batch_default(plan), &plan->batch, fail));
        if (plan->batch == 0)
            return at_fail_set(fail, AT_ERR_USAGE, NULL, "--batch must be at least 1");
        return AT_OK;
    }
    bool  automatic = !given(o->time_limit) || strcmp(o->time_limit, "auto") == 0;
    at_ns limit = -1;
    AT_TRY(duration("timed", number, "time-limit", automatic ? NULL : o->time_limit, &limit, fail));
    if (limit > 0) plan->time_limit = limit;
    return AT_OK;
}

static at_err resolve_gather(const at_plan_options *o, const char *text, at_plan *plan,
                             at_fail *fail)
{
    assert(plan->work);
    assert(plan->workers >= 1);
    const void *row;
    const char *number;
    AT_TRY(find_rule(AT_GATHER, text, &row, &number, fail));
    plan->gather = row;
    const char *name = plan->gather->name;
    if (plan->gather->counts_k) {
        int64_t fallback = plan->workers > 1 ? plan->workers - 1 : 1;
        AT_TRY(whole_number(name, number, "k", o->k, fallback, &plan->k, fail));
        if (plan->k < 1 || plan->k > K_MAX)
            return at_fail_set(fail, AT_ERR_USAGE, NULL, "%s:%u: K must be 1 .. %d", name, plan->k,
                               K_MAX);
        bool distinct = strcmp(name, "first") == 0;
        if (distinct && plan->k > plan->workers)
            return at_fail_set(fail, AT_ERR_USAGE, NULL,
                               "%s:%u needs at least %u workers (there are %u)", name, plan->k,
                               plan->k, plan->workers);
    }
    if (plan->gather->counts_time) {
        at_ns period = -1;
        AT_TRY(duration(name, number, "period", o->period, &period, fail));
        plan->period = period > 0 ? period : plan->time_limit;
        if (plan->period == AT_NEVER && !plan->work->timed)
            return at_fail_set(fail, AT_ERR_USAGE, "give --period, for example --period 200ms",
                               "--gather %s needs a period", name);
    }
    return AT_OK;
}

static at_err resolve_release(const at_plan_options *o, const char *text, at_plan *plan,
                              at_fail *fail)
{
    const void *row;
    const char *number;
    AT_TRY(find_rule(AT_RELEASE, text, &row, &number, fail));
    plan->release = row;
    if (!plan->release->number) return AT_OK;
    return whole_number(plan->release->name, number, "staleness", o->staleness, STALENESS_DEFAULT,
                        &plan->staleness, fail);
}

/* Timed work without a time limit gets size rule `auto`. */
static at_err resolve_size(const char *text, bool overridden, at_plan *plan, at_fail *fail)
{
    assert(plan->work);
    bool automatic = plan->work->timed && plan->time_limit == AT_NEVER;
    if (automatic && !overridden) text = "auto";
    const void *row;
    const char *number;
    AT_TRY(find_rule(AT_SIZE, text, &row, &number, fail));
    plan->size = row;
    if (plan->size->parse) AT_TRY(plan->size->parse(number, plan, fail));
    if (plan->size->finds_time_limit && !plan->work->timed)
        return at_fail_set(fail, AT_ERR_USAGE, "use --work timed",
                           "--size %s sets the time limit, but fixed work has none", text);
    if (plan->size->finds_time_limit && plan->time_limit != AT_NEVER)
        return at_fail_set(fail, AT_ERR_USAGE, "leave one of them out",
                           "--size %s and an explicit time limit contradict each other", text);
    if (plan->size->changes_samples && plan->work->timed)
        return at_fail_set(fail, AT_ERR_USAGE, "use --work fixed",
                           "--size %s sets the samples per round, but timed work ends by time",
                           text);
    if (automatic && !plan->size->finds_time_limit)
        return at_fail_set(fail, AT_ERR_USAGE, "give --time-limit, or --size auto",
                           "timed work with --size %s needs a time limit", text);
    return AT_OK;
}

/* Topology and strategy `hogwild` only work together. */
static at_err resolve_topology(const char *text, at_plan *plan, at_fail *fail)
{
    assert(plan->strategy);
    at_topology own = plan->strategy->topology;
    int         named = 0;
    plan->topology = own;
    if (!given(text)) return AT_OK;
    while (named < AT_TOPOLOGY_COUNT && strcmp(text, at_topology_name[named]) != 0) named++;
    if (named == AT_TOPOLOGY_COUNT)
        return at_text_unknown("topology", text, at_topology_name, AT_TOPOLOGY_COUNT, fail);
    if (named != (int)own && (own == AT_TOPOLOGY_HOGWILD || named == AT_TOPOLOGY_HOGWILD))
        return at_fail_set(fail, AT_ERR_USAGE, "leave --topology out, or use --strategy hogwild",
                           "--topology %s does not work with --strategy %s", text,
                           plan->strategy->name);
    plan->topology = (at_topology)named;
    return AT_OK;
}

/* ---- combinations --------------------------------------------------------------------------- */

static at_err check_combination(const at_plan *plan, at_fail *fail)
{
    assert(plan->newer);
    assert(plan->stale);
    bool all = strcmp(plan->gather->name, "all") == 0;
    if (all && !plan->release->holds)
        return at_fail_set(fail, AT_ERR_USAGE, "use --release barrier, or --gather any:K",
                           "--gather all does not work with --release %s: workers that do not wait "
                           "for a step never all report to it",
                           plan->release->name);
    if (plan->release->holds && plan->gather->counts_k && plan->k > plan->workers)
        return at_fail_set(fail, AT_ERR_USAGE, "use --release free, or a smaller K",
                           "--gather %s:%u with --release %s needs at least %u workers (there are "
                           "%u): each worker reports once per step",
                           plan->gather->name, plan->k, plan->release->name, plan->k,
                           plan->workers);
    if (plan->size->balances && !plan->release->holds)
        return at_fail_set(
            fail, AT_ERR_USAGE, "use --release barrier",
            "--size %s balances workers that wait for each other; under --release %s "
            "they do not",
            plan->size->name, plan->release->name);
    if (plan->size->wants_norms && (plan->workers == 1 || (plan->gather->counts_k && plan->k == 1)))
        return at_fail_set(fail, AT_ERR_USAGE, "use more workers, or a larger K",
                           "--size %s compares the gradients of a step; with these settings each "
                           "step has only one",
                           plan->size->name);
    if (plan->deal_global && (plan->work->timed || !plan->release->holds))
        return at_fail_set(fail, AT_ERR_USAGE, "use --deal own, or --strategy fmb",
                           "--deal global needs fixed work and a barrier: otherwise the samples of "
                           "a step are not known in advance");
    bool waits = plan->gather->waits_for_all && plan->release->holds;
    if (plan->topology == AT_TOPOLOGY_ALLREDUCE && !waits)
        return at_fail_set(
            fail, AT_ERR_USAGE, "leave --topology out, or use --strategy fmb or amb",
            "--topology allreduce needs every worker in every step: --gather %s with "
            "--release %s does not wait for all",
            plan->gather->name, plan->release->name);
    assert(plan->workers_min <= plan->workers);
    assert(plan->workers <= plan->workers_max);
    assert(plan->micro_batch >= 1);
    assert(plan->micro_batch <= plan->batch);
    assert(plan->batch <= plan->cap);
    return AT_OK;
}

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

at_err at_plan_resolve(const at_plan_options *o, at_plan *plan, at_fail *fail)
{
    *plan = (at_plan){.deal_global = o->deal_global,
                      .lease = o->lease,
                      .eval_steps = o->eval_steps,
                      .eval_samples = o->eval_samples,
                      .limits = o->limits};
    AT_TRY(resolve_workers(o, plan, fail));
    const at_strategy *s;
    AT_TRY(find_strategy(given(o->strategy) ? o->strategy : "fmb", &s, fail));
    plan->strategy = s;
    const void *row;
    const char *none;
    AT_TRY(resolve_work(o, given(o->work) ? o->work : s->work, plan, fail));
    AT_TRY(resolve_gather(o, given(o->gather) ? o->gather : s->gather, plan, fail));
    AT_TRY(resolve_release(o, given(o->release) ? o->release : s->release, plan, fail));
    AT_TRY(find_rule(AT_NEWER, given(o->newer) ? o->newer : s->newer, &row, &none, fail));
    plan->newer = row;
    AT_TRY(find_rule(AT_STALE, given(o->stale) ? o->stale : s->stale, &row, &none, fail));
    plan->stale = row;
    AT_TRY(resolve_size(given(o->size) ? o->size : s->size, given(o->size), plan, fail));
    AT_TRY(resolve_sizes(o, plan, fail));
    AT_TRY(resolve_topology(o->topology, plan, fail));
    if (given(o->cut) && strcmp(o->cut, "nearest") != 0 && strcmp(o->cut, "after") != 0)
        return at_fail_set(fail, AT_ERR_USAGE, "known: nearest after", "unknown --cut '%s'",
                           o->cut);
    plan->cut_after = given(o->cut) && strcmp(o->cut, "after") == 0;
    if (given(o->lr_scale) && strcmp(o->lr_scale, "none") != 0 &&
        strcmp(o->lr_scale, "linear") != 0)
        return at_fail_set(fail, AT_ERR_USAGE, "known: none linear", "unknown --lr-scale '%s'",
                           o->lr_scale);
    plan->lr_linear = given(o->lr_scale) && strcmp(o->lr_scale, "linear") == 0;
    return check_combination(plan, fail);
}

/* ---- queries -------------------------------------------------------------------------------- */

const char *at_plan_rule_text(const at_plan *plan, enum at_family family, char *buffer, size_t size)
{
    assert(size >= 1);
    at_text text = at_text_in(buffer, size);
    switch (family) {
    case AT_WORK:
        at_text_add(&text, "%s", plan->work->name);
        if (!plan->work->timed)
            at_text_add(&text, ":%u", plan->batch);
        else if (plan->time_limit != AT_NEVER)
            at_text_add(&text, ":%.9g", at_seconds(plan->time_limit));
        break;
    case AT_GATHER:
        at_text_add(&text, "%s", plan->gather->name);
        if (plan->gather->counts_k) at_text_add(&text, ":%u", plan->k);
        if (plan->gather->counts_time && plan->period != AT_NEVER)
            at_text_add(&text, ":%.9g", at_seconds(plan->period));
        break;
    case AT_RELEASE:
        at_text_add(&text, "%s", plan->release->name);
        if (plan->release->number) at_text_add(&text, ":%u", plan->staleness);
        break;
    case AT_NEWER: at_text_add(&text, "%s", plan->newer->name); break;
    case AT_STALE: at_text_add(&text, "%s", plan->stale->name); break;
    case AT_SIZE:
        at_text_add(&text, "%s", plan->size->name);
        if (plan->size->format) plan->size->format(plan, &text);
        break;
    case AT_FAMILY_COUNT: assert(!"not a family"); break;
    }
    return buffer;
}

uint32_t at_plan_samples_max(const at_plan *plan)
{
    assert(plan->batch >= 1);
    if (plan->work->timed) return plan->cap;
    return plan->size->changes_samples ? plan->batch_max : plan->batch;
}

bool at_plan_uses(const at_plan *plan, const char *option)
{
    if (strcmp(option, "time-limit") == 0 || strcmp(option, "cut") == 0 ||
        strcmp(option, "cap") == 0)
        return plan->work->timed;
    if (strcmp(option, "k") == 0) return plan->gather->counts_k;
    if (strcmp(option, "period") == 0) return plan->gather->counts_time;
    if (strcmp(option, "staleness") == 0) return plan->release->number != NULL;
    if (strcmp(option, "batch-min") == 0 || strcmp(option, "batch-max") == 0 ||
        strcmp(option, "lr-scale") == 0)
        return plan->size->changes_samples;
    return true;
}
