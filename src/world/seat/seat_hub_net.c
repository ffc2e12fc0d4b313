/* The hub's door to other machines. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "world/process/child.h"
#include "world/seat/seat_hub.h"

enum {
    STRANGER_MAX = 4096, /* bytes of a message before the proof */
    OTHERS_MIN = 16,     /* places that strangers of one address leave to those of others */
    FILES_SHARE = 4,     /* strangers get this part of the descriptors that a process may have */
    ACCEPTED_MAX = 32,   /* at a time: whoever connects without end does not stop steps */
    EVENTS_MAX = 64
};
static const at_ns LISTEN_TIME = AT_SEC(3);

/* ---- listening ------------------------------------------------------------------------------- */

static at_err watch(at_seat_hub *h, int fd, uint32_t index, at_fail *fail)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                .data.u32 = index};
    if (epoll_ctl(h->epoll, EPOLL_CTL_ADD, fd, &event) == 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_FAILED, NULL, "cannot watch a connection: %s", strerror(errno));
}

at_err at_seat_net_open(at_seat_hub *h, const char *text, at_fail *fail)
{
    at_net_address address;
    assert(h->net_fd < 0);
    AT_TRY(at_net_address_parse(text, &address, fail));
    AT_TRY(at_tls_new(h->token, &h->tls, fail));
    h->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (h->epoll < 0)
        return at_fail_set(fail, AT_ERR_FAILED, NULL, "cannot watch connections: %s",
                           strerror(errno));
    AT_TRY(at_net_listen(&address, at_clock_now() + LISTEN_TIME, &h->net_fd, h->address, fail));
    at_seat_make_loud(h->net_fd);
    at_child_withhold(h->net_fd);
    return AT_OK;
}

void at_seat_net_close(at_seat_hub *h)
{
    if (h->net_fd >= 0) {
        at_child_withhold(-1);
        close(h->net_fd);
    }
    if (h->epoll >= 0) close(h->epoll);
    at_tls_free(h->tls);
    h->net_fd = h->epoll = -1;
    h->tls = NULL;
}

/* ---- accepting ------------------------------------------------------------------------------- */

/* Ports differ. */
static bool is_same_host(const char *a, const char *b)
{
    const char *port = strrchr(a, ':');
    size_t      length = port ? (size_t)(port - a) + 1 : strlen(a);
    return strncmp(a, b, length) == 0;
}

/* The stranger from that address that has been here longest, and how many there are. `peer` may be
 * NULL: from any. */
static at_guest *oldest_stranger(at_seat_hub *h, const char *peer, uint32_t *count)
{
    at_guest *oldest = NULL;
    *count = 0;
    for (uint32_t i = 0; i < h->guests_max; i++) {
        at_guest *g = &h->guest[i];
        bool      stranger = g->stage == AT_GUEST_CALLING || g->stage == AT_GUEST_NEW;
        if (!stranger || !g->remote.link || (peer && !is_same_host(peer, g->peer))) continue;
        ++*count;
        if (!oldest || g->since < oldest->since) oldest = g;
    }
    return oldest;
}

/* How many strangers one address may have: all workers of a run may be on one machine, and come at
 * the same time. */
static uint32_t strangers_max(const at_seat_hub *h)
{
    uint32_t left = h->guests_max;
    for (uint32_t i = 0; i < h->guests_max; i++) left -= h->guest[i].stage >= AT_GUEST_PROVEN;
    return left > 2 * OTHERS_MIN ? left - OTHERS_MIN : OTHERS_MIN;
}

/* How many strangers there may be, of all addresses: the run needs descriptors, too. */
static uint32_t files_max(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > UINT32_MAX) return UINT32_MAX;
    return (uint32_t)limit.rlim_cur / FILES_SHARE;
}

/* Who opens many connections loses the oldest of them. */
static at_guest *make_place(at_seat_hub *h, const char *peer)
{
    uint32_t  count, all;
    at_guest *own = oldest_stranger(h, peer, &count), *oldest = oldest_stranger(h, NULL, &all);
    bool      many = count >= strangers_max(h);
    at_guest *g = many || all >= files_max() ? NULL : at_seat_hub_place(h);
    if (g) return g;
    g = many ? own : oldest;
    if (g) at_seat_hub_forget(g);
    return g;
}

static void admit(at_seat_hub *h, int fd, const struct sockaddr_storage *peer)
{
    at_fail fail;
    char    address[AT_NET_TEXT_SIZE];
    at_net_show(peer, address);
    at_guest *g = make_place(h, address);
    if (!g) {
        close(fd);
        return;
    }
    *g = (at_guest){.stage = AT_GUEST_CALLING,
                    .fd = -1,
                    .since = at_clock_now(),
                    .inbox = {.size_max = STRANGER_MAX},
                    .rank = -1,
                    .child = -1,
                    .ready = true};
    memcpy(g->peer, address, sizeof g->peer);
    at_link_receiver receiver = at_remote_receiver(&g->remote, STRANGER_MAX);
    at_err           err =
        at_link_accepted(fd, h->tls, at_net_is_loopback(peer), &receiver, &g->remote.link, &fail);
    if (!err) err = watch(h, fd, (uint32_t)(g - h->guest), &fail);
    if (err)
        at_seat_hub_forget(g);
    else
        at_seat_make_loud(fd);
}

void at_seat_net_poll(at_seat_hub *h)
{
    struct epoll_event      events[EVENTS_MAX];
    struct sockaddr_storage peer;
    int                     accepted = 0;
    if (h->net_fd < 0) return;
    for (int fd; accepted < ACCEPTED_MAX && (fd = at_net_accept(h->net_fd, &peer)) >= 0; accepted++)
        admit(h, fd, &peer);
    h->unread = accepted == ACCEPTED_MAX;
    for (int count = EVENTS_MAX; count == EVENTS_MAX;) {
        count = epoll_wait(h->epoll, events, EVENTS_MAX, 0);
        for (int i = 0; i < count; i++) h->guest[events[i].data.u32].ready = true;
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

/* What a guest sent before it closed the connection is read, although nothing can be sent to it any
 * more: that it leaves, for example. */
at_err at_seat_net_read(at_guest *g, uint64_t end, at_fail *fail)
{
    at_link *link = g->remote.link;
    if (!g->ready) return AT_OK;
    at_err sent = at_link_flush(link, fail);
    if (sent && sent != AT_ERR_MISSING) return sent;
    while (link->received < end) {
        AT_TRY(at_link_receive(link, fail));
        if (!link->complete) {
            g->ready = link->more;
            return g->ready ? AT_OK : sent;
        }
        bool seated = g->stage == AT_GUEST_SEATED;
        if (!seated || !at_remote_is_mine(link->message.kind)) {
            at_seat_inbox_adopt(&g->inbox, g->remote.link);
            return AT_OK;
        }
        AT_TRY(at_remote_take(&g->remote, &link->message, fail));
        at_link_next(link);
    }
    return AT_OK;
}

/* ---- measurements ---------------------------------------------------------------------------- */

at_err at_seat_net_answer(at_guest *g, at_fail *fail)
{
    uint64_t size;
    if (g->inbox.size < sizeof size)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "an unexpected message");
    memcpy(&size, g->inbox.bytes, sizeof size);
    if (size > AT_SEAT_PROBE_MAX)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "a probe that wants too many bytes");
    void *bytes = calloc(size + 1, 1);
    if (!bytes) return at_fail_memory(fail);
    at_err err =
        at_seat_hub_answer(g, AT_SEAT_PROBE, (at_seat_part){0}, (at_seat_part){bytes, size}, fail);
    free(bytes);
    return err;
}
