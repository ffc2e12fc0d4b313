/* watch.h - `train --watch`: the dashboard of a run, in a process of its own beside it. */
#ifndef AT_CLI_VERBS_WATCH_H
#define AT_CLI_VERBS_WATCH_H

#include <sys/types.h>

#include "cli/options/options.h"

typedef struct at_watch {
    pid_t pid; /* 0: nobody watches */
} at_watch;

/* Starts the server when --watch asks for it, and tells its address on stderr. It reads what the
 * run writes to `folder`, and ends with this process at the latest. */
at_err at_watch_start(at_watch *watch, const at_parsed *parsed, const char *folder, at_fail *fail);

/* Lets it tell its clients the end, and waits for its own; accepts a zeroed one. */
void at_watch_end(at_watch *watch);

#endif
