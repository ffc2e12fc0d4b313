/* seat_client.h - a seat, in the process that has taken it. Internal to world/seat.
 *
 *     seat_join.c    finds the hub, proves the token, maps the shared memory
 *     seat.c         rounds, through the driver of all workers (world/core/driver.h)
 *     seat_state.c   named tensors that the hub keeps
 */
#ifndef AT_WORLD_SEAT_SEAT_CLIENT_H
#define AT_WORLD_SEAT_SEAT_CLIENT_H

#include "base/machine.h"
#include "world/core/driver.h"
#include "world/seat/seat_memory.h"
#include "world/seat/seat_spec.h"
#include "world/seat/seat_wire.h"

typedef enum at_seat_stage {
    AT_SEAT_STAGE_NEW,     /* waits for the challenge */
    AT_SEAT_STAGE_GREETED, /* has said what it trains, waits for a place */
    AT_SEAT_STAGE_SEATED,
    AT_SEAT_STAGE_OVER /* DONE, EVICTED or LOST was returned */
} at_seat_stage;

struct at_seat {
    at_seat_stage stage;
    at_spec       spec;
    float        *given;                   /* params of the caller's spec; may be NULL */
    bool          installs;                /* parameters are written there */
    bool          whole_pages, overwrites; /* see at_seat_spec */
    int           rank_wanted;
    uint32_t      wait_ms;
    int           fd;
    at_seat_inbox inbox;
    char          token[AT_TOKEN_SIZE];

    /* As the hub said. */
    uint32_t         rank, workers_start;
    uint64_t         seed;
    at_ns            spin_ns;
    uint32_t         spins_skipped; /* how often not to spin from now on */
    at_cores         cores;         /* known: those of the thread, which stays where it is */
    bool             in_place;      /* parameters do not change while a seat computes */
    at_seat_file     params_file, bells_file, slot_file;
    at_plan          plan; /* what the state machine needs of it */
    at_pace         *pace;
    at_world_context context;

    /* Rounds. */
    at_driver     driver;
    at_micro      micro;
    bool          in_micro; /* `micro` was handed out */
    uint64_t      order_seen;
    float        *copy;    /* of the parameters; NULL: they are read in place */
    bool          overlay; /* `copy` shows the hub's parameters */
    uint64_t      version; /* of the parameters last handed out */
    uint64_t      closed;  /* version at the start of the last round; AT_VERSION_NONE: none */
    at_seat_group group[AT_SEAT_GROUPS_MAX];
    /* Updates at the workers. */
    uint64_t applied;      /* version that its parameters have */
    uint64_t publish_seen; /* requests of the hub */
    bool     installed;    /* the first order said that the parameters are new */
    bool     publishing;   /* the tensors put since the order are to be announced */
    at_ns    aside_since;  /* 0: not aside */
    bool     lost, interrupted;
    int      ended; /* the status that ended it */
};

/* What everybody may know. */
static inline at_seat_board *at_seat_board_of(const at_seat *seat)
{
    return seat->params_file.memory;
}

/* Where hub and seats wait. */
static inline at_seat_bells *at_seat_bells_of(const at_seat *seat)
{
    return seat->bells_file.memory;
}

/* Its own entry. */
static inline at_seat_slot *at_seat_slot_of(const at_seat *seat)
{
    return seat->slot_file.memory;
}

/* Begins the rounds of a seat whose memory is mapped. False: the hub is gone. (seat.c) */
bool at_seat_begin(at_seat *seat, uint32_t incarnation, uint32_t slots, uint64_t sequence);

#endif
