/* plan.h - a strategy with all its settings: six rules and their numbers.
 *
 * A strategy is a named row of six rules (strategy.c), one per family (rules/rules.h). A plan is a
 * strategy with overrides and numbers filled in and checked. It does not change during a run.
 */
#ifndef AT_STEP_PLAN_H
#define AT_STEP_PLAN_H

#include "base/err.h"
#include "step/event.h"
#include "step/rules/rules.h"

enum { AT_TARGETS_MAX = 4 };

typedef struct at_target {
    at_metric metric;
    double    value; /* reached when the metric is at least this (a loss: at most) */
} at_target;

/* A run ends when any of these is reached (targets: when all are); 0 = no such limit. */
typedef struct at_limits {
    uint64_t  steps;
    uint64_t  samples;
    at_ns     time;
    bool      epochs; /* `samples` was given as epochs; only affects the reported reason */
    at_target target[AT_TARGETS_MAX];
    uint32_t  targets;
} at_limits;

/* Where parameters are updated: at the hub, from the workers' gradients; at the workers when a step
 * closes, each a slice or its own copy; or in one vector that all workers update at any time. Names
 * are part of result.json. */
#define AT_TOPOLOGY_MAP(X) X(HUB, "hub") X(ALLREDUCE, "allreduce") X(HOGWILD, "hogwild")
typedef enum at_topology {
#define X(id, text) AT_TOPOLOGY_##id,
    AT_TOPOLOGY_MAP(X)
#undef X
        AT_TOPOLOGY_COUNT
} at_topology;
extern const char *const at_topology_name[AT_TOPOLOGY_COUNT];

typedef struct at_plan {
    const struct at_strategy *strategy;
    const at_work_rule       *work;
    const at_gather_rule     *gather;
    const at_release_rule    *release;
    const at_newer_rule      *newer;
    const at_stale_rule      *stale;
    const at_size_rule       *size;
    at_topology               topology;
    /* Numbers of the rules; unused where the rule has none. */
    uint32_t k;         /* gather first:K, any:K */
    at_ns    period;    /* gather every:Tp; AT_NEVER: the time limit found by size rule `auto` */
    uint32_t staleness; /* release bound:S */
    double   size_factor, size_epochs; /* size grow and shrink */
    bool     size_each_step;           /* size speed:step */

    uint32_t workers;       /* expected at the start, >= 1 */
    uint32_t workers_max;   /* capacity: ids are 1 .. workers_max */
    uint32_t workers_min;   /* with fewer present the run pauses */
    at_ns    join_timeout;  /* how long it waits for workers to join before it continues or stops */
    bool     open;          /* further workers may join at any time */
    uint32_t batch;         /* samples per worker per round, see --batch */
    uint32_t micro_batch;   /* 1 .. batch */
    uint32_t batch_min;     /* limits of size rules that change the number of samples: */
    uint32_t batch_max;     /* 1 <= batch_min <= batch <= batch_max */
    bool     lr_linear;     /* --lr-scale linear: the learning rate scales with the batch */
    uint32_t cap;           /* maximum samples of a timed round */
    at_ns    time_limit;    /* of timed work; AT_NEVER: size rule `auto` finds it */
    bool     cut_after;     /* --cut after (published): start a micro-batch while elapsed < T */
    bool     own_batches;   /* programs decide the size of a micro-batch (seats) */
    bool     deal_global;   /* --deal global: sample positions come from the hub */
    at_ns    lease;         /* 0: adapts to past rounds */
    uint64_t samples_epoch; /* length of an epoch; 0: unknown, size rules see no epochs */
    uint64_t eval_steps;    /* evaluate every this many steps; 0: by eval_samples */
    uint64_t eval_samples;  /* evaluate every this many used samples; both 0: only at the end */
    /* Checkpoints, in addition to those at the start and end. Before one due by steps, all workers
     * finish their rounds, so that a resumed run equals an uninterrupted one. */
    bool      saves;
    uint64_t  save_steps; /* every this many steps; 0: not by steps */
    at_ns     save_time;  /* interval; 0: not by time */
    at_limits limits;
} at_plan;

/* The user's settings, not yet checked. Texts may be NULL or empty: not given. */
typedef struct at_plan_options {
    const char *strategy;
    const char *work, *gather, *release, *newer, *stale, *size; /* overrides, "first:9" */
    const char *time_limit;                                     /* "auto" or a duration */
    const char *period;
    const char *cut;          /* "nearest" or "after" */
    const char *topology;     /* default: the strategy's */
    const char *lr_scale;     /* "none" or "linear" */
    int64_t     k, staleness; /* -1: not given */
    uint32_t    workers;
    uint32_t    workers_min, workers_max; /* 0: 1, and as many as `workers` */
    at_ns       join_timeout;             /* 0: 60 s */
    uint32_t    batch, micro_batch, cap;  /* 0: default */
    uint32_t    batch_min, batch_max;     /* 0: a sixteenth of batch, 16 x batch */
    bool        deal_global;
    at_ns       lease;
    uint64_t    eval_steps, eval_samples;
    at_limits   limits;
} at_plan_options;

/* One row of the strategy table. */
typedef struct at_strategy {
    const char *name;
    const char *summary;
    const char *work, *gather, *release, *newer, *stale, *size;
    const char *known_as;
    at_topology topology;
    uint32_t    batch, micro_batch; /* defaults of this strategy; 0: the common ones */
} at_strategy;

extern const at_strategy at_strategies[];
extern const size_t      at_strategies_count;

/* Fills *plan. AT_ERR_USAGE, with the reason, for unknown names (the hint has the nearest known
 * one), contradictions and unsupported combinations. */
at_err at_plan_resolve(const at_plan_options *options, at_plan *plan, at_fail *fail);

enum at_family { AT_WORK, AT_GATHER, AT_RELEASE, AT_NEWER, AT_STALE, AT_SIZE, AT_FAMILY_COUNT };
extern const char *const at_family_name[AT_FAMILY_COUNT];

/* Writes the rule of one family as text ("timed:0.05", "first:9") for result.json. */
const char *at_plan_rule_text(const at_plan *plan, enum at_family family, char *buffer,
                              size_t size);

/* The maximum samples_max of an order of this plan. */
uint32_t at_plan_samples_max(const at_plan *plan);

/* True when a rule of this plan uses the option of that name (time-limit, k, period, ..). The
 * command line accepts unused options with a warning. */
bool at_plan_uses(const at_plan *plan, const char *option);

#endif
