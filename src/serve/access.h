/* access.h - who may have which answer: decided from a request's first lines alone.
 *
 * A dashboard on loopback can still be reached by every page that is open in the user's browser.
 * So beside the token (somebody was told the address) a request must name us by an address or a
 * name that cannot be another's (no DNS rebinding), must not come from another site's script, and
 * can only read.
 */
#ifndef AT_SERVE_ACCESS_H
#define AT_SERVE_ACCESS_H

#include <stdbool.h>

#include "serve/token.h"

enum { AT_ACCESS_NAME_SIZE = 256, AT_ACCESS_COOKIE_SIZE = 24 };

typedef struct at_access {
    char token[AT_TOKEN_SIZE];
    char name[AT_ACCESS_NAME_SIZE];     /* of this machine; empty: only local names are right */
    char cookie[AT_ACCESS_COOKIE_SIZE]; /* its name: ports of a host share their cookies */
} at_access;

/* What a request says; NULL where it says nothing. */
typedef struct at_request {
    const char *method, *path;
    const char *host;          /* Host */
    const char *origin;        /* Origin: the site whose script asks */
    const char *site;          /* Sec-Fetch-Site */
    const char *authorization; /* Authorization */
    const char *cookie;        /* the value of our cookie */
    const char *token;         /* ?token= */
} at_request;

typedef struct at_access_decision {
    unsigned    status; /* 200: go on; otherwise the answer is this and the text */
    const char *text;
} at_access_decision;

/* Looks at a request. /healthz needs no token. */
at_access_decision at_access_check(const at_access *guard, const at_request *request);

#endif
