#include <assert.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "report/page/page.h"
#include "report/summary/json_value.h"
#include "serve/metrics.h"
#include "serve/server_state.h"

static const char html_content[] = "text/html; charset=utf-8",
                  plain_content[] = "text/plain; charset=utf-8",
                  json_content[] = "application/json";

/* The page may load nothing but files of this server. The chart library sets style attributes,
 * which are harmless. */
static const char policy[] = "default-src 'none'; script-src 'self'; style-src 'self'; "
                             "style-src-attr 'unsafe-inline'; img-src 'self' data:; "
                             "connect-src 'self'; base-uri 'none'; form-action 'none'; "
                             "frame-ancestors 'none'";

static const char *const headers[][2] = {
    {"Content-Security-Policy", policy},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Cache-Control", "no-store"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
};

static struct MHD_Response *add_headers(struct MHD_Response *response, const char *type)
{
    assert(type);
    if (!response) return NULL;
    MHD_add_response_header(response, "Content-Type", type);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        MHD_add_response_header(response, headers[i][0], headers[i][1]);
    return response;
}

/* A response with bytes of static lifetime. */
static struct MHD_Response *static_response(const char *bytes, size_t size, const char *type)
{
    assert(bytes);
    union {
        const char *in;
        void       *out;
    } unconst = {.in = bytes}; /* the library takes a non-const buffer, but only reads it */
    return add_headers(MHD_create_response_from_buffer(size, unconst.out, MHD_RESPMEM_PERSISTENT),
                       type);
}

/* A response that frees its bytes; NULL in case of NULL. */
static struct MHD_Response *heap_response(char *bytes, size_t size, const char *type)
{
    assert(type);
    if (!bytes) return NULL;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, bytes, MHD_RESPMEM_MUST_FREE);
    if (!response) free(bytes);
    return add_headers(response, type);
}

static struct MHD_Response *text_response(const char *text)
{
    return static_response(text, strlen(text), plain_content);
}

static struct MHD_Response *not_found(at_reply *reply)
{
    assert(reply);
    reply->status = MHD_HTTP_NOT_FOUND;
    return text_response("not found\n");
}

/* ---- page and assets ------------------------------------------------------------------------ */

static const at_page_file *find_page_file(const char *name)
{
    assert(at_page_files_count > 0);
    for (size_t i = 0; i < at_page_files_count; i++)
        if (strcmp(at_page_files[i].name, name) == 0) return &at_page_files[i];
    return NULL;
}

static const char *type_of(const char *name)
{
    assert(name);
    static const char *const types[][2] = {{".js", "text/javascript; charset=utf-8"},
                                           {".css", "text/css; charset=utf-8"},
                                           {".html", html_content},
                                           {".svg", "image/svg+xml"}};
    const char              *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof types / sizeof *types; i++)
        if (strcmp(dot, types[i][0]) == 0) return types[i][1];
    return plain_content;
}

static struct MHD_Response *asset(const char *name, at_reply *reply)
{
    assert(reply->status == MHD_HTTP_OK);
    const at_page_file *file = find_page_file(name); /* an embedded file; never a path on disk */
    if (!file) return not_found(reply);
    return static_response(file->bytes, file->size, type_of(name));
}

/* The token of the URL becomes a cookie, so that URLs of other requests need not contain it. */
static struct MHD_Response *page(at_server *server, struct MHD_Connection *connection,
                                 at_reply *reply)
{
    assert(server->access.cookie[0]);
    assert(server->access.token[0]);
    (void)connection;
    char                 cookie[AT_TOKEN_SIZE + AT_ACCESS_COOKIE_SIZE + 64];
    struct MHD_Response *response = asset("live.html", reply);
    snprintf(cookie, sizeof cookie, "%s=%s; Path=/; HttpOnly; SameSite=Strict",
             server->access.cookie, server->access.token);
    if (response) MHD_add_response_header(response, "Set-Cookie", cookie);
    return response;
}

/* ---- data ----------------------------------------------------------------------------------- */

static json_t *run_json(const at_server *server, const at_run_follower *follower)
{
    assert(follower);
    at_ns changed_at = at_run_follower_changed_at(follower);
    return json_pack("{s:o, s:o, s:s, s:o, s:I, s:o, s:o}", "label",
                     at_json_text(at_run_follower_label(follower)), "folder",
                     at_json_text(at_run_follower_folder(follower)), "state",
                     at_run_follower_state_name[at_run_follower_state_of(follower)], "word",
                     at_json_text(at_run_follower_message(follower)), "number",
                     (json_int_t)at_run_follower_revision(follower), "edition",
                     json_sprintf("%llu", (unsigned long long)at_run_follower_edition(follower)),
                     "silence",
                     changed_at ? json_real(at_seconds(server->now - changed_at)) : json_null());
}

static struct MHD_Response *json_response(json_t *document)
{
    char *text = document ? json_dumps(document, AT_RUN_SUMMARY_JSON_FLAGS) : NULL;
    json_decref(document);
    return heap_response(text, text ? strlen(text) : 0, json_content);
}

