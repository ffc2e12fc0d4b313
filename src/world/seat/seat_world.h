/* seat_world.h - the world of seats, hub side. Internal to world/seat.
 *
 *     seat_world.c     the loop, and what the host asks for
 *     seat_reports.c   reads what seats have written, and checks it
 *     seat_places.c    gives seats to guests, takes them back, starts programs again
 *     seat_save.c      checkpoints: what is saved, when it is there, and how it comes back
 */
#ifndef AT_WORLD_SEAT_SEAT_WORLD_H
#define AT_WORLD_SEAT_SEAT_WORLD_H

#include "world/core/host.h"
#include "world/core/packings.h"
#include "world/seat/seat_hub.h"

/* One seat: the place of a worker. */
typedef struct at_seat_chair {
    at_guest    *guest;        /* NULL: free */
    at_seat_file file, before; /* of its holder, and of an earlier one with a gradient */
    int64_t      child;        /* rank of our process that holds it; -1: another process */
    uint32_t     incarnation;
    uint64_t     taken;                       /* reports that were read */
    uint64_t     scores;                      /* evaluations that were read */
    uint64_t     drawn;                       /* as of the last loss */
    uint64_t     received;                    /* bytes of its vectors that were counted */
    bool         reported, evicted, nonsense; /* nonsense: the reason of its eviction */
    at_ns        grace;                       /* no lease before this time */
    at_ns        joined;                      /* when */
    bool         named;                       /* the user knows that it has not reported yet */
} at_seat_chair;

typedef struct at_seat_world {
    const at_world_context *context;
    at_seat_hub            *seats;
    at_host                 host;
    at_updater              updater;
    at_learning             learning;
    at_torch_learning       torch; /* the numbers follow the first seat */
    at_seat_file            params;
    size_t                  floats;    /* of the parameters, and of a gradient */
    at_evaluator           *evaluator; /* NULL: the seats evaluate */
    at_seat_chair          *chair;     /* workers_max */
    bool                   *left;      /* ranks that have left: they are not started again */
    uint32_t                cast_mask;
    at_ns    spin_ns, seat_spin_ns; /* of the hub and of its seats, before sleeping */
    at_ns    round_ns;              /* of the seats, smoothed */
    at_ns    first_ns;              /* longest from taking a seat to the first report; 0: none */
    int      core;                  /* shared with the only seat; -1: not shared */
    bool     stopping, in_place;
    at_node  asked_id; /* seat that was asked for its parameters; 0: none */
    uint64_t asked_version;
    bool     save_waits; /* for the parameters that a seat was asked for */
    at_ns    look_at;    /* when connections are read at the latest */
    at_ns    measure_at; /* when they are measured */
    at_ns    said_at;    /* when a refused connection was mentioned last */
    at_node  doubted_id; /* worker whose loss was no number, while nobody knows yet whether those of
                            others are; 0: none */
    uint64_t doubted_version;
    uint32_t slots;
    at_packings packings; /* of messages to other machines */
    void       *packed;   /* the parameters of .. */
    uint64_t    packed_version;
    at_fail     failure; /* why the run cannot go on; AT_OK: it can */
} at_seat_world;

/* Capacity of the run. */
static inline uint32_t at_seat_workers_max(const at_seat_world *w)
{
    return w->context->plan->workers_max;
}

/* What everybody may know. */
static inline at_seat_board *at_seat_world_board(const at_seat_world *w)
{
    return w->params.memory;
}

/* The memory of who holds the seat. */
static inline at_seat_slot *at_seat_chair_slot(const at_seat_chair *c)
{
    return c->file.memory;
}

/* Where the hub waits. */
static inline at_bell *at_seat_world_bell(const at_seat_world *w)
{
    return at_seat_hub_bell(w->seats);
}

/* ---- seat_world.c ---- */

/* Runs the hub of context->seats: the `run` of a world. */
at_err at_seat_world_run(const at_world_context *context, at_outcome *outcome, at_fail *fail);

/* Workers on this machine: none, if others start them. */
uint32_t at_seat_world_workers_here(const at_world_context *context);

/* Wakes the seats that have something to read. */
void at_seat_flush(void *world);

/* Ends a worker for good. A process of ours is killed, and its end follows; others are told, and
 * lose their seat in the next turn of the loop. */
void at_seat_evict(void *world, at_node worker);

/* Records the connection to a worker; does nothing for one on this machine. */
void at_seat_measure(at_seat_world *world, at_node id);

/* ---- seat_reports.c ---- */

/* Reads and delivers the reports of a seat; those that cannot be right evict it. */
void at_seat_read_reports(at_seat_world *world, at_node id);

/* Reads and delivers evaluations; only the first seat's count. */
void at_seat_read_scores(at_seat_world *world, at_node id);

/* Tells the user something about a worker. */
void at_seat_say(at_seat_world *world, at_node id, const char *text);

/* ---- seat_places.c ---- */

/* What a worker drew, by its own count; but never less than was reported, whatever its memory
 * says. */
uint64_t at_seat_drawn(const at_seat_world *world, at_node id);

/* Gives seats to guests that are ready. */
void at_seat_place_guests(at_seat_world *world);

/* Takes the seats of those who have left, were evicted, or have hung up without being ours. */
void at_seat_part_ways(at_seat_world *world);

/* Reaps processes that have ended. */
void at_seat_reap(at_seat_world *world);

/* Updates at the workers: asks the first seat for its parameters, once for each version. */
void at_seat_ask_to_publish(at_seat_world *world);

/* Starts processes again when their time has come, and further ones that SIGUSR2 has asked for. */
void at_seat_start_again(at_seat_world *world);
void at_seat_start_more(at_seat_world *world);

/* ---- seat_save.c ---- */

/* at_world_ops.vectors: where seats update, the hub asks the first one for the parameters. */
bool at_seat_vectors(void *world, at_saver_input *input);

/* Writes a checkpoint that waits for parameters, if they have come; asks for them otherwise. */
void at_seat_save_if_due(at_seat_world *world);

/* Takes parameters and kept tensors from the checkpoint that the run is resumed from, after the
 * host was. */
at_err at_seat_resume(at_seat_world *world, at_fail *fail);

#endif
