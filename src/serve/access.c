#include "serve/access.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "serve/address.h"

static bool is(const char *text, const char *word)
{
    assert(word);
    return text && strcmp(text, word) == 0;
}

/* Copies the host without its port to `name`; false when it is too long or malformed. A tunnel
 * (ssh -L) changes the port, so any port is accepted. */
static bool split_host(const char *host, char *name, size_t size)
{
    assert(size > 1);
    const char *bracket = strrchr(host, ']'), *colon = strrchr(host, ':');
    size_t      length = strlen(host);
    if (colon && (!bracket || colon > bracket)) {
        length = (size_t)(colon - host);
        if (strspn(colon + 1, "0123456789") != strlen(colon + 1)) return false;
    }
    if (length == 0 || length >= size) return false;
    snprintf(name, size, "%.*s", (int)length, host);
    return true;
}

/* A numeric address cannot be rebound: a page with this host was served by us. */
static bool is_our_host(const at_access *access, const char *host)
{
    assert(access->token[0]);
    char name[AT_ACCESS_NAME_SIZE];
    if (!host || !split_host(host, name, sizeof name)) return false;
    if (at_address_is_numeric(name) || strcasecmp(name, "localhost") == 0) return true;
    return access->name[0] && strcasecmp(name, access->name) == 0;
}

/* http://HOST, or https://HOST when a proxy of the user adds encryption. */
static bool is_our_origin(const char *origin, const char *host)
{
    assert(host);
    if (strncmp(origin, "http://", 7) == 0) return strcasecmp(origin + 7, host) == 0;
    return strncmp(origin, "https://", 8) == 0 && strcasecmp(origin + 8, host) == 0;
}

/* Links of other sites may lead to the page; scripts of other sites may access nothing else. */
static bool is_our_site(const at_request *request)
{
    assert(request->path);
    if (!request->site || is(request->path, "/")) return true;
    return is(request->site, "same-origin") || is(request->site, "none");
}

static bool has_token(const at_access *access, const at_request *request)
{
    static const char bearer[] = "Bearer ";
    const char       *header = request->authorization;
    bool              is_bearer = header && strncasecmp(header, bearer, sizeof bearer - 1) == 0;
    assert(access->token[0]);
    if (is_bearer && at_token_equal(access->token, header + sizeof bearer - 1)) return true;
    return at_token_equal(access->token, request->cookie) ||
           at_token_equal(access->token, request->token);
}

static at_access_decision refuse(unsigned status, const char *text)
{
    assert(status >= 400);
    return (at_access_decision){.status = status, .text = text};
}

at_access_decision at_access_check(const at_access *access, const at_request *request)
{
    assert(request->method);
    assert(request->path);
    if (!is(request->method, "GET") && !is(request->method, "HEAD"))
        return refuse(405, "only GET and HEAD are allowed");
    if (request->hosts > 1) return refuse(400, "the request has more than one Host header");
    if (!is_our_host(access, request->host))
        return refuse(403, "unknown host name; use the address that anytime printed");
    if (request->origin && !is_our_origin(request->origin, request->host))
        return refuse(403, "requests from other sites are not allowed");
    if (!is_our_site(request)) return refuse(403, "requests from other sites are not allowed");
    if (is(request->path, "/healthz")) return (at_access_decision){.status = 200};
    if (!has_token(access, request))
        return refuse(401, "the token is missing or wrong; open the address that anytime printed "
                           "when it started");
    return (at_access_decision){.status = 200, .proven = true};
}
