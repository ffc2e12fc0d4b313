/* seat_client.h - a seat, in the process that has taken it. Internal to world/seat.
 *
 *     seat_join.c    finds the hub, proves the token, maps the shared memory
 *     seat_link.c    a hub on another machine: messages instead of shared memory
 *     seat.c         rounds, through the driver of all workers (world/core/driver.h)
 *     seat_rejoin.c  tries to reconnect to a hub on another machine
 *     seat_state.c   named tensors that the hub keeps
 */
#ifndef AT_WORLD_SEAT_SEAT_CLIENT_H
#define AT_WORLD_SEAT_SEAT_CLIENT_H

#include "base/machine.h"
#include "net/address.h"
#include "net/link.h"
#include "world/core/driver.h"
#include "world/core/packings.h"
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

    /* A hub on another machine: the memory below is private, and messages keep it up to date. */
    at_link          *link; /* NULL: the hub is on this machine */
    at_tls           *tls;
    unsigned char     nonce[AT_SEAT_NONCE];
    float            *incoming;   /* parameters that are arriving; NULL: they go to their place */
    uint32_t          arrivals;   /* messages of rounds */
    bool              has_params; /* the first have arrived */
    bool              reporting;  /* a report is being sent */
    at_packings       packings;
    const at_packing *packs_params, *packs_gradient; /* of `packings`; NULL: sent as they are */
    void             *packed_params, *packed_gradient;
    float            *residual; /* of packs_gradient */
    char              hub[AT_NET_LIST_SIZE];
    bool              rejoining; /* the connection was lost, and another one is tried */
    at_ns             reconnect; /* for how long; 0: never */
    at_ns             rejoin_until, rejoin_at, rejoin_pause;
    uint32_t          useless; /* connections in a row without a report that was read */

    /* As the hub said. */
    uint32_t         rank, workers_start;
    uint64_t         seed;
    at_ns            spin_ns;
    uint32_t         spins_skipped; /* how often not to spin from now on */
    at_cores         cores;         /* known: those of the thread, which stays where it is */
    bool             in_place;      /* parameters do not change while a seat computes */
    at_seat_file     params_file, bells_file, slot_file, incoming_file;
    float           *newest; /* parameters of the version that the board says */
    at_plan          plan;   /* what the state machine needs of it */
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
    int      ended;      /* the status that ended it */
    bool (*stops)(void); /* whether to give up waiting for the hub (seat_link.c); NULL: never */
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

/* Sends a message to the hub, until `until` at the latest. (seat_link.c, as the next ones) */
at_err at_seat_tell(at_seat *seat, at_seat_message_kind kind, at_seat_part first,
                    at_seat_part second, at_ns until, at_fail *fail);

/* Waits until a message has arrived (seat->inbox.complete), at the latest until `until`; those of
 * rounds are taken on the way. AT_OK without one: it is too late, or a signal came
 * (*interrupted, which may be NULL: it goes on). AT_ERR_MISSING: the hub is gone, or seat->stops
 * says so. */
at_err at_seat_hear(at_seat *seat, at_ns until, bool *interrupted, at_fail *fail);

/* Whether the hub has refused us (seat->inbox has its sentence) before it closed the connection.
 * Does not wait. */
bool at_seat_hears_refusal(at_seat *seat);

/* Connects to a hub on another machine and greets it. AT_ERR_MISSING: there is none. */
at_err at_seat_dial(at_seat *seat, const char *hub, at_fail *fail);

/* Reserves the memory that a hub on this machine would share, for as many gradients as any hub may
 * ask for: the one that comes back may ask for more than the one that was lost. */
at_err at_seat_link_memory(at_seat *seat, at_fail *fail);

/* Vectors are packed by --compress; residuals begin at zero. */
at_err at_seat_link_pack(at_seat *seat, const at_packings *packings, at_fail *fail);

/* Moves bytes in both directions without waiting; a connection that has ended makes the seat
 * lost. */
void at_seat_pump(at_seat *seat);

/* Sends a report; false: not all of it yet, call it again. */
bool at_seat_link_report(at_seat *seat, const at_report *report);

/* Tells the hub about flags that were set in the slot, and possibly an evaluation. */
void at_seat_link_word(at_seat *seat, const at_seat_score *score);

/* Continues with the messages until the seat is taken, at the latest until `until`: JOINED, LOST,
 * FAILED or, with wait_ms, AGAIN. (seat_join.c) */
int at_seat_proceed(at_seat *seat, at_ns until, at_fail *fail);

/* True when a seat without its hub shall try to get it back; begin, then call at_seat_rejoin until
 * it returns JOINED or LOST instead of AGAIN. (seat_rejoin.c) */
bool at_seat_comes_back(at_seat *seat);
void at_seat_rejoin_begin(at_seat *seat);
int  at_seat_rejoin(at_seat *seat);

/* ---- for our own workers (world/net) ---- */

/* What a WELCOME says. Its texts are the JSON's. */
typedef struct at_seat_welcome {
    int        workers, workers_max, micro, incarnation, slots;
    json_int_t rank, seed, sequence, sample_time, round_ns, rounds, spin, floats, base, drawn,
        redrawn;
    int         cut_after;
    const char *straggler, *scale;
    double      trace_scale;
    const char *compress;
    json_t     *rules;
} at_seat_welcome;

/* Reads and checks it. (seat_join.c, as the next ones) */
at_err at_seat_welcome_read(json_t *json, at_seat_welcome *welcome, at_fail *fail);

/* Answers the CHALLENGE in seat->inbox. AT_ERR_USAGE: the hub has another token. */
at_err at_seat_answer(at_seat *seat, at_fail *fail);

/* Over a network the parameters follow the welcome: waits for them. */
at_err at_seat_await_params(at_seat *seat, at_fail *fail);

/* A worker's side of the connection to the hub. (seat.c) */
at_transport at_seat_transport(at_seat *seat);

/* Begins the rounds of a seat whose memory is mapped. False: the hub is gone. (seat.c) */
bool at_seat_begin(at_seat *seat, const at_seat_welcome *welcome);

#endif
