/* Event streams: an open answer to each page, in which a line appears whenever there is news. The
 * line only says so; pages then ask for what they lack, when they have time. So a slow client
 * misses lines but no facts, and nothing piles up for it here: its connection sleeps while there is
 * nothing to tell, and one line at most waits for it. */
#include <assert.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/server_state.h"

enum { LINE_SIZE = 64, BLOCK_SIZE = 256 };

/* Proxies and tunnels close what is silent for long. */
static const at_ns alive_every = AT_SEC(15);

struct at_event_stream {
    at_server             *server;
    struct MHD_Connection *connection;
    at_event_stream       *before, *after;
    bool                   sleeps; /* the connection is suspended */
    bool                   begun, ended;
    bool                   gone; /* the client went away while the connection slept */
    uint64_t               told; /* newest news that was told */
    at_ns                  told_at;
};

static bool has_to_tell(const at_event_stream *stream)
{
    assert(stream->told <= stream->server->news);
    const at_server *server = stream->server;
    return !stream->begun || stream->gone || server->ending || stream->told != server->news ||
           server->now - stream->told_at >= alive_every;
}

/* The next line; empty at the end. */
static int next_line(at_event_stream *stream, char *line, size_t size)
{
    assert(has_to_tell(stream));
    const at_server *server = stream->server;
    stream->told_at = server->now;
    if (!stream->begun) {
        stream->begun = true;
        return snprintf(line, size, "retry: 2000\n\n");
    }
    if (stream->told != server->news) {
        stream->told = server->news;
        return snprintf(line, size, "data: %" PRIu64 "\n\n", stream->told);
    }
    if (!server->ending) return snprintf(line, size, ": still there\n\n");
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
    assert(!stream->sleeps);
    if (size < LINE_SIZE) return 0; /* asked again when there is room for a whole line */
    if (!has_to_tell(stream)) {
        stream->sleeps = true;
        MHD_suspend_connection(stream->connection);
        return 0;
    }
    if (stream->gone) return MHD_CONTENT_READER_END_WITH_ERROR;
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

/* The library does not watch a connection that sleeps, so we look whether anybody is there. */
static void look(at_event_stream *stream)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(stream->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    assert(stream->sleeps);
    if (!info) return;
    struct pollfd there = {.fd = info->connect_fd, .events = POLLRDHUP};
    stream->gone = poll(&there, 1, 0) > 0;
}

void at_event_streams_wake(at_server *server)
{
    assert(server->stream_count <= AT_SERVER_STREAMS_MAX);
    for (at_event_stream *stream = server->streams; stream; stream = stream->after) {
        if (!stream->sleeps) continue;
        if (!has_to_tell(stream)) look(stream);
        if (!has_to_tell(stream)) continue;
        stream->sleeps = false;
        MHD_resume_connection(stream->connection);
    }
}
