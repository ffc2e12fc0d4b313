/* terminal.h - what the terminal behind a stream can do, and how large it is. Internal to record/.
 *
 * Its size is asked for whenever something is drawn, so a resize needs no signal handler.
 */
#ifndef AT_RECORD_SINKS_TERMINAL_H
#define AT_RECORD_SINKS_TERMINAL_H

#include "record/sinks/sinks.h"

typedef struct at_terminal_size {
    int columns, rows; /* 0: not known */
} at_terminal_size;

/* The window's size now. COLUMNS and LINES, where they are set, are what the user wants instead. */
at_terminal_size at_terminal_window(FILE *file);

/* Rows that a block of lines of these widths takes in a window that may have become narrower since
 * they were drawn: terminals wrap what does not fit. */
int at_terminal_rows(const int *width, int lines, int columns);

#endif
