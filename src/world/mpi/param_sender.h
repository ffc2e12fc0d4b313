/* param_sender.h - what the hub of the MPI world sends: newest parameters only, and never too much.
 *
 * Others say what a worker should get; mail goes out when there is a free lane to the worker. So a
 * worker that is behind gets the newest parameters and not each version, an order that waits is
 * replaced by a newer one, and nothing grows while somebody does not listen.
 *
 *     lanes to each worker:  2 of parameters │ 1 of orders that need none │ 1 of other mail
 *
 * Parameters go out from the hub's own vector where a step waits for everybody: nobody has anything
 * left to receive when the hub writes. Elsewhere they go out from a few copies ("letters"), one a
 * version, each shared by all who get that version.
 */
#ifndef AT_WORLD_MPI_PARAM_SENDER_H
#define AT_WORLD_MPI_PARAM_SENDER_H

#include "base/err.h"
#include "message/message.h"
#include "world/mpi/mpi_comm.h"

enum {
    AT_MPI_CHANNELS = 4,
    AT_MPI_SMALL =
        AT_HUB_MESSAGE_HEAD + AT_HOST_NAME_SIZE, /* bytes of mail without parameters, at most */
    AT_MPI_LETTERS = 8 /* copies of parameters, at most; more only to replace those of the lost */
};

typedef struct at_mpi_letter at_mpi_letter;

/* One way to a worker, taken while its call is open. */
typedef struct at_mpi_channel {
    at_mpi_letter *letter; /* what is under way on a lane of parameters */
    unsigned char  small[AT_MPI_SMALL];
} at_mpi_channel;

/* What a worker got and should get. */
typedef struct at_mpi_address {
    bool           closed;  /* nothing goes there any more */
    uint64_t       version; /* newest parameters sent, AT_VERSION_NONE: none */
    bool           wants;   /* should get the newest parameters */
    bool           ordered; /* `order` waits to be sent */
    at_order       order;
    at_ns          mailed_at; /* when something was sent last */
    at_mpi_channel lane[AT_MPI_CHANNELS];
} at_mpi_address;

struct at_mpi_letter {
    unsigned char *bytes;
    uint64_t       version;
    uint32_t       users;  /* lanes on which it is under way */
    uint32_t       orders; /* behind the parameters */
};

typedef struct at_param_sender {
    at_mpi_calls   *calls;
    uint32_t        first_call; /* of workers x AT_MPI_CHANNELS */
    uint32_t        workers;
    size_t          params;
    at_mpi_letter   own; /* the hub's own vector */
    bool            in_place;
    at_mpi_letter  *letter;  /* copies; bytes NULL: not made yet */
    uint32_t        letters; /* that may be made */
    uint64_t        version;
    at_mpi_address *address; /* address[i] is of worker i+1 */
} at_param_sender;

/* Bytes of the largest mail: a head, parameters and an order for everybody. */
bool at_hub_message_size(size_t params, uint32_t workers, size_t *size);

/* Makes room for the parameters. They go out `in_place`, or from copies. */
at_err at_param_sender_open(at_param_sender *sender, size_t params, uint32_t workers, bool in_place,
                            at_fail *fail);
void   at_param_sender_close(at_param_sender *sender); /* accepts a zeroed one */

/* Where the parameters are; the hub changes them there. */
float *at_param_sender_params(at_param_sender *sender);

/* Gives it calls, workers x AT_MPI_CHANNELS of them. */
void at_param_sender_connect(at_param_sender *sender, at_mpi_calls *calls, uint32_t first_call);

/* Is something under way from where the parameters are? Then they must not change yet. */
bool at_param_sender_reads(const at_param_sender *sender);

/* They have changed. */
void at_param_sender_publish(at_param_sender *sender, uint64_t version);

/* A worker should get an order, or the newest parameters. Sent with the next `serve`. */
void at_param_sender_order(at_param_sender *sender, at_node worker, const at_order *order);
void at_param_sender_want(at_param_sender *sender, at_node worker);

/* Sends what waits and can be sent. */
void at_param_sender_serve(at_param_sender *sender);

/* Sends other mail at once; false when the last of its kind has not been taken yet. `text` (the
 * name of a host, or NULL) follows the head. */
bool at_param_sender_mail(at_param_sender *sender, at_node worker, const at_hub_message *mail,
                          const char *text);

/* A call of ours has ended. */
void at_param_sender_done(at_param_sender *sender, uint32_t call);

/* Was everything taken that was sent to this worker? */
bool at_param_sender_idle(const at_param_sender *sender, at_node worker);

/* Nothing but other mail goes to this worker any more. What is under way to it stays under way: its
 * memory is not used again. */
void at_param_sender_lose(at_param_sender *sender, at_node worker);

#endif
