/* Fuzz target: any bytes from a program that wants a seat, in pieces of any size. */
#include "world/seat/seat_wire.h"

#include <sys/socket.h>

#include "../folder.h"

enum { SIZE_MAX_MESSAGE = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int           end[2];
    at_seat_inbox inbox = {.size_max = SIZE_MAX_MESSAGE};
    at_err        err = AT_OK;
    size_t        sent = 0;
    if (size < 1 || size > 60000) return 0;
    int made = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, end);
    assert(made == 0);
    while (!err && sent + 1 < size) {
        size_t  piece = 1 + data[0] % 61, left = size - 1 - sent;
        ssize_t done = send(end[0], data + 1 + sent, piece < left ? piece : left, MSG_NOSIGNAL);
        assert(done > 0);
        sent += (size_t)done;
        at_fail fail = {0};
        do {
            err = at_seat_inbox_read(&inbox, end[1], &fail);
            assert(!err || fail.text[0]);
            if (err || !inbox.complete) break;
            assert(inbox.kind < AT_SEAT_MESSAGE_KINDS && inbox.size <= SIZE_MAX_MESSAGE);
            assert(inbox.bytes && inbox.bytes[inbox.size] == 0);
            at_seat_inbox_next(&inbox);
        } while (true);
    }
    at_seat_inbox_deinit(&inbox);
    close(end[0]);
    close(end[1]);
    return 0;
}
