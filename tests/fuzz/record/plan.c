/* Fuzz target: any texts as the rules of a run: strategy, eight rules, time limit, learning-rate
 * scale, policy and switch, one per line after a head of numbers. A plan that is accepted is the
 * same after it was written to the head of an event log and read again, which is what `replay` and
 * reports rely on. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "record/runinfo.h"
#include "step/switch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 6, LINES = 13, WORKERS_MAX = 64, TEXT_MAX = 2048 };

static void check_value(const at_rule_arg *arg, const at_value *a, const at_value *b)
{
    assert(a->whole == b->whole && strcmp(a->name, b->name) == 0);
    if (arg->type == AT_ARG_SPAN) assert(a->last == b->last);
    if (arg->type == AT_ARG_REAL) assert(a->real == b->real);
    if (arg->type == AT_ARG_EITHER) assert(a->timed == b->timed);
}

static void check_rules(const at_plan *plan, const at_plan *again)
{
    for (int f = 0; f < AT_FAMILY_COUNT; f++) {
        const at_rule *rule = at_plan_rule(plan, (enum at_family)f);
        assert(rule == at_plan_rule(again, (enum at_family)f));
        for (int i = 0; i < AT_RULE_ARGS_MAX && rule->arg[i].name; i++)
            check_value(&rule->arg[i], &plan->arg[f][i], &again->arg[f][i]);
    }
}

static void check_same(const at_plan *plan, const at_plan *again)
{
    assert(plan->strategy == again->strategy);
    check_rules(plan, again);
    assert(plan->batch == again->batch && plan->micro_batch == again->micro_batch);
    assert(plan->batch_min == again->batch_min && plan->batch_max == again->batch_max);
    assert(plan->cap == again->cap && plan->local_batch == again->local_batch);
    assert(plan->time_limit == again->time_limit && plan->cut_after == again->cut_after);
    assert(plan->lr_linear == again->lr_linear && plan->lr_inverse == again->lr_inverse);
    assert(plan->nonfinite == again->nonfinite && plan->deal_global == again->deal_global);
    assert(plan->workers == again->workers && plan->workers_min == again->workers_min);
    assert(!plan->then == !again->then);
    if (!plan->then) return;
    assert(plan->switch_by == again->switch_by && plan->switch_value == again->switch_value);
    check_same(plan->then, again->then);
}

static void write_and_read(const at_plan *plan)
{
    at_run_info info = {.plan = plan, .world = "sim", .model = "none"};
    at_plan     again, then;
    at_fail     fail = {0};
    char       *text = at_run_info_text(&info);
    assert(text);
    at_err err = at_run_info_plan(text, &again, &then, &fail);
    assert(!err);
    check_same(plan, &again);
    free(text);
}

static void resolve(const at_plan_options *options, const char *switch_to)
{
    at_plan plan, then;
    at_fail fail = {0};
    at_err  err = at_plan_resolve(options, &plan, &fail);
    if (!err && *switch_to) err = at_switch_resolve(options, switch_to, &plan, &then, &fail);
    assert(!err == !fail.text[0]);
    if (!err) write_and_read(&plan);
}

/* ASCII: the head of a log has question marks in place of other bytes. */
static void copy_text(char *text, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++) text[i] = (char)(data[i] & 0x7f);
    text[size] = '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[TEXT_MAX + 1], *rest = text, *line[LINES];
    if (size < HEAD || size - HEAD > TEXT_MAX) return 0;
    copy_text(text, data + HEAD, size - HEAD);
    for (int i = 0; i < LINES; i++) {
        line[i] = strsep(&rest, "\n");
        if (!line[i]) line[i] = "";
    }
    at_plan_options options = {.workers = 1 + data[0] % WORKERS_MAX,
                               .workers_min = data[1] % (WORKERS_MAX + 1),
                               .batch = data[2] | (uint32_t)(data[3] & 0x7f) << 8,
                               .micro_batch = data[4],
                               .deal_global = data[5] & 1,
                               .alone = data[5] & 2,
                               .limits = {.steps = 10},
                               .strategy = line[0],
                               .work = line[1],
                               .gather = line[2],
                               .release = line[3],
                               .newer = line[4],
                               .stale = line[5],
                               .size = line[6],
                               .mix = line[7],
                               .outer = line[8],
                               .time_limit = line[9],
                               .lr_scale = line[10],
                               .nonfinite = line[11]};
    resolve(&options, line[12]);
    return 0;
}
