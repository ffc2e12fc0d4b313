/* server.h - the live dashboard: a small web server with read-only access to run folders.
 *
 *     run folders ─► followers ─► GET /               the page; /assets/NAME: its files
 *                                 GET /api/runs       the runs and their states
 *                                 GET /api/summary    ?run=INDEX&since=SERIAL: summary or update
 *                                 GET /api/stream     an event whenever there are new data
 *                                 GET /metrics        for Prometheus
 *                                 GET /healthz        "ok"
 *
 * One thread, no locks: at_server_run alternates between serving and polling. Everything is
 * bounded: the number of clients, the size of requests, the time without traffic.
 *
 *     at_server_open ─► at_server_url (print it) ─► at_server_run ─► at_server_close
 */
#ifndef AT_SERVE_SERVER_H
#define AT_SERVE_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "serve/address.h"

enum {
    AT_SERVER_RUNS_MAX = 64,
    AT_SERVER_CLIENTS_MAX = 512, /* simultaneous connections, if there are twice as many
                                    descriptors; further ones wait */
    AT_SERVER_STREAMS_MAX = 224, /* ... of which event streams */
    AT_SERVER_URL_SIZE = 256
};

typedef struct at_server at_server;

typedef struct at_server_options {
    at_address         address;
    const char        *token;   /* see token.h */
    const char *const *folders; /* of the runs; missing ones are waited for */
    size_t             count;   /* 1 .. AT_SERVER_RUNS_MAX */
} at_server_options;

/* Starts listening. AT_ERR_IO when the port is in use. */
at_err at_server_open(const at_server_options *options, at_server **server, at_fail *fail);

/* The URL of the page, including the token. */
void at_server_url(const at_server *server, char url[AT_SERVER_URL_SIZE]);

/* Serves until `stop` returns true; it is called several times per second and after every signal.
 * Clients get the last update before this returns. */
void at_server_run(at_server *server, bool (*stop)(void));

/* Accepts NULL. */
void at_server_close(at_server *server);

#endif
