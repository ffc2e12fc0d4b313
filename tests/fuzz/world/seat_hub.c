/* Fuzz target: any messages from a hub to a seat on another machine: while it joins, and in its
 * rounds. The first byte says whether it has a place already, with which rules, and how messages
 * are compressed; then each message is its kind, its size in two bytes, and its bytes. One is sent
 * before each call of the program, and the connection ends after the last one, so nothing waits for
 * long. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "message/message.h"
#include "world/seat/seat_client.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FLOATS = 8, INPUT_MAX = 16384, MESSAGE_MAX = 1 << 20, VALUES = 4 };

/* Its rules and compression come from the first byte. */
static const char welcome[] =
    "{\"rank\":0,\"workers\":2,\"workers_max\":2,\"seed\":1,\"incarnation\":1,\"sequence\":0,"
    "\"slots\":2,\"cut_after\":false,\"micro_batch\":4,\"sample_time\":0,\"round_ns\":0,"
    "\"rounds\":1,\"spin\":0,\"floats\":8,\"base\":0,\"straggler\":\"none\",\"scale\":\"1\","
    "\"trace_scale\":1.0,\"drawn\":0,\"redrawn\":0,\"compress\":\"%s\",\"rules\":[%s]}";
static const char *const rules[] = {
    "\"any:1\",\"free\",\"finish\",\"use\"", "\"all\",\"barrier\",\"finish\",\"drop\"",
    "\"first:1\",\"barrier\",\"abandon\",\"drop\"", "\"every:50ms\",\"free\",\"refresh\",\"use\""};
static const char *const compressions[] = {"none", "bf16", "topk:0.5"};

static size_t collects(void *self, uint32_t kind)
{
    (void)self;
    return kind == AT_SEAT_NET_PARAMS ? AT_HUB_MESSAGE_HEAD : SIZE_MAX;
}

/* As the seat itself does it; it is not visible from here. */
static at_err place(void *self, at_link_message *m, at_fail *fail)
{
    at_seat *s = self;
    size_t   size = s->packs_params ? s->packs_params->size : FLOATS * sizeof(float);
    if (!s->newest || m->vector_size != size)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "parameters of another size");
    m->vector = s->packs_params ? s->packed_params : s->incoming ? s->incoming : s->newest;
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
    s->wait_ms = 1;
    s->inbox.size_max = MESSAGE_MAX;
    s->spec.floats = s->spec.trained = FLOATS;
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

/* What the hub has still to say. */
typedef struct speech {
    int            fd;
    const uint8_t *data;
    size_t         size;
} speech;

/* The next message; after the last one the end of the connection. */
static void say_next(speech *hub)
{
    if (hub->size < 3) {
        shutdown(hub->fd, SHUT_WR);
        hub->size = 0;
        return;
    }
    size_t wanted = (size_t)(hub->data[1] | hub->data[2] << 8), rest = hub->size - 3;
    size_t part = wanted < rest ? wanted : rest;
    put(hub->fd, hub->data[0] % AT_SEAT_MESSAGE_KINDS, hub->data + 3, part);
    hub->data += 3 + part;
    hub->size = rest - part;
}

static void say_all(speech *hub)
{
    while (hub->size > 0) say_next(hub);
    say_next(hub);
}

/* A round as a program makes it. */
static int make_round(at_seat *s, speech *hub)
{
    int status;
    do {
        float *gradient = at_seat_gradient(s);
        for (int p = 0; p < FLOATS; p++) gradient[p] += at_seat_params(s)[p];
        say_next(hub);
        status = at_seat_more(s, 2, 0.5);
        while (status == AT_SEAT_AGAIN) {
            say_next(hub);
            status = at_seat_more(s, 2, 0.5);
        }
    } while (status == AT_SEAT_MORE || status == AT_SEAT_REFRESHED);
    if (status == AT_SEAT_REPORT) at_seat_report(s);
    return status;
}

static void work(at_seat *s, speech *hub)
{
    int           status;
    at_seat_facts facts;
    do {
        at_seat_order order;
        say_next(hub);
        status = at_seat_next(s, &order);
        if (status == AT_SEAT_WORK) status = make_round(s, hub);
        at_seat_facts_get(s, &facts);
        if (facts.first) at_seat_evaluated(s, facts.version, 0.5, 0.25);
    } while (status == AT_SEAT_AGAIN || status == AT_SEAT_ABANDON || status == AT_SEAT_REPORT);
}

/* Asks for what the hub keeps. */
static void ask(at_seat *s, speech *hub)
{
    float values[VALUES + 1] = {[VALUES] = 42};
    char  name[AT_SEAT_NAME_SIZE];
    say_all(hub);
    if (at_seat_state_name(s, 0, name) == 0) assert(strlen(name) < sizeof name);
    (void)at_seat_state_get(s, "x", values, VALUES);
    assert(values[VALUES] == 42);
}

/* What a seat gets before its first round: a place, and parameters. */
static void put_welcome(int fd, uint8_t choice)
{
    static const float        params[FLOATS] = {1, 2, 3};
    const char               *how = compressions[(choice >> 3) % 3];
    at_hub_message            message = {.kind = AT_HUB_MESSAGE_WORK};
    at_compress               compress;
    at_packing                packing;
    at_fail                   fail;
    char                      text[sizeof welcome + 100];
    _Alignas(8) unsigned char first[AT_HUB_MESSAGE_HEAD + sizeof params];
    int    length = snprintf(text, sizeof text, welcome, how, rules[(choice >> 1) % 4]);
    at_err err = at_compress_read(how, &compress, &fail);
    bool   fits = at_packing_of_params(compress, FLOATS, 0, &packing);
    assert(!err && fits && packing.size <= sizeof params);
    at_hub_message_write(first, &message);
    at_pack(&packing, first + AT_HUB_MESSAGE_HEAD, params);
    put(fd, AT_SEAT_WELCOME, text, (size_t)length);
    put(fd, AT_SEAT_NET_PARAMS, first, AT_HUB_MESSAGE_HEAD + packing.size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int     fd[2];
    at_fail fail = {0};
    if (size < 1 || size > INPUT_MAX) return 0;
    int made = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd);
    assert(made == 0);
    at_seat *s = open_seat(fd[1]);
    speech   hub = {fd[0], data + 1, size - 1};
    bool     has_place = data[0] & 1, asks = data[0] & 0x40;
    if (has_place)
        put_welcome(fd[0], data[0]);
    else
        say_all(&hub);
    int status = at_seat_proceed(s, at_clock_now() + AT_SEC(1), &fail);
    assert(!has_place || status == AT_SEAT_JOINED);
    if (status == AT_SEAT_JOINED && asks) ask(s, &hub);
    if (status == AT_SEAT_JOINED) work(s, &hub);
    at_seat_leave(&s);
    close(fd[0]);
    return 0;
}
