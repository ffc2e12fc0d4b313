#include "net/link.h"

#include <assert.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"

enum { READS_MAX = 64 }; /* in one go; those of an encrypted connection give 16 kB at most */

/* A queued message: its head and bytes in one block, and the vector. */
typedef struct at_link_item {
    struct at_link_item *next;
    size_t               size, sent; /* of the block; `sent` goes on into the vector */
    const unsigned char *vector;
    size_t               vector_size;
    unsigned char       *copy; /* of the vector's unsent part, see at_link_detach */
    unsigned char        block[];
} item;

/* ---- life ------------------------------------------------------------------------------------ */

static at_err new_link(int fd, at_tls *tls, const at_link_receiver *receiver, at_link **link,
                       at_fail *fail)
{
    assert(fd >= 0 && receiver->kinds > 0);
    *link = calloc(1, sizeof **link);
    if (!*link) {
        close(fd);
        return at_fail_memory(fail);
    }
    **link = (at_link){.fd = fd, .tls = tls, .receiver = *receiver};
    return AT_OK;
}

at_err at_link_connected(int fd, at_tls *tls, bool encrypts, const at_link_receiver *receiver,
                         at_link **link, at_fail *fail)
{
    AT_TRY(new_link(fd, tls, receiver, link, fail));
    (*link)->state = encrypts ? AT_LINK_HANDSHAKE : AT_LINK_OPEN;
    if (!encrypts) return AT_OK;
    at_err err = at_tls_open(tls, fd, false, &(*link)->end, fail);
    if (!err) return AT_OK;
    at_link_free(*link);
    *link = NULL;
    return err;
}

at_err at_link_accepted(int fd, at_tls *tls, bool may_be_plain, const at_link_receiver *receiver,
                        at_link **link, at_fail *fail)
{
    AT_TRY(new_link(fd, tls, receiver, link, fail));
    (*link)->may_be_plain = may_be_plain;
    return AT_OK;
}

static void drop_first(at_link *l)
{
    item *first = l->first;
    l->first = first->next;
    if (!l->first) l->last = NULL;
    l->queued -= first->size + (first->copy ? first->vector_size : 0);
    free(first->copy);
    free(first);
}

/* Other processes may have inherited the socket, so closing it would not end the connection. */
void at_link_free(at_link *l)
{
    if (!l) return;
    at_tls_close(l->end);
    shutdown(l->fd, SHUT_RDWR);
    close(l->fd);
    while (l->first) drop_first(l);
    free(l->message.bytes);
    free(l);
}

/* ---- state ----------------------------------------------------------------------------------- */

static at_err gone(at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_MISSING, NULL, "the other end has closed the connection");
}

/* TLS begins with a record of this type, and a plain message with a letter. */
static at_err decide(at_link *l, at_fail *fail)
{
    enum { TLS_HANDSHAKE = 0x16 };
    unsigned char first;
    ssize_t       got = recv(l->fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return AT_OK;
    if (got <= 0) return gone(fail);
    if (first == TLS_HANDSHAKE) {
        l->state = AT_LINK_HANDSHAKE;
        return at_tls_open(l->tls, l->fd, true, &l->end, fail);
    }
    if (!l->may_be_plain)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL,
                           "connections from other machines must be encrypted");
    l->state = AT_LINK_OPEN;
    return AT_OK;
}

