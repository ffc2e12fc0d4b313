#include "world/core/job_parts.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "step/switch.h"
#include "world/core/graph.h"

static const char *const part_name[AT_JOB_PARTS] = {
#define X(id, text) text,
    AT_JOB_PART_MAP(X)
#undef X
};

static void mix(uint64_t *hash, uint64_t word)
{
    assert(hash);
    *hash = at_rng_mix(*hash + 0x9e3779b97f4a7c15u + word);
}

static void mix_text(uint64_t *hash, const char *text)
{
    assert(hash);
    for (const char *c = text; c && *c; c++) mix(hash, (unsigned char)*c);
    mix(hash, UINT64_MAX);
}

static void mix_real(uint64_t *hash, double number)
{
    uint64_t bits;
    assert(hash);
    memcpy(&bits, &number, sizeof bits);
    mix(hash, bits);
}

static uint64_t hash_words(const uint64_t *words, size_t count)
{
    uint64_t hash = count;
    assert(words);
    for (size_t i = 0; i < count; i++) mix(&hash, words[i]);
    return hash;
}
#define HASH(...) \
    hash_words((const uint64_t[]){__VA_ARGS__}, sizeof(uint64_t[]){__VA_ARGS__} / sizeof(uint64_t))

/* The layout of the weights depends on the machine's vector units. Numbering the weights and
 * converting the numbers to plain order reveals it. */
static uint64_t hash_layout(const at_task *task)
{
    uint64_t hash = 0;
    assert(task->params >= 1);
    if (!task->to_plain || task->sparse) return hash;
    uint32_t *flat = malloc(task->params * sizeof *flat);
    uint32_t *plain = calloc(task->plain, sizeof *plain);
    for (size_t i = 0; flat && i < task->params; i++) flat[i] = (uint32_t)i;
    if (flat && plain) task->to_plain(task->self, (float *)(void *)plain, (float *)(void *)flat);
    for (size_t i = 0; plain && i < task->plain; i++) mix(&hash, plain[i]);
    free(flat);
    free(plain);
    return hash;
}

/* Who mixes is part of the ranks: ranks that disagree about it cannot even talk. */
static uint64_t hash_rules(const at_plan *plan)
{
    uint64_t hash = 0;
    for (int i = 0; i < AT_FAMILY_COUNT; i++)
        if (i != AT_MIX) mix_text(&hash, at_plan_rule(plan, (enum at_family)i)->name);
    if (plan->then) mix(&hash, hash_rules(plan->then));
    return hash;
}

static uint64_t hash_numbers(const at_plan *plan)
{
    uint64_t hash = HASH(plan->cap, (uint64_t)plan->time_limit, plan->cut_after, plan->deal_global,
                         plan->nonfinite, plan->lr_linear, plan->lr_inverse);
    char     rule[AT_RULE_TEXT_SIZE];
    assert(plan->workers_max >= 1);
    for (int i = 0; i < AT_FAMILY_COUNT; i++)
        if (i != AT_MIX)
            mix_text(&hash, at_plan_rule_text(plan, (enum at_family)i, rule, sizeof rule));
    if (!plan->then) return hash;
    mix_text(&hash, at_switch_condition(plan, rule, sizeof rule));
    mix(&hash, hash_numbers(plan->then));
    return hash;
}

static uint64_t hash_ranks(const at_plan *plan)
{
    char     rule[AT_RULE_TEXT_SIZE];
    uint64_t hash = HASH(plan->workers, plan->workers_max);
    mix_text(&hash, at_plan_rule_text(plan, AT_MIX, rule, sizeof rule));
    return hash;
}

/* Ranks that read different files of edges would wait for each other. */
static uint64_t hash_graph(const at_plan *plan, uint64_t seed)
{
    at_graph graph;
    at_fail  fail;
    uint64_t hash = 0;
    if (!plan->mix->owned_by_workers) return 0;
    at_mixing mixing = at_plan_mixing(plan);
    if (at_graph_init(&graph, mixing.graph, plan->workers_max, mixing.matrix, seed, &fail))
        return 0; /* said by check_owned */
    for (uint32_t i = 0; i < graph.nodes; i++)
        for (uint32_t k = graph.first[i]; k < graph.first[i + 1]; k++)
            mix(&hash, (uint64_t)i << 32 | graph.neighbour[k]);
    at_graph_deinit(&graph);
    return hash;
}

static uint64_t hash_limits(const at_plan *plan)
{
    const at_limits *limits = &plan->limits;
    uint64_t         hash = HASH(limits->steps, limits->samples, (uint64_t)limits->time);
    assert(limits->targets <= AT_TARGETS_MAX);
    for (uint32_t i = 0; i < limits->targets; i++) {
        mix(&hash, limits->target[i].metric);
        mix_real(&hash, limits->target[i].value);
    }
    return hash;
}

/* By its numbers, and by its values relative to the first one, in millionths. */
static void mix_schedule(uint64_t *hash, const at_schedule *schedule)
{
    double end = schedule->samples_end > 0 ? schedule->samples_end : 100 * schedule->samples_epoch;
    assert(schedule->number_count <= AT_SCHEDULE_EPOCHS_MAX + 2);
    for (uint32_t i = 0; i < schedule->number_count; i++) mix_real(hash, schedule->number[i]);
    mix_real(hash, schedule->warmup);
    for (int i = 0; i <= 16; i++) {
        double factor = at_schedule_rate(schedule, end * i / 16) / schedule->lr;
        mix(hash, (uint64_t)llround(factor * 1e6));
    }
}

