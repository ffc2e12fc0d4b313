/* mpi_transport.h - a worker's side of the way to the hub, by messages. Internal to world/.
 *
 * Mail is received into one of a few buffers while the others hold what was received before: the
 * parameters that are computed with, and newer ones that wait to be taken. A buffer that is full of
 * parameters nobody has taken is used again as soon as newer ones have come.
 */
#ifndef AT_WORLD_MPI_MPI_TRANSPORT_H
#define AT_WORLD_MPI_MPI_TRANSPORT_H

#include "message/message.h"
#include "world/core/driver.h"
#include "world/mpi/mpi_comm.h"
#include "world/process/backoff.h"
#include "world/process/failure_detector.h"

enum { AT_MPI_GRADIENTS = 2, AT_MPI_BUFFERS = 4, AT_MPI_NO_BUFFER = -1 };

/* Calls: the first ones are of reports, by slot. */
enum { AT_MPI_CALL_MAIL = AT_MPI_GRADIENTS, AT_MPI_CALL_NOTE, AT_MPI_CALLS };

/* Mail that was received. */
typedef struct at_mpi_buffer {
    unsigned char *bytes;
    uint64_t       version; /* of the parameters in it */
} at_mpi_buffer;

typedef struct at_mpi_transport {
    const at_world_context
                  *context; /* NULL: of one that cannot take part, and only waits for the end */
    at_node        id;
    at_mpi_calls  *calls;
    at_mpi_buffer  buffer[AT_MPI_BUFFERS];
    int            buffers;
    int            open, fresh, aside, installed; /* which buffer is what, or AT_MPI_NO_BUFFER */
    size_t         mail_size;
    unsigned char *report[AT_MPI_GRADIENTS]; /* head and gradient */
    uint32_t       slots;
    uint64_t       reports; /* sent */
    unsigned char  note[AT_WORKER_NOTE];

    at_order       order;
    bool           ordered;   /* `order` was not taken yet */
    bool           leaves;    /* told to leave, or cannot go on */
    bool           told;      /* told to leave */
    bool           is_silent; /* sends no heartbeats: it only asks to be admitted */
    bool           welcomed;  /* with these words: */
    at_hub_message welcome;
    bool           bye; /* told how to end: */
    bool           together;
    at_err         err;      /* why the run failed */
    bool           orphaned; /* the hub is gone */
    at_fail        fail;     /* what is wrong with MPI or the hub's messages; err AT_OK: nothing */
    uint32_t       news;

    _Atomic uint64_t drawn;

    at_backoff          backoff;
    at_listening_clock  ear;
    at_failure_detector hub;      /* when it was heard */
    bool                hub_near; /* it is on this machine */
    at_ns               noted_at, watched_at, measured_at;
} at_mpi_transport;

/* Moves messages along, tells the hub that we live, and notices when it does not. */
void at_mpi_transport_poll(void *port);

/* Counts news, and waits for more; as in at_transport. */
uint32_t at_mpi_transport_heard(void *port);
void     at_mpi_transport_wait(void *port, uint32_t heard, at_ns until);

/* Sends a note; false when the one before was not taken yet. */
bool at_mpi_transport_note(at_mpi_transport *port, at_worker_note *note);

/* As a node sees it. */
at_transport at_mpi_transport_of(at_mpi_transport *port);

#endif
