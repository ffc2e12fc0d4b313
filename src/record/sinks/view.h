/* view.h - draws the live block of the console, as text.
 *
 *     amb · softmax · fashion-mnist · 4 workers          █ compute ▓ sleep ░ idle
 *     ██████████░░░░░░░░░░░░░░░░░░░░  step 412/2000  21%  elapsed 3s  ETA 12s  loss 0.412
 *     1 ████████▓░   2 ███████▓▓░   3 lost         4 █████████░
 *
 * When there is no room for all workers they are drawn in groups: "1-63 ██████▓▓░×", where × is the
 * share of lost workers, and a last line summarizes all of them. Without UTF-8 the bars consist of
 * #, =, . and x.
 *
 * No line is wider than `columns`, not counting escape sequences, and there are fewer lines than
 * rows. Every line ends by clearing the rest of the row.
 */
#ifndef AT_RECORD_SINKS_VIEW_H
#define AT_RECORD_SINKS_VIEW_H

#include "base/text.h"
#include "record/progress.h"

enum { AT_VIEW_LINES = 12 }; /* most lines of a block */

/* How a worker spent its time. */
typedef struct at_time_split {
    at_ns compute, sleep, idle;
} at_time_split;

typedef struct at_view {
    const at_run_progress *progress;
    const at_time_split   *split; /* of each worker */
    at_ns                  elapsed;
    int                    columns; /* that may be used */
    int                    rows;    /* of the terminal; 0: unknown */
    bool                   color;
    bool                   ascii; /* the terminal has no UTF-8 */
} at_view;

/* Writes the block; returns its number of lines. */
int at_view_draw(const at_view *view, at_text *out);

/* "amb · softmax · fashion-mnist · 10 workers", in ASCII with - for ·; one line, whatever the names
 * contain. */
void at_view_title(const at_run_info *info, bool ascii, at_text *out);

/* Columns that `size` bytes take on a terminal, not counting escape sequences. */
int at_view_columns(const char *text, size_t size);

/* Writes a text in lines of at most `columns`, broken at spaces where possible; each line ends with
 * `ending`. Control characters of the text become question marks. */
void at_view_wrap(at_text *out, const char *text, int columns, const char *ending);

#endif