static struct MHD_Response *runs(at_server *server, struct MHD_Connection *connection,
                                 at_reply *reply)
{
    (void)connection;
    (void)reply;
    json_t *list = json_array();
    for (size_t i = 0; i < server->count; i++)
        json_array_append_new(list, run_json(server, server->followers[i]));
    return json_response(json_pack("{s:s, s:o}", "anytime", ANYTIME_VERSION, "runs", list));
}

/* An integer in the query, 0 when missing; false when it is not an integer. */
static bool get_number(struct MHD_Connection *connection, const char *key, uint64_t *number)
{
    assert(key);
    const char *text = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, key);
    *number = 0;
    if (!text) return true;
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 18 || text[digits]) return false;
    *number = strtoull(text, NULL, 10);
    return true;
}

static json_t *summary_json(const at_server *server, const at_run_follower *follower,
                            uint64_t since)
{
    json_t         *object = run_json(server, follower);
    at_run_summary *current = at_run_follower_summary(follower);
    json_t         *update = current ? at_run_summary_json(current, since) : json_null();
    json_t         *result = json_deep_copy(at_run_follower_result(follower));
    if (object && (json_object_set_new(object, "story", update) ||
                   json_object_set_new(object, "result", result ? result : json_null()))) {
        json_decref(object);
        return NULL;
    }
    return object;
}

/* The cached response if it fits, otherwise a new one. */
static struct MHD_Response *find_summary(at_server *server, size_t run, uint64_t since)
{
    assert(run < server->count);
    const at_run_follower *follower = server->followers[run];
    at_cached_response    *cached = &server->cached[run];
    if (cached->response && cached->since == since &&
        cached->revision == at_run_follower_revision(follower))
        return cached->response;
    if (cached->response) MHD_destroy_response(cached->response);
    *cached = (at_cached_response){.response = json_response(summary_json(server, follower, since)),
                                   .since = since,
                                   .revision = at_run_follower_revision(follower)};
    return cached->response;
}

static struct MHD_Response *summary(at_server *server, struct MHD_Connection *connection,
                                    at_reply *reply)
{
    uint64_t run, since, edition;
    if (!get_number(connection, "run", &run) || !get_number(connection, "since", &since) ||
        !get_number(connection, "edition", &edition)) {
        reply->status = MHD_HTTP_BAD_REQUEST;
        return text_response("run, edition and since must be integers\n");
    }
    if (run >= server->count) return not_found(reply);
    reply->cached = true;
    return find_summary(server, run,
                        edition == at_run_follower_edition(server->followers[run]) ? since : 0);
}

static struct MHD_Response *stream(at_server *server, struct MHD_Connection *connection,
                                   at_reply *reply)
{
    assert(server->stream_count <= AT_SERVER_STREAMS_MAX);
    if (server->stream_count >= AT_SERVER_STREAMS_MAX || server->stopping) {
        reply->status = MHD_HTTP_SERVICE_UNAVAILABLE;
        return text_response("too many event streams are open\n");
    }
    return add_headers(at_event_stream_open(server, connection), "text/event-stream");
}

static struct MHD_Response *metrics(at_server *server, struct MHD_Connection *connection,
                                    at_reply *reply)
{
    (void)connection;
    (void)reply;
    char  *text = NULL;
    size_t size = 0;
    FILE  *file = open_memstream(&text, &size);
    if (!file) return NULL;
    at_metrics_write(file, server->followers, server->count, server->now);
    if (fclose(file)) {
        free(text);
        return NULL;
    }
    return heap_response(text, size, at_metrics_type);
}

static struct MHD_Response *healthz(at_server *server, struct MHD_Connection *connection,
                                    at_reply *reply)
{
    (void)server;
    (void)connection;
    (void)reply;
    return text_response("ok\n");
}

/* ---- routes --------------------------------------------------------------------------------- */

static const struct {
    const char *path;
    struct MHD_Response *(*respond)(at_server *server, struct MHD_Connection *connection,
                                    at_reply *reply);
} routes[] = {
    {"/", page},
    {"/api/runs", runs},
    {"/api/summary", summary},
    {"/api/stream", stream},
    {"/metrics", metrics},
    {"/healthz", healthz},
};

static struct MHD_Response *find_response(at_server *server, struct MHD_Connection *connection,
                                          const char *path, at_reply *reply)
{
    static const char assets[] = "/assets/";
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (strcmp(path, routes[i].path) == 0) return routes[i].respond(server, connection, reply);
    if (strncmp(path, assets, sizeof assets - 1) == 0)
        return asset(path + sizeof assets - 1, reply);
    return not_found(reply);
}

at_reply at_response(at_server *server, struct MHD_Connection *connection, const char *path)
{
    assert(path);
    at_reply reply = {.status = MHD_HTTP_OK};
    reply.response = find_response(server, connection, path, &reply);
    return reply;
}

at_reply at_response_refuse(unsigned status, const char *text)
{
    assert(status >= 400);
    at_reply reply = {.status = status, .response = text_response(text)};
    if (reply.response && status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(reply.response, "Allow", "GET, HEAD");
    if (reply.response && status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(reply.response, "WWW-Authenticate", "Bearer");
    return reply;
}

void at_responses_forget(at_server *server)
{
    for (size_t i = 0; i < server->count; i++)
        if (server->cached[i].response) MHD_destroy_response(server->cached[i].response);
}
