/* address.h - where a hub is: "10.0.0.7:7000", "[::1]:0", "hub.example.org:7000".
 *
 * "tls://HOST:PORT" asks for encryption even where the address is of this machine, as behind a
 * tunnel that ends here. Connections between machines are always encrypted.
 */
#ifndef AT_NET_ADDRESS_H
#define AT_NET_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "base/err.h"

enum {
    AT_NET_HOST_SIZE = 256, /* of a name, with the final zero */
    AT_NET_TEXT_SIZE = 272  /* of an address with its port */
};

typedef struct at_net_address {
    char host[AT_NET_HOST_SIZE]; /* a name, or numbers without brackets */
    char port[8];                /* digits; "0": any free port */
    bool encrypted;              /* also on this machine */
} at_net_address;

/* True when a text is meant as an address; otherwise it is the path of a Unix socket. */
bool at_net_is_address(const char *text);

/* Parses an address; the name is not looked up. AT_ERR_USAGE when it is malformed. */
at_err at_net_address_parse(const char *text, at_net_address *address, at_fail *fail);

/* "127.0.0.1:7000" or "[::1]:7000" */
void at_net_show(const struct sockaddr_storage *socket, char text[AT_NET_TEXT_SIZE]);

/* True when only this machine can be at the other end. */
bool at_net_is_loopback(const struct sockaddr_storage *socket);

#endif
