#include "serve/server.h"

#include <assert.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve/server_state.h"

enum {
    CLIENT_MEMORY = 16384, /* bytes for what one sends and gets, beside shared answers */
    CLIENT_SILENCE_S = 30, /* neither reads nor writes */
    CLIENTS_PER_HOST = 64, /* when others than this machine may come */
    BODY_SIZE_MAX = 65536, /* of requests that should have none */
    LAST_POLLS_MAX = 200
};

/* A log is written out once a second, or when there is much. */
static const at_ns poll_every = AT_MS(500), linger = AT_SEC(1);

/* ---- one request ---------------------------------------------------------------------------- */

/* From a request's first line to its end. */
typedef struct visit {
    size_t body; /* bytes that came with it and were thrown away */
} visit;

static at_request read_request(const at_server *server, struct MHD_Connection *connection,
                               const char *method, const char *path)
{
    assert(path);
    assert(method);
    return (at_request){
        .method = method,
        .path = path,
        .host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host"),
        .origin = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Origin"),
        .site = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Site"),
        .authorization = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization"),
        .cookie = MHD_lookup_connection_value(connection, MHD_COOKIE_KIND, server->guard.cookie),
        .token = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token")};
}

static enum MHD_Result reply_to(at_server *server, struct MHD_Connection *connection,
                                const at_request *request)
{
    assert(request->path);
    at_access_decision verdict = at_access_check(&server->guard, request);
    at_reply           reply;
    if (verdict.status == MHD_HTTP_OK)
        reply = at_response(server, connection, request->path);
    else
        reply = at_response_refuse(verdict.status, verdict.text);
    if (!reply.response) return MHD_NO; /* without memory the connection ends */
    enum MHD_Result queued = MHD_queue_response(connection, reply.status, reply.response);
    if (!reply.kept) MHD_destroy_response(reply.response);
    return queued;
}

/* The library calls this when a request's head is there, for each part of its body, and at its
 * end: the answer must wait until then, or the client would still be writing. */
static enum MHD_Result on_request(void *self, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **state)
{
    (void)version;
    (void)upload;
    visit *v = *state;
    if (!v) {
        *state = calloc(1, sizeof(visit));
        return *state ? MHD_YES : MHD_NO;
    }
    if (*upload_size > 0) {
        v->body += *upload_size;
        *upload_size = 0;
        return v->body <= BODY_SIZE_MAX ? MHD_YES : MHD_NO;
    }
    at_server *server = self;
    at_request request = read_request(server, connection, method, path);
    return reply_to(server, connection, &request);
}

static void on_request_end(void *self, struct MHD_Connection *connection, void **state,
                           enum MHD_RequestTerminationCode why)
{
    (void)self;
    (void)connection;
    (void)why;
    free(*state);
    *state = NULL;
}

/* ---- open and close ------------------------------------------------------------------------- */

static at_err no_memory(at_fail *fail)
{
    return at_fail_memory_for(fail, "to serve a dashboard");
}

static at_err open_tails(at_server *server, const at_server_options *options, at_fail *fail)
{
    assert(options->count <= AT_SERVER_RUNS_MAX);
    for (size_t i = 0; i < options->count; i++) {
        server->tails[i] = at_run_follower_new(options->folders[i]);
        if (!server->tails[i]) return no_memory(fail);
        server->count++;
    }
    return AT_OK;
}

static at_err listen_at(at_server *server, at_fail *fail)
{
    assert(!server->daemon);
    const at_address *address = &server->address;
    unsigned          flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;
    if (address->ipv6) flags |= MHD_USE_IPv6;
    errno = 0;
    server->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, server, MHD_OPTION_NOTIFY_COMPLETED, on_request_end,
        server, MHD_OPTION_SOCK_ADDR, (const struct sockaddr *)&address->socket,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)AT_SERVER_CLIENTS_MAX,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, address->loopback ? 0u : (unsigned)CLIENTS_PER_HOST,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CLIENT_MEMORY, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)CLIENT_SILENCE_S, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
    if (server->daemon) return AT_OK;
    return at_fail_set(fail, AT_ERR_IO, "choose another one with --listen, or port 0 for any",
                       "cannot listen at %s:%u%s%s", address->host, address->port,
                       errno ? ": " : "", errno ? strerror(errno) : "");
}

/* Which port it became, and what follows from that. */
static void settle(at_server *server)
{
    assert(server->daemon);
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
    if (info) server->address.port = info->port;
    snprintf(server->guard.cookie, sizeof server->guard.cookie, "anytime_%u", server->address.port);
    if (!server->address.loopback &&
        gethostname(server->guard.name, sizeof server->guard.name - 1) != 0)
        server->guard.name[0] = '\0';
}

at_err at_server_open(const at_server_options *options, at_server **server, at_fail *fail)
{
    assert(options->count >= 1);
    assert(strlen(options->token) < AT_TOKEN_SIZE);
    *server = NULL;
    at_server *self = calloc(1, sizeof *self);
    if (!self) return no_memory(fail);
    self->address = options->address;
    self->now = at_clock_now();
    snprintf(self->guard.token, sizeof self->guard.token, "%s", options->token);
    at_err err = open_tails(self, options, fail);
    if (!err) err = listen_at(self, fail);
    if (err) {
        at_server_close(self);
        return err;
    }
    settle(self);
    *server = self;
    return AT_OK;
}

void at_server_url(const at_server *server, char url[AT_SERVER_URL_SIZE])
{
    assert(server->guard.token[0]);
    snprintf(url, AT_SERVER_URL_SIZE, "http://%s:%u/?token=%s", server->address.host,
             server->address.port, server->guard.token);
}

void at_server_close(at_server *server)
{
    if (!server) return;
    server->ending = true;
    at_event_streams_wake(server); /* the library cannot end connections that sleep */
    at_responses_forget(server);
    if (server->daemon) MHD_stop_daemon(server->daemon);
    for (size_t i = 0; i < server->count; i++) at_run_follower_free(server->tails[i]);
    free(server);
}

/* ---- the loop ------------------------------------------------------------------------------- */

/* Looks at all runs; true when there is more at once. */
static bool poll_tails(at_server *server)
{
    assert(server->count >= 1);
    bool more = false;
    for (size_t i = 0; i < server->count; i++) {
        uint64_t before = at_run_follower_revision(server->tails[i]);
        if (at_run_follower_poll(server->tails[i], server->now)) more = true;
        if (at_run_follower_revision(server->tails[i]) != before) server->news++;
    }
    return more;
}

static void serve(at_server *server, at_ns until)
{
    assert(server->daemon);
    at_ns wait = until - at_clock_now();
    if (wait < 0) wait = 0;
    MHD_run_wait(server->daemon, (int32_t)(wait / AT_MS(1)) + (wait > 0));
    server->now = at_clock_now();
}

/* What was written since the last look is told, and clients have a moment to fetch it. */
static void say_goodbye(at_server *server)
{
    assert(!server->ending);
    for (int i = 0; i < LAST_POLLS_MAX && poll_tails(server); i++) continue;
    bool  is_watched = server->stream_count > 0;
    at_ns until = server->now + linger;
    server->ending = true;
    at_event_streams_wake(server);
    while (is_watched && server->now < until) serve(server, until);
}

void at_server_run(at_server *server, bool (*stop)(void))
{
    assert(server->daemon);
    at_ns next = server->now;
    while (!stop()) {
        if (server->now >= next) {
            bool more = poll_tails(server);
            next = server->now + (more ? 0 : poll_every);
            at_event_streams_wake(server);
        }
        serve(server, next);
    }
    say_goodbye(server);
}
