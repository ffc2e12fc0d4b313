/* rules.h - the eight rule families that make up a strategy.
 *
 *   work     how much does a worker compute before it reports?                    work.c
 *   gather   when does the hub close a step?                                      gather.c
 *   release  when may a worker start again?                                       release.c
 *   newer    what does a worker do when a newer version appears during its round? newer.c
 *   stale    what happens to a gradient of an older version?                      stale.c
 *   size     how do batch size and time limit change during a run?                size.c, size_*.c
 *   mix      who owns the parameters, and who updates them?                       mix.c
 *   outer    how is a step made of changed parameters (instead of gradients)?     outer.c
 *
 * A new rule is a row in the table of its family, with its name, arguments, checks and function, in
 * one file. Each table ends with a row whose name is NULL. Outside src/step nobody asks for a rule
 * by its name: what a world needs to know is a capability, named for what it decides (here, and
 * at the end of plan.h where it follows from several rules).
 */
#ifndef AT_STEP_RULES_RULES_H
#define AT_STEP_RULES_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/time.h"
#include "step/event.h"
#include "step/rules/rule.h"

struct at_plan;
struct at_hub;
struct at_member;

/* What the size rule assigns to one worker for its next round. */
typedef struct at_share {
    uint32_t samples;
    at_ns    time_limit; /* AT_NEVER: not known yet, work by samples */
} at_share;

typedef struct at_work_rule {
    at_rule rule;
    /* Fills samples_max and time_limit of an order from the worker's share. */
    void (*amount)(const struct at_plan *plan, const at_share *share, at_order *order);
    bool timed;
    bool reports_change; /* of the parameters, by local steps; otherwise gradients */
} at_work_rule;

typedef struct at_gather_rule {
    at_rule rule;
    /* Number of reports still needed before the open step can close; 0: it closes now. */
    uint32_t (*missing)(const struct at_hub *hub, at_ns now);
    /* Fewest reports that close a step, where the settings say so. Optional. */
    uint32_t (*reports)(const struct at_plan *plan);
    /* When the open step closes by time; AT_NEVER: not known, or not by time. Optional. */
    at_ns (*closes_at)(const struct at_hub *hub);
    /* Looks at the open step before `missing` does, whenever gradients came; true when this sets
     * the time at which it closes. Optional. */
    bool (*arrived)(struct at_hub *hub, at_ns now);
    /* Learns from the step that closes now; its gradients are still with their members.
     * Optional. */
    void (*closed)(struct at_hub *hub, at_ns now);
    /* Bytes of private state, what a checkpoint must be to hold it, and its check; as those of size
     * rules. Optional: 0. */
    size_t (*state_size)(const struct at_plan *plan);
    uint32_t state_version;
    bool (*valid)(const void *state, const struct at_plan *plan);
    /* True when how many reports it takes depends on the loss. Optional. */
    bool (*follows_loss)(const struct at_plan *plan);
    bool waits_for_all; /* no worker computes while a step is applied */
} at_gather_rule;

typedef struct at_release_rule {
    at_rule rule;
    /* May this idle member begin another round on the newest version? */
    bool (*may_start)(const struct at_hub *hub, const struct at_member *member);
    bool holds; /* gradients are held until the close and summed in worker order: reproducible */
    bool self_starting;   /* workers begin their next round without an order */
    bool looks_at_others; /* one worker's report may let another worker start */
} at_release_rule;

typedef enum at_newer_choice {
    AT_NEWER_FINISH,
    AT_NEWER_ABANDON,
    AT_NEWER_REFRESH
} at_newer_choice;

typedef struct at_newer_rule {
    at_rule         rule;
    at_newer_choice choice;
    bool            interrupts; /* newer parameters act on a round under way */
} at_newer_rule;

/* A gradient of an older version; arrays of `count`. */
typedef struct at_stale_gradient {
    size_t       count;
    double       samples;
    const float *sum;       /* over the samples */
    const float *then;      /* the parameters it was computed with */
    const float *now;       /* the newest */
    float       *corrected; /* to be set: again a sum over the samples */
} at_stale_gradient;

typedef struct at_stale_rule {
    at_rule rule;
    /* Weight of a gradient that is `staleness` versions old; negative: drop it. */
    double (*weight)(const struct at_plan *plan, uint64_t staleness);
    /* True when a worker starts over as soon as its gradient could only be dropped. Optional. */
    bool (*interrupts)(const struct at_plan *plan);
    /* Corrects a gradient that is used, where the hub keeps as many past `versions` of the
     * parameters as this says. Both optional. */
    void (*correct)(const struct at_plan *plan, const at_stale_gradient *gradient);
    uint32_t (*versions)(const struct at_plan *plan);
    bool uses_all; /* with full weight */
} at_stale_rule;