/* Goes on until the link is open or nothing more has arrived. */
static at_err open_up(at_link *l, at_fail *fail)
{
    bool done;
    if (l->state == AT_LINK_UNDECIDED) AT_TRY(decide(l, fail));
    if (l->state != AT_LINK_HANDSHAKE) return AT_OK;
    AT_TRY(at_tls_handshake(l->end, &done, fail));
    if (done) l->state = AT_LINK_OPEN;
    return AT_OK;
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* Bytes read; 0: nothing now; -1: the other end is gone. */
static ssize_t get(at_link *l, void *to, size_t size)
{
    if (l->end) return at_tls_read(l->end, to, size);
    for (;;) {
        ssize_t got = recv(l->fd, to, size, MSG_DONTWAIT);
        if (got > 0) return got;
        if (got == 0) return -1;
        if (errno == EINTR) continue;
        return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
    }
}

static at_err begin_message(at_link *l, at_fail *fail)
{
    const at_link_receiver *r = &l->receiver;
    at_link_message        *m = &l->message;
    uint64_t                size;
    AT_TRY(at_frame_read(l->head, r->kinds, &m->kind, &size, fail));
    size_t collects = r->collects ? r->collects(r->self, m->kind) : SIZE_MAX;
    bool   split = collects != SIZE_MAX && size >= collects && size <= SIZE_MAX;
    m->size = split ? collects : (size_t)size;
    m->vector_size = split ? (size_t)size - collects : 0;
    if ((!split && (size > r->size_max || collects != SIZE_MAX)) || m->size > r->size_max)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "a message of %llu bytes is too long",
                           (unsigned long long)size);
    m->bytes = malloc(m->size + 1);
    if (!m->bytes) return at_fail_memory(fail);
    m->bytes[m->size] = 0;
    return AT_OK;
}

/* Where the next bytes go, and how many; 0: the message is complete. */
static at_err next_part(at_link *l, unsigned char **to, size_t *left, at_fail *fail)
{
    at_link_message *m = &l->message;
    *to = l->head + l->head_have;
    *left = sizeof l->head - l->head_have;
    if (*left > 0) return AT_OK;
    if (!m->bytes) AT_TRY(begin_message(l, fail));
    *to = m->bytes + l->have;
    *left = l->have < m->size ? m->size - l->have : 0;
    if (*left > 0 || m->vector_size == 0) return AT_OK;
    if (!l->placed) AT_TRY(l->receiver.place(l->receiver.self, m, fail));
    l->placed = true;
    size_t at = l->have - m->size;
    *to = (unsigned char *)m->vector + at;
    *left = m->vector_size - at;
    return AT_OK;
}

at_err at_link_receive(at_link *l, at_fail *fail)
{
    assert(!l->complete);
    l->more = false;
    if (l->state != AT_LINK_OPEN) AT_TRY(open_up(l, fail));
    for (int reads = 0; l->state == AT_LINK_OPEN; reads++) {
        unsigned char *to;
        size_t         left;
        AT_TRY(next_part(l, &to, &left, fail));
        l->complete = left == 0;
        l->more = !l->complete && reads == READS_MAX;
        if (l->complete || l->more) break;
        ssize_t got = get(l, to, left);
        if (got < 0) return gone(fail);
        if (got == 0) break;
        l->received += (uint64_t)got;
        if (l->head_have < sizeof l->head)
            l->head_have += (size_t)got;
        else
            l->have += (size_t)got;
    }
    return AT_OK;
}

void at_link_next(at_link *l)
{
    free(l->message.bytes);
    l->message = (at_link_message){0};
    l->head_have = l->have = 0;
    l->placed = l->complete = false;
}

/* ---- sending --------------------------------------------------------------------------------- */

at_err at_link_post(at_link *l, uint32_t kind, const void *bytes, size_t size, const void *vector,
                    size_t vector_size, at_fail *fail)
{
    assert(kind < l->receiver.kinds);
    assert(size <= SIZE_MAX / 4);
    item *new = calloc(1, sizeof *new + AT_FRAME_HEAD + size);
    if (!new) return at_fail_memory(fail);
    new->size = AT_FRAME_HEAD + size;
    new->vector = vector;
    new->vector_size = vector_size;
    at_frame_write(new->block, kind, size + vector_size);
    if (size > 0) memcpy(new->block + AT_FRAME_HEAD, bytes, size);
    if (l->last)
        l->last->next = new;
    else
        l->first = new;
    l->last = new;
    l->queued += new->size;
    l->posted += new->size + vector_size;
    return AT_OK;
}

/* The unsent parts of an item: none, one or two. */
static int parts_of(const item *i, struct iovec parts[2])
{
    int    count = 0;
    size_t at = i->sent > i->size ? i->sent - i->size : 0;
    if (i->sent < i->size)
        parts[count++] = (struct iovec){(void *)(uintptr_t)(i->block + i->sent), i->size - i->sent};
    if (i->vector_size > at)
        parts[count++] = (struct iovec){(void *)(uintptr_t)(i->vector + at), i->vector_size - at};
    return count;
}

