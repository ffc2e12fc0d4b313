#include "record/view.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "record/roster.h"

enum {
    BAR = 10,    /* of a worker */
    GAP = 3,     /* between two workers on a line */
    LEGEND = 27, /* columns, its gap included */
    PROGRESS_MIN = 10,
    PROGRESS_MAX = 30,
    LINE_SIZE = 1024
};

static const char line_end[] = "\x1b[K\n";

typedef enum shade { COMPUTE, SLEEP, IDLE, ALARM, STRONG, SHADES } shade;

static const struct {
    const char *block, *escape;
} shades[SHADES] = {
    [COMPUTE] = {"█", "\x1b[32m"}, [SLEEP] = {"▓", "\x1b[33m"}, [IDLE] = {"░", "\x1b[2m"},
    [ALARM] = {"", "\x1b[31m"},    [STRONG] = {"", "\x1b[1m"},
};

static void begin_shade(at_text *out, bool colour, shade kind)
{
    if (colour) at_text_add(out, "%s", shades[kind].escape);
}

static void end_shade(at_text *out, bool colour)
{
    if (colour) at_text_add(out, "\x1b[0m");
}

static void add_blocks(at_text *out, bool colour, shade kind, int count)
{
    assert(kind < SHADES);
    if (count <= 0) return;
    begin_shade(out, colour, kind);
    for (int i = 0; i < count; i++) at_text_add(out, "%s", shades[kind].block);
    end_shade(out, colour);
}

static void add_shaded(at_text *out, bool colour, shade kind, const char *text)
{
    begin_shade(out, colour, kind);
    at_text_add(out, "%s", text);
    end_shade(out, colour);
}

/* The second and later bytes of a UTF-8 character. */
static bool is_continuation(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

int at_view_columns(const char *text)
{
    assert(text);
    int columns = 0;
    for (const char *c = text; *c; c++) {
        if (*c == '\x1b') {
            c += strcspn(c, "mKJAhl"); /* the letters that end our own sequences */
            if (!*c) break;
            continue;
        }
        columns += !is_continuation(*c) && (unsigned char)*c >= ' ';
    }
    return columns;
}

/* Bytes at the start of text that take at most this many columns. */
static size_t fit(const char *text, int columns)
{
    assert(text);
    const char *c = text;
    for (; *c; c++)
        if (!is_continuation(*c) && columns-- <= 0) break;
    return (size_t)(c - text);
}

void at_view_wrap(at_text *out, const char *sentence, int columns, const char *ending)
{
    assert(columns >= 1);
    while (*sentence) {
        size_t size = fit(sentence, columns), line = strcspn(sentence, "\n");
        if (line <= size) {
            size = line;
        } else if (sentence[size]) {
            size_t space = size;
            while (space > 0 && sentence[space] != ' ') space--;
            if (space > 0) size = space;
        }
        at_text_add(out, "%.*s%s", (int)size, sentence, ending);
        sentence += size;
        if (*sentence == ' ' || *sentence == '\n') sentence++;
    }
}

void at_view_title(const at_run_info *info, at_text *out)
{
    assert(info->plan->workers >= 1);
    uint32_t workers = info->plan->workers;
    if (info->plan->strategy) at_text_add(out, "%s · ", info->plan->strategy->name);
    if (info->model) at_text_add(out, "%s · ", info->model);
    if (info->data) at_text_add(out, "%s · ", info->data);
    at_text_add(out, "%u worker%s", workers, workers == 1 ? "" : "s");
}

static void draw_legend(const at_view *view, at_text *out)
{
    static const char *const names[] = {[COMPUTE] = "compute", [SLEEP] = "sleep", [IDLE] = "idle"};
    for (shade kind = COMPUTE; kind <= IDLE; kind++) {
        at_text_add(out, "%*s", kind == COMPUTE ? GAP : 1, "");
        add_blocks(out, view->colour, kind, 1);
        at_text_add(out, " %s", names[kind]);
    }
}

static void draw_title(const at_view *view, at_text *out)
{
    char    buffer[LINE_SIZE];
    at_text title = at_text_in(buffer, sizeof buffer);
    at_view_title(view->progress->info, &title);
    buffer[fit(buffer, view->columns)] = '\0';
    add_shaded(out, view->colour, STRONG, buffer);
    int room = view->columns - at_view_columns(buffer);
    if (room >= LEGEND) draw_legend(view, out);
    at_text_add(out, "%s", line_end);
}

static void draw_progress(const at_view *view, at_text *out)
{
    char    buffer[LINE_SIZE];
    at_text status = at_text_in(buffer, sizeof buffer);
    double  fraction;
    at_run_progress_show(view->progress, view->elapsed, view->columns, &status);
    at_run_progress_goal(view->progress, &fraction);
    int room = view->columns - (int)status.used - 2;
    if (room > PROGRESS_MAX) room = PROGRESS_MAX;
    if (!isnan(fraction) && room >= PROGRESS_MIN) {
        int done = (int)(fraction * room + 0.5);
        add_blocks(out, view->colour, COMPUTE, done);
        add_blocks(out, view->colour, IDLE, room - done);
        at_text_add(out, "  ");
    }
    at_text_add(out, "%s%s", buffer, line_end);
}

static void draw_bar(const at_meter *meter, bool colour, int columns, at_text *out)
{
    assert(columns >= 1);
    double whole = (double)meter->compute + (double)meter->sleep + (double)meter->idle;
    if (whole <= 0) {
        at_text_add(out, "%*s", columns, "");
        return;
    }
    int compute = (int)(columns * ((double)meter->compute / whole) + 0.5);
    int awake = (int)(columns * (1 - (double)meter->idle / whole) + 0.5);
    if (awake < compute) awake = compute;
    assert(awake <= columns);
    add_blocks(out, colour, COMPUTE, compute);
    add_blocks(out, colour, SLEEP, awake - compute);
    add_blocks(out, colour, IDLE, columns - awake);
}

static void draw_worker(const at_view *view, uint32_t index, int bar, at_text *out)
{
    assert(index < view->progress->info->plan->workers);
    assert(bar >= 1);
    const char *state = view->progress->tally->worker[index].state;
    bool        is_gone = state == at_state_lost || state == at_state_evicted;
    if (!is_gone && state != at_state_starting) {
        draw_bar(&view->meter[index], view->colour, bar, out);
        return;
    }
    begin_shade(out, view->colour, is_gone ? ALARM : IDLE);
    at_text_add(out, "%-*.*s", bar, bar, state);
    end_shade(out, view->colour);
}

static int digits_of(uint32_t value)
{
    int digits = 1;
    while (value /= 10) digits++;
    return digits;
}

/* As many bars to a line as fit. Returns the number of lines. */
static int draw_workers(const at_view *view, uint32_t count, at_text *out)
{
    assert(count <= AT_VIEW_WORKERS);
    int digits = digits_of(count), bar = view->columns - digits - 1;
    if (bar > BAR) bar = BAR;
    if (bar < 1) return 0;
    int      cell = digits + 1 + bar;
    uint32_t across = (uint32_t)((view->columns - cell) / (cell + GAP)) + 1;
    int      lines = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (i % across > 0) at_text_add(out, "%*s", GAP, "");
        at_text_add(out, "%*u ", digits, i + 1);
        draw_worker(view, i, bar, out);
        if ((i + 1) % across && i + 1 < count) continue;
        at_text_add(out, "%s", line_end);
        lines++;
    }
    return lines;
}

