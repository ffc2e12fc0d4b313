#include "cli/loading_progress.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/output.h"
#include "record/log/eventlog.h"

static const at_ns first_after = AT_MS(2000), redraw_every = AT_MS(200),
                   repeat_every = AT_MS(10000);

/* ", about 3min20 left", once there is something to go by. */
static void print_left(at_ns spent, uint64_t done, uint64_t total)
{
    char text[32];
    if (done == 0 || done > total || spent < AT_SEC(1)) return;
    double left = (double)spent / (double)done * (double)(total - done);
    fprintf(stderr, ", about %s left",
            at_text_show_duration(text, sizeof text, (at_ns)(left / 1e9 + 0.5) * AT_SEC(1)));
}

/* Redraws the line on a terminal; prints a new one from time to time elsewhere. */
static void print_progress(void *self, uint64_t done, uint64_t total)
{
    at_loading_line *line = self;
    at_ns            now = at_clock_now();
    if (now < line->due) return;
    line->due = now + (line->terminal ? redraw_every : repeat_every);
    line->shown = true;
    if (line->terminal) fputc('\r', stderr);
    at_say("anytime: %s %s", line->doing, line->name);
    if (total > 0) fprintf(stderr, ", %.0f %%", 100.0 * (double)done / (double)total);
    print_left(now - line->began, done, total);
    fprintf(stderr, "%s", line->terminal ? "\033[K" : "\n");
    fflush(stderr);
}

void at_loading_line_init(at_loading_line *line, const char *name, bool quiet)
{
    assert(name);
    *line = (at_loading_line){.doing = "reading",
                              .name = name,
                              .began = at_clock_now(),
                              .due = at_clock_now() + first_after,
                              .terminal = isatty(STDERR_FILENO)};
    line->loading = (at_load_progress){.report = quiet ? NULL : print_progress, .self = line};
}

/* Every part counts alike: their sizes are not known before they are opened. */
static void print_log_progress(void *self, uint64_t done, uint64_t total)
{
    enum { UNITS = 1 << 20 };
    at_loading_line *line = self;
    double           share = total > 0 ? (double)done / (double)total : 0;
    assert(line->part < line->parts);
    at_load_progress_report(&line->loading,
                            (uint64_t)line->part * UNITS + (uint64_t)(share * UNITS),
                            (uint64_t)line->parts * UNITS);
}

void at_loading_line_follow_logs(at_loading_line *line, uint32_t part, uint32_t parts)
{
    assert(part < parts);
    line->part = part;
    line->parts = parts;
    at_eventlog_watch((at_eventlog_progress){.report = print_log_progress, .self = line});
}

void at_loading_line_end(at_loading_line *line)
{
    if (line->parts > 0) at_eventlog_watch((at_eventlog_progress){0});
    if (line->shown && line->terminal) fprintf(stderr, "\r\033[K");
    line->shown = false;
}
