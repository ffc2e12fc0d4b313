#include "net/address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

static const char TLS[] = "tls://", IN_FILE[] = "file:";

static const char *without_scheme(const char *text)
{
    return strncmp(text, TLS, sizeof TLS - 1) == 0 ? text + sizeof TLS - 1 : text;
}

bool at_net_is_address(const char *text)
{
    const char *rest = without_scheme(text);
    if (strncmp(text, IN_FILE, sizeof IN_FILE - 1) == 0) return true;
    return rest != text || (strchr(rest, ':') && !strchr(rest, '/'));
}

static at_err refuse(const char *text, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_USAGE, "use 10.0.0.7:7000, [::1]:7000 or hub.example.org:7000",
                       "'%.200s' is not an address and a port", text);
}

at_err at_net_address_parse(const char *text, at_net_address *address, at_fail *fail)
{
    const char *rest = without_scheme(text), *colon = strrchr(rest, ':'), *host = rest;
    int64_t     port;
    assert(text);
    *address = (at_net_address){.encrypted = rest != text};
    if (!colon || colon == rest || strlen(colon + 1) > 5 || !at_text_whole(colon + 1, &port) ||
        port < 0 || port > UINT16_MAX)
        return refuse(text, fail);
    size_t length = (size_t)(colon - rest);
    bool   brackets = host[0] == '[' && host[length - 1] == ']';
    if (brackets) {
        host++;
        length -= 2;
    }
    bool colons = memchr(host, ':', length) != NULL; /* IPv6, which needs brackets */
    if (length == 0 || length >= sizeof address->host || brackets != colons ||
        memchr(host, '/', length))
        return refuse(text, fail);
    memcpy(address->host, host, length);
    snprintf(address->port, sizeof address->port, "%d", (int)port);
    return AT_OK;
}

/* ---- lists ----------------------------------------------------------------------------------- */

at_err at_net_list_read(const char *text, char list[AT_NET_LIST_SIZE], at_fail *fail)
{
    unsigned char *bytes;
    size_t         size;
    const char    *path = text + sizeof IN_FILE - 1;
    if (strncmp(text, IN_FILE, sizeof IN_FILE - 1) != 0) {
        int length = snprintf(list, AT_NET_LIST_SIZE, "%s", text);
        return length < AT_NET_LIST_SIZE ? AT_OK : refuse(text, fail);
    }
    if (access(path, F_OK) != 0)
        return at_fail_set(fail, AT_ERR_MISSING, "start a hub with the same --hub-file",
                           "%.200s does not exist: no hub has written it", path);
    AT_TRY(at_file_read(path, AT_NET_LIST_SIZE - 1, &bytes, &size, fail));
    snprintf(list, AT_NET_LIST_SIZE, "%s", (const char *)bytes);
    list[strcspn(list, "\r\n")] = '\0';
    free(bytes);
    return AT_OK;
}

const char *at_net_list_next(const char *list, char address[AT_NET_TEXT_SIZE])
{
    size_t length = strcspn(list, ",");
    assert(list);
    snprintf(address, AT_NET_TEXT_SIZE, "%.*s", (int)length, list);
    return list + length + (list[length] == ',');
}

/* ---- sockets --------------------------------------------------------------------------------- */

void at_net_show(const struct sockaddr_storage *socket, char text[AT_NET_TEXT_SIZE])
{
    char host[INET6_ADDRSTRLEN + 32], port[8];
    int  failed = getnameinfo((const struct sockaddr *)socket, sizeof *socket, host, sizeof host,
                              port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    bool six = socket->ss_family == AF_INET6;
    if (failed)
        snprintf(text, AT_NET_TEXT_SIZE, "an unknown address");
    else
        snprintf(text, AT_NET_TEXT_SIZE, "%s%s%s:%s", six ? "[" : "", host, six ? "]" : "", port);
}

bool at_net_is_loopback(const struct sockaddr_storage *socket)
{
    if (socket->ss_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)socket;
        return ntohl(four->sin_addr.s_addr) >> 24 == 127;
    }
    if (socket->ss_family != AF_INET6) return false;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)socket)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127);
}
