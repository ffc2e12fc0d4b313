/* server.h - the live dashboard: a small web server that reads run folders and changes nothing.
 *
 *     run folders ─► tails ─► GET /               the page, /assets/NAME what it is made of
 *                             GET /api/runs       which runs there are and how they stand
 *                             GET /api/story      ?run=INDEX&since=SERIAL: a summary, or its news
 *                             GET /api/stream     an event whenever there is something new
 *                             GET /metrics        for Prometheus
 *                             GET /healthz        "ok"
 *
 * One thread, no locks: at_server_run serves and polls by turns. Everything is bounded: how many
 * clients there are, what each may send, how long one may be silent.
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
    AT_SERVER_CLIENTS_MAX = 512, /* connections at a time; who comes then has to wait */
    AT_SERVER_STREAMS_MAX = 224, /* of which at most so many stay open for news */
    AT_SERVER_URL_SIZE = 256
};

typedef struct at_server at_server;

typedef struct at_server_options {
    at_address         address;
    const char        *token;   /* see token.h */
    const char *const *folders; /* of the runs; those that do not exist are waited for */
    size_t             count;   /* 1 .. AT_SERVER_RUNS_MAX */
} at_server_options;

/* Listens. AT_ERR_IO when the port is taken. */
at_err at_server_open(const at_server_options *options, at_server **server, at_fail *fail);

/* The address to open, token included. */
void at_server_url(const at_server *server, char url[AT_SERVER_URL_SIZE]);

/* Serves until `stop` says so, which it is asked several times a second and after every signal.
 * Clients are told the last news before it returns. */
void at_server_run(at_server *server, bool (*stop)(void));

/* Accepts NULL. */
void at_server_close(at_server *server);

#endif
