#include "step/switch.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"

static const char *const by_name[AT_SWITCH_COUNT] = {[AT_SWITCH_EPOCH] = "epoch",
                                                     [AT_SWITCH_STEP] = "step",
                                                     [AT_SWITCH_LOSS] = "loss",
                                                     [AT_SWITCH_TIME] = "time"};

static const char HINT[] = "write it as 'async@epoch=2'; conditions: epoch=N, step=N, loss=L, "
                           "time=T";

/* ---- the condition -------------------------------------------------------------------------- */

static bool read_value(const char *text, at_switch_by by, double *value)
{
    at_ns time;
    if (by == AT_SWITCH_TIME) {
        bool fits = at_text_duration(text, &time);
        if (fits) *value = at_seconds(time);
        return fits && *value > 0;
    }
    return at_text_real(text, value) && *value > 0 && *value < 1e15;
}

at_err at_switch_read_condition(const char *text, at_plan *plan, at_fail *fail)
{
    size_t length = strcspn(text, "=");
    for (int i = 0; text[length] && i < AT_SWITCH_COUNT; i++) {
        bool same = strlen(by_name[i]) == length && strncmp(by_name[i], text, length) == 0;
        if (!same || !read_value(text + length + 1, (at_switch_by)i, &plan->switch_value)) continue;
        plan->switch_by = (at_switch_by)i;
        return AT_OK;
    }
    return at_fail_set(fail, AT_ERR_USAGE, HINT, "--switch: '%s' is not a condition", text);
}

const char *at_switch_condition(const at_plan *plan, char *buffer, size_t size)
{
    at_text text = at_text_in(buffer, size);
    assert(plan->switch_by < AT_SWITCH_COUNT);
    at_text_add(&text, "%s=", by_name[plan->switch_by]);
    at_text_add_real(&text, plan->switch_value);
    return buffer;
}

bool at_switch_due(const at_hub *hub, double loss, at_ns now)
{
    const at_plan *plan = hub->plan;
    if (!plan->then) return false;
    assert(hub->version >= 1);
    switch (plan->switch_by) {
    case AT_SWITCH_EPOCH:
        return plan->samples_epoch > 0 &&
               (double)hub->samples_used >= plan->switch_value * (double)plan->samples_epoch;
    case AT_SWITCH_STEP: return (double)hub->version >= plan->switch_value;
    case AT_SWITCH_LOSS: return loss <= plan->switch_value;
    case AT_SWITCH_TIME: return at_seconds(now - hub->began_at) >= plan->switch_value;
    case AT_SWITCH_COUNT: break;
    }
    assert(!"not a condition");
    return false;
}

/* ---- two plans ------------------------------------------------------------------------------ */

/* Workers and hub make local steps, and a step of the run from them, as the first plan says. */
static at_err check_local(const at_plan *plan, const at_plan *then, at_fail *fail)
{
    char outer[2][AT_RULE_TEXT_SIZE];
    if (!plan->work->reports_change) return AT_OK;
    at_plan_rule_text(plan, AT_OUTER, outer[0], sizeof outer[0]);
    at_plan_rule_text(then, AT_OUTER, outer[1], sizeof outer[1]);
    if (strcmp(outer[0], outer[1]) != 0)
        return at_fail_set(fail, AT_ERR_USAGE, "give --outer, which holds for both",
                           "--switch: %s combines local steps differently (%s) than %s (%s)",
                           then->strategy->name, outer[1], plan->strategy->name, outer[0]);
    if (plan->local_batch == then->local_batch) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "give both the same BATCH",
                       "--switch: a local step has %u samples under %s, and %u under %s",
                       plan->local_batch, plan->strategy->name, then->local_batch,
                       then->strategy->name);
}

at_err at_switch_check(const at_plan *plan, at_fail *fail)
{
    const at_plan *then = plan->then;
    char           mix[2][AT_RULE_TEXT_SIZE];
    if (!then) return AT_OK;
    at_plan_rule_text(plan, AT_MIX, mix[0], sizeof mix[0]);
    at_plan_rule_text(then, AT_MIX, mix[1], sizeof mix[1]);
    if (strcmp(mix[0], mix[1]) != 0)
        return at_fail_set(fail, AT_ERR_USAGE, "switch between strategies with the same mix rule",
                           "--switch: %s has its parameters elsewhere (%s) than %s (%s)",
                           then->strategy->name, mix[1], plan->strategy->name, mix[0]);
    if (plan->work->reports_change != then->work->reports_change)
        return at_fail_set(fail, AT_ERR_USAGE, "switch between strategies that report the same",
                           "--switch: of %s and %s, one reports gradients and the other changes of "
                           "the parameters",
                           plan->strategy->name, then->strategy->name);
    AT_TRY(check_local(plan, then, fail));
    if (plan->stale->correct || then->stale->correct)
        return at_fail_set(fail, AT_ERR_USAGE, "leave --switch or --stale out",
                           "--switch does not work with --stale %s",
                           (plan->stale->correct ? plan : then)->stale->rule.name);
    return AT_OK;
}

void at_switch_share(const at_plan *plan, at_plan *then)
{
    assert(plan->then == then);
    at_plan both = *plan;
    both.strategy = then->strategy;
    both.work = then->work;
    both.gather = then->gather;
    both.release = then->release;
    both.newer = then->newer;
    both.stale = then->stale;
    both.size = then->size;
    both.mix = then->mix;
    both.outer = then->outer;
    memcpy(both.arg, then->arg, sizeof both.arg);
    both.batch_min = then->batch_min; /* set by rules, too */
    both.batch_max = then->batch_max;
    both.cap = then->cap;
    both.time_limit = then->time_limit;
    both.cut_after = then->cut_after;
    both.then = NULL;
    *then = both;
}

at_err at_switch_resolve(const at_plan_options *options, const char *text, at_plan *plan,
                         at_plan *then, at_fail *fail)
{
    char            name[AT_RULE_TEXT_SIZE];
    const char     *at = strrchr(text, '@');
    size_t          length = at ? (size_t)(at - text) : 0;
    at_plan_options o = *options;
    if (length == 0 || length >= sizeof name)
        return at_fail_set(fail, AT_ERR_USAGE, HINT, "--switch %s is not STRATEGY@CONDITION", text);
    memcpy(name, text, length);
    name[length] = '\0';
    o.strategy = name;
    o.work = o.gather = o.release = o.newer = o.stale = o.size = NULL; /* those of the first */
    o.batch = plan->batch;
    o.micro_batch = plan->micro_batch;
    AT_TRY(at_plan_resolve(&o, then, fail));
    AT_TRY(at_switch_read_condition(at + 1, plan, fail));
    plan->then = then;
    AT_TRY(at_switch_check(plan, fail));
    at_switch_share(plan, then);
    return AT_OK;
}
