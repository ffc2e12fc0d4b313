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
    AT_NET_TEXT_SIZE = 272, /* of an address with its port */
    AT_NET_LIST_SIZE = 1024 /* of several, or of the path of a file with them */
};

typedef struct at_net_address {
    char host[AT_NET_HOST_SIZE]; /* a name, or numbers without brackets */
    char port[8];                /* digits; "0": any free port */
    bool encrypted;              /* also on this machine */
} at_net_address;

/* True when a text is meant as an address, a list of them or file:PATH; otherwise it is the path of
 * a Unix socket. */
bool at_net_is_address(const char *text);

/* Parses an address; the name is not looked up. AT_ERR_USAGE when it is malformed. */
at_err at_net_address_parse(const char *text, at_net_address *address, at_fail *fail);

/* Where something is that may move: `text` is a list of addresses, separated by commas, or
 * file:PATH with a file whose first line has them. AT_ERR_MISSING: there is no such file (yet). */
at_err at_net_list_read(const char *text, char list[AT_NET_LIST_SIZE], at_fail *fail);

/* Copies the first address of a list and returns the rest of the list. */
const char *at_net_list_next(const char *list, char address[AT_NET_TEXT_SIZE]);

/* "127.0.0.1:7000" or "[::1]:7000" */
void at_net_show(const struct sockaddr_storage *socket, char text[AT_NET_TEXT_SIZE]);

/* True when only this machine can be at the other end. */
bool at_net_is_loopback(const struct sockaddr_storage *socket);

#endif