/* Sends of the first messages what the socket takes, together: a small one is no packet of its
 * own. Returns bytes; 0: nothing now; -1: the other end is gone. */
static ssize_t put(at_link *l)
{
    enum { PARTS_MAX = 16 };
    struct iovec parts[PARTS_MAX];
    int          count = 0;
    for (const item *i = l->first; i && count + 2 <= PARTS_MAX; i = i->next)
        count += parts_of(i, parts + count);
    assert(count > 0);
    if (l->end) return at_tls_write(l->end, parts[0].iov_base, parts[0].iov_len);
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)count};
    for (;;) {
        ssize_t sent = sendmsg(l->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) return sent;
        if (errno == EINTR) continue;
        return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
    }
}

/* Drops what was sent from the front of the queue. */
static void advance(at_link *l, size_t sent)
{
    while (sent > 0) {
        item  *i = l->first;
        size_t left = i->size + i->vector_size - i->sent, part = sent < left ? sent : left;
        i->sent += part;
        sent -= part;
        if (part < left) return;
        drop_first(l);
        if (l->end) at_tls_refresh(l->end);
    }
}

/* True when the socket takes more. Asking is also what makes the kernel tell (by SIGIO, if that is
 * set) when it does again; a send that failed is not enough. */
static bool takes_more(const at_link *l)
{
    struct pollfd poll_fd = {.fd = l->fd, .events = POLLOUT};
    return poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & POLLOUT);
}

at_err at_link_flush(at_link *l, at_fail *fail)
{
    if (l->state != AT_LINK_OPEN) AT_TRY(open_up(l, fail));
    while (l->first && l->state == AT_LINK_OPEN) {
        ssize_t sent = put(l);
        if (sent < 0) return gone(fail);
        if (sent == 0 && !takes_more(l)) break;
        advance(l, (size_t)sent);
        l->sent += (uint64_t)sent;
    }
    return AT_OK;
}

bool at_link_is_idle(const at_link *l)
{
    return !l->first;
}

at_err at_link_detach(at_link *l, at_fail *fail)
{
    for (item *i = l->first; i; i = i->next) {
        size_t at = i->sent > i->size ? i->sent - i->size : 0;
        if (i->copy || at == i->vector_size) continue;
        i->copy = malloc(i->vector_size - at);
        if (!i->copy) return at_fail_memory(fail);
        memcpy(i->copy, i->vector + at, i->vector_size - at);
        i->sent -= at; /* the copy is the rest of the vector */
        i->vector_size -= at;
        i->vector = i->copy;
        l->queued += i->vector_size;
    }
    return AT_OK;
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* A system that does not tell leaves zeros, which mean unknown. */
void at_link_measure(const at_link *l, at_link_stats *stats)
{
    struct tcp_info info = {0};
    socklen_t       size = sizeof info;
    stats->sent_bytes = l->sent;
    stats->received_bytes = l->received;
    if (getsockopt(l->fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
    stats->round_trip_ns = AT_US(info.tcpi_rtt);
    stats->round_trip_ns_min = info.tcpi_min_rtt == UINT32_MAX ? 0 : AT_US(info.tcpi_min_rtt);
    stats->resent_packets = info.tcpi_total_retrans;
}

/* ---- waiting --------------------------------------------------------------------------------- */

bool at_link_await(const at_link *l, at_ns until, bool *interrupted)
{
    if (l->more) return true; /* it may have left the socket already */
    for (;;) {
        at_ns left = until == AT_NEVER ? AT_SEC(3600) : until - at_clock_now();
        if (left <= 0) return false;
        bool          sends = l->first && l->state == AT_LINK_OPEN; /* a handshake waits to read */
        short         events = (short)(POLLIN | (sends ? POLLOUT : 0));
        struct pollfd poll_fd = {.fd = l->fd, .events = events};
        struct timespec limit = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
        int             ready = ppoll(&poll_fd, 1, &limit, NULL);
        if (ready > 0) return true;
        if (ready < 0 && errno == EINTR && interrupted) *interrupted = true;
        if (ready < 0 && (errno != EINTR || interrupted)) return false;
    }
}
