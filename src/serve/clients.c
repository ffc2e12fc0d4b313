/* Connections whose request is not complete, or that have not shown the token and do not read the
 * answer. A client that sends its request byte by byte would otherwise keep its place for as long
 * as it likes, and enough of them would keep everybody else out. So a request has a deadline and,
 * when places run out, the longest wait ends first: browsers send a request at once. */
#include <assert.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "serve/server_state.h"

static const at_ns request_time = AT_SEC(10);

struct at_client {
    struct MHD_Connection *connection;
    at_client             *before, *after; /* in order of `since`, the newest first */
    at_ns                  since;          /* it owes us a request; 0: it is being answered */
};

static void take_out(at_clients *clients, at_client *client)
{
    assert(clients->waiting > 0);
    if (client->before)
        client->before->after = client->after;
    else
        clients->newest = client->after;
    if (client->after)
        client->after->before = client->before;
    else
        clients->oldest = client->before;
    client->before = client->after = NULL;
    client->since = 0;
    clients->waiting--;
}

static void put_in(at_clients *clients, at_client *client)
{
    assert(client->since == 0);
    client->since = at_clock_now();
    client->after = clients->newest;
    if (clients->newest)
        clients->newest->before = client;
    else
        clients->oldest = client;
    clients->newest = client;
    clients->waiting++;
}

/* The library closes a connection whose socket was shut down, and then says so. */
static void end_client(at_clients *clients, at_client *client)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(client->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    assert(client->since > 0);
    take_out(clients, client);
    if (info) shutdown(info->connect_fd, SHUT_RDWR);
}

void at_clients_notify(void *self, struct MHD_Connection *connection, void **context, int code)
{
    at_clients *clients = self;
    at_client  *client = *context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = client = calloc(1, sizeof *client);
        if (!client) return; /* without one it has no deadline but that of the library */
        client->connection = connection;
        put_in(clients, client);
        if (clients->waiting > clients->max / 2) end_client(clients, clients->oldest);
    } else if (client) {
        if (client->since > 0) take_out(clients, client);
        free(client);
        *context = NULL;
    }
}

static at_client *client_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

void at_clients_answering(at_clients *clients, struct MHD_Connection *connection)
{
    at_client *client = client_of(connection);
    if (client && client->since > 0) take_out(clients, client);
}

void at_clients_answered(at_clients *clients, struct MHD_Connection *connection)
{
    at_client *client = client_of(connection);
    if (!client) return;
    if (client->since > 0) take_out(clients, client);
    put_in(clients, client);
}

at_ns at_clients_check(at_clients *clients, at_ns now)
{
    while (clients->oldest && now - clients->oldest->since >= request_time)
        end_client(clients, clients->oldest);
    return clients->oldest ? clients->oldest->since + request_time : AT_NEVER;
}
