/* sim.h - the world in virtual time. Internal to world/.
 *
 *   heap (heap.c)        what happens when: (time, birth) is a total order
 *   network (sim_net.c)  latency, then the hub's link, first come first served, per direction
 *   versions             copies of parameters that somebody may still need, counted
 *   workers              step/worker.c as in every world; a round costs time, not processor
 *   hub                  hub.c through host.c as in every world
 *
 * Nothing waits: time jumps from event to event, so thousands of workers run on a laptop, and the
 * same seed gives the same run on every machine.
 */
#ifndef AT_WORLD_SIM_SIM_H
#define AT_WORLD_SIM_SIM_H

#include "step/worker.h"
#include "world/core/host.h"
#include "world/core/world.h"
#include "world/sim/heap.h"

enum { AT_SIM_SLOTS = 2 }; /* gradients a worker may have under way */

/* Parameters of one version, kept while somebody needs them. */
typedef struct at_sim_params {
    uint64_t version;
    uint32_t users;
    float   *w;        /* NULL when only time is simulated, or when nobody will look any more */
    bool     borrowed; /* w is the hub's own vector, which has not changed since */
} at_sim_params;

/* The network between the hub and everybody. */
typedef struct at_sim_net {
    at_ns    latency;
    double   bandwidth;   /* bytes a second of the hub's link, 0: unlimited */
    double   delay_sigma; /* comm stragglers: |N(0,1)| * sigma seconds on every message */
    uint64_t seed, messages;
    at_ns    in_free, out_free; /* when the link is free again, per direction */
} at_sim_net;

/* When a message of `bytes` sent now arrives at the hub, or at a worker. */
at_ns at_sim_net_up(at_sim_net *net, at_ns now, double bytes);
at_ns at_sim_net_down(at_sim_net *net, at_ns now, double bytes);

typedef struct at_sim_worker {
    at_worker      machine;
    bool           ahead; /* the machine is at the end of a round that ends in the future */
    at_worker      start; /* then: as it was when that round's sleep began */
    bool           alive;
    uint32_t       incarnation;
    uint64_t       token; /* of the round under way; older heap entries are void */
    uint64_t       drawn;
    at_ns          frozen_until;
    at_ns          late; /* how much longer its next report takes */
    at_ns          awake, idle_since, idle_ns;
    double         loss_sum; /* of the round under way */
    at_sim_params *newest;   /* arrived */
    at_sim_params *installed;
    float         *gradient[AT_SIM_SLOTS];
    bool           in_flight, pending; /* a report is on its way; one more waits for it */
    at_report      report;             /* the pending one */
    at_ns          pending_since, send_ns;
} at_sim_worker;

typedef struct at_sim {
    const at_world_context *context;
    at_host                 host;
    at_updater              updater;
    at_sim_net              net;
    at_heap                 heap;
    at_sim_worker          *worker;  /* plan->workers */
    at_sim_params          *current; /* the hub's version, shared with messages */
    float                  *w;       /* the hub's parameters */
    at_ns                   now;
    at_bell                 bell;     /* for signals only */
    const at_fault         *fault;    /* the next one to happen */
    bool                    cast_due; /* a new version was made by the event under way */
    at_err                  err;
    at_fail                *fail;
} at_sim;

/* What a heap entry means; its payload is the union beside it. */
typedef enum at_sim_kind {
    AT_SIM_ORDER,    /* at a worker: an order, with the parameters of `params` */
    AT_SIM_PARAMS,   /* at a worker: parameters alone */
    AT_SIM_MICRO,    /* at a worker: the sleep or a micro-batch ends */
    AT_SIM_COMPUTED, /* at a worker: the round ends (rounds that nothing can interrupt) */
    AT_SIM_REPORT,   /* at the hub */
    AT_SIM_GONE,     /* at the hub: a worker has ended */
    AT_SIM_RETURN    /* at the hub: a replacement joins */
} at_sim_kind;

struct at_heap_entry {
    at_sim_kind    kind;
    at_node        worker;
    uint32_t       incarnation;
    uint64_t       token;
    at_sim_params *params;
    at_order       order;
    at_report      report;
};

/* Puts an entry into the heap for the time `at`; returns it for filling. NULL: out of memory, which
 * ends the run. */
at_heap_entry *at_sim_at(at_sim *sim, at_ns at, at_sim_kind kind, at_node worker);

/* Takes and gives back a version; NULL is fine. */
at_sim_params *at_sim_params_use(at_sim_params *params);
void           at_sim_params_drop(at_sim_params *params);

/* The worker side: something arrived at a worker, or its computation went on. */
void at_sim_worker_event(at_sim *sim, const at_heap_entry *entry);

/* Its report has reached the hub: the next one may leave. */
void at_sim_worker_sent(at_sim *sim, at_node worker);

/* It ends here and now, whatever it was doing; its part of the ledger is final. */
void at_sim_worker_die(at_sim *sim, at_node worker);

#endif
