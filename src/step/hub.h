/* hub.h - the hub's state machine: assigns rounds, closes steps, tracks the workers.
 *
 *     at_hub *hub = at_hub_init(plan, memory, at_hub_size(plan));
 *     for each event: out.count = 0; at_hub_step(hub, &event, &out); perform out.actions in order
 *
 * A step under a barrier:
 *
 *     hub ──SEND order──► worker 1..n        compute          worker ──report──► hub
 *     all reports in: APPLY (gradients in worker order) ─► APPLIED ─► next orders
 *
 * Sample accounting: a worker counts the samples it draws in its own slot before it computes. The
 * hub counts each of them, per worker, as used (in a step) or dropped (with a reason); when a
 * worker leaves or is lost, the rest of what it drew counts as dropped. At the end
 * drawn = used + dropped holds for each worker, with both sides counted independently.
 *
 * Too few workers (--workers-min): the run holds. Nobody starts a round, and behind a barrier the
 * open step is not closed either. Who joins then takes part in it, and a lost worker's round is
 * done again by its successor, with the same number and the same samples. So with workers_min =
 * workers a step is made of the same gradients, whoever is lost meanwhile.
 */
#ifndef AT_STEP_HUB_H
#define AT_STEP_HUB_H

#include "step/event.h"
#include "step/plan.h"

typedef enum at_member_state {
    AT_MEMBER_AWAY,    /* not joined yet, or gone */
    AT_MEMBER_IDLE,    /* waiting for an order */
    AT_MEMBER_WORKING, /* has an order */
    AT_MEMBER_LEAVING, /* ordered to leave */
    AT_MEMBER_EVICTED  /* being terminated by the world */
} at_member_state;

typedef struct at_member {
    at_member_state state;
    bool            expected; /* AWAY, but a replacement will join */
    at_node         id;
    uint32_t        incarnation;
    uint64_t        sequence;      /* of the last accepted report, all incarnations */
    uint64_t        rounds_begun;  /* all incarnations */
    uint64_t        rounds_ended;  /* reports so far; late joiners start at the slowest worker's */
    uint64_t        begun_on;      /* version of the last order, AT_VERSION_NONE before the first */
    uint32_t        pieces_held;   /* its gradients in the open step */
    uint32_t        outdated;      /* rounds in a row with older parameters than it was sent */
    at_ns           since;         /* time of the last order (self-starting: report) */
    at_ns           reported_at;   /* time of its last report */
    at_share        ordered;       /* the amounts of its last order */
    uint64_t        used, dropped; /* samples, as the hub counts them */
    uint64_t        redrawn;       /* of those dropped, samples of rounds that are done again: its
                                      position in its sample order is what it drew less these */
    uint64_t        dealt_at;      /* position of the last order under --deal global .. */
    uint64_t        redo_on;       /* .. which is used again on this version; AT_VERSION_NONE */
} at_member;

typedef struct at_target_hit {
    bool     hit;
    uint64_t step;
    at_ns    at; /* of the evaluated snapshot, since the first order over all parts of the run */
} at_target_hit;

typedef struct at_hub {
    const at_plan *plan;
    at_member     *member; /* plan->workers_max of them; member[i] has id i+1 */
    at_share      *share;
    at_piece      *piece;  /* gradients of the step being applied, in order, and of the open one:
                              under a release rule that holds that of member[i] is piece[i] */
    uint32_t       pieces; /* in the open step */
    uint32_t       pieces_max;
    uint64_t       nonfinite_row;  /* reports in a row that were dropped as not finite */
    uint32_t       reports_needed; /* before the gather rule is asked again whether to close */
    void          *size_state, *gather_state;

    uint64_t            version; /* number of closed steps */
    uint64_t            samples_used, samples_dropped, samples_open;
    double              loss_open;
    uint64_t            trace;        /* hash over APPLY and DROP so far */
    uint64_t            dealt;        /* position in the common sample order of --deal global */
    uint64_t            dealt_closed; /* the same, when the last step was closed */
    uint32_t            present;      /* members that are not away */
    uint32_t            expected;     /* members that are away but will join */
    bool                assembled;    /* all expected workers have joined; none starts before */
    bool                applying, evaluating, finished;
    bool                draining;    /* a checkpoint is due: no worker starts until all are idle */
    bool                switching;   /* the next plan is due: the same */
    bool                switched;    /* `plan` is the one that followed the first .. */
    uint64_t            switched_at; /* .. from this version on */
    bool                resumed;     /* started from a snapshot .. */
    bool                size_restored; /* .. including the state of the size rule */
    uint64_t            save_next;     /* version at which the next checkpoint is due */
    struct at_snapshot *snapshot;      /* filled by the last SAVE */
    void               *snapshot_memory;
    size_t              snapshot_size;
    at_end              end; /* AT_END_RUNNING until the run ends */

    at_ns started_at;     /* START, less the duration of earlier parts of the run */
    at_ns clock_before;   /* duration of earlier parts, from START */
    at_ns elapsed_before; /* the same, from their first order */
    at_ns began_at;       /* first order, less elapsed_before; AT_NEVER before */
    at_ns applied_at;     /* last APPLY */
    at_ns ended_at;       /* FINISH */
    at_ns apply_ns;       /* duration of the last update */
    at_ns opened_at;      /* the open step's start */
    struct {
        at_ns reached_at;        /* K workers were in the open step; AT_NEVER: not yet */
        at_ns closes_at;         /* AT_NEVER: when all are there */
        bool  looks;             /* it waits for longer than it should, to learn */
    } quorum;                    /* of gather rule `quorum` */
    at_ns         notice_wait;   /* next notice when the step has been open this long */
    at_ns         lease_at;      /* when the lease timer expires; AT_NEVER: not set */
    at_ns         round_ns_peak; /* longest recent round, decaying; 0 before the first */
    uint32_t      evicted_since_step;
    uint64_t      eval_samples_next;
    uint64_t      evaluations_due, evaluations_skipped; /* since START */
    at_target_hit target[AT_TARGETS_MAX];
} at_hub;

/* Bytes of memory a hub for this plan needs. */
size_t at_hub_size(const at_plan *plan);

/* Builds a hub in the caller's zeroed memory, which MUST outlive it and be 64-byte aligned. */
at_hub *at_hub_init(const at_plan *plan, void *memory, size_t size);

/* Goes on under plan->then; no worker works, and no step is open. For the hub itself, and for a
 * snapshot that was taken after a switch. */
void at_hub_switch(at_hub *hub);

/* One event in, actions out. After an APPLY the world MUST deliver APPLIED before anything else. */
void at_hub_step(at_hub *hub, const at_event *event, at_out *out);

/* Samples of this member in the open step. */
uint64_t at_hub_samples_held(const at_hub *hub, const at_member *member);

/* How long a worker that gets an order now may be silent. */
at_ns at_hub_lease(const at_hub *hub);

/* Why this worker, which is being evicted, has to go, as part of a sentence. */
const char *at_hub_evicted_text(const at_hub *hub, at_node worker);

/* Number of reports after which the hub has something to do, at least 1. Until then the world may
 * let it sleep. */
uint32_t at_hub_wake_after(const at_hub *hub, at_ns now);

#endif
