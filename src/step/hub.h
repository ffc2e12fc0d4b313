/* hub.h - the hub's state machine: who works on what, which gradients make a step, who is gone.
 *
 *     at_hub *hub = at_hub_init(plan, memory, at_hub_size(plan));
 *     for each event: out.count = 0; at_hub_step(hub, &event, &out); do out.actions in order
 *
 * Life of a step under a barrier:
 *
 *     hub ──SEND order──► worker 1..n        compute          worker ──report──► hub
 *     all reports in: APPLY (gradients in worker order) ─► APPLIED ─► next orders
 *
 * The ledger: a worker counts what it draws in its own slot before it computes. The hub books every
 * one of these samples as used (in a step) or dropped (with a reason), per worker; when a worker
 * leaves or is lost, what it drew beyond that is booked as dropped. So at the end, for each worker,
 * drawn = used + dropped, and the two sides were counted independently.
 */
#ifndef AT_STEP_HUB_H
#define AT_STEP_HUB_H

#include "step/event.h"
#include "step/plan.h"

typedef enum at_member_state {
    AT_MEMBER_AWAY,    /* not there (yet, or no more) */
    AT_MEMBER_IDLE,    /* waits for an order */
    AT_MEMBER_WORKING, /* has an order */
    AT_MEMBER_LEAVING, /* was told to leave */
    AT_MEMBER_EVICTED  /* is being ended by the world */
} at_member_state;

typedef struct at_member {
    at_member_state state;
    bool            expected; /* AWAY, but a replacement will join */
    at_node         id;
    uint32_t        incarnation;
    uint64_t        sequence;     /* of the last accepted report, all incarnations */
    uint64_t        rounds_begun; /* all incarnations */
    uint64_t        rounds_ended; /* reports that arrived; a newcomer starts at the slowest one's */
    uint64_t        begun_on;     /* version of the last order, AT_VERSION_NONE before the first */
    uint32_t        pieces_held;  /* gradients of it in the open step */
    at_piece        piece;        /* the held one, under a release rule that holds */
    at_ns           since;        /* of the last order, or of the last report when self-starting */
    at_share        told;         /* the amounts of its last order */
    uint64_t        used, dropped; /* the hub's side of the ledger, in samples */
} at_member;

typedef struct at_target_hit {
    bool     hit;
    uint64_t step;
    at_ns    at; /* of the snapshot */
} at_target_hit;

typedef struct at_hub {
    const at_plan *plan;
    at_member     *member; /* plan->workers of them; member[i] has id i+1 */
    at_share      *share;
    at_piece      *piece;  /* gradients of the open step, or of the one being applied */
    uint32_t       pieces; /* in the open step */
    uint32_t       pieces_max;
    uint32_t       reports_needed; /* before it is worth looking again whether to close */
    void          *size_state;

    uint64_t            version; /* = closed steps */
    uint64_t            samples_used, samples_dropped, samples_open;
    double              loss_open;
    uint64_t            trace;        /* hash over APPLY and DROP so far */
    uint64_t            dealt;        /* position in the common walk of --deal global */
    uint64_t            dealt_closed; /* the same when the last step was closed */
    bool                assembled;    /* everybody who will come has come; nobody starts before */
    bool                applying, evaluating, finished;
    bool                draining; /* a checkpoint is due: nobody starts until everybody has ended */
    bool                resumed;  /* began from an snapshot .. */
    bool                sized;    /* .. that also had the size rule's decisions */
    uint64_t            save_next; /* version at which the next checkpoint is due */
    struct at_snapshot *snapshot;  /* of the last SAVE */
    at_end              end;       /* AT_END_RUNNING until the run winds down */

    at_ns         started_at;   /* START, less what earlier parts of the run took */
    at_ns         clock_before; /* what they took, from their START and from their first order */
    at_ns         elapsed_before;
    at_ns         began_at;      /* first order, less elapsed_before; AT_NEVER before */
    at_ns         applied_at;    /* last APPLY */
    at_ns         ended_at;      /* FINISH */
    at_ns         opened_at;     /* the open step's start */
    at_ns         notice_wait;   /* next notice when the step is open for so long */
    at_ns         lease_at;      /* earliest end of a lease, as last asked of the world */
    at_ns         round_ns_peak; /* longest round lately, slowly forgotten; 0 before the first */
    uint32_t      evicted_since_step;
    uint64_t      eval_samples_next;
    at_target_hit target[AT_TARGETS_MAX];
} at_hub;

/* Bytes of memory a hub for this plan needs. */
size_t at_hub_size(const at_plan *plan);

/* Builds a hub in the caller's zeroed memory, which MUST outlive it and be 64-byte aligned. */
at_hub *at_hub_init(const at_plan *plan, void *memory, size_t size);

/* One event in, actions out. After an APPLY the world MUST deliver APPLIED before anything else. */
void at_hub_step(at_hub *hub, const at_event *event, at_out *out);

/* How many reports can arrive before the hub has anything to do: the world may let it sleep so
 * long. At least 1. */
uint32_t at_hub_patience(const at_hub *hub, at_ns now);

/* The present period of gather rule `every`: as given, or the time limit that was found so far;
 * AT_NEVER while there is none. */
at_ns at_hub_period(const at_hub *hub);

/* The lease a working member has: longer than any honest round. */
at_ns at_hub_lease(const at_hub *hub);

#endif
