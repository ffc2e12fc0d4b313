/* mpi_transport.h - a worker's connection to the hub by messages. Internal to world/.
 *
 * Messages are received into one of a few buffers while the others hold what was received before:
 * the parameters in use, and newer ones that are not installed yet. A buffer with parameters that
 * were never installed is reused as soon as newer ones have arrived.
 */
#ifndef AT_WORLD_MPI_MPI_TRANSPORT_H
#define AT_WORLD_MPI_MPI_TRANSPORT_H

#include "message/message.h"
#include "world/core/driver.h"
#include "world/core/packings.h"
#include "world/mpi/gradient_parts.h"
#include "world/mpi/mpi_comm.h"
#include "world/mpi/mpi_gossip.h"
#include "world/process/backoff.h"
#include "world/process/failure_detector.h"

enum { AT_MPI_GRADIENTS = 2, AT_MPI_BUFFERS = 4, AT_MPI_NO_BUFFER = -1 };

/* Calls: the first ones are of reports, by slot; the last ones of parts of a gradient. */
enum { AT_MPI_CALL_MAIL = AT_MPI_GRADIENTS, AT_MPI_CALL_NOTE, AT_MPI_CALL_PART };

/* Mail that was received. */
typedef struct at_mpi_buffer {
    unsigned char *bytes;
    uint64_t       version; /* of the parameters in it */
    uint64_t       base;    /* it has what changed since this one; AT_VERSION_NONE: everything */
    uint64_t       rows;
} at_mpi_buffer;

typedef struct at_mpi_transport {
    const at_world_context
                     *context; /* NULL: this rank cannot take part and only waits for the end */
    at_node           id;
    at_mpi_calls     *calls;
    at_mpi_buffer     buffer[AT_MPI_BUFFERS];
    int               buffers;
    int               open, fresh, aside, installed; /* which buffer is what, or AT_MPI_NO_BUFFER */
    size_t            mail_size;
    unsigned char    *report[AT_MPI_GRADIENTS]; /* head and gradient */
    at_packings       packings;
    at_gradient_parts parts;
    uint32_t          parts_sent; /* of the round under way */
    /* With compression, what is computed with and computed; otherwise NULL, and messages are used.
     * Sparse models have parameters of their own, too, to which changes are applied. */
    float        *params, *gradient[AT_MPI_GRADIENTS];
    float        *residual;       /* what its gradients lacked so far */
    uint64_t      params_version; /* of `params`; AT_VERSION_NONE: there are none yet */
    uint32_t      slots;
    uint64_t      reports; /* sent */
    unsigned char note[AT_WORKER_NOTE];

    at_mpi_gossip *gossip;  /* its own parameters; NULL: they are the hub's */
    uint32_t       samples; /* of its last report */

    at_order       order;
    bool           ordered;       /* `order` was not taken yet */
    bool           leaves;        /* ordered to leave, or cannot continue */
    bool           leave_ordered; /* by the hub */
    bool           is_silent;     /* sends no heartbeats: it only asks to be admitted */
    bool           welcomed;      /* received WELCOME: */
    at_hub_message welcome;
    bool           bye; /* received BYE, which says how to end: */
    bool           together;
    at_err         err;      /* why the run failed */
    bool           orphaned; /* the hub is gone */
    at_fail        fail;     /* what is wrong with MPI or the hub's messages; err AT_OK: nothing */
    uint32_t       news;

    _Atomic uint64_t drawn;

    at_backoff          backoff;
    at_listening_clock  clock;
    at_failure_detector hub;      /* when its last message arrived */
    bool                hub_near; /* it is on this machine */
    at_ns               noted_at, watched_at, measured_at;
} at_mpi_transport;

/* Advances messages, sends heartbeats, and detects the loss of the hub. */
void at_mpi_transport_poll(void *transport);

/* `heard` and `wait` of at_transport. */
uint32_t at_mpi_transport_heard(void *transport);
void     at_mpi_transport_wait(void *transport, uint32_t heard, at_ns until);

/* Sends a note; false while the previous one is still being sent. */
bool at_mpi_transport_note(at_mpi_transport *transport, at_worker_note *note);

/* True while a report, or a part of its gradient, has not been received. */
bool at_mpi_transport_is_reporting(const at_mpi_transport *transport);

/* The functions for at_driver. */
at_transport at_mpi_transport_of(at_mpi_transport *transport);

#endif
