/* seat_wire.h - messages between the hub and a seat. Internal to world/.
 *
 *     seat ──GREETING──►   hub      only over a network: protocol, a random number
 *     hub  ──CHALLENGE──►  seat     protocol, a random number, digest of the seat's
 *     seat ──PROOF──►      hub      digest of that number and the token
 *     seat ──ASK_JOB──►    hub      only our own workers: what is trained?
 *     hub  ──JOB──►        seat     the options of the run as JSON
 *     seat ──PROBE──►      hub      how many bytes to answer with, and any bytes; instead of HELLO
 *     hub  ──PROBE──►      seat     that many bytes
 *     seat ──HELLO──►      hub      its spec (seat_spec.h) as JSON, or of our own the job's hashes
 *     seat ──READY──►      hub      only our own workers: the engine is loaded
 *     hub  ──ASK_PARAMS──► seat     only the one whose spec counts
 *     seat ──PARAMS──►     hub      initial values
 *     hub  ──WELCOME──►    seat     what it needs to know as JSON, with three descriptors or,
 *                                   over a network, followed by the parameters
 *     hub  ──REFUSED──►    seat     a sentence; the connection is closed
 *     seat ──PUT──►        hub      a named tensor to keep
 *     seat ──GET, NAME──►  hub ──VALUE──► seat
 *     seat ──PUBLISHED──►  hub      the tensors it has put are those of this version
 *
 * Each message is a head (net/frame.h) and bytes. On one machine that is all, since rounds use
 * shared memory; over a network (net/link.h) these carry what is written there:
 *
 *     hub  ──NET_PARAMS, NET_ORDER, NET_NEWS──► seat
 *     seat ──NET_REPORT, NET_WORD──►            hub
 *
 * What a peer sends may be anything: it is an at_err, never asserted on.
 */
#ifndef AT_WORLD_SEAT_SEAT_WIRE_H
#define AT_WORLD_SEAT_SEAT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/time.h"
#include "base/token.h"
#include "net/link.h"
#include "step/rules/rule.h"

enum {
    AT_SEAT_PROTOCOL = 5, /* increases with every change of a message */
    AT_SEAT_DIGEST = 32,
    AT_SEAT_NONCE = 16,
    AT_SEAT_FDS = 3,             /* of a WELCOME: parameters, bells, seat */
    AT_SEAT_RULES = 4,           /* of a WELCOME */
    AT_SEAT_PROBE_MAX = 15 << 20 /* bytes of a PROBE, and of its answer */
};

/* The families of rules that a worker follows. */
static const enum at_family at_seat_rules[AT_SEAT_RULES] = {AT_GATHER, AT_RELEASE, AT_NEWER,
                                                            AT_STALE};

typedef enum at_seat_message_kind {
    AT_SEAT_CHALLENGE,
    AT_SEAT_PROOF,
    AT_SEAT_HELLO,
    AT_SEAT_ASK_PARAMS,
    AT_SEAT_PARAMS,
    AT_SEAT_WELCOME,
    AT_SEAT_REFUSED,
    AT_SEAT_PUT,
    AT_SEAT_GET,
    AT_SEAT_NAME,
    AT_SEAT_VALUE,
    AT_SEAT_PUBLISHED,
    AT_SEAT_GREETING,
    AT_SEAT_ASK_JOB,
    AT_SEAT_JOB,
    AT_SEAT_OWN_HELLO,
    AT_SEAT_READY,
    AT_SEAT_NET_PARAMS,
    AT_SEAT_NET_ORDER,
    AT_SEAT_NET_NEWS,
    AT_SEAT_NET_REPORT,
    AT_SEAT_NET_WORD,
    AT_SEAT_PROBE,
    AT_SEAT_MESSAGE_KINDS
} at_seat_message_kind;

/* Reserved name under which the hub keeps the parameters of a run that updates at the workers. */
#define AT_SEAT_PARAMS_NAME "\x01params"

/* The sentence of a REFUSED that is not a mistake of anybody. */
#define AT_SEAT_OVER "the run is over"

/* Payload of GREETING and CHALLENGE. */
typedef struct at_seat_challenge {
    uint32_t      protocol; /* little-endian */
    unsigned char nonce[AT_SEAT_NONCE];
    unsigned char proof[AT_SEAT_DIGEST]; /* CHALLENGE over a network: the hub's; else zeros */
} at_seat_challenge;

/* A message that is arriving. */
typedef struct at_seat_inbox {
    unsigned char        head[16];
    size_t               head_have;
    at_seat_message_kind kind;
    unsigned char       *bytes; /* of the message, with a zero byte behind them */
    size_t               size, have;
    size_t               size_max; /* larger ones are an error */
    int                  fd[AT_SEAT_FDS];
    uint64_t             received; /* bytes, of all messages */
    uint32_t             fds;
    bool                 complete; /* call at_seat_inbox_next before the next read */
} at_seat_inbox;

/* Reads what has arrived, without waiting, until a message is complete. AT_ERR_MISSING: the peer
 * has gone; AT_ERR_FORMAT: it sent something else. */
at_err at_seat_inbox_read(at_seat_inbox *inbox, int fd, at_fail *fail);

/* Discards the message; its descriptors are closed unless their entry is -1. */
void at_seat_inbox_next(at_seat_inbox *inbox);

/* Takes the complete message of a link, as if it had come through a Unix socket. */
void at_seat_inbox_adopt(at_seat_inbox *inbox, at_link *link);

void at_seat_inbox_deinit(at_seat_inbox *inbox); /* accepts a zeroed one */

/* Bytes to send; a message may have two parts. */
typedef struct at_seat_part {
    const void *bytes;
    size_t      size;
} at_seat_part;

/* Sends a message, until the time `until` at the latest. AT_ERR_MISSING: the peer has gone. */
at_err at_seat_send(int fd, at_seat_message_kind kind, at_seat_part first, at_seat_part second,
                    const int *fds, at_ns until, at_fail *fail);

/* Waits until the socket can be read; false after `until`. *interrupted: a signal came. */
bool at_seat_await(int fd, at_ns until, bool *interrupted);

/* True when the other end was closed. */
bool at_seat_hung_up(int fd);

/* Fills `digest` with what proves the knowledge of the token to whoever chose the random number.
 * The proof of a hub is not that of a seat, so neither can be used in place of the other. */
void at_seat_prove(const char token[AT_TOKEN_SIZE], const unsigned char nonce[AT_SEAT_NONCE],
                   bool of_hub, unsigned char digest[AT_SEAT_DIGEST]);

/* A listening socket at `path`, and a connection to one. Paths may be longer than a socket address:
 * the folder is opened first. AT_ERR_MISSING: nobody listens there. */
at_err at_seat_listen(const char *path, int *fd, at_fail *fail);
at_err at_seat_connect(const char *path, int *fd, at_fail *fail);

#endif
