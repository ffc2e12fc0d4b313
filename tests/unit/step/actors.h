/* actors.h - the workers of scenario_stage.h: real state machines, simulated processes around them.
 *
 * Workers count their samples before they compute them, and only the hub reads its own counts, so
 * the two sides of the sample accounting are independent.
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
#include "step/hub.h"
#include "step/switch.h"
#include "step/worker.h"

enum { STAGE_WORKERS = 16, STAGE_PENDING = 4096, STAGE_EVENTS_MAX = 2000000 };

/* One worker: a machine, and the process around it. */
typedef struct actor {
    at_worker machine;
    bool      alive;
    uint32_t  life; /* counts deaths: messages to an earlier process do not arrive */
    uint32_t  incarnation;
    uint64_t  drawn;                 /* all incarnations */
    uint64_t  installed;             /* version of its parameters */
    at_ns     heard_at, notified_at; /* arrival of its last report, and of the last order to it */
    bool      deaf;                  /* ignores the order to leave */
    bool      sent_waits;            /* both slots hold reports that the hub has not taken */
    uint32_t  lives;                 /* after this many processes .. */
    uint32_t  stillborn;             /* .. this many die before they join; then none follow */
    at_ns     frozen_until;
    at_ns     back_after; /* from its eviction until a replacement joins; AT_NEVER: none */
    at_ns     sample_ns;  /* its speed */
} actor;

typedef enum cue_kind {
    CUE_HUB,
    CUE_WORKER,
    CUE_AWAKE,
    CUE_MICRO,
    CUE_TIMER,
    CUE_KILL,
    CUE_BACK,
    CUE_FREEZE
} cue_kind;

/* A scheduled event. */
typedef struct cue {
    at_ns           at;
    uint64_t        birth;
    cue_kind        kind;
    at_node         worker;
    uint32_t        life;
    at_ns           span;      /* KILL: until the replacement joins; FREEZE: how long */
    uint64_t        round;     /* AWAKE: of the sleep */
    at_event        event;     /* HUB, TIMER */
    at_worker_event to_worker; /* WORKER */
    uint64_t        version;   /* WORKER: of the newer parameters */
} cue;

