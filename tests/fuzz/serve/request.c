/* Fuzz target: any bytes as the parts of a request to the dashboard, one per line. Nobody gets in
 * without the token. */
#include "serve/access.h"

#include <stdlib.h>
#include <string.h>

#include "../folder.h"

enum { PARTS = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char token[] = "0123456789abcdef0123456789abcdef";
    at_access         access = {.name = "node7", .cookie = "anytime_8080"};
    char             *text = calloc(1, size + 1), *rest = text, *part[PARTS] = {NULL};
    assert(text);
    memcpy(text, data, size);
    snprintf(access.token, sizeof access.token, "%s", token);
    for (int i = 0; i < PARTS && rest; i++) part[i] = strsep(&rest, "\n");
    for (int i = 0; i < PARTS; i++)
        if (part[i] && !part[i][0]) part[i] = NULL;
    bool               knows = strstr(text, token) || memmem(data, size, token, strlen(token));
    at_request         request = {.method = part[0] ? part[0] : "GET",
                                  .path = part[1] ? part[1] : "/",
                                  .host = part[2],
                                  .hosts = part[2] ? 1 : 0,
                                  .origin = part[3],
                                  .site = part[4],
                                  .authorization = part[5],
                                  .cookie = part[6],
                                  .token = part[7]};
    at_access_decision decision = at_access_check(&access, &request);
    assert(decision.status >= 200 && decision.status < 600);
    if (decision.status == 200) assert(knows || strcmp(request.path, "/healthz") == 0);
    free(text);
    return 0;
}
