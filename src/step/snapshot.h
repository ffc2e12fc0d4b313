/* snapshot.h - the hub state that a checkpoint keeps: the run as of its last closed step.
 *
 * Rounds in progress or waiting in the open step are not part of it. A resumed run computes them
 * again, from the same samples and with the same random draws. A snapshot can therefore be taken at
 * any moment and is consistent: a worker's position in its sample order is used + dropped -
 * redrawn.
 *
 *     SAVE carries a snapshot ─► file ─► at_snapshot_restore(fresh hub, snapshot) ─► START
 */
#ifndef AT_STEP_SNAPSHOT_H
#define AT_STEP_SNAPSHOT_H

#include "step/hub.h"

typedef struct at_member_snapshot {
    uint64_t rounds;       /* ordered and counted */
    uint64_t rounds_ended; /* as release rule `bound` counts them */
    uint64_t sequence;     /* of its last counted report */
    uint64_t used, dropped;
    uint64_t redrawn; /* see at_member */
    at_share share;
    double   sample_ns; /* the worker's own estimate of its speed; 0: unknown to the world */
} at_member_snapshot;

/* The private state of a rule, as this version of the rule has it. */
enum { AT_STATE_RULE_SIZE = 24 };
typedef struct at_rule_state {
    char     rule[AT_STATE_RULE_SIZE]; /* its name */
    uint32_t version;                  /* of the layout */
    size_t   size;                     /* bytes */
    void    *bytes;
} at_rule_state;

typedef struct at_snapshot {
    uint64_t version;
    uint64_t samples_used, samples_dropped;
    uint64_t trace;
    uint64_t dealt;
    uint64_t eval_samples_next;
    at_ns    clock;   /* time since START, over all parts of the run */
    at_ns    elapsed; /* time since the first order; 0 before */
    /* The simulated network: how long the hub's link is still busy, and messages so far. */
    at_ns               in_busy, out_busy;
    uint64_t            messages;
    uint64_t            to_workers_bytes, to_hub_bytes; /* of vectors; 0: unknown to the world */
    bool                switched;                       /* under plan->then .. */
    uint64_t            switched_at;                    /* .. since this version */
    at_target_hit       target[AT_TARGETS_MAX];
    uint32_t            workers;
    at_member_snapshot *member; /* `workers` of them */
    at_rule_state       size, gather;
} at_snapshot;

/* Bytes of memory behind an at_snapshot for this plan. */
size_t at_snapshot_size(const at_plan *plan);

/* Lays a snapshot out in the caller's zeroed memory. */
void at_snapshot_init(at_snapshot *snapshot, const at_plan *plan, void *memory, size_t size);

/* Fills the snapshot from a hub. */
void at_snapshot_take(at_snapshot *snapshot, const at_hub *hub, at_ns now);

/* True when the values of a snapshot read from a file are in range and consistent with the plan. */
bool at_snapshot_valid(const at_snapshot *snapshot, const at_plan *plan);

/* Restores a fresh hub to the snapshot; START follows. If the number of workers differs, workers in
 * both resume where they were, new ones begin at the slowest worker's round, and the size rule
 * starts over. */
void at_snapshot_restore(at_hub *hub, const at_snapshot *snapshot);

#endif
