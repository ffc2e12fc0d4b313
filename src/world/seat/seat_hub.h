/* seat_hub.h - the hub's side of its seats, before and during a run. Internal to world/.
 *
 *     at_seat_hub_open     listens, starts the processes
 *     at_seat_hub_gather   waits until it is known what is trained
 *     world/seat/seat_world.c runs the plan with whoever has taken a seat
 *     at_seat_hub_wait     waits for the processes to end
 *     at_seat_hub_close
 *
 * Connections are read when they have something to say (SIGIO rings the hub's bell), never waited
 * for. Whoever cannot prove the token, sends something malformed or trains something else is told
 * so and disconnected; nobody else notices.
 */
#ifndef AT_WORLD_SEAT_SEAT_HUB_H
#define AT_WORLD_SEAT_SEAT_HUB_H

#include "model_io/checkpoint.h"
#include "net/socket.h"
#include "step/event.h"
#include "world/seat/seat_children.h"
#include "world/seat/seat_memory.h"
#include "world/seat/seat_remote.h"
#include "world/seat/seat_spec.h"
#include "world/seat/seat_wire.h"

typedef enum at_guest_stage {
    AT_GUEST_NONE,
    AT_GUEST_CALLING, /* connected over a network, has not said anything */
    AT_GUEST_NEW,     /* challenged */
    AT_GUEST_PROVEN,  /* knows the token */
    AT_GUEST_ASKED,   /* its spec counts; its parameters were asked for */
    AT_GUEST_READY,   /* waits for a seat */
    AT_GUEST_SEATED
} at_guest_stage;

/* A connection. */
typedef struct at_guest {
    at_guest_stage stage;
    int            fd;
    at_remote      remote; /* of one on another machine; its link replaces fd and pid */
    char           peer[AT_NET_TEXT_SIZE];  /* its address */
    char           host[AT_LINK_NAME_SIZE]; /* as it names its machine; "": it did not */
    bool           ready;    /* something has arrived over its link, or can be sent */
    uint64_t       answered; /* bytes that had been posted to its link after the last answer */
    pid_t          pid;      /* of its process; 0: on another machine */
    at_ns          since;    /* its last progress */
    uint64_t       received; /* bytes, when that was */
    unsigned char  nonce[AT_SEAT_NONCE];
    at_seat_inbox  inbox;
    at_spec        spec;  /* from HELLO until it has a seat */
    int64_t        rank;  /* that it asks for; -1: any */
    int64_t        child; /* rank of the process of ours that it belongs to; -1: none */
    bool           hung_up;
    char           why[200]; /* it was disconnected; "": it has closed the connection */
    at_node        id;       /* of its seat */
} at_guest;

/* A tensor that seats have asked the hub to keep; checkpoints have them too. */
typedef at_checkpoint_vector at_kept_tensor;
_Static_assert((int)AT_CHECKPOINT_NAME_SIZE == (int)AT_SEAT_NAME_SIZE, "a name fits");

typedef struct at_seat_hub {
    char              socket_path[4096], token_path[4096];
    dev_t             socket_device; /* with its number: which file the socket is */
    ino_t             socket_number;
    char              token[AT_TOKEN_SIZE];
    bool              keeps_token;   /* its file stays when the hub ends */
    int               fd;            /* listening */
    int               net_fd, epoll; /* listening to other machines; -1: not */
    at_tls           *tls;
    char              address[AT_NET_TEXT_SIZE]; /* where it listens */
    char              refused[400]; /* a line about the last one that was refused; "": none */
    at_ns             join_timeout;
    bool              few_is_fine; /* the run may begin with fewer workers than expected */
    at_seat_children *children;
    at_ns            *restart_at; /* of each rank; AT_NEVER: it is not to be started */
    bool             *sat;        /* each rank: its process has had a seat */
    uint32_t          ranks, ranks_max;
    bool              stopping; /* a signal came after the run */
    bool              over;     /* the run ends: nobody needs to load what is trained */
    at_seat_file      bells;
    at_guest         *guest;
    uint32_t          guests_max;
    bool              unread; /* more has arrived than was read; the bell has rung */
    /* What is trained, once known. */
    bool            known;
    at_spec         spec;
    float          *params;
    at_ns           first_hello; /* 0: nobody has said hello */
    uint64_t        base;     /* updates at the workers: version of the parameters that are kept */
    uint64_t        newest;   /* version of the run: nobody can have later ones */
    at_node         first_id; /* the lowest seat that is taken; 0: none */
    at_kept_tensor *kept;
    uint32_t        kept_count;
    size_t          kept_size; /* bytes */
    /* Workers of our own instead of programs. */
    const char *job;                /* options of the run as JSON; NULL: programs */
    uint64_t    part[AT_JOB_PARTS]; /* what must be the same everywhere */
    char        engine[AT_ENGINE_NAME_SIZE];
} at_seat_hub;

