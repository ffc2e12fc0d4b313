/* socket.h - TCP sockets that never block.
 *
 * Connections notice a peer that has gone silently: unanswered probes or unacknowledged bytes end
 * them after half a minute.
 */
#ifndef AT_NET_SOCKET_H
#define AT_NET_SOCKET_H

#include "base/time.h"
#include "net/address.h"

/* Listens at an address; `shown` is where, with the port that was chosen. A port that is taken is
 * tried again until `until`: processes of a hub that was killed may have it for a moment.
 * AT_ERR_USAGE: the name is unknown; AT_ERR_IO: the address is taken or not of this machine. */
at_err at_net_listen(const at_net_address *address, at_ns until, int *fd,
                     char shown[AT_NET_TEXT_SIZE], at_fail *fail);

/* Connects, until the time `until` at the latest; looking up a name may take as long as the
 * system's resolver allows. `stops` is asked several times per second whether to give up; NULL:
 * never. AT_ERR_MISSING: nobody listens there, or the name is unknown now. */
at_err at_net_connect(const at_net_address *address, at_ns until, bool (*stops)(void), int *fd,
                      bool *loopback, at_fail *fail);

/* The next connection that has arrived; -1: there is none. */
int at_net_accept(int listener, struct sockaddr_storage *peer);

#endif
