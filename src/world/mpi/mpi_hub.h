/* mpi_hub.h - the hub of the MPI world, and its workers as it knows them. Internal to world/.
 *
 *     mpi_hub.c     the loop, what the host asks for, beginning and end
 *     mpi_peers.c   who is there: hearing workers, losing them
 *     mpi_mail.c    what is sent to them
 */
#ifndef AT_WORLD_MPI_MPI_HUB_H
#define AT_WORLD_MPI_MPI_HUB_H

#include "world/core/host.h"
#include "world/mpi/param_sender.h"
#include "world/process/backoff.h"
#include "world/process/failure_detector.h"

enum { AT_MPI_NOTES = 4 }; /* notes that may arrive at once, from anybody */

/* Each leads to the next, or to LOST. */
typedef enum at_mpi_state {
    AT_MPI_AWAITED,
    AT_MPI_LOADING, /* has said hello */
    AT_MPI_WORKING, /* is ready */
    AT_MPI_LEFT,
    AT_MPI_LOST
} at_mpi_state;

/* A worker as its hub knows it. */
typedef struct at_mpi_peer {
    at_mpi_state        state;
    at_worker_note      hello;
    bool                near;    /* on this machine, so that its process can be looked at */
    bool                dead;    /* LOST, and it is certain that its process is no more */
    bool                evicted; /* the hub has lost patience; LOST is to follow */
    at_failure_detector detector;
    uint64_t            drawn; /* as it told last */
    at_usage            usage; /* as it told last; pid 0: not, or dealt with */

    unsigned char    *inbox; /* head of a report, and a gradient */
    bool              has_report;
    at_report_message report;
    uint64_t          reports;    /* that were dealt with */
    at_ns             report_due; /* when a slow network brings it; AT_NEVER: not drawn yet */
    uint64_t          messages;

    bool     is_welcome;   /* and was told so */
    bool     is_ready;     /* READY was heard */
    bool     is_leaving;   /* LEFT was heard; reports may still be on their way: */
    uint64_t reports_sent; /* how many there are in all */
} at_mpi_peer;

typedef struct at_mpi_hub {
    const at_world_context *context;
    uint32_t                workers;
    at_host                 host;
    at_updater              updater;
    at_evaluator           *evaluator;
    at_bell                *bell; /* for evaluator and signals */
    at_mpi_calls           *calls;
    at_param_sender         sender;
    at_mpi_peer            *peer; /* plan->workers; peer[i] is worker i+1 */
    unsigned char          *notes;
    size_t                  inbox_size;
    at_backoff              backoff;
    at_listening_clock      ear;
    at_ns                   watched_at;
    uint64_t                fingerprint;
    char                    host_name[AT_HOST_NAME_SIZE];
    char                    engine[AT_ENGINE_NAME_SIZE];
    at_fail                 refusal; /* of a worker that cannot take part */
    at_lost_round          *lost;
    size_t                  lost_count;
    bool                    lossy; /* somebody was lost */
    bool                    stopping;
} at_mpi_hub;

/* Begins to listen to everybody. */
void at_mpi_listen(at_mpi_hub *hub);

/* Begins to wait for a worker's next report, unless that has begun. */
void at_mpi_expect(at_mpi_hub *hub, at_node worker);

/* Looks what has come and puts it where it belongs. True: there was something. Deals with nothing:
 * may be called at any time. */
bool at_mpi_hear(at_mpi_hub *hub);

/* Deals with what has come: reports, workers that are ready or have left. */
void at_mpi_heed(at_mpi_hub *hub);

/* Tells workers that we live and looks who does not: to be called often. */
void at_mpi_watch(at_mpi_hub *hub, at_ns now);

/* When a slow network brings the next report that is under way; AT_NEVER: never. */
at_ns at_mpi_brought(const at_mpi_hub *hub);

#endif