typedef struct at_mix_rule {
    at_rule rule;
    /* Hub processes that update the parameters. Optional: none do. */
    uint32_t (*hubs)(const struct at_plan *plan);
    bool updates_by_workers; /* the workers of a step make its update together */
    bool updates_in_place;   /* each worker updates one shared vector while it computes */
    bool owned_by_workers;   /* each worker has its own parameters, see at_plan_mixing */
} at_mix_rule;

/* One step from the mean change of the parameters over the workers' rounds. `momentum` is the
 * rule's state, zero at first; arrays of `count`. */
typedef struct at_outer_step {
    size_t       count;
    float       *params;
    const float *change;
    float       *momentum; /* unused unless the rule keeps_momentum */
} at_outer_step;

typedef struct at_outer_rule {
    at_rule rule;
    void (*apply)(const struct at_plan *plan, const at_outer_step *step);
    bool keeps_momentum;
} at_outer_rule;

/* Input of a size rule: the run so far, and the step that was just closed. */
typedef struct at_progress {
    uint64_t                steps;                   /* closed; 0 before the rule's first one */
    uint64_t                samples_used;            /* in all of them */
    at_ns                   elapsed;                 /* since the first order */
    uint64_t                samples;                 /* of the step just closed */
    uint32_t                pieces;                  /* its gradients */
    double                  loss_sum;                /* over its samples */
    double                  inverse_mean;            /* mean over its pieces of 1 / samples */
    double                  norm2_step, norm2_piece; /* see AT_EV_APPLIED */
    const struct at_member *member;                  /* plan->workers_max of them */
} at_progress;

typedef struct at_size_rule {
    at_rule rule;
    /* Bytes of private state; the hub reserves and zeroes them. Optional: 0. */
    size_t (*state_size)(const struct at_plan *plan);
    /* To be increased when the layout of the state changes: checkpoints store it. */
    uint32_t state_version;
    /* True when the values of this state, read from a file, are in range and consistent with the
     * run so far; no step was closed just now. */
    bool (*valid)(const void *state, const struct at_plan *plan, const at_progress *so_far);
    /* Called for every report that arrives. Optional. */
    void (*observe)(void *state, const struct at_plan *plan, at_node worker, const at_work *work);
    /* Sets the shares (index 0 .. workers-1) at the start and after each closed step. */
    void (*decide)(void *state, const struct at_plan *plan, at_share *shares,
                   const at_progress *progress);
    bool changes_samples; /* within plan->batch_min .. batch_max; requires fixed work */
    bool keeps_batch;     /* the mean batch of a step does not change in the course of a run */
    bool wants_norms;     /* the world computes the norms of APPLIED */
} at_size_rule;

extern const at_work_rule    at_work_rules[];
extern const at_gather_rule  at_gather_rules[];
extern const at_release_rule at_release_rules[];
extern const at_newer_rule   at_newer_rules[];
extern const at_stale_rule   at_stale_rules[];
extern const at_size_rule    at_size_rules[];
extern const at_mix_rule     at_mix_rules[];
extern const at_outer_rule   at_outer_rules[];

/* ---- gather.c, for the hub and for gather rules ---------------------------------------------- */

/* Bytes of the gather rule's private state. */
size_t at_gather_state_bytes(const struct at_plan *plan);

/* Members without a gradient in the open step that will still contribute one. */
uint32_t at_gather_coming(const struct at_hub *hub);

/* Distinct workers in the open step. */
uint32_t at_gather_present(const struct at_hub *hub);

/* Reports that are missing until K distinct workers are in the step, or all that come. */
uint32_t at_gather_missing_of(const struct at_hub *hub, uint32_t k);

/* ---- gather rule `quorum` (gather_quorum.c), see at_gather_rule ------------------------------ */

int64_t  at_gather_quorum_default(const struct at_plan *plan); /* a majority of the workers */
at_err   at_gather_quorum_check(const struct at_plan *plan, at_fail *fail);
uint32_t at_gather_quorum_missing(const struct at_hub *hub, at_ns now);
at_ns    at_gather_quorum_closes_at(const struct at_hub *hub);
bool     at_gather_quorum_arrived(struct at_hub *hub, at_ns now);
void     at_gather_quorum_closed(struct at_hub *hub, at_ns now);
size_t   at_gather_quorum_state(const struct at_plan *plan);
bool     at_gather_quorum_valid(const void *state, const struct at_plan *plan);

/* ---- size.c, for the hub -------------------------------------------------------------------- */

/* Input for decide(): before the first step of the rule, which follows a switch or begins the run,
 * and after each step, which `applied` ended. */
at_progress at_size_begin(const struct at_hub *hub, at_ns now);
at_progress at_size_progress(const struct at_hub *hub, const at_event *applied);

/* Bytes of the size rule's private state. */
size_t at_size_state_bytes(const struct at_plan *plan);