typedef struct at_seat_hub_options {
    const char     *folder; /* of the run: gets the socket and the token */
    at_seat_command command;
    at_ns           join_timeout;
    bool            few_is_fine;
    const char     *listen;     /* address for other machines; NULL: only this one */
    const char     *token_file; /* instead of a token in the folder; NULL: that */
} at_seat_hub_options;

/* Listens and starts the processes. */
at_err at_seat_hub_open(const at_seat_hub_options *options, at_seat_hub *hub, at_fail *fail);

/* Ends everything; accepts a zeroed one. */
void at_seat_hub_close(at_seat_hub *hub);

/* Waits until what is trained is known: hub->spec, hub->params. AT_ERR_FAILED with the last line of
 * errors of a process when that will not happen; AT_ERR_STOPPED after a signal. AT_OK and !known:
 * all processes have ended with 0 without taking a seat. */
at_err at_seat_hub_gather(at_seat_hub *hub, at_fail *fail);

/* After a run that has ended in order: tells those who wait for a seat, or are about to ask for it,
 * that it is over. Otherwise they would wait for the hub to come back. */
void at_seat_hub_dismiss(at_seat_hub *hub);

/* After the run: waits until all processes have ended; a signal is passed on to them, a second one
 * kills them. Returns the worst of their exit codes and says which in *fail. */
int at_seat_hub_wait(at_seat_hub *hub, at_fail *fail);

/* Accepts and reads what has arrived, and rings the hub's bell if more has than is read in one go.
 * Guests become READY; those who were seated and have hung up are marked. */
void at_seat_hub_poll(at_seat_hub *hub);

/* Starts the process of a rank, which has none. */
at_err at_seat_hub_start(at_seat_hub *hub, uint32_t rank, at_fail *fail);

/* A process has ended when the run was over. The code of one that came too late for a seat does not
 * count. */
void at_seat_hub_ended(at_seat_hub *hub, uint32_t rank);

/* Sends a message to a guest. `second` is copied for one on another machine. */
at_err at_seat_hub_send(at_guest *guest, at_seat_message_kind kind, at_seat_part first,
                        at_seat_part second, const int *fds, at_fail *fail);

/* Sends the answer to a question. A guest has one question at a time: one that asks again while the
 * last answer is queued does not read, and would fill the memory of the hub. */
at_err at_seat_hub_answer(at_guest *guest, at_seat_message_kind kind, at_seat_part first,
                          at_seat_part second, at_fail *fail);

/* Sets how long a message of a guest may be, without the gradients of one on another machine. */
void at_seat_hub_allow(at_guest *guest, size_t size_max);

/* Tells a guest why it cannot stay, and forgets it. */
void at_seat_hub_refuse(at_seat_hub *hub, at_guest *guest, const char *why);
void at_seat_hub_forget(at_guest *guest);

/* Keeps a tensor, in place of an earlier one of that name. */
at_err at_seat_hub_keep(at_seat_hub *hub, const char *name, const void *values, size_t size,
                        at_fail *fail);

/* Most bytes that the kept tensors should have: a program with a larger state cannot be saved. */
size_t at_seat_hub_kept_max(const at_seat_hub *hub);

/* Updates at the workers: the parameters of version hub->base. */
const float *at_seat_hub_params(at_seat_hub *hub);

/* ---- seat_hub_net.c: guests on other machines ---- */

/* Listens at `address`. */
at_err at_seat_net_open(at_seat_hub *hub, const char *address, at_fail *fail);
void   at_seat_net_close(at_seat_hub *hub); /* accepts one that does not listen */

/* Accepts connections and finds out which guests have something to read or to send. A flood of
 * strangers displaces strangers of its own address, and never those who have proven the token. */
void at_seat_net_poll(at_seat_hub *hub);

/* Sends what is queued and reads messages until one is complete that is not of a round: those go
 * to the memory of the seat. Begins none when `end` bytes have been received; then it is still
 * ready. */
at_err at_seat_net_read(at_guest *guest, uint64_t end, at_fail *fail);

/* Answers a PROBE. */
at_err at_seat_net_answer(at_guest *guest, at_fail *fail);

/* A place for a connection; NULL: there is none. */
at_guest *at_seat_hub_place(at_seat_hub *hub);

/* SIGIO tells of what arrives. It must never end the program. */
void at_seat_make_loud(int fd);

/* Rings the hub: at_seat_hub_poll has something to do, a child has ended, .. */
static inline at_bell *at_seat_hub_bell(const at_seat_hub *hub)
{
    return &((at_seat_bells *)hub->bells.memory)->hub;
}

#endif
