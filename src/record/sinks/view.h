/* view.h - the live block of the console, as text.
 *
 *     amb · softmax · fashion-mnist · 4 workers          █ compute ▓ sleep ░ idle
 *     ██████████░░░░░░░░░░░░░░░░░░░░  step 412/2000  21%  4201 samples/s  loss 0.412  left 12s
 *     1 ████████▓░   2 ███████▓▓░   3 lost         4 █████████░
 *
 * More workers than there is room for are drawn in groups: "1-63 ██████▓▓░×", where × is the part
 * that is lost, and a last line sums up all of them. On a terminal without UTF-8 the bars are made
 * of #, =, . and x.
 *
 * No line is wider than the columns given, escape sequences aside, and there are fewer lines than
 * rows. Every line ends by clearing what an older, longer one may have left.
 */
#ifndef AT_RECORD_SINKS_VIEW_H
#define AT_RECORD_SINKS_VIEW_H

#include "base/text.h"
#include "record/progress.h"

enum { AT_VIEW_LINES = 12 }; /* most lines of a block */

/* How a worker spent a stretch of time. */
typedef struct at_meter {
    at_ns compute, sleep, idle;
} at_meter;

typedef struct at_view {
    const at_run_progress *progress;
    const at_meter        *meter; /* of each worker */
    at_ns                  elapsed;
    int                    columns; /* that may be used */
    int                    rows;    /* of the terminal; 0: not known */
    bool                   colour;
    bool                   ascii; /* the terminal has no UTF-8 */
} at_view;

/* Writes the block; returns how many lines it has. */
int at_view_draw(const at_view *view, at_text *out);

/* "amb · softmax · fashion-mnist · 10 workers", or with - instead of ·. */
void at_view_title(const at_run_info *info, bool ascii, at_text *out);

/* Columns that so many bytes take on a terminal: characters, escape sequences aside. */
int at_view_columns(const char *text, size_t size);

/* Writes a sentence so that no line is wider than `columns`, breaking at spaces where it can; each
 * line ends with `ending`. */
void at_view_wrap(at_text *out, const char *sentence, int columns, const char *ending);

#endif
