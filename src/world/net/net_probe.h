/* net_probe.h - measures the path from this machine to a hub, as its workers would use it.
 *
 *     seat ──PROBE {answer size, bytes}──► hub
 *     hub  ──PROBE {bytes}──►              seat
 *
 * The hub may be waiting for workers or training; it answers whoever has proven the token.
 */
#ifndef AT_WORLD_NET_NET_PROBE_H
#define AT_WORLD_NET_NET_PROBE_H

#include "world/net/net_worker.h"

typedef struct at_net_path {
    bool   encrypted;
    double join_seconds; /* connecting, and proving the token to each other */
    double trip_seconds; /* median of an empty round trip */
    double trip_min_seconds;
    double up, down; /* bytes per second: to the hub, and from it */
} at_net_path;

/* Connects and measures, for about three times `duration`. AT_ERR_MISSING: the hub cannot be
 * reached; AT_ERR_USAGE: it has another token. */
at_err at_net_measure(const at_net_join *join, at_ns duration, at_net_path *path, at_fail *fail);

#endif
