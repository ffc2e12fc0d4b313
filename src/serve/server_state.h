/* server_state.h - state shared by the files of the server; inside the serve layer only. */
#ifndef AT_SERVE_SERVER_STATE_H
#define AT_SERVE_SERVER_STATE_H

#include "serve/access.h"
#include "serve/run_follower.h"
#include "serve/server.h"

struct MHD_Connection;
struct MHD_Daemon;
struct MHD_Response;

typedef struct at_event_stream at_event_stream;
typedef struct at_client       at_client;

/* Connections with a deadline, oldest last. */
typedef struct at_clients {
    at_client *newest, *oldest;
    size_t     waiting;
    unsigned   max; /* simultaneous connections */
} at_clients;

/* Clients usually request the same update, so it is built once. */
typedef struct at_cached_response {
    struct MHD_Response *response;
    uint64_t             since, revision; /* of the request, and of the follower at that time */
} at_cached_response;

struct at_server {
    struct MHD_Daemon *daemon;
    at_address         address;
    at_access          access;

    at_run_follower   *followers[AT_SERVER_RUNS_MAX];
    at_cached_response cached[AT_SERVER_RUNS_MAX];
    size_t             count;

    at_clients       clients;
    uint64_t         revision; /* increases whenever any run has new data */
    at_ns            now;      /* of the current iteration */
    bool             stopping;
    at_event_stream *streams;
    size_t           stream_count;
};

/* ---- responses.c ---------------------------------------------------------------------------- */

typedef struct at_reply {
    struct MHD_Response *response; /* NULL: out of memory */
    unsigned             status;
    bool                 cached; /* owned by the cache; otherwise by the caller */
} at_reply;

/* The response to a request that passed the access check. */
at_reply at_response(at_server *server, struct MHD_Connection *connection, const char *path);

/* The response to a request that did not pass. */
at_reply at_response_refuse(unsigned status, const char *text);

/* Releases the cached responses. */
void at_responses_forget(at_server *server);

/* ---- clients.c ------------------------------------------------------------------------------ */

/* For the library: a connection begins or ends. */
void at_clients_notify(void *clients, struct MHD_Connection *connection, void **context, int code);

/* Its request is complete and has the token: the deadline ends. Its answer is complete: the next
 * one begins. */
void at_clients_answering(at_clients *clients, struct MHD_Connection *connection);
void at_clients_answered(at_clients *clients, struct MHD_Connection *connection);

/* Closes connections whose deadline has passed; returns the next deadline. */
at_ns at_clients_check(at_clients *clients, at_ns now);

/* ---- stream.c ------------------------------------------------------------------------------- */

/* A response that stays open and signals new data; NULL when out of memory. */
struct MHD_Response *at_event_stream_open(at_server *server, struct MHD_Connection *connection);

/* Wakes the streams that have something to send: new data, the end, or a keep-alive. */
void at_event_streams_wake(at_server *server);

#endif
