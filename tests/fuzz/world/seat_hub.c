/* Fuzz target: any messages from a hub to a seat on another machine: while it joins, and in its
 * rounds. The first byte says whether it has a place already; then each message is its kind, its
 * size in two bytes, and its bytes. The connection ends after the last one, so nothing waits. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "message/message.h"
#include "world/seat/seat_client.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FLOATS = 8, INPUT_MAX = 16384, MESSAGE_MAX = 1 << 20, ROUNDS = 4, MICROS = 8 };

static const char *const welcome =
    "{\"rank\":0,\"workers\":2,\"workers_max\":2,\"seed\":1,\"incarnation\":1,\"sequence\":0,"
    "\"slots\":2,\"cut_after\":false,\"micro_batch\":4,\"sample_time\":0,\"round_ns\":0,"
    "\"rounds\":1,\"spin\":0,\"floats\":8,\"base\":0,\"straggler\":\"none\",\"scale\":\"1\","
    "\"trace_scale\":1.0,\"drawn\":0,\"redrawn\":0,\"rules\":[\"any:1\",\"free\",\"finish\","
    "\"use\"]}";

static size_t collects(void *self, uint32_t kind)
{
    (void)self;
    return kind == AT_SEAT_NET_PARAMS ? AT_HUB_MESSAGE_HEAD : SIZE_MAX;
}

/* As the seat itself does it; it is not visible from here. */
static at_err place(void *self, at_link_message *m, at_fail *fail)
{
    at_seat *s = self;
    if (!s->newest || m->vector_size != FLOATS * sizeof(float))
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "parameters of another size");
    m->vector = s->incoming ? s->incoming : s->newest;
    return AT_OK;
}

/* A seat that has greeted its hub. */
static at_seat *open_seat(int fd)
{
    at_seat         *s = calloc(1, sizeof *s);
    at_fail          fail;
    at_link_receiver receiver = {.self = s,
                                 .kinds = AT_SEAT_MESSAGE_KINDS,
                                 .size_max = MESSAGE_MAX,
                                 .collects = collects,
                                 .place = place};
    assert(s);
    s->fd = -1;
    s->rank_wanted = -1;
    s->inbox.size_max = MESSAGE_MAX;
    s->spec.floats = FLOATS;
    s->stage = AT_SEAT_STAGE_GREETED;
    memcpy(s->token, "0123456789abcdef", 16);
    at_err err = at_link_connected(fd, NULL, false, &receiver, &s->link, &fail);
    assert(!err);
    return s;
}

static void put(int fd, uint32_t kind, const void *bytes, size_t size)
{
    unsigned char head[AT_FRAME_HEAD];
    at_frame_write(head, kind, size);
    (void)send(fd, head, sizeof head, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)send(fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void put_all(int fd, const uint8_t *data, size_t size)
{
    while (size >= 3) {
        size_t wanted = (size_t)(data[1] | data[2] << 8), rest = size - 3;
        size_t part = wanted < rest ? wanted : rest;
        put(fd, data[0] % AT_SEAT_MESSAGE_KINDS, data + 3, part);
        data += 3 + part;
        size = rest - part;
    }
}

/* Rounds as a program makes them. */
static void work(at_seat *s)
{
    at_seat_order order;
    for (int round = 0; round < ROUNDS && at_seat_next(s, &order) == AT_SEAT_WORK; round++) {
        int status = AT_SEAT_MORE;
        for (uint32_t i = 0; i < MICROS && status == AT_SEAT_MORE; i++) {
            float *gradient = at_seat_gradient(s);
            for (int p = 0; p < FLOATS; p++) gradient[p] += at_seat_params(s)[p];
            status = at_seat_more(s, 1 + i % 3, 0.5);
        }
        if (status == AT_SEAT_REPORT) at_seat_report(s);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const float params[FLOATS] = {1, 2, 3};
    int                fd[2];
    at_fail            fail = {0};
    if (size < 1 || size > INPUT_MAX) return 0;
    int made = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd);
    assert(made == 0);
    at_seat *s = open_seat(fd[1]);
    if (data[0] & 1) {
        unsigned char  first[AT_HUB_MESSAGE_HEAD + sizeof params];
        at_hub_message message = {.kind = AT_HUB_MESSAGE_WORK};
        at_hub_message_write(first, &message);
        memcpy(first + AT_HUB_MESSAGE_HEAD, params, sizeof params);
        put(fd[0], AT_SEAT_WELCOME, welcome, strlen(welcome));
        put(fd[0], AT_SEAT_NET_PARAMS, first, sizeof first);
    }
    put_all(fd[0], data + 1, size - 1);
    shutdown(fd[0], SHUT_WR);
    if (at_seat_proceed(s, at_clock_now() + AT_SEC(1), &fail) == AT_SEAT_JOINED) work(s);
    at_seat_leave(&s);
    close(fd[0]);
    return 0;
}
