/* net_seat.h - a connection to a hub, for workers and measurements. Internal to world/net. */
#ifndef AT_WORLD_NET_NET_SEAT_H
#define AT_WORLD_NET_NET_SEAT_H

#include "world/net/net_worker.h"
#include "world/seat/seat_client.h"

/* Connects and proves the token, once; `seat` is zeroed. */
at_err at_net_open_seat(const at_net_join *join, at_seat *seat, at_fail *fail);

/* Waits for the message that the hub sends next, in seat->inbox. AT_ERR_MISSING: none came. */
at_err at_net_hear(at_seat *seat, at_seat_message_kind wanted, at_ns patience, at_fail *fail);

#endif
