/* link_stats.h - the connection between the hub and a worker on another machine: who is at the
 * other end, how far away it is, and how much was sent.
 *
 * Counters are those of one connection, from its beginning. Times are what TCP measures with every
 * packet, so they do not depend on what the worker computes.
 */
#ifndef AT_BASE_LINK_STATS_H
#define AT_BASE_LINK_STATS_H

#include <stdint.h>

#include "base/time.h"

enum { AT_LINK_NAME_SIZE = 64 }; /* including the final zero */

typedef struct at_link_stats {
    char     host[AT_LINK_NAME_SIZE];    /* as the worker names its machine; "": unknown */
    char     address[AT_LINK_NAME_SIZE]; /* from which it has connected */
    at_ns    round_trip_ns;              /* recent mean; 0: unknown, as the next one */
    at_ns    round_trip_ns_min;
    uint64_t sent_bytes, received_bytes; /* of messages, by the hub */
    uint64_t resent_packets;             /* by the hub's machine */
} at_link_stats;

/* Copies a name that somebody else has chosen. What is not a letter, a digit or one of "-._:%[]"
 * becomes '?', so that it can be written to any file; the rest of a long name is left out. */
void at_link_name_set(char name[AT_LINK_NAME_SIZE], const char *text);

#endif
