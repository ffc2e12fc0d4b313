/* Named tensors that the hub keeps for its seats. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "world/seat/seat_client.h"

static const at_ns PATIENCE = AT_SEC(60);

static bool is_open(const at_seat *s)
{
    return s->stage >= AT_SEAT_STAGE_SEATED && !s->lost && s->ended != AT_SEAT_EVICTED;
}

/* Waits for the hub's answer; false: it is gone. */
static bool await_value(at_seat *s)
{
    at_ns   until = at_clock_now() + PATIENCE;
    at_fail fail;
    s->inbox.size_max = SIZE_MAX / 2;
    if (s->link) s->link->receiver.size_max = SIZE_MAX / 2;
    while (!s->inbox.complete)
        if (at_clock_now() >= until || at_seat_hear(s, until, NULL, &fail)) return false;
    return s->inbox.kind == AT_SEAT_VALUE && s->inbox.size >= AT_SEAT_NAME_SIZE &&
           memchr(s->inbox.bytes, 0, AT_SEAT_NAME_SIZE);
}

static bool ask(at_seat *s, at_seat_message_kind kind, const char *text)
{
    at_fail fail;
    return is_open(s) &&
           !at_seat_tell(s, kind, (at_seat_part){text, strlen(text)}, (at_seat_part){0},
                         at_clock_now() + PATIENCE, &fail) &&
           await_value(s);
}

int at_seat_state_put(at_seat *s, const char *name, const float *values, uint64_t count)
{
    char    padded[AT_SEAT_NAME_SIZE] = "";
    at_fail fail;
    size_t  size;
    if (!is_open(s) || !*name || strlen(name) >= sizeof padded ||
        !at_size_product(count, sizeof(float), &size) || size > SIZE_MAX / 4)
        return -1;
    snprintf(padded, sizeof padded, "%s", name);
    return at_seat_tell(s, AT_SEAT_PUT, (at_seat_part){padded, sizeof padded},
                        (at_seat_part){values, size}, at_clock_now() + PATIENCE, &fail)
               ? -1
               : 0;
}

int64_t at_seat_state_get(at_seat *s, const char *name, float *values, uint64_t max)
{
    int64_t count = -1;
    if (!*name || strlen(name) >= AT_SEAT_NAME_SIZE) return -1;
    if (ask(s, AT_SEAT_GET, name) && s->inbox.bytes[0]) {
        uint64_t have = (s->inbox.size - AT_SEAT_NAME_SIZE) / sizeof(float);
        uint64_t copied = have < max ? have : max;
        if (copied > 0) memcpy(values, s->inbox.bytes + AT_SEAT_NAME_SIZE, copied * sizeof(float));
        count = (int64_t)have;
    }
    if (s->inbox.complete) at_seat_inbox_next(&s->inbox);
    return count;
}

int at_seat_state_name(at_seat *s, uint32_t index, char name[AT_SEAT_NAME_SIZE])
{
    char number[16];
    snprintf(number, sizeof number, "%u", index);
    bool found = ask(s, AT_SEAT_NAME, number) && s->inbox.bytes[0];
    if (found) memcpy(name, s->inbox.bytes, AT_SEAT_NAME_SIZE);
    if (s->inbox.complete) at_seat_inbox_next(&s->inbox);
    return found ? 0 : -1;
}
