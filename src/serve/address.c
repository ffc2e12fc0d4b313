#include "serve/address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static at_err refuse(const char *text, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_USAGE, "use 127.0.0.1:8080, [::1]:8080, 0.0.0.0:8080 or 8080",
                       "--listen: '%s' is not an address and a port", text);
}

/* The host inside brackets; false when there are no brackets. */
static bool unwrap(const char *host, char *inside, size_t size)
{
    assert(size > 0);
    size_t length = strlen(host);
    if (length < 4 || length > size || host[0] != '[' || host[length - 1] != ']') return false;
    snprintf(inside, size, "%.*s", (int)(length - 2), host + 1);
    return true;
}

bool at_address_is_numeric(const char *host)
{
    assert(host);
    char            inside[AT_ADDRESS_HOST_SIZE];
    struct in6_addr six;
    struct in_addr  four;
    if (unwrap(host, inside, sizeof inside)) return inet_pton(AF_INET6, inside, &six) == 1;
    return inet_pton(AF_INET, host, &four) == 1;
}

static bool set_ipv6(at_address *address)
{
    assert(!address->ipv6);
    struct sockaddr_in6 *to = (struct sockaddr_in6 *)&address->socket;
    char                 inside[AT_ADDRESS_HOST_SIZE];
    if (!unwrap(address->host, inside, sizeof inside)) return false;
    if (inet_pton(AF_INET6, inside, &to->sin6_addr) != 1) return false;
    to->sin6_family = AF_INET6;
    to->sin6_port = htons(address->port);
    address->ipv6 = true;
    address->loopback = IN6_IS_ADDR_LOOPBACK(&to->sin6_addr);
    return true;
}

static bool set_ipv4(at_address *address)
{
    assert(!address->ipv6);
    struct sockaddr_in *to = (struct sockaddr_in *)&address->socket;
    bool                named = strcmp(address->host, "localhost") == 0;
    if (inet_pton(AF_INET, named ? "127.0.0.1" : address->host, &to->sin_addr) != 1) return false;
    to->sin_family = AF_INET;
    to->sin_port = htons(address->port);
    address->loopback = ntohl(to->sin_addr.s_addr) >> 24 == 127;
    return true;
}

at_err at_address_parse(const char *text, at_address *address, at_fail *fail)
{
    assert(text);
    int64_t     port;
    const char *colon = strrchr(text, ':'), *digits = colon ? colon + 1 : text;
    size_t      host = colon ? (size_t)(colon - text) : 0;
    *address = (at_address){0};
    if (!at_text_whole(digits, &port) || port < 0 || port > UINT16_MAX) return refuse(text, fail);
    if (host >= sizeof address->host) return refuse(text, fail);
    address->port = (uint16_t)port;
    snprintf(address->host, sizeof address->host, "%.*s", host ? (int)host : 9,
             host ? text : "127.0.0.1");
    return set_ipv4(address) || set_ipv6(address) ? AT_OK : refuse(text, fail);
}
