/* In place of server.c when anytime is built without libmicrohttpd: there is no dashboard. */
#include <assert.h>

#include "serve/server.h"

at_err at_server_open(const at_server_options *options, at_server **server, at_fail *fail)
{
    (void)options;
    *server = NULL;
    return at_fail_set(fail, AT_ERR_USAGE,
                       "use `anytime report` or `anytime watch --once`, or build it again with "
                       "libmicrohttpd-dev installed",
                       "this anytime was built without libmicrohttpd, so it has no live dashboard");
}

void at_server_url(const at_server *server, char url[AT_SERVER_URL_SIZE])
{
    (void)server;
    url[0] = '\0';
}

void at_server_run(at_server *server, bool (*stop)(void))
{
    (void)server;
    (void)stop;
    assert(!"a server that was never opened");
}

void at_server_close(at_server *server)
{
    assert(!server);
    (void)server;
}
