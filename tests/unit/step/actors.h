/* actors.h - the workers of step_stage.h: real machines, made-up processes around them.
 *
 * Workers count what they draw before they compute it, and nobody but the hub looks at the hub's
 * books, so the two sides of the ledger are independent.
 */
#ifndef AT_TESTS_UNIT_STEP_ACTORS_H
#define AT_TESTS_UNIT_STEP_ACTORS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "step/cut.h"
#include "step/hub.h"
#include "step/worker.h"

enum { STAGE_WORKERS = 16, STAGE_PENDING = 4096, STAGE_EVENTS_MAX = 2000000 };

/* One worker: a machine, and the process around it. */
typedef struct actor {
    at_worker machine;
    at_cut    cut;
    at_work   work;         /* of the round that is being computed */
    at_ns     began;        /* that round */
    at_ns     deadline;     /* of that round */
    bool      alive, void_; /* void_: the computation was told to abandon */
    uint32_t  micro;        /* samples of the micro-batch under way */
    uint32_t  life;         /* counts deaths: what was meant for an earlier life does not arrive */
    uint32_t  incarnation;
    uint64_t  drawn;             /* all incarnations */
    uint64_t  installed;         /* version of its parameters */
    at_ns     heard_at, told_at; /* arrival of its last report, and of the last order to it */
    bool      deaf;              /* does not hear that it should leave */
    bool      sent_waits;        /* both slots hold reports that the hub has not taken */
    uint32_t  lives;             /* after so many lives .. */
    uint32_t  stillborn;         /* .. so many die before they join, and then no more come */
    at_ns     frozen_until;
    at_ns     back_after; /* when it is evicted a replacement joins so much later; AT_NEVER: none */
    at_ns     sample_ns;  /* its speed */
} actor;

typedef enum cue_kind {
    CUE_HUB,
    CUE_WORKER,
    CUE_MICRO,
    CUE_TIMER,
    CUE_KILL,
    CUE_BACK,
    CUE_FREEZE
} cue_kind;

/* Something that will happen. */
typedef struct cue {
    at_ns    at;
    uint64_t birth;
    cue_kind kind;
    at_node  worker;
    uint32_t life;
    at_ns    span;  /* KILL: until the replacement joins; FREEZE: how long */
    at_event event; /* HUB, WORKER, TIMER */
} cue;

typedef struct stage {
    at_plan       plan;
    at_hub       *hub;
    void         *memory;
    at_out        out;
    actor         actor[STAGE_WORKERS + 1]; /* by node; 0 is nobody */
    cue           pending[STAGE_PENDING];
    size_t        count;
    uint64_t      births, events;
    at_ns         now, timer_at[AT_TIMER_COUNT];
    at_event      inbox[STAGE_PENDING]; /* reports that wait for a sleeping hub */
    uint32_t      inbox_count, patience;
    bool          finished, stalled;
    at_end        end;
    at_target_hit target[AT_TARGETS_MAX]; /* what the hub knew of its targets in the end */

    /* What the director may change before it runs. */
    at_ns    latency;     /* of every message */
    at_ns    send_ns;     /* from SEND to SENT */
    at_ns    newer_ns;    /* from APPLY to NEWER; AT_NEVER: nobody is told */
    at_ns    eval_ns;     /* of one evaluation */
    uint64_t nan_version; /* gradients of this version have no finite loss */
    bool     echo;        /* every report arrives twice */
    bool     patient;     /* the hub sleeps as long as it said it could */
    bool     rumours;     /* workers are told of versions they have already */
    at_ns (*sleep)(const struct stage *s, at_node worker, uint64_t round);
    at_ns (*delay)(struct stage *s, at_ns mean); /* draws a message's delay; NULL: the mean */
    /* Sees every action (worker 0: the hub's) and every event before the machines do. */
    void (*saw_action)(struct stage *s, at_node node, const at_action *action);
    void (*saw_event)(struct stage *s, at_node node, const at_event *event);
    void    *watcher;
    at_rng   rng;
    uint64_t seed; /* of the sleeps */
} stage;

/* ---- cues ----------------------------------------------------------------------------------- */

static inline cue *stage_cue(stage *s, at_ns at, cue_kind kind, at_node worker)
{
    assert_true(s->count < STAGE_PENDING);
    assert_true(at >= s->now);
    cue *c = &s->pending[s->count++];
    *c = (cue){.at = at,
               .birth = s->births++,
               .kind = kind,
               .worker = worker,
               .life = s->actor[worker].life};
    return c;
}

static inline void stage_tell_hub(stage *s, at_ns at, at_event event)
{
    stage_cue(s, at, CUE_HUB, 0)->event = event;
}

static inline void stage_kill(stage *s, at_ns at, at_node worker, at_ns back_after)
{
    stage_cue(s, at, CUE_KILL, worker)->span = back_after;
}

static inline void stage_freeze(stage *s, at_ns at, at_node worker, at_ns span)
{
    stage_cue(s, at, CUE_FREEZE, worker)->span = span;
}

static inline void stage_stop(stage *s, at_ns at)
{
    stage_tell_hub(s, at, (at_event){.kind = AT_EV_STOP});
}

static inline at_ns stage_delay(stage *s, at_ns mean)
{
    return s->delay ? s->delay(s, mean) : mean;
}

