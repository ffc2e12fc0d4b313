/* link.h - one connection: messages in both directions, plain or encrypted, never waiting.
 *
 *     at_link_post ─► queue ─► at_link_flush ─► socket ─► at_link_receive ─► link->message
 *
 * A message is a few bytes, which are copied into the queue or collected in memory of the link, and
 * possibly a vector behind them, which is sent from where it is and received where it belongs:
 * `place` of the receiver says where, when it has seen the first bytes.
 *
 * An accepted connection is plain or encrypted as its first byte says; plain ones are refused
 * unless the peer is on this machine.
 */
#ifndef AT_NET_LINK_H
#define AT_NET_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/link_stats.h"
#include "base/time.h"
#include "net/frame.h"
#include "net/tls.h"

/* A message that is arriving, or has arrived. */
typedef struct at_link_message {
    uint32_t       kind;
    unsigned char *bytes; /* the collected ones, with a zero byte behind them */
    size_t         size;  /* of them */
    void          *vector;
    size_t         vector_size; /* in bytes */
} at_link_message;

/* Which messages a link accepts, and where their vectors go. */
typedef struct at_link_receiver {
    void    *self;
    uint32_t kinds;    /* they are below this */
    size_t   size_max; /* of collected bytes */
    /* How many bytes of a message of this kind are collected in front of a vector; SIZE_MAX: all,
     * it has none. Optional: no message has a vector. */
    size_t (*collects)(void *self, uint32_t kind);
    /* Where the vector of this message goes: message->vector, for message->vector_size bytes. An
     * error ends the connection. */
    at_err (*place)(void *self, at_link_message *message, at_fail *fail);
} at_link_receiver;

typedef enum at_link_state {
    AT_LINK_UNDECIDED, /* accepted; its first byte decides */
    AT_LINK_HANDSHAKE,
    AT_LINK_OPEN
} at_link_state;

struct at_link_item;

typedef struct at_link {
    int              fd;
    at_link_state    state;
    bool             may_be_plain;
    at_tls          *tls;
    at_tls_end      *end; /* NULL: not encrypted */
    at_link_receiver receiver;
    /* Receiving. */
    unsigned char   head[AT_FRAME_HEAD];
    size_t          head_have, have;
    bool            placed;   /* the vector's place is known */
    bool            complete; /* call at_link_next before the next one is received */
    bool            more;     /* something that has arrived may be unread; see at_link_receive */
    at_link_message message;
    uint64_t        received; /* bytes, of all messages */
    /* Sending. */
    struct at_link_item *first, *last;
    size_t               queued; /* bytes that the queue owns */
    uint64_t             posted; /* bytes, of all messages, as the next one */
    uint64_t             sent;
} at_link;

/* Our end of a connection that was made: encrypted if `encrypts`. Takes the socket over, also after
 * an error. `tls` is borrowed. */
at_err at_link_connected(int fd, at_tls *tls, bool encrypts, const at_link_receiver *receiver,
                         at_link **link, at_fail *fail);

/* Our end of a connection that was accepted. */
at_err at_link_accepted(int fd, at_tls *tls, bool may_be_plain, const at_link_receiver *receiver,
                        at_link **link, at_fail *fail);

/* Closes it at once; what is queued is lost. Accepts NULL. */
void at_link_free(at_link *link);

/* Reads until a message is complete or nothing more has arrived, but only a part of a message that
 * comes in many small records: link->more is true then. AT_ERR_MISSING: the other end is
 * gone; AT_ERR_FORMAT: it sends something else; AT_ERR_USAGE: it has another token. */
at_err at_link_receive(at_link *link, at_fail *fail);

/* Discards the message. */
void at_link_next(at_link *link);

/* Queues a message. `bytes` are copied; `vector` is borrowed and MUST stay as it is until it was
 * sent, see at_link_detach. */
at_err at_link_post(at_link *link, uint32_t kind, const void *bytes, size_t size,
                    const void *vector, size_t vector_size, at_fail *fail);

/* Sends what can be sent now. */
at_err at_link_flush(at_link *link, at_fail *fail);

/* Nothing is queued. */
bool at_link_is_idle(const at_link *link);

/* Copies what is unsent of queued vectors, which may change after that. */
at_err at_link_detach(at_link *link, at_fail *fail);

/* Fills in times and counters of the connection; the names are the caller's. */
void at_link_measure(const at_link *link, at_link_stats *stats);

/* Waits until something can be received or sent, at most until `until`; false: nothing. A signal
 * ends it, too, and sets *interrupted. */
bool at_link_await(const at_link *link, at_ns until, bool *interrupted);

#endif
