/* loading_progress.h - a line on stderr while a data set is read (or gone through for another
 * reason), when that takes more than two seconds. */
#ifndef AT_CLI_LOADING_PROGRESS_H
#define AT_CLI_LOADING_PROGRESS_H

#include <stdbool.h>

#include "base/time.h"
#include "data/set/dataset.h"

typedef struct at_loading_line {
    at_load_progress loading; /* hand this to whoever reads */
    const char      *doing;   /* "reading"; may be changed */
    const char      *name;    /* of the set; borrowed */
    at_ns            due;     /* when to say something next */
    bool             terminal, shown;
} at_loading_line;

/* Begins to count the time; quiet: nothing will be said. The line MUST not be moved. */
void at_loading_line_init(at_loading_line *line, const char *name, bool quiet);

/* Takes the line away from a terminal. */
void at_loading_line_end(at_loading_line *line);

#endif