typedef struct stage {
    at_plan       plan;
    at_plan       then; /* that of plan.then */
    at_hub       *hub;
    void         *memory;
    at_out        out;
    actor         actor[STAGE_WORKERS + 1]; /* by node; 0 is unused */
    cue           pending[STAGE_PENDING];
    size_t        count;
    uint64_t      births, events;
    at_ns         now, timer_at[AT_TIMER_COUNT];
    at_event      inbox[STAGE_PENDING]; /* reports that wait for a sleeping hub */
    uint32_t      inbox_count, patience;
    bool          finished, stalled;
    at_end        end;
    at_target_hit target[AT_TARGETS_MAX]; /* the targets reached, as the hub has them at the end */

    /* Settings that a test may change before the run. */
    at_ns    latency;     /* of every message */
    at_ns    send_ns;     /* from SEND to SENT */
    at_ns    newer_ns;    /* from APPLY to NEWER; AT_NEVER: no worker is notified */
    at_ns    eval_ns;     /* of one evaluation */
    uint64_t nan_version; /* gradients of this version have no finite loss */
    at_node  nan_worker;  /* only those of this worker; 0: of all */
    at_ns    lags_until;  /* before then, gradients are of version 0, whatever was ordered */
    double   halvings;    /* of the loss of a sample, which is 1 at first, per version */
    bool     echo;        /* every report arrives twice */
    bool     patient;     /* the hub sleeps until at_hub_wake_after reports are in */
    bool     old_notices; /* workers are notified of versions they already have */
    at_ns (*sleep)(const struct stage *s, at_node worker, uint64_t round);
    at_ns (*delay)(struct stage *s, at_ns mean); /* draws a message's delay; NULL: the mean */
    /* Callbacks for every action, and for every event before the hub gets it. */
    void (*saw_action)(struct stage *s, const at_action *action);
    void (*saw_worker)(struct stage *s, at_node worker, const at_worker_action *action);
    void (*saw_event)(struct stage *s, const at_event *event);
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

static inline void stage_send_hub(stage *s, at_ns at, at_event event)
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
    stage_send_hub(s, at, (at_event){.kind = AT_EV_STOP});
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

static inline void stage_gone(stage *s, at_node id, at_ns back_after)
{
    actor *a = &s->actor[id];
    a->alive = false;
    a->life++;
    a->sent_waits = false;
    at_event lost = {.kind = AT_EV_LOST, .worker = id};
    lost.as.lost.drawn = a->drawn;
    lost.as.lost.returns = back_after != AT_NEVER;
    stage_send_hub(s, s->now, lost);
    if (back_after != AT_NEVER) stage_cue(s, s->now + back_after, CUE_BACK, id)->span = back_after;
}

static inline void stage_join(stage *s, at_node id)
{
    actor *a = &s->actor[id];
    assert_false(a->alive);
    a->alive = true;
    a->frozen_until = 0;
    at_worker_init(&a->machine, &s->plan, id, ++a->incarnation, 2, s->hub->member[id - 1].sequence);
    at_event joined = {.kind = AT_EV_JOINED, .worker = id};
    joined.as.joined.incarnation = a->incarnation;
    stage_send_hub(s, s->now, joined);
}

static inline at_worker_event stage_event(const stage *s, at_worker_event_kind kind)
{
    return (at_worker_event){.kind = kind, .now = s->now};
}

static inline void stage_install(stage *s, actor *a)
{
    at_worker_event installed = stage_event(s, AT_WORKER_INSTALLED);
    a->installed = installed.version = s->hub->version;
    at_worker_feed(&a->machine, &installed);
}

static inline void stage_sleep(stage *s, at_node id)
{
    actor          *a = &s->actor[id];
    at_ns           sleep_ns = s->sleep ? s->sleep(s, id, a->machine.work.round) : 0;
    at_worker_event awake = stage_event(s, AT_WORKER_AWAKE);
    if (sleep_ns > 0)
        stage_cue(s, s->now + sleep_ns, CUE_AWAKE, id)->round = a->machine.work.round;
    else
        at_worker_feed(&a->machine, &awake);
}

static inline void stage_send(stage *s, at_node id, at_report report)
{
    at_event message = {.kind = AT_EV_MESSAGE, .worker = id};
    bool     broken =
        report.work.version == s->nan_version && (s->nan_worker == 0 || s->nan_worker == id);
    double loss = exp2(-s->halvings * (double)report.work.version);
    if (s->now < s->lags_until) report.work.version = 0;
    report.work.loss_sum = broken ? (double)NAN : loss * report.work.samples;
    message.as.report = report;
    actor *a = &s->actor[id];
    a->heard_at = stage_after(s, a->heard_at);
    stage_send_hub(s, a->heard_at, message);
    if (s->echo) stage_send_hub(s, stage_after(s, a->heard_at), message);
    cue *sent = stage_cue(s, s->now + stage_delay(s, s->send_ns), CUE_WORKER, id);
    sent->to_worker = (at_worker_event){.kind = AT_WORKER_SENT};
}

/* Performs the actions of the machine until it waits. */
static inline void stage_run_worker(stage *s, at_node id)
{
    actor *a = &s->actor[id];
    while (a->alive) {
        at_worker_action action = at_worker_step(&a->machine);
        if (action.kind == AT_WORKER_WAIT) return;
        if (s->saw_worker) s->saw_worker(s, id, &action);
        switch (action.kind) {
        case AT_WORKER_INSTALL: stage_install(s, a); break;
        case AT_WORKER_SLEEP: stage_sleep(s, id); break;
        case AT_WORKER_MICRO:
            a->drawn += action.samples;
            stage_cue(s, s->now + action.samples * a->sample_ns, CUE_MICRO, id);
            break;
        case AT_WORKER_SEND: stage_send(s, id, action.report); break;
        case AT_WORKER_FINISH: stage_gone(s, id, AT_NEVER); break;
        case AT_WORKER_ABANDON: /* the micro-batch ends when it would have */
        case AT_WORKER_WAIT: break;
        }
    }
}

static inline void stage_feed_worker(stage *s, at_node id, at_worker_event event)
{
    event.now = s->now;
    at_worker_feed(&s->actor[id].machine, &event);
    stage_run_worker(s, id);
}

#endif
