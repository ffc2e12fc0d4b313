/* net_worker.h - one of our own workers, whose hub is on another machine.
 *
 *     at_net_ask_job     what is trained: the options of the run, to load model and data
 *     at_net_work        takes a seat and computes, until the hub says that the run is over
 *
 * A worker that loses its hub tries to reconnect for a while, with growing pauses: the hub may be
 * restarted, or the network may be down. What the worker has computed since its last report is then
 * lost, and those samples are drawn again.
 */
#ifndef AT_WORLD_NET_NET_WORKER_H
#define AT_WORLD_NET_NET_WORKER_H

#include <jansson.h>

#include "base/time.h"
#include "world/core/world.h"

/* Where a worker joins. */
typedef struct at_net_join {
    const char *hub;               /* see at_net_list_read; a file is read before each attempt */
    const char *token_file;        /* a copy of RUN/token */
    at_ns       reconnect;         /* how long it tries to reach a hub */
    void (*say)(const char *text); /* tells the user; NULL: nobody listens */
    bool *refused;                 /* set by at_net_work: a hub has refused to seat us */
} at_net_join;

/* Asks the hub; *options is owned by the caller, and NULL when the run is over. AT_ERR_USAGE: it
 * refuses us; AT_ERR_MISSING: it could not be reached in time. */
at_err at_net_ask_job(const at_net_join *join, json_t **options, at_fail *fail);

/* Works for context->joins, with the task of the context. AT_OK, too, if the run is over before it
 * has joined. */
at_err at_net_work(const at_world_context *context, at_fail *fail);

#endif
