#include "net/socket.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

/* ---- options --------------------------------------------------------------------------------- */

static void set(int fd, int level, int name, int value)
{
    (void)setsockopt(fd, level, name, &value, sizeof value); /* without it things are only slower */
}

static void tune(int fd)
{
    enum { IDLE_S = 10, BETWEEN_S = 5, PROBES = 4, UNACKNOWLEDGED_MS = 30000 };
    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, IDLE_S);
    set(fd, IPPROTO_TCP, TCP_KEEPINTVL, BETWEEN_S);
    set(fd, IPPROTO_TCP, TCP_KEEPCNT, PROBES);
    set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS);
}

static int open_socket(const struct addrinfo *where)
{
    return socket(where->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
}

static int look_up(const at_net_address *address, bool listens, struct addrinfo **found)
{
    struct addrinfo wanted = {.ai_family = AF_UNSPEC,
                              .ai_socktype = SOCK_STREAM,
                              .ai_flags = AI_NUMERICSERV | (listens ? AI_PASSIVE : 0)};
    return getaddrinfo(address->host, address->port, &wanted, found);
}

/* ---- listening ------------------------------------------------------------------------------- */

static bool listen_at(const struct addrinfo *where, int *fd)
{
    *fd = open_socket(where);
    if (*fd < 0) return false;
    set(*fd, SOL_SOCKET, SO_REUSEADDR, 1); /* a hub that was killed is started again at its port */
    if (bind(*fd, where->ai_addr, where->ai_addrlen) == 0 && listen(*fd, SOMAXCONN) == 0)
        return true;
    int error = errno;
    close(*fd);
    *fd = -1;
    errno = error;
    return false;
}

/* 0, or the last error. */
static int listen_somewhere(const struct addrinfo *found, at_ns until, int *fd)
{
    static const at_ns PAUSE = AT_MS(20);
    int                error = EADDRNOTAVAIL;
    for (;;) {
        for (const struct addrinfo *a = found; a; a = a->ai_next) {
            if (listen_at(a, fd)) return 0;
            error = errno;
        }
        at_ns now = at_clock_now();
        if (error != EADDRINUSE || now >= until) return error;
        at_clock_sleep_until(now + PAUSE);
    }
}

at_err at_net_listen(const at_net_address *address, at_ns until, int *fd,
                     char shown[AT_NET_TEXT_SIZE], at_fail *fail)
{
    struct addrinfo        *found;
    struct sockaddr_storage here = {0};
    socklen_t               size = sizeof here;
    *fd = -1;
    int unknown = look_up(address, true, &found);
    if (unknown)
        return at_fail_set(fail, AT_ERR_USAGE, "use a name or number of this machine, or 0.0.0.0",
                           "cannot listen at %s: %s", address->host, gai_strerror(unknown));
    int error = listen_somewhere(found, until, fd);
    freeaddrinfo(found);
    if (error)
        return at_fail_set(fail, AT_ERR_IO,
                           error == EADDRINUSE ? "choose another port, or 0 for any free one"
                                               : "use an address of this machine, or 0.0.0.0",
                           "cannot listen at %s port %s: %s", address->host, address->port,
                           strerror(error));
    (void)getsockname(*fd, (struct sockaddr *)&here, &size);
    at_net_show(&here, shown);
    return AT_OK;
}

int at_net_accept(int listener, struct sockaddr_storage *peer)
{
    socklen_t size = sizeof *peer;
    assert(listener >= 0);
    int fd = accept4(listener, (struct sockaddr *)peer, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) tune(fd);
    return fd;
}

/* ---- connecting ------------------------------------------------------------------------------ */

static const at_ns LOOK_EVERY = AT_MS(200); /* whether to stop */

/* 0, or the error of a connection that was begun. */
static int await_connection(int fd, at_ns until, bool (*stops)(void))
{
    for (;;) {
        at_ns left = until - at_clock_now();
        if (left <= 0) return ETIMEDOUT;
        if (stops && stops()) return ECANCELED;
        if (stops && left > LOOK_EVERY) left = LOOK_EVERY;
        struct pollfd   poll_fd = {.fd = fd, .events = POLLOUT};
        struct timespec limit = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
        int             ready = ppoll(&poll_fd, 1, &limit, NULL), error = 0;
        socklen_t       size = sizeof error;
        if (ready < 0 && errno != EINTR) return errno;
        if (ready <= 0) continue;
        return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
    }
}

/* When nobody listens at a port of this machine that the system also uses for connections, trying
 * again and again ends up in a connection with itself, which would keep the port from its hub. */
static bool is_with_itself(int fd, const struct addrinfo *peer)
{
    struct sockaddr_storage here = {0};
    socklen_t               size = sizeof here;
    if (getsockname(fd, (struct sockaddr *)&here, &size) != 0) return false;
    return size == peer->ai_addrlen && memcmp(&here, peer->ai_addr, size) == 0;
}

static int connect_to(const struct addrinfo *where, at_ns until, bool (*stops)(void), int *fd)
{
    *fd = open_socket(where);
    if (*fd < 0) return errno;
    int error = connect(*fd, where->ai_addr, where->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) error = await_connection(*fd, until, stops);
    if (!error && is_with_itself(*fd, where)) error = ECONNREFUSED;
    if (error) {
        close(*fd);
        *fd = -1;
    }
    return error;
}

at_err at_net_connect(const at_net_address *address, at_ns until, bool (*stops)(void), int *fd,
                      bool *loopback, at_fail *fail)
{
    struct addrinfo        *found;
    struct sockaddr_storage peer = {0};
    int                     error = 0, unknown = look_up(address, false, &found);
    *fd = -1;
    if (unknown)
        return at_fail_set(fail, AT_ERR_MISSING, "check the name of the hub's machine",
                           "no hub at %s: %s", address->host, gai_strerror(unknown));
    for (struct addrinfo *a = found; a && *fd < 0; a = a->ai_next) {
        error = connect_to(a, until, stops, fd);
        if (*fd >= 0) memcpy(&peer, a->ai_addr, a->ai_addrlen);
    }
    freeaddrinfo(found);
    if (*fd < 0)
        return at_fail_set(fail, AT_ERR_MISSING, "is the hub running, and is the port open?",
                           "no hub at %s port %s: %s", address->host, address->port,
                           strerror(error));
    tune(*fd);
    *loopback = at_net_is_loopback(&peer);
    return AT_OK;
}
