/* rules.h - the six families. A new rule is one small function and one row in its family's file.
 *
 *   work     how much does a worker compute before it reports?      work.c
 *   gather   when does the hub close a step?                        gather.c
 *   release  when may a worker start again?                         release.c
 *   newer    a newer version appears while a worker computes        newer.c
 *   stale    what becomes of a gradient of an older version?        stale.c
 *   size     how do the amounts change over time?                   size.c, size_*.c
 *
 * Each table ends with a row whose name is NULL. `number` names what may follow the colon, NULL
 * when nothing may.
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

/* What the size rule grants one worker for its next round. */
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
    /* How many reports MUST still come before the open step can close; 0: it closes now. */
    uint32_t (*missing)(const struct at_hub *hub, at_ns now);
    bool counts_k, counts_time;
    bool waits_for_all; /* nobody computes while a step is applied */
} at_gather_rule;

typedef struct at_release_rule {
    const char *name, *summary, *number;
    /* May this idle member begin another round on the newest version? */
    bool (*may_start)(const struct at_hub *hub, const struct at_member *member);
    bool holds; /* gradients wait for the close and are summed in worker order: same bits always */
    bool self_starting;   /* workers begin their next round without an order */
    bool looks_at_others; /* what one worker reports may let another one start */
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

/* What a size rule decides on: the run so far, and the step that was just closed. */
typedef struct at_progress {
    uint64_t                steps;        /* closed; 0 at the start, when nothing else is known */
    uint64_t                samples_used; /* in all of them */
    at_ns                   elapsed;      /* since the first order */
    uint64_t                samples;      /* of the step just closed */
    uint32_t                pieces;       /* its gradients */
    double                  loss_sum;     /* over its samples */
    double                  inverse_mean; /* mean over its pieces of 1 / samples */
    double                  norm2_step, norm2_piece; /* see AT_EV_APPLIED */
    const struct at_member *member;                  /* plan->workers of them: who is there */
} at_progress;

typedef struct at_size_rule {
    const char *name, *summary, *number;
    /* Reads what follows the colon (NULL: nothing does) into the plan. Optional. */
    at_err (*read)(const char *number, struct at_plan *plan, at_fail *fail);
    /* Adds the numbers in the form that `read` takes. Optional. */
    void (*tell)(const struct at_plan *plan, at_text *text);
    /* Bytes of private state; the hub reserves and zeroes them. Optional: 0. */
    size_t (*state_size)(const struct at_plan *plan);
    /* Could this state, which comes from a file, be ours after so many samples? Optional. */
    bool (*sound)(const void *state, const struct at_plan *plan, uint64_t samples_used);
    /* Sees every report that arrived. Optional. */
    void (*observe)(void *state, const struct at_plan *plan, at_node worker, const at_work *work);
    /* Sets the shares (index 0 .. workers-1) at the start and after each closed step. */
    void (*decide)(void *state, const struct at_plan *plan, at_share *shares,
                   const at_progress *progress);
    bool finds_time_limit;
    bool changes_samples; /* within plan->batch_min .. batch_max; needs fixed work */
    bool by_factor;       /* by plan->size_factor every plan->size_epochs */
    bool balances;        /* gives workers different amounts, so that all end together */
    bool wants_norms;     /* the world computes the norms of APPLIED */
} at_size_rule;

extern const at_work_rule    at_work_rules[];
extern const at_gather_rule  at_gather_rules[];
extern const at_release_rule at_release_rules[];
extern const at_newer_rule   at_newer_rules[];
extern const at_stale_rule   at_stale_rules[];
extern const at_size_rule    at_size_rules[];

#endif
