#include "record/sinks/tensorboard_usage.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* Counters, by name and place. */
static const struct {
    const char *tag;
    size_t      offset;
} counters[] = {
    {"resources/disk_read", offsetof(at_usage, read_bytes)},
    {"resources/disk_write", offsetof(at_usage, write_bytes)},
    {"resources/network_in", offsetof(at_usage, net_in_bytes)},
    {"resources/network_out", offsetof(at_usage, net_out_bytes)},
    {"resources/network_loopback", offsetof(at_usage, loopback_bytes)},
};

enum { COUNTERS = sizeof counters / sizeof *counters };

_Static_assert(COUNTERS + 2 <= AT_TFEVENTS_SCALARS, "all of them are one event");

static uint64_t counter(const at_usage *usage, size_t index)
{
    uint64_t value;
    assert(index < COUNTERS);
    memcpy(&value, (const char *)usage + counters[index].offset, sizeof value);
    return value;
}

size_t at_tensorboard_usage(at_tfevents_scalar scalars[AT_TFEVENTS_SCALARS], const at_usage *before,
                            const at_usage *now, double seconds)
{
    size_t count = 0;
    double cpu = at_seconds(at_usage_cpu(now)) - at_seconds(at_usage_cpu(before));
    assert(seconds > 0);
    assert(before->pid == now->pid);
    if (cpu >= 0) scalars[count++] = (at_tfevents_scalar){"resources/cpus", cpu / seconds};
    if (now->rss_bytes != AT_USAGE_UNKNOWN)
        scalars[count++] = (at_tfevents_scalar){"resources/memory_bytes", (double)now->rss_bytes};
    for (size_t i = 0; i < COUNTERS; i++) {
        uint64_t old = counter(before, i), new = counter(now, i);
        if (old == AT_USAGE_UNKNOWN || new == AT_USAGE_UNKNOWN || new < old) continue;
        scalars[count++] = (at_tfevents_scalar){counters[i].tag, (double)(new - old) / seconds};
    }
    return count;
}
