/* loading_progress.h - a progress line on stderr for reading or scoring a data set, shown after two
 * seconds. */
#ifndef AT_CLI_LOADING_PROGRESS_H
#define AT_CLI_LOADING_PROGRESS_H

#include <stdbool.h>

#include "base/time.h"
#include "data/set/dataset.h"

typedef struct at_loading_line {
    at_load_progress loading;    /* pass this to the reader */
    const char      *doing;      /* "reading"; may be changed */
    const char      *name;       /* of the data set; borrowed */
    at_ns            began, due; /* when to print next */
    bool             terminal, shown;
} at_loading_line;

/* Starts the clock. `quiet`: prints nothing. The line MUST NOT be moved. */
void at_loading_line_init(at_loading_line *line, const char *name, bool quiet);

/* Erases the line on a terminal. */
void at_loading_line_end(at_loading_line *line);

#endif
