#include "serve/server.h"

#include <assert.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve/server_state.h"

enum {
    CLIENT_MEMORY = 16384, /* bytes per client, not including shared responses */
    CLIENT_SILENCE_S = 30, /* seconds without traffic */
    CLIENTS_PER_HOST = 64, /* when listening on a network */
    BODY_SIZE_MAX = 65536, /* of requests, which should have no body */
    LAST_POLLS_MAX = 200
};

/* A run flushes its log once per second, or when its buffer is full. */
static const at_ns poll_interval = AT_MS(500), linger = AT_SEC(1);

/* ---- requests ------------------------------------------------------------------------------- */

/* State of one request. */
typedef struct request_state {
    size_t body; /* bytes received and discarded */
} request_state;

/* Counts the Host headers: a proxy and we might each use another one of two. */
static enum MHD_Result count_host(void *self, enum MHD_ValueKind kind, const char *key,
                                  const char *value)
{
    (void)kind;
    (void)value;
    uint32_t *count = self;
    *count += strcasecmp(key, "Host") == 0;
    return MHD_YES;
}

static uint32_t hosts_of(struct MHD_Connection *connection)
{
    uint32_t count = 0;
    MHD_get_connection_values(connection, MHD_HEADER_KIND, count_host, &count);
    return count;
}

static at_request read_request(const at_server *server, struct MHD_Connection *connection,
                               const char *method, const char *path)
{
    assert(path);
    assert(method);
    return (at_request){
        .method = method,
        .path = path,
        .hosts = hosts_of(connection),
        .host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host"),
        .origin = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Origin"),
        .site = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Site"),
        .authorization = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization"),
        .cookie = MHD_lookup_connection_value(connection, MHD_COOKIE_KIND, server->access.cookie),
        .token = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token")};
}

static enum MHD_Result reply_to(at_server *server, struct MHD_Connection *connection,
                                const at_request *request)
{
    assert(request->path);
    at_access_decision decision = at_access_check(&server->access, request);
    at_reply           reply;
    if (decision.proven) at_clients_answering(&server->clients, connection);
    if (decision.status == MHD_HTTP_OK)
        reply = at_response(server, connection, request->path);
    else
        reply = at_response_refuse(decision.status, decision.text);
    if (!reply.response) return MHD_NO; /* out of memory: close the connection */
    enum MHD_Result queued = MHD_queue_response(connection, reply.status, reply.response);
    if (!reply.cached) MHD_destroy_response(reply.response);
    return queued;
}

/* The library calls this after the header of a request, for each part of its body, and at its end.
 * The response must wait until the end, because the client may still be sending. */
static enum MHD_Result on_request(void *self, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **state)
{
    (void)version;
    (void)upload;
    request_state *r = *state;
    if (!r) {
        *state = calloc(1, sizeof(request_state));
        return *state ? MHD_YES : MHD_NO;
    }
    if (*upload_size > 0) {
        r->body += *upload_size;
        *upload_size = 0;
        return r->body <= BODY_SIZE_MAX ? MHD_YES : MHD_NO;
    }
    at_server *server = self;
    at_request request = read_request(server, connection, method, path);
    return reply_to(server, connection, &request);
}

static void on_request_end(void *self, struct MHD_Connection *connection, void **state,
                           enum MHD_RequestTerminationCode why)
{
    (void)why;
    at_clients_answered(&((at_server *)self)->clients, connection);
    free(*state);
    *state = NULL;
}

static void notify_connection(void *self, struct MHD_Connection *connection, void **context,
                              enum MHD_ConnectionNotificationCode code)
{
    at_clients_notify(self, connection, context, (int)code);
}

/* ---- open and close ------------------------------------------------------------------------- */

static at_err no_memory(at_fail *fail)
{
    return at_fail_memory_for(fail, "for the dashboard");
}

static at_err open_followers(at_server *server, const at_server_options *options, at_fail *fail)
{
    assert(options->count <= AT_SERVER_RUNS_MAX);
    for (size_t i = 0; i < options->count; i++) {
        server->followers[i] = at_run_follower_new(options->folders[i]);
        if (!server->followers[i]) return no_memory(fail);
        server->count++;
    }
    return AT_OK;
}

/* Without descriptors, connections could neither be accepted nor displaced by others, nor runs be
 * read. */
static unsigned clients_max(void)
{
    struct rlimit limit;
    bool few = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < AT_SERVER_CLIENTS_MAX;
    return few ? (unsigned)limit.rlim_cur / 2 : AT_SERVER_CLIENTS_MAX;
}

static at_err listen_at(at_server *server, at_fail *fail)
{
    assert(!server->daemon);
    const at_address *address = &server->address;
    unsigned          flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;
    if (address->ipv6) flags |= MHD_USE_IPv6;
    server->clients.max = clients_max();
    errno = 0;
    server->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, server, MHD_OPTION_NOTIFY_COMPLETED, on_request_end,
        server, MHD_OPTION_NOTIFY_CONNECTION, notify_connection, &server->clients,
        MHD_OPTION_SOCK_ADDR, (const struct sockaddr *)&address->socket,
        MHD_OPTION_CONNECTION_LIMIT, server->clients.max, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        address->loopback ? 0u : (unsigned)CLIENTS_PER_HOST, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CLIENT_MEMORY, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)CLIENT_SILENCE_S,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
    if (server->daemon) return AT_OK;
    return at_fail_set(fail, AT_ERR_IO,
                       errno == EADDRNOTAVAIL
                           ? "give --listen an address of this machine, or 0.0.0.0"
                           : "choose another port with --listen, or port 0 for any free one",
                       "cannot listen on %s:%u%s%s", address->host, address->port,
                       errno ? ": " : "", errno ? strerror(errno) : "");
}

