#include "world/net/net_probe.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "world/net/net_seat.h"

enum { TRIPS_MIN = 5, TRIPS_MAX = 200, SIZE_FIRST = 64 << 10 };
static const at_ns ANSWER_TIME = AT_SEC(60);

/* One connection, and bytes to send. */
typedef struct probe {
    at_seat       *seat;
    unsigned char *bytes;
} probe;

/* Sends `up` bytes and waits for `down`. */
static at_err ask(probe *p, size_t up, size_t down, double *seconds, at_fail *fail)
{
    uint64_t answer = down;
    at_ns    begin = at_clock_now(), until = begin + ANSWER_TIME;
    assert(up <= AT_SEAT_PROBE_MAX && down <= AT_SEAT_PROBE_MAX);
    AT_TRY(at_seat_tell(p->seat, AT_SEAT_PROBE, (at_seat_part){&answer, sizeof answer},
                        (at_seat_part){p->bytes, up}, until, fail));
    AT_TRY(at_net_hear(p->seat, AT_SEAT_PROBE, ANSWER_TIME, fail));
    if (p->seat->inbox.size != down)
        return at_fail_set(fail, AT_ERR_FORMAT, "use the same version of anytime everywhere",
                           "the hub answers with %zu bytes instead of %zu", p->seat->inbox.size,
                           down);
    *seconds = at_seconds(at_clock_now() - begin);
    return AT_OK;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static at_err measure_trips(probe *p, at_ns duration, at_net_path *path, at_fail *fail)
{
    double trip[TRIPS_MAX];
    size_t count = 0;
    at_ns  end = at_clock_now() + duration;
    while (count < TRIPS_MAX && (count < TRIPS_MIN || at_clock_now() < end)) {
        AT_TRY(ask(p, 0, 0, &trip[count], fail));
        count++;
    }
    qsort(trip, count, sizeof *trip, compare);
    path->trip_seconds = trip[count / 2];
    path->trip_min_seconds = trip[0];
    return AT_OK;
}

/* Larger and larger messages until one takes a quarter of the time, since a connection needs a
 * while to reach its full speed; then the best of several. */
static at_err measure_rate(probe *p, bool up, const at_net_path *path, at_ns duration, double *rate,
                           at_fail *fail)
{
    at_ns  end = at_clock_now() + duration;
    size_t size = SIZE_FIRST;
    bool   large = false;
    *rate = 0;
    do {
        double seconds = 0;
        AT_TRY(ask(p, up ? size : 0, up ? 0 : size, &seconds, fail));
        double moving = seconds - path->trip_min_seconds;
        double least = path->trip_min_seconds / 10; /* a message that hides in the round trip */
        double found = (double)size / (moving > least ? moving : least);
        if (!large || found > *rate) *rate = found;
        large = size == AT_SEAT_PROBE_MAX || seconds > at_seconds(duration) / 4;
        if (!large) size = 2 * size < AT_SEAT_PROBE_MAX ? 2 * size : AT_SEAT_PROBE_MAX;
    } while (at_clock_now() < end);
    return AT_OK;
}

static at_err measure(probe *p, const at_net_join *join, at_ns duration, at_net_path *path,
                      at_fail *fail)
{
    at_ns begin = at_clock_now();
    AT_TRY(at_net_open_seat(join, p->seat, fail));
    p->seat->link->receiver.size_max = AT_SEAT_PROBE_MAX;
    path->join_seconds = at_seconds(at_clock_now() - begin);
    path->encrypted = p->seat->link->end != NULL;
    AT_TRY(measure_trips(p, duration, path, fail));
    AT_TRY(measure_rate(p, true, path, duration, &path->up, fail));
    return measure_rate(p, false, path, duration, &path->down, fail);
}

at_err at_net_measure(const at_net_join *join, at_ns duration, at_net_path *path, at_fail *fail)
{
    probe p = {.seat = calloc(1, sizeof *p.seat), .bytes = calloc(AT_SEAT_PROBE_MAX, 1)};
    *path = (at_net_path){0};
    at_err err = p.seat && p.bytes ? measure(&p, join, duration, path, fail) : at_fail_memory(fail);
    at_seat_leave(&p.seat);
    free(p.bytes);
    return err;
}
