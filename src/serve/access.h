/* access.h - access control of the dashboard, based on the header of a request.
 *
 * A dashboard on loopback can still be reached by every page that is open in the user's browser.
 * So in addition to the token, the Host of a request must be a numeric address or a name that
 * cannot be rebound (no DNS rebinding), it must not come from a script of another site, and it can
 * only read.
 */
#ifndef AT_SERVE_ACCESS_H
#define AT_SERVE_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/token.h"

enum { AT_ACCESS_NAME_SIZE = 256, AT_ACCESS_COOKIE_SIZE = 24 };

typedef struct at_access {
    char token[AT_TOKEN_SIZE];
    char name[AT_ACCESS_NAME_SIZE];     /* of this machine; empty: only local names are accepted */
    char cookie[AT_ACCESS_COOKIE_SIZE]; /* its name has the port: ports of a host share cookies */
} at_access;

/* Parts of a request; NULL: missing. */
typedef struct at_request {
    const char *method, *path;
    const char *host;          /* Host */
    uint32_t    hosts;         /* number of Host headers */
    const char *origin;        /* Origin: the site of the script */
    const char *site;          /* Sec-Fetch-Site */
    const char *authorization; /* Authorization */
    const char *cookie;        /* the value of our cookie */
    const char *token;         /* ?token= */
} at_request;

typedef struct at_access_decision {
    unsigned    status; /* 200: allowed; otherwise the status of the response */
    const char *text;
    bool        proven; /* the client knows the token */
} at_access_decision;

/* Checks a request. /healthz needs no token. */
at_access_decision at_access_check(const at_access *access, const at_request *request);

#endif
