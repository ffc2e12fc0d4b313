/* Event streams: an open response to each page, with a line whenever there are new data. The line
 * is only a signal; pages then fetch the update when they are ready. So a slow client may miss
 * lines but no data, and nothing accumulates for it here: its connection is suspended while there
 * is nothing to send, and at most one line is pending. */
#include <assert.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/server_state.h"

enum { LINE_SIZE = 64, BLOCK_SIZE = 256 };

/* Proxies and tunnels close idle connections. */
static const at_ns keep_alive_interval = AT_SEC(15);

struct at_event_stream {
    at_server             *server;
    struct MHD_Connection *connection;
    at_event_stream       *before, *after;
    bool                   suspended;
    bool                   begun, ended;
    bool                   closed; /* by the client, while suspended */
    uint64_t               sent;   /* newest revision that was sent */
    at_ns                  sent_at;
};

static bool has_data(const at_event_stream *stream)
{
    assert(stream->sent <= stream->server->revision);
    const at_server *server = stream->server;
    return !stream->begun || stream->closed || server->stopping ||
           stream->sent != server->revision || server->now - stream->sent_at >= keep_alive_interval;
}

/* The next line; empty at the end of the stream. */
static int next_line(at_event_stream *stream, char *line, size_t size)
{
    assert(has_data(stream));
    const at_server *server = stream->server;
    stream->sent_at = server->now;
    if (!stream->begun) {
        stream->begun = true;
        return snprintf(line, size, "retry: 2000\n\n");
    }
    if (stream->sent != server->revision) {
        stream->sent = server->revision;
        return snprintf(line, size, "data: %" PRIu64 "\n\n", stream->sent);
    }
    if (!server->stopping) return snprintf(line, size, ": keep-alive\n\n");
    if (stream->ended) return 0;
    stream->ended = true;
    return snprintf(line, size, "event: bye\ndata: 0\n\n");
}

/* Called by the library whenever the client can take more. */
static ssize_t read_stream(void *self, uint64_t position, char *buffer, size_t size)
{
    at_event_stream *stream = self;
    char             line[LINE_SIZE];
    (void)position;
    assert(!stream->suspended);
    if (size < LINE_SIZE) return 0; /* called again when there is room for a whole line */
    if (!has_data(stream)) {
        stream->suspended = true;
        MHD_suspend_connection(stream->connection);
        return 0;
    }
    if (stream->closed) return MHD_CONTENT_READER_END_WITH_ERROR;
    int length = next_line(stream, line, sizeof line);
    assert(length < LINE_SIZE);
    if (length == 0) return MHD_CONTENT_READER_END_OF_STREAM;
    memcpy(buffer, line, (size_t)length);
    return length;
}

static void free_stream(void *self)
{
    at_event_stream *stream = self;
    at_server       *server = stream->server;
    assert(server->stream_count > 0);
    if (stream->before)
        stream->before->after = stream->after;
    else
        server->streams = stream->after;
    if (stream->after) stream->after->before = stream->before;
    server->stream_count--;
    free(stream);
}

struct MHD_Response *at_event_stream_open(at_server *server, struct MHD_Connection *connection)
{
    assert(server->stream_count < AT_SERVER_STREAMS_MAX);
    at_event_stream *stream = calloc(1, sizeof *stream);
    if (!stream) return NULL;
    *stream =
        (at_event_stream){.server = server, .connection = connection, .after = server->streams};
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, BLOCK_SIZE, read_stream, stream, free_stream);
    if (!response) {
        free(stream);
        return NULL;
    }
    if (server->streams) server->streams->before = stream;
    server->streams = stream;
    server->stream_count++;
    return response;
}

/* The library does not monitor suspended connections, so check whether the client has left. */
static void check_closed(at_event_stream *stream)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(stream->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    assert(stream->suspended);
    if (!info) return;
    struct pollfd socket = {.fd = info->connect_fd, .events = POLLRDHUP};
    stream->closed = poll(&socket, 1, 0) > 0;
}

void at_event_streams_wake(at_server *server)
{
    assert(server->stream_count <= AT_SERVER_STREAMS_MAX);
    for (at_event_stream *stream = server->streams; stream; stream = stream->after) {
        if (!stream->suspended) continue;
        if (!has_data(stream)) check_closed(stream);
        if (!has_data(stream)) continue;
        stream->suspended = false;
        MHD_resume_connection(stream->connection);
    }
}
