/* terminal.h - size and capabilities of the terminal behind a stream. Internal to record/.
 *
 * The size is queried for every drawing, so a resize needs no signal handler.
 */
#ifndef AT_RECORD_SINKS_TERMINAL_H
#define AT_RECORD_SINKS_TERMINAL_H

#include "record/sinks/sinks.h"

typedef struct at_terminal_size {
    int columns, rows; /* 0: unknown */
} at_terminal_size;

/* The current size of the window. COLUMNS and LINES override it. */
at_terminal_size at_terminal_window(FILE *file);

/* Rows that lines of these widths take in a window that may have become narrower since they were
 * drawn: terminals wrap lines that do not fit. */
int at_terminal_rows(const int *width, int lines, int columns);

#endif
