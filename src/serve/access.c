#include "serve/access.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "serve/address.h"

static const at_access_decision fine = {200, NULL};

static bool is(const char *text, const char *word)
{
    assert(word);
    return text && strcmp(text, word) == 0;
}

/* The host without its port, in `name`; false when it is too long or looks like nothing known. A
 * tunnel (ssh -L) changes the port, so any is right. */
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

/* An address in digits cannot be rebound: a page that names us by it was served by us. */
static bool is_our_host(const at_access *guard, const char *host)
{
    assert(guard->token[0]);
    char name[AT_ACCESS_NAME_SIZE];
    if (!host || !split_host(host, name, sizeof name)) return false;
    if (at_address_is_digits(name) || strcasecmp(name, "localhost") == 0) return true;
    return guard->name[0] && strcasecmp(name, guard->name) == 0;
}

/* http://HOST, or https://HOST where a proxy of the user's adds encryption. */
static bool is_our_origin(const char *origin, const char *host)
{
    assert(host);
    if (strncmp(origin, "http://", 7) == 0) return strcasecmp(origin + 7, host) == 0;
    return strncmp(origin, "https://", 8) == 0 && strcasecmp(origin + 8, host) == 0;
}

/* Links from elsewhere may lead to the page, scripts from elsewhere may not get at the rest. */
static bool is_our_site(const at_request *request)
{
    assert(request->path);
    if (!request->site || is(request->path, "/")) return true;
    return is(request->site, "same-origin") || is(request->site, "none");
}

static bool has_token(const at_access *guard, const at_request *request)
{
    static const char bearer[] = "Bearer ";
    const char       *said = request->authorization;
    bool              is_bearer = said && strncasecmp(said, bearer, sizeof bearer - 1) == 0;
    assert(guard->token[0]);
    if (is_bearer && at_token_same(guard->token, said + sizeof bearer - 1)) return true;
    return at_token_same(guard->token, request->cookie) ||
           at_token_same(guard->token, request->token);
}

at_access_decision at_access_check(const at_access *guard, const at_request *request)
{
    assert(request->method);
    assert(request->path);
    if (!is(request->method, "GET") && !is(request->method, "HEAD"))
        return (at_access_decision){405, "this server only answers GET and HEAD"};
    if (!is_our_host(guard, request->host))
        return (at_access_decision){403,
                                    "this server does not answer to that name; use its address"};
    if (request->origin && !is_our_origin(request->origin, request->host))
        return (at_access_decision){403, "this server does not answer to other sites"};
    if (!is_our_site(request))
        return (at_access_decision){403, "this server does not answer to other sites"};
    if (is(request->path, "/healthz")) return fine;
    if (!has_token(guard, request))
        return (at_access_decision){401,
                                    "the token is missing or wrong; open the address that anytime "
                                    "printed when it started"};
    return fine;
}
