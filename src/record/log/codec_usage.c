#include "record/log/codec_usage.h"

#include <assert.h>

/* AT_USAGE_UNKNOWN becomes 0. */
static void code_counter(at_wire *wire, uint64_t *value)
{
    uint64_t shifted = *value + 1;
    at_wire_u64(wire, &shifted);
    *value = shifted - 1;
}

void at_codec_usage(at_wire *wire, at_node *node, at_usage *usage)
{
    uint64_t *counters[] = {&usage->rss_bytes,     &usage->shared_bytes,  &usage->peak_bytes,
                            &usage->read_bytes,    &usage->write_bytes,   &usage->net_in_bytes,
                            &usage->net_out_bytes, &usage->loopback_bytes};
    assert(!wire->spool || *node <= AT_NODE_EVALUATOR);
    at_wire_u32(wire, node);
    if (*node > AT_NODE_EVALUATOR) wire->bad = "a process that cannot be";
    at_wire_i64(wire, &usage->pid);
    at_wire_i64(wire, &usage->user_ns);
    at_wire_i64(wire, &usage->system_ns);
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) code_counter(wire, counters[i]);
}
