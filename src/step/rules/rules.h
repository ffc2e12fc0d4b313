/* rules.h - the six rule families that make up a strategy.
 *
 *   work     how much does a worker compute before it reports?                    rules.c
 *   gather   when does the hub close a step?                                      rules.c
 *   release  when may a worker start again?                                       rules.c
 *   newer    what does a worker do when a newer version appears during its round? rules.c
 *   stale    what happens to a gradient of an older version?                      rules.c
 *   size     how do batch size and time limit change during a run?                size.c, size_*.c
 *
 * A new rule is one small function and one row in its family's table. Each table ends with a row
 * whose name is NULL. `number` names what may follow the colon; NULL: nothing may.
 */
#ifndef AT_STEP_RULES_RULES_H
#define AT_STEP_RULES_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"
#include "base/time.h"
#include "step/event.h"

struct at_plan;
struct at_hub;
struct at_member;

/* What the size rule assigns to one worker for its next round. */
typedef struct at_share {
    uint32_t samples;
    at_ns    time_limit; /* AT_NEVER: not known yet, work by samples */
} at_share;

typedef struct at_work_rule {
    const char *name, *summary, *number;
    /* Fills samples_max and time_limit of an order from the worker's share. */
    void (*amount)(const struct at_plan *plan, const at_share *share, at_order *order);
    bool timed;
} at_work_rule;

typedef struct at_gather_rule {
    const char *name, *summary, *number;
    /* Number of reports still needed before the open step can close; 0: it closes now. */
    uint32_t (*missing)(const struct at_hub *hub, at_ns now);
    bool counts_k, counts_time;
    bool waits_for_all; /* no worker computes while a step is applied */
} at_gather_rule;

typedef struct at_release_rule {
    const char *name, *summary, *number;
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
    const char     *name, *summary, *number;
    at_newer_choice choice;
} at_newer_rule;

typedef struct at_stale_rule {
    const char *name, *summary, *number;
    /* Weight of a gradient that is `staleness` versions old; negative: drop it. */
    double (*weight)(uint64_t staleness);
} at_stale_rule;

/* Input of a size rule: the run so far, and the step that was just closed. */
typedef struct at_progress {
    uint64_t                steps;        /* closed; 0 at the start, when nothing else is known */
    uint64_t                samples_used; /* in all of them */
    at_ns                   elapsed;      /* since the first order */
    uint64_t                samples;      /* of the step just closed */
    uint32_t                pieces;       /* its gradients */
    double                  loss_sum;     /* over its samples */
    double                  inverse_mean; /* mean over its pieces of 1 / samples */
    double                  norm2_step, norm2_piece; /* see AT_EV_APPLIED */
    const struct at_member *member;                  /* plan->workers_max of them */
} at_progress;

typedef struct at_size_rule {
    const char *name, *summary, *number;
    /* Parses the text after the colon (NULL: none) into the plan. Optional. */
    at_err (*parse)(const char *number, struct at_plan *plan, at_fail *fail);
    /* Appends the numbers in the form that `parse` accepts. Optional. */
    void (*format)(const struct at_plan *plan, at_text *text);
    /* Bytes of private state; the hub reserves and zeroes them. Optional: 0. */
    size_t (*state_size)(const struct at_plan *plan);
    /* To be increased when the layout of the state changes: checkpoints store it. */
    uint32_t state_version;
    /* True when the values of this state, read from a file, are in range and consistent. */
    bool (*valid)(const void *state, const struct at_plan *plan, uint64_t samples_used);
    /* Called for every report that arrives. Optional. */
    void (*observe)(void *state, const struct at_plan *plan, at_node worker, const at_work *work);
    /* Sets the shares (index 0 .. workers-1) at the start and after each closed step. */
    void (*decide)(void *state, const struct at_plan *plan, at_share *shares,
                   const at_progress *progress);
    bool finds_time_limit;
    bool changes_samples; /* within plan->batch_min .. batch_max; requires fixed work */
    bool by_factor;       /* by plan->size_factor every plan->size_epochs */
    bool balances;        /* assigns unequal amounts so that all workers finish together */
    bool wants_norms;     /* the world computes the norms of APPLIED */
} at_size_rule;

extern const at_work_rule    at_work_rules[];
extern const at_gather_rule  at_gather_rules[];
extern const at_release_rule at_release_rules[];
extern const at_newer_rule   at_newer_rules[];
extern const at_stale_rule   at_stale_rules[];
extern const at_size_rule    at_size_rules[];

/* ---- size.c, for the hub -------------------------------------------------------------------- */

/* Input for decide(). `applied` is the event that ended the step, NULL at the start. */
at_progress at_size_progress(const struct at_hub *hub, const at_event *applied);

/* Bytes of the size rule's private state. */
size_t at_size_state_bytes(const struct at_plan *plan);

/* Factor on the learning rate. Under --lr-scale linear: the samples assigned to the present
 * workers over the samples of the first step; otherwise 1. */
double at_size_lr_factor(const struct at_hub *hub);

/* ---- size.c, for size rules ----------------------------------------------------------------- */

/* The nearest whole number of samples within the plan's limits. */
uint32_t at_size_clamp(const struct at_plan *plan, double samples);

/* Assigns the same number of samples to every worker. */
void at_size_set_all(const struct at_plan *plan, at_share *shares, uint32_t samples);

/* Whole epochs in this many used samples; 0 when the length of an epoch is not known. */
uint64_t at_size_epochs(const struct at_plan *plan, uint64_t samples_used);

/* True for a batch within the plan's limits, and for 0: not decided yet. */
bool at_size_batch_valid(const struct at_plan *plan, uint32_t batch);

/* ---- size rule `auto` (size_auto.c), see at_size_rule --------------------------------------- */

size_t at_size_auto_state(const struct at_plan *plan); /* state_size */
bool   at_size_auto_valid(const void *state, const struct at_plan *plan, uint64_t samples_used);
void   at_size_auto_observe(void *state, const struct at_plan *plan, at_node worker,
                            const at_work *work);
void   at_size_auto_decide(void *state, const struct at_plan *plan, at_share *shares,
                           const at_progress *progress);

/* ---- size rule `speed` (size_speed.c), see at_size_rule ------------------------------------- */

at_err at_size_speed_parse(const char *number, struct at_plan *plan,
                           at_fail *fail); /* epoch|step */
void   at_size_speed_format(const struct at_plan *plan, at_text *text);
size_t at_size_speed_state(const struct at_plan *plan);
bool   at_size_speed_valid(const void *state, const struct at_plan *plan, uint64_t samples_used);
void   at_size_speed_observe(void *state, const struct at_plan *plan, at_node worker,
                             const at_work *work);
void   at_size_speed_decide(void *state, const struct at_plan *plan, at_share *shares,
                            const at_progress *progress);

#endif
