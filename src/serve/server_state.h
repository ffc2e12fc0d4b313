/* server_state.h - what the parts of a server share; inside the serve layer only. */
#ifndef AT_SERVE_SERVER_STATE_H
#define AT_SERVE_SERVER_STATE_H

#include "serve/access.h"
#include "serve/run_follower.h"
#include "serve/server.h"

struct MHD_Connection;
struct MHD_Daemon;
struct MHD_Response;

typedef struct at_event_stream at_event_stream;

/* Clients that watch together ask for the same news: it is made once. */
typedef struct at_cached {
    struct MHD_Response *response;
    uint64_t             since, number; /* what it answers, and the tail's number then */
} at_cached;

struct at_server {
    struct MHD_Daemon *daemon;
    at_address         address;
    at_access          guard;

    at_run_follower *tails[AT_SERVER_RUNS_MAX];
    at_cached        cached[AT_SERVER_RUNS_MAX];
    size_t           count;

    uint64_t         news; /* grows whenever any tail has something new */
    at_ns            now;  /* of the loop's turn */
    bool             ending;
    at_event_stream *streams;
    size_t           stream_count;
};

/* ---- answers (answers.c) -------------------------------------------------------------------- */

typedef struct at_reply {
    struct MHD_Response *response; /* NULL: there was no memory */
    unsigned             status;
    bool                 kept; /* for others who ask the same; otherwise it is the caller's */
} at_reply;

/* The answer to a request that the guard let pass. */
at_reply at_response(at_server *server, struct MHD_Connection *connection, const char *path);

/* The answer to one that it did not. */
at_reply at_response_refuse(unsigned status, const char *text);

/* Releases the answers that were kept. */
void at_responses_forget(at_server *server);

/* ---- streams (stream.c) --------------------------------------------------------------------- */

/* An answer that stays open and tells of news; NULL when there is no memory. */
struct MHD_Response *at_event_stream_open(at_server *server, struct MHD_Connection *connection);

/* Wakes the streams that have something to tell: news, the end, or after a while that they live. */
void at_event_streams_wake(at_server *server);

#endif
