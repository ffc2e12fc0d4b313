/* seat_remote.h - a seat on another machine, as its hub sees it. Internal to world/.
 *
 *     hub's copy of the seat's memory  ◄── link ──►  the seat's own (seat_link.c)
 *
 * Such a seat has memory at the hub like one on this machine. What the seat writes to its own copy
 * arrives here as messages, gradients directly where they are summed; what the hub writes to the
 * seat's memory, and the parameters from where they are, is sent. So nobody else at the hub knows
 * where a seat is.
 */
#ifndef AT_WORLD_SEAT_SEAT_REMOTE_H
#define AT_WORLD_SEAT_SEAT_REMOTE_H

#include "message/compress.h"
#include "message/message.h"
#include "net/link.h"
#include "world/seat/seat_memory.h"

typedef struct at_remote {
    at_link            *link; /* NULL: the seat is on this machine */
    const at_seat_file *file; /* memory of the seat; NULL: it has none yet */
    size_t              floats;
    uint32_t            slots, groups;
    at_report_message   arriving;   /* the report whose gradient is being received */
    uint64_t            version;    /* of the parameters that were sent last */
    uint64_t            order_seen; /* lock of the order that was sent last */
    at_seat_news        news;       /* as sent last */
    bool                wants;      /* it has begun a round by itself: it needs newer parameters */
    const at_packing   *packing;    /* of its gradients; NULL: they are sent as they are .. */
    void               *packed;     /* .. otherwise they arrive here */
    uint64_t            sent, received; /* bytes of vectors */
} at_remote;

/* What is told to all of them. */
typedef struct at_remote_view {
    const at_seat_board *board;
    const void *(*params)(void *self); /* as they are sent; they stay there until they change */
    void  *self;
    size_t params_size; /* bytes */
    bool   on_wish;     /* seats start by themselves: parameters follow their reports */
    bool   streams;     /* rounds are interrupted: parameters are sent at once */
} at_remote_view;

/* What a link of a seat receives; `self` is the at_remote. */
at_link_receiver at_remote_receiver(at_remote *remote, size_t size_max);

/* The memory that a seat gets. */
typedef struct at_remote_place {
    const at_seat_file *file;
    size_t              floats; /* of a gradient */
    uint32_t            slots, groups;
    const at_packing   *packing; /* see at_remote */
} at_remote_place;

/* The seat has got memory: gradients and reports go there. */
at_err at_remote_seat(at_remote *remote, const at_remote_place *place, at_fail *fail);

/* Closes the connection. */
void at_remote_deinit(at_remote *remote);

/* True for messages of rounds, which at_remote_take writes to the memory of the seat. An error ends
 * the connection. */
bool   at_remote_is_mine(uint32_t kind);
at_err at_remote_take(at_remote *remote, const at_link_message *message, at_fail *fail);

/* Sends what the hub has written since the last call. */
at_err at_remote_tell(at_remote *remote, const at_remote_view *view, at_fail *fail);

#endif
