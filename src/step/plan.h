/* plan.h - a strategy with all its settings: a rule of each family, with its arguments.
 *
 * A strategy is a named row of rules (strategy.c), one per family (rules/rules.h). A plan is a
 * strategy with overrides and arguments filled in and checked. It does not change during a run.
 */
#ifndef AT_STEP_PLAN_H
#define AT_STEP_PLAN_H

#include "base/err.h"
#include "step/event.h"
#include "step/mixing.h"
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

/* When a run goes on under another plan, see switch.h. */
typedef enum at_switch_by {
    AT_SWITCH_EPOCH,
    AT_SWITCH_STEP,
    AT_SWITCH_LOSS, /* of one step, at most */
    AT_SWITCH_TIME, /* seconds since the first order */
    AT_SWITCH_COUNT
} at_switch_by;

/* What the hub does with a report whose loss or gradient is not finite: X(id, name). */
#define AT_NONFINITE_MAP(X)                                                  \
    X(STOP, "stop")     /* ends the run before the report is used */         \
    X(SKIP, "skip")     /* drops it; the run ends when nothing else comes */ \
    X(IGNORE, "ignore") /* uses it, as if nobody had looked */
typedef enum at_nonfinite {
#define X(id, text) AT_NONFINITE_##id,
    AT_NONFINITE_MAP(X)
#undef X
        AT_NONFINITE_COUNT
} at_nonfinite;
extern const char *const at_nonfinite_name[AT_NONFINITE_COUNT];

/* Under `skip`: a run ends when this many reports in a row, and this many per worker, had to be
 * dropped. */
enum { AT_NONFINITE_ROW = 100, AT_NONFINITE_ROW_WORKER = 10 };

typedef struct at_plan {
    const struct at_strategy *strategy;
    const at_work_rule       *work;
    const at_gather_rule     *gather;
    const at_release_rule    *release;
    const at_newer_rule      *newer;
    const at_stale_rule      *stale;
    const at_size_rule       *size;
    const at_mix_rule        *mix;
    const at_outer_rule      *outer;
    at_value                  arg[AT_FAMILY_COUNT][AT_RULE_ARGS_MAX]; /* of these rules */

    uint32_t workers;      /* expected at the start, >= 1 */
    uint32_t workers_max;  /* capacity: ids are 1 .. workers_max */
    uint32_t workers_min;  /* with fewer present the run pauses */
    at_ns    join_timeout; /* how long it waits for workers to join before it continues or stops */
    bool     open;         /* further workers may join at any time */
    uint32_t batch;        /* samples per worker per round, see --batch */
    uint32_t micro_batch;  /* 1 .. batch */
    uint32_t batch_min;    /* limits of size rules that change the number of samples: */
    uint32_t batch_max;    /* 1 <= batch_min <= batch <= batch_max */
    bool     lr_linear;    /* --lr-scale linear: the learning rate scales with the batch */
    bool     lr_inverse;   /* --lr-scale inverse: it is divided by the samples per worker */
    uint32_t cap;          /* maximum samples of a round under timed work */
    uint32_t drawn_extra;  /* samples by which a round may exceed its order (--straggler-batch) */
    at_ns    time_limit;   /* of timed work; AT_NEVER: size rule `auto` finds it */
    uint32_t local_batch;  /* samples of a local step, a multiple of micro_batch; 0: none */
    bool     cut_after;    /* as published: start a micro-batch while elapsed < T */
    bool     own_batches;  /* programs decide the size of a micro-batch (seats) */
    bool     deal_global;  /* --deal global: sample positions come from the hub */
    at_ns    lease;        /* 0: adapts to past rounds */
    at_nonfinite nonfinite;
    uint64_t     samples_epoch; /* length of an epoch; 0: unknown, size rules see no epochs */
    uint64_t     eval_steps;    /* evaluate every this many steps; 0: by eval_samples */
    uint64_t     eval_samples;  /* evaluate every this many used samples; both 0: only at the end */
    /* Checkpoints, in addition to those at the start and end. Before one due by steps, all workers
     * finish their rounds, so that a resumed run equals an uninterrupted one. */
    bool      saves;
    uint64_t  save_steps; /* every this many steps; 0: not by steps */
    at_ns     save_time;  /* interval; 0: not by time */
    at_limits limits;

    const struct at_plan *then; /* the rest of the run; NULL: there is no switch */
    at_switch_by          switch_by;
    double                switch_value;
} at_plan;

/* The user's settings, not yet checked. Texts may be NULL or empty: not given. */
typedef struct at_plan_options {
    const char *strategy; /* "backup" or, with arguments, "backup:5" */
    /* Rules that replace those of the strategy: "first:9". Without a name, ":k=9": arguments for
     * the rule of the strategy, ignored where it has none of that name. */
    const char *work, *gather, *release, *newer, *stale, *size, *mix, *outer;
    const char *time_limit; /* "auto" or a duration */
    const char *lr_scale;   /* "none", "linear" or "inverse" */
    const char *nonfinite;  /* "stop", "skip" or "ignore" */
    uint32_t    workers;
    uint32_t    workers_min, workers_max; /* 0: 1, and as many as `workers` */
    at_ns       join_timeout;             /* 0: 60 s */
    bool        alone;                    /* the only worker is the process of the hub */
    uint32_t    batch, micro_batch;       /* 0: default */
    bool        deal_global;
    at_ns       lease;
    uint64_t    eval_steps, eval_samples;
    at_limits   limits;
} at_plan_options;

