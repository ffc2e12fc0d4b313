/* mpi_hub.h - the hub of the MPI world, and its view of the workers. Internal to world/.
 *
 *     mpi_hub.c         loop, operations for the host, start and end
 *     mpi_hub_peers.c   receiving from workers, detecting their loss
 *     mpi_gossip_hub.c  workers that own their parameters
 *     param_sender.c    sending to workers
 */
#ifndef AT_WORLD_MPI_MPI_HUB_H
#define AT_WORLD_MPI_MPI_HUB_H

#include "world/core/host.h"
#include "world/core/packings.h"
#include "world/mpi/gradient_parts.h"
#include "world/mpi/mpi_gossip_hub.h"
#include "world/mpi/param_sender.h"
#include "world/process/backoff.h"
#include "world/process/failure_detector.h"
#include "world/process/launcher.h"

/* Runs rank 0. Everything that forks is started before MPI. */
at_err at_mpi_hub_run(const at_world_context *context, const at_launcher *launcher,
                      at_outcome *outcome, at_fail *fail);

/* For rank 0 of worlds without a hub of their own: waits for the HELLOs of all other ranks,
 * whatever their topology, and lets them start when they agree with `hello`. Otherwise fails, names
 * the rank and the reason, and at_mpi_hub_end tells all ranks. */
at_err at_mpi_hub_admit(const at_launcher *launcher, const at_worker_note *hello, at_fail *fail);

/* Tells all workers how to end, and with which exit code. True: all ranks can end MPI together.
 * Ranks of a failed run that do not answer for half a minute are ended by the launcher. */
bool at_mpi_hub_end(const at_launcher *launcher, const at_fail *fail);

/* After at_mpi_hub_end: false when that rank was lost. */
bool at_mpi_hub_has(uint32_t rank);

typedef struct at_mpi_hub at_mpi_hub;

enum { AT_FAULT_TEXT = 240 };
enum { AT_MPI_NOTES = 4 }; /* notes that can be received at once, from any rank */

/* Each is followed by the next, or by LOST. */
typedef enum at_mpi_state {
    AT_MPI_AWAITED,
    AT_MPI_LOADING, /* HELLO received */
    AT_MPI_WORKING, /* READY received */
    AT_MPI_LEFT,
    AT_MPI_LOST
} at_mpi_state;

/* The hub's view of a worker. */
typedef struct at_mpi_peer {
    at_mpi_state        state;
    at_worker_note      hello;
    bool                near;                 /* on this machine: its process can be checked */
    bool                dead;                 /* LOST, and its process has certainly ended */
    bool                evicted;              /* by the hub; LOST follows */
    char                fault[AT_FAULT_TEXT]; /* why it is to be evicted; "": no reason */
    bool                averages;             /* as it last said: with its neighbors (gossip) */
    at_failure_detector detector;
    uint64_t            drawn;    /* the largest count received: notes overtake reports */
    uint64_t            counted;  /* samples of its reports */
    uint64_t            sequence; /* of its last report */
    at_usage            usage;    /* as last reported; pid 0: none, or already recorded */

    unsigned char    *inbox;    /* head of a report, and a gradient */
    float            *gradient; /* that gradient if it was compressed, decoded; else NULL */
    at_mpi_done       head;     /* the report's own message has arrived, if `has_head` */
    bool              has_head; /* .. but not yet all parts of its gradient: */
    uint32_t          parts_awaited;
    bool              is_partial; /* a part was not whole */
    bool              has_report;
    at_report_message report;
    uint64_t          reports;    /* processed */
    at_ns             report_due; /* arrival with --comm-delay; AT_NEVER: not drawn yet */
    uint64_t          messages;

    bool     is_welcome;   /* WELCOME sent */
    bool     is_ready;     /* READY received */
    bool     is_leaving;   /* LEFT received; reports may still be in transit: */
    uint64_t reports_sent; /* their total number */
} at_mpi_peer;

struct at_mpi_hub {
    const at_world_context *context;
    uint32_t                workers;
    at_host                 host;
    at_updater              updater;
    at_evaluator           *evaluator;
    at_bell                *bell; /* for evaluator and signals */
    at_mpi_calls           *calls;
    at_packings             packings;
    at_gradient_parts       parts;
    at_param_sender         sender;
    at_mpi_gossip_hub       gossip; /* zeroed: the parameters are the hub's */
    at_mpi_peer            *peer;   /* plan->workers_max; peer[i] is worker i+1 */
    unsigned char          *notes;
    size_t                  inbox_size;
    at_backoff              backoff;
    at_listening_clock      clock;
    at_ns                   watched_at;
    at_ns                   looped_at; /* when the last turn of the loop looked at timers */
    uint64_t                part[AT_JOB_PARTS]; /* what all ranks must agree on */
    char                    host_name[AT_HOST_NAME_SIZE];
    char                    engine[AT_ENGINE_NAME_SIZE];
    at_fail                 refusal; /* why a worker cannot take part, or how MPI failed */
    at_lost_round          *lost;
    size_t                  lost_count;
    bool                    lossy; /* a worker was lost */
    bool                    stopping;
    bool                    ended; /* the run is over: what is received only ends calls */
};

/* Starts to receive from all workers. */
void at_mpi_hub_listen(at_mpi_hub *hub);

/* Starts to receive a worker's next report, unless already started. */
void at_mpi_hub_expect_report(at_mpi_hub *hub, at_node worker);

/* Stores received messages with their peers without processing them, so it may be called at any
 * time. True: there was a message. */
bool at_mpi_hub_receive(at_mpi_hub *hub);

/* Names the fault of a worker, which is evicted for it, or, before it works, ends the run. */
void at_mpi_hub_blame(at_mpi_hub *hub, at_node worker, const at_fail *fail);

/* Sends WELCOME to a worker; false: not yet, since its channel is in use. */
bool at_mpi_hub_welcome(at_mpi_hub *hub, at_node worker);

/* Before training: refuses the job when a rank is silent for too long or gone. */
void at_mpi_hub_check_start(at_mpi_hub *hub);

/* Processes what was received: reports, workers that are ready or have left. */
void at_mpi_hub_process(at_mpi_hub *hub);

/* Sends heartbeats to workers and detects lost ones: to be called often. */
void at_mpi_hub_watch(at_mpi_hub *hub, at_ns now);

/* Sends a heartbeat to a worker if it is time. */
void at_mpi_hub_heartbeat(at_mpi_hub *hub, at_node worker, at_ns now);

/* With --comm-delay: when the next report in transit arrives; AT_NEVER: none. */
at_ns at_mpi_hub_next_arrival(const at_mpi_hub *hub);

#endif
