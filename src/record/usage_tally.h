/* usage_tally.h - what a node took from its machine, over all its processes.
 *
 * Readings are counters of one process; a worker that was replaced has had several. Increments are
 * summed, so that the total does not fall back when the next process begins at 0.
 */
#ifndef AT_RECORD_USAGE_TALLY_H
#define AT_RECORD_USAGE_TALLY_H

#include "base/usage.h"

/* All 0 when nobody looked. */
typedef struct at_usage_tally {
    at_usage last; /* the newest reading */
    at_ns    cpu_ns;
    uint64_t peak_bytes; /* most memory that one of its processes had at once */
    uint64_t read_bytes, write_bytes;
    uint64_t net_in_bytes, net_out_bytes, loopback_bytes; /* of its machine, since the first look */
} at_usage_tally;

/* Books one reading. */
void at_usage_tally_put(at_usage_tally *tally, const at_usage *usage);

#endif
