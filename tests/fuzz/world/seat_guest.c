/* Fuzz target: any messages from a worker on another machine, at every stage of its connection. The
 * first byte selects stage and compression; then each message is its kind, its size in two bytes,
 * and its bytes. So proofs and heads of frames, which chance would not guess, are no obstacle. What
 * is accepted is within the memory of the seat, and the hub never keeps more than it should. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "world/core/job_parts.h"
#include "world/seat/seat_hub.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FLOATS = 8, SLOTS = 2, GROUPS = 1, INPUT_MAX = 32768, HELLO_MAX = 16 << 20 };

static const at_guest_stage stages[] = {AT_GUEST_CALLING, AT_GUEST_NEW, AT_GUEST_PROVEN,
                                        AT_GUEST_ASKED, AT_GUEST_SEATED};
enum { STAGES = sizeof stages / sizeof *stages };

typedef struct scene {
    at_seat_hub  hub;
    at_guest     guest;
    at_seat_file slot;
    at_packing   packing;
    int          other; /* end of the guest's connection */
} scene;

static void open_hub(scene *s, uint8_t choice)
{
    s->hub = (at_seat_hub){.fd = -1,
                           .net_fd = -1,
                           .epoll = -1,
                           .guest = &s->guest,
                           .guests_max = 1,
                           .known = stages[choice % STAGES] == AT_GUEST_SEATED,
                           .newest = 9,
                           .first_id = 1,
                           .job = choice & 0x40 ? "{}" : NULL};
    memcpy(s->hub.token, "0123456789abcdef", 16);
    s->hub.spec.floats = s->hub.known ? FLOATS : 0;
    s->hub.spec.groups = GROUPS;
}

static void open_guest(scene *s, uint8_t choice)
{
    at_fail fail;
    int     fd[2];
    int     made = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd);
    assert(made == 0);
    s->other = fd[0];
    s->guest = (at_guest){.stage = stages[choice % STAGES],
                          .fd = -1,
                          .since = at_clock_now(),
                          .inbox = {.size_max = HELLO_MAX},
                          .rank = -1,
                          .child = -1,
                          .ready = true,
                          .id = 1};
    s->guest.spec.floats = s->guest.stage == AT_GUEST_ASKED ? FLOATS : 0;
    at_link_receiver receiver = at_remote_receiver(&s->guest.remote, HELLO_MAX);
    at_err err = at_link_connected(fd[1], NULL, false, &receiver, &s->guest.remote.link, &fail);
    assert(!err);
}

/* A seat like that of a worker that has joined. */
static void take_seat(scene *s, uint8_t choice)
{
    static const at_compress_kind kinds[] = {AT_COMPRESS_NONE, AT_COMPRESS_BF16, AT_COMPRESS_TOPK};
    at_compress                   how = {.kind = kinds[choice / STAGES % 3], .share = 0.5};
    at_fail                       fail;
    size_t                        size;
    bool                          fits = at_seat_slot_size(FLOATS, SLOTS, &size) &&
                at_packing_of_gradient(how, FLOATS, 0, &s->packing);
    at_err err = at_seat_file_private(size, &s->slot, &fail);
    assert(fits && !err);
    at_remote_place place = {.file = &s->slot,
                             .floats = FLOATS,
                             .slots = SLOTS,
                             .groups = GROUPS,
                             .packing = at_packing_used(&s->packing)};
    err = at_remote_seat(&s->guest.remote, &place, &fail);
    assert(!err);
}

static void send_all(const scene *s, const uint8_t *data, size_t size)
{
    unsigned char head[AT_FRAME_HEAD];
    while (size >= 3) {
        size_t wanted = (size_t)(data[1] | data[2] << 8), rest = size - 3;
        size_t part = wanted < rest ? wanted : rest;
        at_frame_write(head, data[0] % AT_SEAT_MESSAGE_KINDS, part);
        (void)send(s->other, head, sizeof head, MSG_DONTWAIT | MSG_NOSIGNAL);
        (void)send(s->other, data + 3, part, MSG_DONTWAIT | MSG_NOSIGNAL);
        data += 3 + part;
        size = rest - part;
    }
}

static void check(const scene *s)
{
    const at_seat_slot *slot = s->slot.memory;
    size_t              kept = 0;
    for (uint32_t i = 0; i < s->hub.kept_count; i++) kept += s->hub.kept[i].count;
    assert(kept <= INPUT_MAX / sizeof(float));
    assert(s->hub.base <= s->hub.newest);
    if (!slot) return;
    assert(atomic_load(&slot->sent) <= SLOTS);
    for (uint64_t i = 0; i < atomic_load(&slot->sent); i++)
        assert(slot->mail[i % AT_SEAT_GRADIENTS].report.slot < SLOTS);
}

static void close_all(scene *s)
{
    at_seat_hub_forget(&s->guest);
    close(s->other);
    at_seat_file_close(&s->slot);
    for (uint32_t i = 0; i < s->hub.kept_count; i++) free(s->hub.kept[i].values);
    free(s->hub.kept);
    free(s->hub.params);
    s->hub.spec.floats = 0;
    at_spec_deinit(&s->hub.spec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scene s = {.slot = {.fd = -1}};
    if (size < 1 || size > INPUT_MAX) return 0;
    open_hub(&s, data[0]);
    open_guest(&s, data[0]);
    if (s.guest.stage == AT_GUEST_SEATED) take_seat(&s, data[0]);
    send_all(&s, data + 1, size - 1);
    at_seat_hub_poll(&s.hub);
    check(&s);
    close_all(&s);
    return 0;
}
