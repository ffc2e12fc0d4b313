/* sim.h - the world in virtual time. Internal to world/.
 *
 *   heap (heap.c)        future events, totally ordered by (time, birth)
 *   network (network.c)  latencies, links, broadcasts, reductions
 *   versions             reference-counted copies of parameters that are still needed
 *   workers              worker.c as in every world; the time of a round is computed, not spent
 *   hub                  hub.c through host.c as in every world
 *
 * Time jumps from event to event without waiting, so thousands of workers run on a laptop, and the
 * same seed gives the same run on machines with the same instruction set.
 */
#ifndef AT_WORLD_SIM_SIM_H
#define AT_WORLD_SIM_SIM_H

#include "step/worker.h"
#include "world/core/host.h"
#include "world/core/local_steps.h"
#include "world/core/packings.h"
#include "world/core/world.h"
#include "world/sim/heap.h"
#include "world/sim/network.h"
#include "world/sim/pool.h"

enum { AT_SIM_SLOTS = 2 };                       /* gradients in flight per worker */
#define AT_SIM_ROUND_MAX AT_SEC(365 * 24 * 3600) /* a year of computing */

/* Parameters of one version, kept while they are needed. */
typedef struct at_sim_params {
    uint64_t version;
    uint32_t users;
    float   *w;        /* NULL when only time is simulated, or when it will not be read any more */
    bool     borrowed; /* w is the hub's own vector, which has not changed since */
} at_sim_params;

typedef struct at_sim_worker {
    at_worker       machine;
    bool            alive;
    bool            ahead;     /* the machine is at the end of a round that ends in the future */
    bool            in_flight; /* a report is in transit */
    uint32_t        incarnation;
    double          sample_ns; /* its estimate of its speed when the round's sleep began */
    uint64_t        token;     /* of the current round; heap entries with an older one are void */
    uint64_t        drawn;
    at_ns           frozen_until;
    at_ns           late; /* extra delay of its next report */
    at_ns           awake, idle_since, idle_ns;
    double          loss_sum; /* of the current round */
    at_sim_params  *newest;   /* arrived */
    at_sim_params  *installed;
    float          *gradient[AT_SIM_SLOTS];
    float          *residual; /* what its compressed gradients lack so far; NULL: nothing */
    at_local_steps *local;    /* NULL: it reports gradients */
    at_report      *pending;  /* waits until the one in transit has arrived; NULL: none */
    at_ns           pending_since, send_ns;
} at_sim_worker;

typedef struct at_sim {
    const at_world_context *context;
    at_host                 host;
    at_updater              updater;
    at_sim_net              net;
    at_heap                 heap;
    at_pool                 entries, orders, reports; /* memory of what is in the heap */
    at_sim_worker          *worker;                   /* plan->workers_max */
    at_sim_params          *current;                  /* the hub's version; messages refer to it */
    float                  *w;                        /* the hub's parameters */
    at_packings             packings;                 /* of messages .. */
    void                   *packed;                   /* .. and memory for one; NULL: none is */
    at_gossip               gossip;   /* used where workers have their own parameters */
    float                  *vectors;  /* .. these */
    size_t                  stride;   /* .. of this many floats each */
    at_ns                   averaged; /* .. and when averaging them is over */
    at_ns                   now;
    at_bell                 bell;        /* for signals only */
    size_t                  faults_done; /* of context->faults */
    bool                    cast_due;    /* the current event has produced a new version */
    at_err                  err;
    at_fail                *fail;
} at_sim;

/* Kind of a heap entry. */
typedef enum at_sim_kind {
    AT_SIM_ORDER,    /* at a worker: an order, with the parameters of `params` */
    AT_SIM_PARAMS,   /* at a worker: parameters without an order */
    AT_SIM_MICRO,    /* at a worker: the sleep or a micro-batch ends */
    AT_SIM_COMPUTED, /* at a worker: a round that cannot be interrupted ends */
    AT_SIM_REPORT,   /* at the hub: a report arrives */
    AT_SIM_GONE,     /* at the hub: a worker has ended */
    AT_SIM_RETURN    /* at the hub: a replacement joins */
} at_sim_kind;

struct at_heap_entry {
    at_sim_kind    kind;
    at_node        worker;
    uint32_t       incarnation;
    uint64_t       token;
    at_sim_params *params;
    union {
        at_order  *order;  /* ORDER; owned */
        at_report *report; /* REPORT; owned */
    };
};

/* Ends the run: memory is exhausted. */
void at_sim_out_of_memory(at_sim *sim);

/* Bytes of parameters or of a gradient for so many samples, as they are sent. */
double at_sim_message(const at_sim *sim, const at_packing *packing, uint64_t samples);

/* Inserts an entry for the time `at`; returns it to be filled in. NULL: out of memory, which ends
 * the run. */
at_heap_entry *at_sim_at(at_sim *sim, at_ns at, at_sim_kind kind, at_node worker);

/* Adds and removes a reference; accept NULL. */
at_sim_params *at_sim_params_use(at_sim_params *params);
void           at_sim_params_drop(at_sim_params *params);

/* Processes an entry at a worker: a message has arrived, or a computation proceeds. */
void at_sim_worker_event(at_sim *sim, const at_heap_entry *entry);

/* The worker's report has reached the hub: it may send the next one. */
void at_sim_worker_sent(at_sim *sim, at_node worker);

/* Ends a worker at once, whatever it is doing; its count of drawn samples is final. */
void at_sim_worker_die(at_sim *sim, at_node worker);

#endif
