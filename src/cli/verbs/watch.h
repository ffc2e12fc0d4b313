/* watch.h - `train --watch`: the dashboard of a run, in a separate process. */
#ifndef AT_CLI_VERBS_WATCH_H
#define AT_CLI_VERBS_WATCH_H

#include <sys/types.h>

#include "cli/options/options.h"

enum { AT_REDIRECT_SIZE = 300 };

typedef struct at_watch {
    pid_t pid;                        /* 0: no dashboard */
    char  redirect[AT_REDIRECT_SIZE]; /* file that leads a browser to it; "": none */
} at_watch;

/* With --watch, starts the server and prints its address to stderr. It reads what the run writes to
 * `folder` and ends with this process at the latest. */
at_err at_watch_start(at_watch *watch, const at_parsed *parsed, const char *folder, at_fail *fail);

/* Stops the server after its clients were informed; accepts a zeroed one. */
void at_watch_end(at_watch *watch);

#endif
