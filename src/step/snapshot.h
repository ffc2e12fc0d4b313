/* snapshot.h - what a checkpoint keeps of the hub: the run as of its last closed step.
 *
 * Rounds that are under way or wait in the open step are not part of it. They are undone: whoever
 * goes on from the snapshot computes them again, from the same samples and with the same luck.
 * So an snapshot can be taken at any moment, and what it says adds up: a worker's position in
 * its walk is used + dropped.
 *
 *     SAVE carries an snapshot ─► file ─► at_snapshot_restore(fresh hub, snapshot) ─► START
 */
#ifndef AT_STEP_SNAPSHOT_H
#define AT_STEP_SNAPSHOT_H

#include "step/hub.h"

typedef struct at_member_snapshot {
    uint64_t rounds;       /* that it was given and that count */
    uint64_t rounds_ended; /* as release rule `bound` counts them */
    uint64_t sequence;     /* of its last report that counts */
    uint64_t used, dropped;
    at_share share;
    double   sample_ns; /* what the worker has learnt about its speed; 0: not known to the world */
} at_member_snapshot;

typedef struct at_snapshot {
    uint64_t version;
    uint64_t samples_used, samples_dropped;
    uint64_t trace;
    uint64_t dealt;
    uint64_t eval_samples_next;
    at_ns    clock;   /* since START, over all parts of the run */
    at_ns    elapsed; /* since the first order; 0 before */
    /* The network of virtual time: for how long its link is still busy, and messages so far. */
    at_ns               in_busy, out_busy;
    uint64_t            messages;
    at_target_hit       target[AT_TARGETS_MAX]; /* `at` is since the first order */
    uint32_t            workers;
    at_member_snapshot *member;     /* `workers` of them */
    void               *size_state; /* of the size rule, size_bytes of them */
    size_t              size_bytes;
} at_snapshot;

/* Bytes of memory behind an at_snapshot for this plan. */
size_t at_snapshot_size(const at_plan *plan);

/* Lays an snapshot out in the caller's zeroed memory. */
void at_snapshot_init(at_snapshot *snapshot, const at_plan *plan, void *memory, size_t size);

/* Fills the snapshot from a hub. */
void at_snapshot_take(at_snapshot *snapshot, const at_hub *hub, at_ns now);

/* Can this snapshot, which comes from a file, be of a run with this plan? */
bool at_snapshot_sound(const at_snapshot *snapshot, const at_plan *plan);

/* Puts a fresh hub where the snapshot was taken; START follows. With another number of workers,
 * those that both have go on where they were, new ones begin at the slowest one's round, and the
 * size rule begins anew. */
void at_snapshot_restore(at_hub *hub, const at_snapshot *snapshot);

#endif