/* The folders above a file may have other names on every machine. */
static const char *last_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    assert(!slash || slash >= path);
    return slash && slash[1] ? slash + 1 : path;
}

/* Optimizer, learning rate and schedule, each over all parameter groups. */
static void hash_learning(const at_learning *learning, uint64_t part[AT_JOB_PARTS])
{
    assert(learning->groups <= AT_GROUPS_MAX);
    if (learning->inner) hash_learning(learning->inner, part);
    mix_text(&part[AT_JOB_OPTIMIZER], learning->optim->name);
    for (size_t i = 0; i < AT_OPTIM_NUMBERS_MAX; i++)
        mix_real(&part[AT_JOB_OPTIMIZER], learning->number[i]);
    mix_real(&part[AT_JOB_OPTIMIZER], learning->clip);
    for (uint32_t i = 0; i <= learning->groups; i++) {
        const at_rate *rate = &learning->rate[i];
        mix_real(&part[AT_JOB_OPTIMIZER], rate->weight_decay);
        mix_real(&part[AT_JOB_OPTIMIZER], rate->momentum);
        mix_real(&part[AT_JOB_RATE], rate->schedule.lr);
        mix_schedule(&part[AT_JOB_SCHEDULE], &rate->schedule);
    }
}

void at_job_parts(const at_world_context *context, uint64_t part[AT_JOB_PARTS])
{
    const at_task *task = context->task;
    const at_plan *plan = context->plan;
    assert(task && plan);
    memset(part, 0, AT_JOB_PARTS * sizeof *part);
    mix_text(&part[AT_JOB_PROGRAM], ANYTIME_VERSION);
    part[AT_JOB_MODEL] = HASH(task->params, task->plain, task->trained, task->parameters,
                              task->classes, task->sparse);
    part[AT_JOB_DATA] = HASH(task->samples, task->test_samples, task->slot_floats);
    part[AT_JOB_LAYOUT] = hash_layout(task);
    part[AT_JOB_RANKS] = hash_ranks(plan) ^ hash_graph(plan, context->seed);
    part[AT_JOB_RULES] = hash_rules(plan);
    part[AT_JOB_NUMBERS] = hash_numbers(plan);
    part[AT_JOB_BATCH] = HASH(plan->batch, plan->batch_min, plan->batch_max);
    part[AT_JOB_MICRO_BATCH] = plan->micro_batch;
    part[AT_JOB_SEED] = context->seed;
    part[AT_JOB_LIMITS] = hash_limits(plan);
    part[AT_JOB_EVENTS] = HASH(plan->eval_steps, plan->eval_samples);
    part[AT_JOB_COMPRESS] = (uint64_t)context->compress.kind;
    mix_real(&part[AT_JOB_COMPRESS], context->compress.share);
    mix_text(&part[AT_JOB_MODEL], last_name(task->model));
    mix_real(&part[AT_JOB_MODEL], task->smoothing);
    mix_text(&part[AT_JOB_DATA], last_name(task->data));
    mix_text(&part[AT_JOB_DATA], task->prep_fitted ? task->prep_fitted : task->prep);
    hash_learning(context->learning, part);
}

/* "batch, optimizer and seed" of the parts that differ; "": none. */
static void list_differences(const uint64_t *a, const uint64_t *b, char *text, size_t size)
{
    size_t   used = 0;
    uint32_t left = 0;
    assert(size >= 1);
    text[0] = '\0';
    for (int i = 0; i < AT_JOB_PARTS; i++) left += a[i] != b[i];
    for (int i = 0; i < AT_JOB_PARTS && used < size; i++) {
        if (a[i] == b[i]) continue;
        const char *join = used == 0 ? "" : left == 1 ? " and " : ", ";
        used += (size_t)snprintf(text + used, size - used, "%s%s", join, part_name[i]);
        left--;
    }
}

at_err at_job_compare(const at_worker_note *hello, const uint64_t part[AT_JOB_PARTS], at_fail *fail)
{
    char differences[320];
    assert(hello->kind == AT_WORKER_NOTE_HELLO);
    list_differences(hello->part, part, differences, sizeof differences);
    if (!differences[0]) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE,
                       "use the same anytime and the same data everywhere, on machines with the "
                       "same vector units",
                       "the worker on %s and the hub differ in: %s", hello->host, differences);
}

at_err at_job_check(const at_worker_note *hello, uint32_t rank, const uint64_t part[AT_JOB_PARTS],
                    const char *host, at_fail *fail)
{
    char differences[320];
    assert(hello->kind == AT_WORKER_NOTE_HELLO);
    if (hello->fail.err) {
        *fail = hello->fail;
        if (rank > 0) at_fail_wrap(fail, "rank %u on %s", rank, hello->host);
        return fail->err;
    }
    list_differences(hello->part, part, differences, sizeof differences);
    if (!differences[0]) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE,
                       "start all ranks with the same anytime, options and data, on machines with "
                       "the same vector units",
                       "rank %u on %s and rank 0 on %s differ in: %s", rank, hello->host, host,
                       differences);
}
