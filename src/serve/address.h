/* address.h - listen addresses: "127.0.0.1:8080", "[::1]:8080", "localhost:8080", "8080".
 *
 * Names other than localhost are not resolved: to listen on a network, give its address explicitly.
 */
#ifndef AT_SERVE_ADDRESS_H
#define AT_SERVE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"

enum { AT_ADDRESS_HOST_SIZE = 64 };

typedef struct at_address {
    struct sockaddr_storage socket;
    bool                    ipv6;
    bool                    loopback;                   /* reachable from this machine only */
    char                    host[AT_ADDRESS_HOST_SIZE]; /* as in a URL: 127.0.0.1, [::1] */
    uint16_t                port;                       /* 0: any free port */
} at_address;

/* Parses an address. AT_ERR_USAGE when it is invalid. */
at_err at_address_parse(const char *text, at_address *address, at_fail *fail);

/* True when the host, as in a URL, is a numeric address and not a name. */
bool at_address_is_numeric(const char *host);

#endif
