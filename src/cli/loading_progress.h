/* loading_progress.h - a progress line on stderr for reading or scoring a data set, and for reading
 * event logs, shown after two seconds. */
#ifndef AT_CLI_LOADING_PROGRESS_H
#define AT_CLI_LOADING_PROGRESS_H

#include <stdbool.h>

#include "base/time.h"
#include "data/set/dataset.h"

typedef struct at_loading_line {
    at_load_progress loading;    /* pass this to the reader */
    const char      *doing;      /* "reading"; may be changed */
    const char      *name;       /* of the data set or run; borrowed; may be changed */
    at_ns            began, due; /* when to print next */
    bool             terminal, shown;
    uint32_t         part, parts; /* of the logs that it follows; 0 parts: it follows none */
} at_loading_line;

/* Starts the clock. `quiet`: prints nothing. The line MUST NOT be moved. */
void at_loading_line_init(at_loading_line *line, const char *name, bool quiet);

/* Shows how far event logs are read, until the line ends. Those of run `part` (from 0) of `parts`
 * follow. */
void at_loading_line_follow_logs(at_loading_line *line, uint32_t part, uint32_t parts);

/* Erases the line on a terminal. */
void at_loading_line_end(at_loading_line *line);

#endif