/* When a message sent now arrives: messages between two nodes do not overtake each other. */
static inline at_ns stage_after(stage *s, at_ns last)
{
    at_ns at = s->now + stage_delay(s, s->latency);
    return at > last ? at : last;
}

/* ---- workers -------------------------------------------------------------------------------- */

static inline void stage_feed_worker(stage *s, at_node id, at_event event);

static inline void stage_gone(stage *s, at_node id, at_ns back_after)
{
    actor *a = &s->actor[id];
    a->alive = false;
    a->life++;
    a->sent_waits = false;
    at_event lost = {.kind = AT_EV_LOST, .worker = id};
    lost.as.lost.drawn = a->drawn;
    lost.as.lost.returns = back_after != AT_NEVER;
    stage_tell_hub(s, s->now, lost);
    if (back_after != AT_NEVER) stage_cue(s, s->now + back_after, CUE_BACK, id)->span = back_after;
}

static inline void stage_join(stage *s, at_node id)
{
    actor *a = &s->actor[id];
    assert_false(a->alive);
    a->alive = true;
    a->frozen_until = 0;
    a->cut = (at_cut){0};
    at_worker_init(&a->machine, &s->plan, id, ++a->incarnation, 2, s->hub->member[id - 1].sequence);
    at_event joined = {.kind = AT_EV_JOINED, .worker = id};
    joined.as.joined.incarnation = a->incarnation;
    stage_tell_hub(s, s->now, joined);
}

static inline void stage_computed(stage *s, at_node id)
{
    actor *a = &s->actor[id];
    a->work.abandoned = a->void_;
    a->work.samples = a->cut.done;
    a->work.capped = a->cut.done == a->cut.samples_max;
    a->work.compute_ns = s->now - a->began - a->work.sleep_ns;
    a->work.overshoot_ns = a->deadline == AT_NEVER ? 0 : s->now - a->deadline;
    bool broken = a->work.version == s->nan_version;
    a->work.loss_sum = broken ? (double)NAN : (double)a->work.samples;
    at_event computed = {.kind = AT_EV_COMPUTED, .now = s->now};
    computed.as.work = a->work;
    stage_feed_worker(s, id, computed);
}

static inline void stage_next_micro(stage *s, at_node id, at_ns from)
{
    actor *a = &s->actor[id];
    a->micro = a->void_ ? 0 : at_cut_next(&a->cut, from);
    if (a->micro == 0) {
        stage_computed(s, id);
        return;
    }
    a->drawn += a->micro;
    stage_cue(s, from + a->micro * a->sample_ns, CUE_MICRO, id);
}

static inline void stage_compute(stage *s, at_node id, const at_action *action)
{
    actor          *a = &s->actor[id];
    const at_order *order = &action->as.compute.order;
    at_ns           sleep_ns = s->sleep ? s->sleep(s, id, order->round) : 0;
    a->began = s->now;
    a->deadline = action->as.compute.deadline;
    a->void_ = false;
    a->work = (at_work){.round = order->round, .version = a->installed, .sleep_ns = sleep_ns};
    at_cut_begin(&a->cut, order, a->deadline, s->plan.micro_batch, s->plan.cut_after);
    stage_next_micro(s, id, s->now + sleep_ns);
}

static inline void stage_send(stage *s, at_node id, const at_action *action)
{
    at_event message = {.kind = AT_EV_MESSAGE, .worker = id};
    message.as.report = action->as.report;
    actor *a = &s->actor[id];
    a->heard_at = stage_after(s, a->heard_at);
    stage_tell_hub(s, a->heard_at, message);
    if (s->echo) stage_tell_hub(s, stage_after(s, a->heard_at), message);
    cue *sent = stage_cue(s, s->now + stage_delay(s, s->send_ns), CUE_WORKER, id);
    sent->event = (at_event){.kind = AT_EV_SENT};
}

static inline void stage_do_worker(stage *s, at_node id, const at_action *action)
{
    switch (action->kind) {
    case AT_ACT_INSTALL: s->actor[id].installed = s->hub->version; break;
    case AT_ACT_COMPUTE: stage_compute(s, id, action); break;
    case AT_ACT_ABANDON: s->actor[id].void_ = true; break;
    case AT_ACT_SEND: stage_send(s, id, action); break;
    case AT_ACT_FINISH: stage_gone(s, id, AT_NEVER); break;
    case AT_ACT_TIMER:
    case AT_ACT_ADD:
    case AT_ACT_APPLY:
    case AT_ACT_DROP:
    case AT_ACT_EVALUATE:
    case AT_ACT_SAVE:
    case AT_ACT_EVICT:
    case AT_ACT_NOTICE: fail_msg("a worker did what only the hub may"); break;
    }
}

static inline void stage_feed_worker(stage *s, at_node id, at_event event)
{
    event.now = s->now;
    if (s->saw_event) s->saw_event(s, id, &event);
    at_action actions[8];
    at_out    out = {.actions = actions, .size = sizeof actions / sizeof *actions};
    at_worker_step(&s->actor[id].machine, &event, &out);
    assert_true(out.count <= 3);
    for (size_t i = 0; i < out.count; i++) {
        if (s->saw_action) s->saw_action(s, id, &actions[i]);
        stage_do_worker(s, id, &actions[i]);
    }
}

#endif
