/* link.h - `anytime link`: what do messages cost?
 *
 *     a round of P floats, without a model (world/core/empty_round.h)
 *     ─► local: against the same loops in one process; then with more and more workers
 *     ─► MPI, when a launcher has started us: against a bare ping-pong of the same size
 */
#ifndef AT_CLI_VERBS_LINK_H
#define AT_CLI_VERBS_LINK_H

#include <jansson.h>

#include "cli/options/options.h"

enum { AT_LINK_SIZES_MAX = 16, AT_LINK_CROWDS_MAX = 17 };

/* One size: medians of a round in seconds. */
typedef struct at_link_size {
    size_t floats;
    double loops; /* in one process: what memory and processor allow */
    double solo;  /* local: --workers 0, with hub, worker and record */
    double trip;  /* MPI: a vector there and back, ping-pong */
    double bare;  /* MPI: the loops, with the plainest calls of MPI between them */
    double world; /* local: one worker in a process of its own; MPI: all ranks */
} at_link_size;

/* One number of workers. */
typedef struct at_link_crowd {
    uint32_t workers;
    double   round; /* seconds */
} at_link_crowd;

typedef struct at_link_report {
    bool          mpi;
    uint32_t      workers; /* MPI: ranks but the hub */
    uint32_t      cores;
    double        ring_awake, ring_asleep; /* there and back by bells, carrying nothing; seconds */
    at_link_size  size[AT_LINK_SIZES_MAX];
    uint32_t      sizes;
    size_t        crowd_floats;
    at_link_crowd crowd[AT_LINK_CROWDS_MAX];
    uint32_t      crowds;
} at_link_report;

/* The document; NULL when there is no memory. (link_show.c) */
json_t *at_link_json(const at_link_report *report);

/* Prints both tables. */
at_err at_link_print(const at_link_report *report, at_fail *fail);

#endif