/* One row of the strategy table. */
typedef struct at_strategy {
    const char    *name;
    const char    *summary;
    const char    *work, *gather, *release, *newer, *stale, *size;
    const char    *known_as;
    const char    *mix, *outer;        /* NULL: central, average */
    enum at_family takes;              /* NAME:ARGS are the arguments of this family's rule */
    const char    *release_alone;      /* with .alone; NULL: the same */
    uint32_t       batch, micro_batch; /* defaults of this strategy; 0: the common ones */
    uint32_t       steps;              /* the same for local steps per round */
    const char    *optimizer;          /* the same; NULL: the common one */
} at_strategy;

extern const at_strategy at_strategies[];
extern const size_t      at_strategies_count;

/* Fills *plan. AT_ERR_USAGE, with the reason, for unknown names (the hint has the nearest known
 * one), contradictions and unsupported combinations. */
at_err at_plan_resolve(const at_plan_options *options, at_plan *plan, at_fail *fail);

/* The hub processes that these settings ask for; needs no number of workers. */
at_err at_plan_count_hubs(const at_plan_options *options, uint32_t *hubs, at_fail *fail);

/* Reads one rule, as written by at_plan_rule_text, into a plan whose numbers of workers and batch
 * are set. AT_ERR_USAGE, with the reason, when there is no such rule or an argument does not
 * fit. */
at_err at_plan_read_rule(at_plan *plan, enum at_family family, const char *text, at_fail *fail);

/* Reads the name of a policy; NULL or "": stop. AT_ERR_USAGE when there is none of that name. */
at_err at_plan_read_nonfinite(const char *text, at_nonfinite *nonfinite, at_fail *fail);

/* Checks the combination of rules; at_plan_resolve has done it. */
at_err at_plan_check(const at_plan *plan, at_fail *fail);

/* The rule of one family, without its function. */
const at_rule *at_plan_rule(const at_plan *plan, enum at_family family);

/* Writes the rule of one family as text ("timed:0.05", "first:9") for result.json. */
const char *at_plan_rule_text(const at_plan *plan, enum at_family family, char *buffer,
                              size_t size);

/* The maximum number of samples in a round of this plan, or of the one that follows it. */
uint32_t at_plan_samples_max(const at_plan *plan);

/* Samples of a micro-batch if nobody says otherwise, for a plan whose strategy is known. */
uint32_t at_plan_micro_default(const at_plan *plan);

/* Where workers report changes of parameters: the weight of one over a round of `samples` samples.
 * A report is the change times this weight, and a step divides their sum by the sum of weights. */
double at_plan_change_weight(const at_plan *plan, uint32_t samples);

/* ---- what the rules decide for worlds, reports and models ------------------------------------ */

/* Every worker is in every step, and none computes while it is applied. */
static inline bool at_plan_waits_for_all(const at_plan *plan)
{
    return plan->gather->waits_for_all && plan->release->holds;
}

/* Newer parameters may act on a round under way, so that workers must see them at once. */
static inline bool at_plan_interrupts(const at_plan *plan)
{
    return plan->newer->interrupts || (plan->stale->interrupts && plan->stale->interrupts(plan));
}

/* Workers may read the parameters where the hub has them: nobody writes while one computes. */
static inline bool at_plan_reads_in_place(const at_plan *plan)
{
    return at_plan_waits_for_all(plan) && (!plan->then || at_plan_waits_for_all(plan->then));
}

/* Workers may start rounds without another order. */
static inline bool at_plan_self_starts(const at_plan *plan)
{
    return plan->release->self_starting || (plan->then && plan->then->release->self_starting);
}

/* Gradients are kept until the step closes and summed in worker order, so that the bits do not
 * depend on the order of arrival. Otherwise each is added when it arrives. */
static inline bool at_plan_sums_in_order(const at_plan *plan)
{
    return plan->release->holds;
}

/* A worker starts only after its last gradient was read, so it needs only one slot for them. */
static inline bool at_plan_has_one_slot(const at_plan *plan)
{
    return plan->release->holds && (!plan->then || plan->then->release->holds);
}

/* Nothing but the end of the run abandons a round, and a gradient has one slot: what is final of it
 * may be sent before the round ends. */
static inline bool at_plan_sends_early(const at_plan *plan)
{
    bool now = plan->release->holds && !at_plan_interrupts(plan);
    return now && (!plan->then || at_plan_sends_early(plan->then));
}

/* Hub processes that update the parameters; 0: the workers do, together. */
static inline uint32_t at_plan_hubs(const at_plan *plan)
{
    return plan->mix->hubs ? plan->mix->hubs(plan) : 0;
}

/* The settings of `mix gossip`; for plans whose parameters are owned by the workers. */
at_mixing at_plan_mixing(const at_plan *plan);

/* Several processes make an update, each a slice of it. */
static inline bool at_plan_splits_update(const at_plan *plan)
{
    return plan->mix->updates_by_workers || at_plan_hubs(plan) > 1;
}

#endif
