/* param_sender.h - sends parameters and orders from the MPI hub to its workers, bounded in memory.
 *
 * The hub sets what each worker should get; a message leaves as soon as a channel to the worker is
 * free. A worker that is behind gets the newest parameters instead of every version, a newer order
 * replaces a waiting one, and nothing piles up while a worker does not receive.
 *
 *     channels per worker:  2 for parameters │ 1 for orders without parameters │ 1 for the rest
 *
 * Where a step waits for all workers, parameters are sent from the hub's own vector: when the hub
 * writes to it, all workers have received it. Otherwise they are sent from a few buffers, one per
 * version, each shared by all workers that get that version. Compressed parameters always are: a
 * version is encoded once, when the first worker gets it. Of sparse models only those weights are
 * sent that have changed since the version on which the worker reported last, which it has for
 * certain.
 */
#ifndef AT_WORLD_MPI_PARAM_SENDER_H
#define AT_WORLD_MPI_PARAM_SENDER_H

#include "base/err.h"
#include "message/compress.h"
#include "message/message.h"
#include "world/mpi/mpi_comm.h"
#include "world/mpi/row_changes.h"

enum {
    AT_MPI_CHANNELS = 4,
    AT_MPI_SMALL =
        AT_HUB_MESSAGE_HEAD + AT_HOST_NAME_SIZE, /* bytes of a message without parameters */
    AT_PARAM_BUFFERS = 8 /* at most, plus one for each that a lost worker has not received */
};

/* A copy of the parameters, as a message. */
typedef struct at_param_buffer {
    unsigned char *bytes;
    uint64_t       version;
    uint64_t       base;   /* it has what changed since this one; AT_VERSION_NONE: everything */
    size_t         vector; /* bytes of the parameters in it */
    uint32_t       users;  /* channels on which it is being sent */
    uint32_t       orders; /* appended to the parameters */
} at_param_buffer;

/* One message in transit to a worker; occupied while its call is open. */
typedef struct at_mpi_channel {
    at_param_buffer *buffer; /* being sent, on a channel for parameters */
    unsigned char    small[AT_MPI_SMALL];
} at_mpi_channel;

/* What a worker has been sent, and what it should get. */
typedef struct at_param_receiver {
    bool           closed;  /* send nothing any more */
    uint64_t       version; /* newest parameters sent, AT_VERSION_NONE: none */
    uint64_t       has;     /* parameters that it has used, AT_VERSION_NONE: none */
    bool           wants;   /* should get the newest parameters */
    bool           ordered; /* `order` is to be sent */
    at_order       order;
    at_ns          sent_at; /* time of the last message */
    uint64_t       sent;    /* bytes of parameters since at_param_sender_count */
    at_mpi_channel channel[AT_MPI_CHANNELS];
} at_param_receiver;

typedef struct at_param_sender {
    at_mpi_calls      *calls;
    uint32_t           first_call; /* of workers x AT_MPI_CHANNELS */
    uint32_t           workers;
    at_packing         packing;
    at_param_buffer    own; /* the hub's own vector */
    bool               in_place;
    at_row_changes     changes; /* of sparse models */
    at_param_buffer   *buffer;  /* copies; bytes NULL: not allocated yet */
    uint32_t           buffers; /* that may be allocated */
    uint64_t           version;
    at_param_receiver *receiver; /* receiver[i] is worker i+1 */
} at_param_sender;

/* Bytes of the largest message: head, `vector` bytes of parameters and one order per worker. False:
 * too large for MPI. */
bool at_hub_message_size(size_t vector, uint32_t workers, size_t *size);

/* Allocates the parameters. They are sent as `packing` says, `in_place` if that says in full, or
 * from copies. */
at_err at_param_sender_open(at_param_sender *sender, const at_packing *packing, uint32_t workers,
                            bool in_place, at_fail *fail);
void   at_param_sender_close(at_param_sender *sender); /* accepts a zeroed one */

/* The parameters; the hub updates them here. */
float *at_param_sender_params(at_param_sender *sender);

/* Sends only what has changed from now on; to be called before the first publish, when the
 * parameters of `version` are there. */
at_err at_param_sender_track(at_param_sender *sender, uint64_t version, at_fail *fail);

/* A worker has computed with parameters of this version. */
void at_param_sender_used(at_param_sender *sender, at_node worker, uint64_t version);

/* Sets the calls to use, workers x AT_MPI_CHANNELS of them. */
void at_param_sender_connect(at_param_sender *sender, at_mpi_calls *calls, uint32_t first_call);

/* True while a message is being sent from the parameters, which must not change then. */
bool at_param_sender_is_reading(const at_param_sender *sender);

/* The parameters have changed. */
void at_param_sender_publish(at_param_sender *sender, uint64_t version);

/* Requests that a worker gets an order, or the newest parameters. Sent by the next flush. */
void at_param_sender_order(at_param_sender *sender, at_node worker, const at_order *order);
void at_param_sender_want(at_param_sender *sender, at_node worker);

/* The worker has parameters of this version without having been sent any. */
void at_param_sender_assume(at_param_sender *sender, at_node worker, uint64_t version);

/* Sends what is requested and can be sent now. */
void at_param_sender_flush(at_param_sender *sender);

/* Sends another message at once; false while the previous one has not been received. `text` (a host
 * name, or NULL) follows the head. */
bool at_param_sender_message(at_param_sender *sender, at_node worker, const at_hub_message *message,
                             const char *text);

/* A call of the sender has ended. Returns the worker it was to. */
at_node at_param_sender_done(at_param_sender *sender, uint32_t call);

/* Bytes of parameters sent to a worker since the last call. */
uint64_t at_param_sender_count(at_param_sender *sender, at_node worker);

/* True when the worker has received everything that was sent to it. */
bool at_param_sender_idle(const at_param_sender *sender, at_node worker);

/* Stops sending parameters and orders to a lost worker. Buffers that it has not received are never
 * reused, because MPI may still read them. */
void at_param_sender_lose(at_param_sender *sender, at_node worker);

#endif
