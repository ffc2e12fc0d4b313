#include "record/usage_tally.h"

#include <assert.h>

/* Adds what a counter has grown by; `before` is 0 for a process that is new. */
static void add_growth(uint64_t *sum, uint64_t now, uint64_t before)
{
    if (now == AT_USAGE_UNKNOWN || before == AT_USAGE_UNKNOWN || now < before) return;
    if (__builtin_add_overflow(*sum, now - before, sum)) *sum = AT_USAGE_UNKNOWN - 1;
}

static void raise_peak(uint64_t *peak, uint64_t value)
{
    if (value != AT_USAGE_UNKNOWN && value > *peak) *peak = value;
}

/* The network was there before the process: only what happened between two looks is ours. */
static void book_network(at_usage_tally *tally, const at_usage *usage)
{
    assert(tally->last.pid == usage->pid);
    add_growth(&tally->net_in_bytes, usage->net_in_bytes, tally->last.net_in_bytes);
    add_growth(&tally->net_out_bytes, usage->net_out_bytes, tally->last.net_out_bytes);
    add_growth(&tally->loopback_bytes, usage->loopback_bytes, tally->last.loopback_bytes);
}

/* A counter that is not known this time keeps its last value: growth goes on from there. */
static void keep_known(uint64_t *now, uint64_t before)
{
    if (*now == AT_USAGE_UNKNOWN) *now = before;
}

static void remember(at_usage_tally *tally, const at_usage *usage)
{
    at_usage before = tally->last;
    bool     is_new = before.pid != usage->pid;
    tally->last = *usage;
    if (is_new) return;
    keep_known(&tally->last.read_bytes, before.read_bytes);
    keep_known(&tally->last.write_bytes, before.write_bytes);
    keep_known(&tally->last.net_in_bytes, before.net_in_bytes);
    keep_known(&tally->last.net_out_bytes, before.net_out_bytes);
    keep_known(&tally->last.loopback_bytes, before.loopback_bytes);
}

void at_usage_tally_put(at_usage_tally *tally, const at_usage *usage)
{
    assert(usage->pid > 0);
    bool     is_new = tally->last.pid != usage->pid;
    at_usage before = is_new ? (at_usage){0} : tally->last;
    at_ns    gained = at_usage_cpu(usage) - at_usage_cpu(&before);
    if (gained > 0 && __builtin_add_overflow(tally->cpu_ns, gained, &tally->cpu_ns))
        tally->cpu_ns = AT_NEVER;
    add_growth(&tally->read_bytes, usage->read_bytes, before.read_bytes);
    add_growth(&tally->write_bytes, usage->write_bytes, before.write_bytes);
    if (!is_new) book_network(tally, usage);
    raise_peak(&tally->peak_bytes, usage->rss_bytes);
    raise_peak(&tally->peak_bytes, usage->peak_bytes);
    remember(tally, usage);
}
