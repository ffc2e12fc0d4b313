#include <assert.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "report/page/page.h"
#include "serve/metrics.h"
#include "serve/server_state.h"

static const char html[] = "text/html; charset=utf-8", plain[] = "text/plain; charset=utf-8",
                  json_media[] = "application/json";

/* What a page of ours may do: nothing but show what comes from here. The charts' library writes
 * style attributes, which can do no more than look wrong. */
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

static struct MHD_Response *finish(struct MHD_Response *response, const char *type)
{
    assert(type);
    if (!response) return NULL;
    MHD_add_response_header(response, "Content-Type", type);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        MHD_add_response_header(response, headers[i][0], headers[i][1]);
    return response;
}

/* Bytes that live as long as the program. */
static struct MHD_Response *lasting(const char *bytes, size_t size, const char *type)
{
    assert(bytes);
    union {
        const char *in;
        void       *out;
    } unconst = {.in = bytes}; /* the library's buffers are not const, but these it only reads */
    return finish(MHD_create_response_from_buffer(size, unconst.out, MHD_RESPMEM_PERSISTENT), type);
}

/* Bytes from the heap, which the answer frees; NULL means that they could not be made. */
static struct MHD_Response *taken(char *bytes, size_t size, const char *type)
{
    assert(type);
    if (!bytes) return NULL;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, bytes, MHD_RESPMEM_MUST_FREE);
    if (!response) free(bytes);
    return finish(response, type);
}

static struct MHD_Response *short_text(const char *text)
{
    return lasting(text, strlen(text), plain);
}

static struct MHD_Response *not_found(at_reply *reply)
{
    assert(reply);
    reply->status = MHD_HTTP_NOT_FOUND;
    return short_text("there is nothing here\n");
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
                                           {".html", html},
                                           {".svg", "image/svg+xml"}};
    const char              *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof types / sizeof *types; i++)
        if (strcmp(dot, types[i][0]) == 0) return types[i][1];
    return plain;
}

static struct MHD_Response *asset(const char *name, at_reply *reply)
{
    assert(reply->status == MHD_HTTP_OK);
    const at_page_file *file = find_page_file(name); /* by name among ours; never a path */
    if (!file) return not_found(reply);
    return lasting(file->bytes, file->size, type_of(name));
}

/* The token in the address becomes a cookie, so that what the page loads needs none in its own. */
static struct MHD_Response *page(at_server *server, struct MHD_Connection *connection,
                                 at_reply *reply)
{
    assert(server->guard.cookie[0]);
    assert(server->guard.token[0]);
    (void)connection;
    char                 cookie[AT_TOKEN_SIZE + AT_ACCESS_COOKIE_SIZE + 64];
    struct MHD_Response *response = asset("live.html", reply);
    snprintf(cookie, sizeof cookie, "%s=%s; Path=/; HttpOnly; SameSite=Strict",
             server->guard.cookie, server->guard.token);
    if (response) MHD_add_response_header(response, "Set-Cookie", cookie);
    return response;
}

/* ---- data ----------------------------------------------------------------------------------- */

static json_t *text_json(const char *text)
{
    assert(text);
    json_t *value = json_string(text); /* a folder's name need not be UTF-8 */
    return value ? value : json_string("?");
}

static json_t *run_json(const at_server *server, const at_run_follower *tail)
{
    assert(tail);
    at_ns heard = at_run_follower_changed_at(tail);
    return json_pack("{s:o, s:o, s:s, s:o, s:I, s:o, s:o}", "label",
                     text_json(at_run_follower_label(tail)), "folder",
                     text_json(at_run_follower_folder(tail)), "state",
                     at_run_follower_state_name[at_run_follower_state_of(tail)], "word",
                     text_json(at_run_follower_message(tail)), "number",
                     (json_int_t)at_run_follower_revision(tail), "edition",
                     json_sprintf("%llu", (unsigned long long)at_run_follower_edition(tail)),
                     "silence", heard ? json_real(at_seconds(server->now - heard)) : json_null());
}

static struct MHD_Response *json_answer(json_t *document)
{
    char *text = document ? json_dumps(document, AT_RUN_SUMMARY_JSON_FLAGS) : NULL;
    json_decref(document);
    return taken(text, text ? strlen(text) : 0, json_media);
}