/* Factor on the learning rate. Under --lr-scale linear: the samples assigned to the present
 * workers over the samples of the first step; inverse: the present workers over those samples;
 * otherwise 1. */
double at_size_lr_factor(const struct at_hub *hub);

/* ---- size.c, for size rules ----------------------------------------------------------------- */

/* The nearest whole number of samples within the plan's limits. */
uint32_t at_size_clamp(const struct at_plan *plan, double samples);

/* Assigns the same number of samples to every worker. */
void at_size_set_all(const struct at_plan *plan, at_share *shares, uint32_t samples);

/* Whole epochs in this many used samples; 0 when the length of an epoch is not known. */
uint64_t at_size_epochs(const struct at_plan *plan, uint64_t samples_used);

/* The arguments `min` and `max` of a rule that changes the number of samples: indices in its row.
 * Settles batch_min and batch_max; `min` is -1 for a rule without one. */
at_err at_size_settle_range(struct at_plan *plan, int min, int max, at_fail *fail);

/* For `check`: the rule changes samples, so work must be fixed. */
at_err at_size_check_fixed(const struct at_plan *plan, at_fail *fail);

#define AT_SIZE_MIN_ARG                                                               \
    {                                                                                 \
        .name = "min", .type = AT_ARG_WHOLE, .min = 1, .max = 1e9, .unit = "samples", \
        .derive = at_size_least, .brief = true                                        \
    }
#define AT_SIZE_MAX_ARG                                                               \
    {                                                                                 \
        .name = "max", .type = AT_ARG_WHOLE, .min = 1, .max = 1e9, .unit = "samples", \
        .derive = at_size_most, .brief = true                                         \
    }
int64_t at_size_least(const struct at_plan *plan); /* a sixteenth of the batch */
int64_t at_size_most(const struct at_plan *plan);  /* 16 x batch */

/* What a rule that decides after each epoch keeps of the current one. */
typedef struct at_size_epoch {
    uint64_t epochs;            /* completed */
    double   loss_sum, samples; /* of the current epoch */
    at_ns    began;             /* its start, since the first order */
} at_size_epoch;

/* A completed epoch: means over its samples. */
typedef struct at_size_epoch_mean {
    double loss, sample_ns;
} at_size_epoch_mean;

/* Adds the step that was just closed. True when it ended an epoch: then *mean is set and the next
 * epoch begins. */
bool at_size_epoch_add(at_size_epoch *epoch, const struct at_plan *plan,
                       const at_progress *progress, at_size_epoch_mean *mean);

/* True when the values, read from a file, are in range, and the epoch does not begin later than
 * now. */
bool at_size_epoch_valid(const at_size_epoch *epoch, const at_progress *so_far);

/* True for a batch within the plan's limits, and for 0: not decided yet. */
bool at_size_batch_valid(const struct at_plan *plan, uint32_t batch);

/* ---- size rule `auto` (size_auto.c), see at_size_rule --------------------------------------- */

size_t at_size_auto_state(const struct at_plan *plan); /* state_size */
bool   at_size_auto_valid(const void *state, const struct at_plan *plan, const at_progress *so_far);
void   at_size_auto_observe(void *state, const struct at_plan *plan, at_node worker,
                            const at_work *work);
void   at_size_auto_decide(void *state, const struct at_plan *plan, at_share *shares,
                           const at_progress *progress);

/* ---- size rule `speed` (size_speed.c), see at_size_rule ------------------------------------- */

at_err at_size_speed_settle(struct at_plan *plan, at_fail *fail); /* rule.settle */
size_t at_size_speed_state(const struct at_plan *plan);           /* state_size */
bool at_size_speed_valid(const void *state, const struct at_plan *plan, const at_progress *so_far);
void at_size_speed_observe(void *state, const struct at_plan *plan, at_node worker,
                           const at_work *work);
void at_size_speed_decide(void *state, const struct at_plan *plan, at_share *shares,
                          const at_progress *progress);

/* ---- size rules `stall` and `loss-target` (size_epochs.c), see at_size_rule ------------------ */

at_err at_size_stall_settle(struct at_plan *plan, at_fail *fail); /* rule.settle */
size_t at_size_stall_state(const struct at_plan *plan);           /* state_size */
bool at_size_stall_valid(const void *state, const struct at_plan *plan, const at_progress *so_far);
void at_size_stall_decide(void *state, const struct at_plan *plan, at_share *shares,
                          const at_progress *progress);

at_err at_size_target_settle(struct at_plan *plan, at_fail *fail); /* rule.settle */
size_t at_size_target_state(const struct at_plan *plan);           /* state_size */
bool at_size_target_valid(const void *state, const struct at_plan *plan, const at_progress *so_far);
void at_size_target_decide(void *state, const struct at_plan *plan, at_share *shares,
                           const at_progress *progress);

#endif