/* What the workers without a bar do, in one line. */
static void draw_rest(const at_view *view, uint32_t from, at_text *out)
{
    assert(from < view->progress->info->plan->workers);
    uint32_t workers = view->progress->info->plan->workers, gone = 0;
    double   compute = 0, sleep = 0, idle = 0;
    for (uint32_t i = from; i < workers; i++) {
        const char *state = view->progress->tally->worker[i].state;
        gone += state == at_state_lost || state == at_state_evicted;
        compute += (double)view->meter[i].compute;
        sleep += (double)view->meter[i].sleep;
        idle += (double)view->meter[i].idle;
    }
    char    buffer[LINE_SIZE];
    double  whole = fmax(compute + sleep + idle, 1);
    at_text text = at_text_in(buffer, sizeof buffer);
    at_text_add(&text, "and %u more: compute %.0f%%, sleep %.0f%%, idle %.0f%%", workers - from,
                100 * compute / whole, 100 * sleep / whole, 100 * idle / whole);
    if (gone > 0) at_text_add(&text, ", %u lost", gone);
    buffer[fit(buffer, view->columns)] = '\0';
    at_text_add(out, "%s%s", buffer, line_end);
}

int at_view_draw(const at_view *view, at_text *out)
{
    uint32_t workers = view->progress->info->plan->workers;
    uint32_t shown = workers < AT_VIEW_WORKERS ? workers : AT_VIEW_WORKERS;
    assert(view->columns >= 1);
    draw_title(view, out);
    draw_progress(view, out);
    int lines = 2 + draw_workers(view, shown, out);
    if (workers == shown) return lines;
    draw_rest(view, shown, out);
    return lines + 1;
}
