#include "world/seat/seat_wire.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "net/frame.h"

/* ---- heads ----------------------------------------------------------------------------------- */

static at_err gone(at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_MISSING, NULL, "the other end has closed the connection");
}

static at_err read_head(at_seat_inbox *in, at_fail *fail)
{
    uint32_t kind;
    uint64_t size;
    AT_TRY(at_frame_read(in->head, AT_SEAT_MESSAGE_KINDS, &kind, &size, fail));
    if (size > in->size_max)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "a message of %llu bytes is too long",
                           (unsigned long long)size);
    in->kind = (at_seat_message_kind)kind;
    in->size = (size_t)size;
    in->bytes = malloc(in->size + 1);
    if (!in->bytes) return at_fail_memory(fail);
    in->bytes[in->size] = 0;
    return AT_OK;
}

/* ---- receiving ------------------------------------------------------------------------------- */

static void keep_descriptors(at_seat_inbox *in, struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (in->fds < AT_SEAT_FDS)
                in->fd[in->fds++] = fd;
            else
                close(fd);
        }
    }
}

/* Received descriptors are not inherited by programs that a seat starts. */
static ssize_t receive(at_seat_inbox *in, int fd, void *to, size_t size)
{
    union {
        char           bytes[CMSG_SPACE(AT_SEAT_FDS * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec  part = {.iov_base = to, .iov_len = size};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t       got;
    do got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got > 0) keep_descriptors(in, &message);
    return got;
}

at_err at_seat_inbox_read(at_seat_inbox *in, int fd, at_fail *fail)
{
    assert(!in->complete);
    for (;;) {
        bool           in_head = in->head_have < sizeof in->head;
        unsigned char *to = in_head ? in->head + in->head_have : in->bytes + in->have;
        size_t         left = in_head ? sizeof in->head - in->head_have : in->size - in->have;
        if (left > 0) {
            ssize_t got = receive(in, fd, to, left);
            if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return AT_OK;
            if (got <= 0) return gone(fail);
            in->received += (uint64_t)got;
            if (in_head)
                in->head_have += (size_t)got;
            else
                in->have += (size_t)got;
        }
        if (in_head && in->head_have == sizeof in->head) AT_TRY(read_head(in, fail));
        in->complete = !in_head && in->have == in->size;
        if (in->complete) return AT_OK;
    }
}

void at_seat_inbox_next(at_seat_inbox *in)
{
    for (uint32_t i = 0; i < in->fds; i++)
        if (in->fd[i] >= 0) close(in->fd[i]);
    free(in->bytes);
    *in = (at_seat_inbox){.size_max = in->size_max, .received = in->received};
}

void at_seat_inbox_adopt(at_seat_inbox *inbox, at_link *link)
{
    assert(!inbox->complete);
    inbox->kind = (at_seat_message_kind)link->message.kind;
    inbox->bytes = link->message.bytes;
    inbox->size = link->message.size;
    inbox->complete = true;
    link->message.bytes = NULL;
    at_link_next(link);
}

void at_seat_inbox_deinit(at_seat_inbox *in)
{
    at_seat_inbox_next(in);
    *in = (at_seat_inbox){0};
}

/* ---- sending --------------------------------------------------------------------------------- */

static bool await(int fd, short events, at_ns until, bool *interrupted)
{
    for (;;) {
        at_ns left = until == AT_NEVER ? AT_SEC(3600) : until - at_clock_now();
        if (left <= 0) return false;
        struct pollfd   poll_fd = {.fd = fd, .events = events};
        struct timespec limit = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
        int             ready = ppoll(&poll_fd, 1, &limit, NULL);
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return false;
        if (ready < 0 && interrupted) {
            *interrupted = true;
            return false;
        }
    }
}

bool at_seat_await(int fd, at_ns until, bool *interrupted)
{
    assert(fd >= 0);
    return await(fd, POLLIN, until, interrupted);
}

bool at_seat_hung_up(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLRDHUP};
    assert(fd >= 0);
    return poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

static void attach(struct msghdr *message, void *control, size_t size, const int *fds)
{
    memset(control, 0, size);
    message->msg_control = control;
    message->msg_controllen = size;
    struct cmsghdr *c = CMSG_FIRSTHDR(message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(AT_SEAT_FDS * sizeof(int));
    memcpy(CMSG_DATA(c), fds, AT_SEAT_FDS * sizeof(int));
}

/* Drops what was sent from the front of the parts. */
static void advance(struct msghdr *message, size_t sent)
{
    while (message->msg_iovlen > 0 && sent >= message->msg_iov->iov_len) {
        sent -= message->msg_iov->iov_len;
        message->msg_iov++;
        message->msg_iovlen--;
    }
    if (message->msg_iovlen == 0) return;
    message->msg_iov->iov_base = (char *)message->msg_iov->iov_base + sent;
    message->msg_iov->iov_len -= sent;
}

at_err at_seat_send(int fd, at_seat_message_kind kind, at_seat_part first, at_seat_part second,
                    const int *fds, at_ns until, at_fail *fail)
{
    assert(fd >= 0);
    unsigned char head[AT_FRAME_HEAD];
    struct iovec  parts[] = {{head, sizeof head},
                             {(void *)(uintptr_t)first.bytes, first.size},
                             {(void *)(uintptr_t)second.bytes, second.size}};
    union {
        char           bytes[CMSG_SPACE(AT_SEAT_FDS * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    at_frame_write(head, kind, first.size + second.size);
    if (fds) attach(&message, control.bytes, sizeof control.bytes, fds);
    while (message.msg_iovlen > 0) {
        ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR) continue;
        bool full = sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
        if (sent < 0 && !full) return gone(fail);
        if (full && !await(fd, POLLOUT, until, NULL))
            return at_fail_set(fail, AT_ERR_MISSING, NULL,
                               "the other end does not read its messages");
        if (full) continue;
        message.msg_control = NULL;
        message.msg_controllen = 0;
        advance(&message, (size_t)sent);
    }
    return AT_OK;
}

void at_seat_prove(const char token[AT_TOKEN_SIZE], const unsigned char nonce[AT_SEAT_NONCE],
                   bool of_hub, unsigned char digest[AT_SEAT_DIGEST])
{
    unsigned char bytes[1 + AT_SEAT_NONCE + AT_TOKEN_SIZE] = {of_hub ? 'H' : 'S'};
    size_t        length = strlen(token);
    assert(length < AT_TOKEN_SIZE);
    memcpy(bytes + 1, nonce, AT_SEAT_NONCE);
    memcpy(bytes + 1 + AT_SEAT_NONCE, token, length);
    at_file_digest_bytes(bytes, sizeof bytes, digest);
}

/* ---- sockets --------------------------------------------------------------------------------- */

/* The address of a socket holds about 100 characters; through an open folder any path fits. */
static at_err address_of(const char *path, struct sockaddr_un *address, int *folder, at_fail *fail)
{
    char        parent[4096];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t      length = slash ? (size_t)(slash - path) : 0;
    if (length >= sizeof parent || strlen(name) > 60 || !*name)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "'%.200s' is not the path of a hub", path);
    memcpy(parent, path, length);
    parent[length] = '\0';
    *folder = open(!slash ? "." : length > 0 ? parent : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*folder < 0)
        return at_fail_set(fail, AT_ERR_MISSING, "is the run still going?", "no hub at %.300s: %s",
                           path, strerror(errno));
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/%s", *folder, name);
    return AT_OK;
}

static at_err new_socket(int *fd, at_fail *fail)
{
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd >= 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_FAILED, NULL, "cannot create a socket: %s", strerror(errno));
}

at_err at_seat_listen(const char *path, int *fd, at_fail *fail)
{
    struct sockaddr_un address;
    int                folder;
    AT_TRY(address_of(path, &address, &folder, fail));
    at_err err = new_socket(fd, fail);
    if (!err) {
        unlink(path); /* left by a hub that was killed; the folder is locked by us */
        bool ok = bind(*fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
                  chmod(path, 0600) == 0 && listen(*fd, SOMAXCONN) == 0;
        if (!ok) {
            err = at_file_error("listen", path, errno, fail);
            close(*fd);
        }
    }
    close(folder);
    return err;
}

at_err at_seat_connect(const char *path, int *fd, at_fail *fail)
{
    struct sockaddr_un address;
    int                folder;
    AT_TRY(address_of(path, &address, &folder, fail));
    at_err err = new_socket(fd, fail);
    if (!err && connect(*fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        int error = errno;
        close(*fd);
        err = at_fail_set(fail, AT_ERR_MISSING, "is the run still going?", "no hub at %.300s: %s",
                          path, strerror(error));
    }
    close(folder);
    return err;
}
