/* host.h - runs a hub: feeds it events, does its actions, records both.
 *
 * Worlds differ in how orders reach workers, how a worker is ended and where gradients lie; that is
 * the at_world_ops they give. Everything else that a hub asks for is done here, once for all
 * worlds.
 */
#ifndef AT_WORLD_CORE_HOST_H
#define AT_WORLD_CORE_HOST_H

#include "base/arena.h"
#include "record/record.h"
#include "step/hub.h"
#include "world/core/update.h"
#include "world/core/world.h"
#include "world/process/evaluator.h"
#include "world/process/resources.h"
#include "world/process/saver.h"

/* What a world does for its hub. */
typedef struct at_world_ops {
    void *self;
    /* Hands an order to a worker. May be delayed until the event is dealt with (see flush). */
    void (*send)(void *self, at_node worker, const at_order *order);
    /* All orders of one event were sent; optional. */
    void (*flush)(void *self);
    /* Ends a worker for good; a LOST event MUST follow. */
    void (*evict)(void *self, at_node worker);
    /* Brackets around a change of the parameters; `version` is the new one. Optional. */
    void (*change)(void *self);
    void (*publish)(void *self, uint64_t version);
    /* Adds what only the world knows to an snapshot that is about to be saved. Optional. */
    void (*describe)(void *self, at_snapshot *snapshot);
    /* Scores the parameters at once, for worlds in which evaluation takes no time; then there is
     * no evaluator. Optional. */
    void (*score)(void *self, at_score *score);
    /* The evaluation that all hubs of a run hear of now, where there are several that must decide
     * alike. Optional: the evaluator is asked. */
    bool (*evaluation)(void *self, at_evaluation *evaluation);
    at_gradients gradients;
    bool         virtual_time; /* the clock of the machine says nothing about the run */
} at_world_ops;

/* What only the world knows about an event, for the record. */
typedef struct at_about {
    int64_t     pid;
    const char *text;
    uint64_t    count;
    bool        final;
} at_about;

typedef struct at_host {
    at_hub       *hub;
    at_arena      arena;
    at_out        out;
    at_recorder  *recorder;
    at_updater   *updater;
    at_evaluator *evaluator; /* may be NULL */
    at_saver     *saver;     /* may be NULL */
    at_world_ops  link;
    at_ns         timer[AT_TIMER_COUNT]; /* AT_NEVER: none */
    at_ns         started;
    at_ns         took;   /* the last APPLY, see at_record */
    bool          scored; /* `evaluation` waits to be told */
    at_evaluation evaluation;
    bool          finished;
    at_resources  resources;
} at_host;

/* Builds the hub. Plan, recorder, updater and evaluator are borrowed. */
at_err at_host_init(at_host *host, const at_plan *plan, at_recorder *recorder, at_updater *updater,
                    at_evaluator *evaluator, const at_world_ops *link, at_fail *fail);
void   at_host_deinit(at_host *host); /* accepts a zeroed one */

/* One event and all that follows from it. `about` may be NULL. */
void at_host_event(at_host *host, const at_event *event, const at_about *about);

/* Delivers the evaluations and timers that have come by `now`. */
void at_host_poll(at_host *host, at_ns now);

/* When the next timer is due, AT_NEVER when none is. */
at_ns at_host_due(const at_host *host);

/* From now on looks every so often (0: never) what this process, the evaluator and the workers
 * named with at_host_process have taken, and records it. To be called between init and START. */
at_err at_host_watch(at_host *host, at_ns every, at_fail *fail);

/* This worker is the process `pid` of this machine; 0: it is gone. */
void at_host_process(at_host *host, at_node worker, int64_t pid);

/* Records what a node has taken, as itself or somebody else has measured; nothing happens unless
 * at_host_watch was called with more than 0. */
void at_host_usage(at_host *host, at_node node, const at_usage *usage, at_ns now);

/* A sentence for people, through the record. */
void at_host_say(at_host *host, at_ns now, const char *text);

/* What the hub knows about how it ended; the rest of the outcome is zeroed. */
void at_host_outcome(const at_host *host, at_outcome *outcome);

/* After FINISH: scores the final parameters, outside the time that counts. */
void at_host_final_score(at_host *host);

#endif
