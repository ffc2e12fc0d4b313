/* A seat that has lost its hub on another machine tries to get it back: the network may be down for
 * a while, or the hub may be started again from its checkpoint. The program notices only that a
 * round was abandoned, and that the next one begins where the hub says. */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "world/seat/seat_client.h"

enum { USELESS_MAX = 5 };
static const at_ns PAUSE_MIN = AT_MS(50), PAUSE_MAX = AT_SEC(2);

bool at_seat_comes_back(at_seat *s)
{
    const at_seat_slot *slot = at_seat_slot_of(s);
    bool                over = s->lost || atomic_load(&slot->evicted);
    if (!s->link || s->reconnect == 0 || !over) return false;
    s->useless = atomic_load(&slot->taken) > 0 ? 0 : s->useless + 1;
    return s->useless < USELESS_MAX; /* a hub that never takes our reports does not want them */
}

/* The memory stays, because the program may have kept pointers to it. */
static void disconnect(at_seat *s)
{
    at_link_free(s->link);
    s->link = NULL;
    if (s->inbox.complete) at_seat_inbox_next(&s->inbox);
    memset(at_seat_slot_of(s), 0, sizeof(at_seat_slot));
    s->stage = AT_SEAT_STAGE_NEW;
    s->lost = s->reporting = s->has_params = s->in_micro = s->installed = s->publishing = false;
    s->order_seen = s->publish_seen = 0;
}

void at_seat_rejoin_begin(at_seat *s)
{
    assert(s->link);
    disconnect(s);
    s->rejoining = true;
    s->rank_wanted = (int)s->rank;
    s->rejoin_until = at_clock_now() + s->reconnect;
    s->rejoin_at = at_clock_now();
    s->rejoin_pause = PAUSE_MIN;
}

/* Waits for the time of the next attempt; false: the caller does not want to wait that long. */
static bool pause(at_seat *s)
{
    at_ns now = at_clock_now(), slice = now + AT_MS(s->wait_ms);
    bool  far = s->wait_ms > 0 && s->rejoin_at > slice;
    at_clock_sleep_until(far ? slice : s->rejoin_at);
    return !far;
}

static int give_up(at_seat *s)
{
    s->rejoining = false;
    s->stage = AT_SEAT_STAGE_OVER;
    s->ended = AT_SEAT_LOST;
    return AT_SEAT_LOST;
}

int at_seat_rejoin(at_seat *s)
{
    at_fail fail = {0};
    for (;;) {
        if (!s->link && !pause(s)) return AT_SEAT_AGAIN;
        at_err err = s->link ? AT_OK : at_seat_dial(s, s->hub, &fail);
        int    status = err ? AT_SEAT_LOST : at_seat_proceed(s, s->rejoin_until, &fail);
        if (status == AT_SEAT_AGAIN) return status;
        if (status == AT_SEAT_JOINED) {
            s->rejoining = false;
            return status;
        }
        at_ns now = at_clock_now();
        if ((err && err != AT_ERR_MISSING) || status == AT_SEAT_FAILED || now >= s->rejoin_until)
            return give_up(s);
        if (s->link) disconnect(s);
        s->rejoin_at = now + s->rejoin_pause;
        s->rejoin_pause = 2 * s->rejoin_pause < PAUSE_MAX ? 2 * s->rejoin_pause : PAUSE_MAX;
    }
}