/* Reads the actual port, and sets what depends on it. */
static void finish_setup(at_server *server)
{
    assert(server->daemon);
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
    if (info) server->address.port = info->port;
    snprintf(server->access.cookie, sizeof server->access.cookie, "anytime_%u",
             server->address.port);
    if (!server->address.loopback &&
        gethostname(server->access.name, sizeof server->access.name - 1) != 0)
        server->access.name[0] = '\0';
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
    snprintf(self->access.token, sizeof self->access.token, "%s", options->token);
    at_err err = open_followers(self, options, fail);
    if (!err) err = listen_at(self, fail);
    if (err) {
        at_server_close(self);
        return err;
    }
    finish_setup(self);
    *server = self;
    return AT_OK;
}

void at_server_url(const at_server *server, char url[AT_SERVER_URL_SIZE])
{
    assert(server->access.token[0]);
    snprintf(url, AT_SERVER_URL_SIZE, "http://%s:%u/?token=%s", server->address.host,
             server->address.port, server->access.token);
}

void at_server_close(at_server *server)
{
    if (!server) return;
    server->stopping = true;
    at_event_streams_wake(server); /* the library cannot close suspended connections */
    at_responses_forget(server);
    if (server->daemon) MHD_stop_daemon(server->daemon);
    for (size_t i = 0; i < server->count; i++) at_run_follower_free(server->followers[i]);
    free(server);
}

/* ---- the loop ------------------------------------------------------------------------------- */

/* Polls all runs; true when one has more data to read. */
static bool poll_followers(at_server *server)
{
    assert(server->count >= 1);
    bool more = false;
    for (size_t i = 0; i < server->count; i++) {
        uint64_t before = at_run_follower_revision(server->followers[i]);
        if (at_run_follower_poll(server->followers[i], server->now)) more = true;
        if (at_run_follower_revision(server->followers[i]) != before) server->revision++;
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

/* Reads the last data and gives clients a moment to fetch them. */
static void shut_down(at_server *server)
{
    assert(!server->stopping);
    for (int i = 0; i < LAST_POLLS_MAX && poll_followers(server); i++) continue;
    bool  has_clients = server->stream_count > 0;
    at_ns until = server->now + linger;
    server->stopping = true;
    at_event_streams_wake(server);
    while (has_clients && server->now < until) serve(server, until);
}

void at_server_run(at_server *server, bool (*stop)(void))
{
    assert(server->daemon);
    at_ns next = server->now;
    while (!stop()) {
        if (server->now >= next) {
            bool more = poll_followers(server);
            next = server->now + (more ? 0 : poll_interval);
            at_event_streams_wake(server);
        }
        at_ns deadline = at_clients_check(&server->clients, server->now);
        serve(server, deadline < next ? deadline : next);
    }
    shut_down(server);
}