static struct MHD_Response *runs(at_server *server, struct MHD_Connection *connection,
                                 at_reply *reply)
{
    (void)connection;
    (void)reply;
    json_t *list = json_array();
    for (size_t i = 0; i < server->count; i++)
        json_array_append_new(list, run_json(server, server->tails[i]));
    return json_answer(json_pack("{s:s, s:o}", "anytime", ANYTIME_VERSION, "runs", list));
}

/* A whole number in the query; false when it is something else. Left out, it is 0. */
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

static json_t *story_json(const at_server *server, const at_run_follower *tail, uint64_t since)
{
    json_t         *answer = run_json(server, tail);
    at_run_summary *told = at_run_follower_summary(tail);
    json_t         *news = told ? at_run_summary_json(told, since) : json_null();
    json_t         *result = json_deep_copy(at_run_follower_result(tail));
    if (answer && (json_object_set_new(answer, "story", news) ||
                   json_object_set_new(answer, "result", result ? result : json_null()))) {
        json_decref(answer);
        return NULL;
    }
    return answer;
}

/* A summary that was made for somebody else who knows as much, or a new one. */
static struct MHD_Response *find_story(at_server *server, size_t run, uint64_t since)
{
    assert(run < server->count);
    const at_run_follower *tail = server->tails[run];
    at_cached             *cached = &server->cached[run];
    if (cached->response && cached->since == since &&
        cached->number == at_run_follower_revision(tail))
        return cached->response;
    if (cached->response) MHD_destroy_response(cached->response);
    *cached = (at_cached){.response = json_answer(story_json(server, tail, since)),
                          .since = since,
                          .number = at_run_follower_revision(tail)};
    return cached->response;
}

static struct MHD_Response *summary(at_server *server, struct MHD_Connection *connection,
                                    at_reply *reply)
{
    uint64_t run, since, edition;
    if (!get_number(connection, "run", &run) || !get_number(connection, "since", &since) ||
        !get_number(connection, "edition", &edition)) {
        reply->status = MHD_HTTP_BAD_REQUEST;
        return short_text("run, edition and since are whole numbers\n");
    }
    if (run >= server->count) return not_found(reply);
    reply->kept = true;
    return find_story(server, run,
                      edition == at_run_follower_edition(server->tails[run]) ? since : 0);
}

static struct MHD_Response *stream(at_server *server, struct MHD_Connection *connection,
                                   at_reply *reply)
{
    assert(server->stream_count <= AT_SERVER_STREAMS_MAX);
    if (server->stream_count >= AT_SERVER_STREAMS_MAX || server->ending) {
        reply->status = MHD_HTTP_SERVICE_UNAVAILABLE;
        return short_text("too many watch already\n");
    }
    return finish(at_event_stream_open(server, connection), "text/event-stream");
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
    at_metrics_write(file, server->tails, server->count, server->now);
    if (fclose(file)) {
        free(text);
        return NULL;
    }
    return taken(text, size, at_metrics_type);
}

static struct MHD_Response *healthz(at_server *server, struct MHD_Connection *connection,
                                    at_reply *reply)
{
    (void)server;
    (void)connection;
    (void)reply;
    return short_text("ok\n");
}

/* ---- which one ------------------------------------------------------------------------------ */

static const struct {
    const char *path;
    struct MHD_Response *(*answer)(at_server *server, struct MHD_Connection *connection,
                                   at_reply *reply);
} routes[] = {
    {"/", page},           {"/api/runs", runs},   {"/api/story", summary}, {"/api/stream", stream},
    {"/metrics", metrics}, {"/healthz", healthz},
};

static struct MHD_Response *find_answer(at_server *server, struct MHD_Connection *connection,
                                        const char *path, at_reply *reply)
{
    static const char assets[] = "/assets/";
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (strcmp(path, routes[i].path) == 0) return routes[i].answer(server, connection, reply);
    if (strncmp(path, assets, sizeof assets - 1) == 0)
        return asset(path + sizeof assets - 1, reply);
    return not_found(reply);
}

at_reply at_response(at_server *server, struct MHD_Connection *connection, const char *path)
{
    assert(path);
    at_reply reply = {.status = MHD_HTTP_OK};
    reply.response = find_answer(server, connection, path, &reply);
    return reply;
}

at_reply at_response_refuse(unsigned status, const char *text)
{
    assert(status >= 400);
    at_reply reply = {.status = status, .response = short_text(text)};
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
