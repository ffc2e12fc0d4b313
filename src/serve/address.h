/* address.h - where a server listens: "127.0.0.1:8080", "[::1]:8080", "localhost:8080", "8080".
 *
 * Names other than localhost are not looked up: who listens on a network should know on which.
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
    bool                    loopback;                   /* nobody outside this machine gets here */
    char                    host[AT_ADDRESS_HOST_SIZE]; /* as in an address: 127.0.0.1, [::1] */
    uint16_t                port;                       /* 0: any that is free */
} at_address;

/* Reads an address. AT_ERR_USAGE when it is none. */
at_err at_address_parse(const char *text, at_address *address, at_fail *fail);

/* Is this host, as browsers write it, an address in digits and not a name? */
bool at_address_is_digits(const char *host);

#endif
