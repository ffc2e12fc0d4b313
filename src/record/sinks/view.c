#include "record/sinks/view.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "record/roster.h"

enum {
    BAR = 10,          /* columns of a worker's bar */
    GAP = 3,           /* between two workers on a line */
    LEGEND = 27,       /* columns, its gap included */
    LEGEND_LOST = 7,   /* more for "x lost" */
    WORKER_LINES = 8,  /* most lines of bars */
    OTHER_LINES = 3,   /* title, progress, summary */
    ROWS_UNKNOWN = 24, /* the traditional size */
    PROGRESS_MIN = 10,
    PROGRESS_MAX = 30,
    COLUMNS_FOR_BAR = 48, /* narrower windows have only room for the most important numbers */
    LINE_SIZE = 1024
};
_Static_assert(WORKER_LINES + OTHER_LINES < AT_VIEW_LINES, "the largest block fits AT_VIEW_LINES");

static const char line_end[] = "\x1b[K\n";

typedef enum shade { COMPUTE, SLEEP, IDLE, LOST, ALARM, STRONG, SHADES } shade;

static const struct {
    const char *block, *ascii, *escape, *name;
} shades[SHADES] = {
    [COMPUTE] = {"█", "#", "\x1b[32m", "compute"},
    [SLEEP] = {"▓", "=", "\x1b[33m", "sleep"},
    [IDLE] = {"░", ".", "\x1b[2m", "idle"},
    [LOST] = {"×", "x", "\x1b[31m", "lost"},
    [ALARM] = {"", "", "\x1b[31m", ""},
    [STRONG] = {"", "", "\x1b[1m", ""},
};

static void begin_shade(const at_view *view, shade kind, at_text *out)
{
    if (view->color) at_text_add(out, "%s", shades[kind].escape);
}

static void end_shade(const at_view *view, at_text *out)
{
    if (view->color) at_text_add(out, "\x1b[0m");
}

static void add_blocks(const at_view *view, shade kind, int count, at_text *out)
{
    assert(kind <= LOST);
    if (count <= 0) return;
    const char *block = view->ascii ? shades[kind].ascii : shades[kind].block;
    begin_shade(view, kind, out);
    for (int i = 0; i < count; i++) at_text_add(out, "%s", block);
    end_shade(view, out);
}

static void add_shaded(const at_view *view, shade kind, const char *text, at_text *out)
{
    begin_shade(view, kind, out);
    at_text_add(out, "%s", text);
    end_shade(view, out);
}

/* The second and later bytes of a UTF-8 character. */
static bool is_continuation(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

int at_view_columns(const char *text, size_t size)
{
    assert(text);
    int columns = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\x1b') {
            while (i < size && !strchr("mKJAhl", text[i]))
                i++; /* the final letters of the sequences used here */
            continue;
        }
        columns += !is_continuation(text[i]) && (unsigned char)text[i] >= ' ';
    }
    return columns;
}

/* Length in bytes of the longest prefix that takes at most this many columns. */
static size_t fit(const char *text, int columns)
{
    assert(text);
    const char *c = text;
    for (; *c; c++)
        if (!is_continuation(*c) && columns-- <= 0) break;
    return (size_t)(c - text);
}

/* Appends a text that may quote files or other machines: the terminal must not obey it. */
static void add_clean(at_text *out, const char *text, size_t size)
{
    size_t begin = out->used;
    at_text_add(out, "%.*s", (int)size, text);
    at_text_remove_controls(out->bytes + begin);
}

void at_view_wrap(at_text *out, const char *text, int columns, const char *ending)
{
    assert(columns >= 1);
    while (*text) {
        size_t size = fit(text, columns), line = strcspn(text, "\n");
        if (line <= size) {
            size = line;
        } else if (text[size]) {
            size_t space = size;
            while (space > 0 && text[space] != ' ') space--;
            if (space > 0) size = space;
        }
        add_clean(out, text, size);
        at_text_add(out, "%s", ending);
        text += size;
        if (*text == ' ' || *text == '\n') text++;
    }
}

void at_view_title(const at_run_info *info, bool ascii, at_text *out)
{
    assert(info->plan->workers_max >= 1);
    uint32_t    workers = info->plan->open ? info->plan->workers : info->plan->workers_max;
    const char *dot = ascii ? "-" : "·";
    size_t      begin = out->used;
    if (info->plan->strategy) at_text_add(out, "%s %s ", info->plan->strategy->name, dot);
    if (info->model) at_text_add(out, "%s %s ", info->model, dot);
    if (info->data) at_text_add(out, "%s %s ", info->data, dot);
    at_text_add(out, "%u worker%s", workers, workers == 1 ? "" : "s");
    at_text_flatten(out->bytes + begin);
}

static bool is_gone(const at_view *view, uint32_t index)
{
    assert(index < view->progress->info->plan->workers_max);
    const char *state = view->progress->tally->worker[index].state;
    return state == at_state_lost || state == at_state_evicted;
}

static void draw_legend(const at_view *view, shade last, at_text *out)
{
    assert(last <= LOST);
    for (shade kind = COMPUTE; kind <= last; kind++) {
        at_text_add(out, "%*s", kind == COMPUTE ? GAP : 1, "");
        add_blocks(view, kind, 1, out);
        at_text_add(out, " %s", shades[kind].name);
    }
}

static void draw_title(const at_view *view, bool has_lost, at_text *out)
{
    char    buffer[LINE_SIZE];
    at_text title = at_text_in(buffer, sizeof buffer);
    at_view_title(view->progress->info, view->ascii, &title);
    buffer[fit(buffer, view->columns)] = '\0';
    add_shaded(view, STRONG, buffer, out);
    int room = view->columns - at_view_columns(buffer, strlen(buffer));
    if (has_lost && room >= LEGEND + LEGEND_LOST)
        draw_legend(view, LOST, out);
    else if (room >= LEGEND)
        draw_legend(view, IDLE, out);
    at_text_add(out, "%s", line_end);
}

static void draw_progress(const at_view *view, at_text *out)
{
    char    buffer[LINE_SIZE];
    at_text status = at_text_in(buffer, sizeof buffer);
    double  fraction;
    at_run_progress_goal(view->progress, &fraction);
    bool has_bar = !isnan(fraction) && view->columns >= COLUMNS_FOR_BAR;
    at_run_progress_show(view->progress, view->elapsed,
                         view->columns - (has_bar ? PROGRESS_MIN + 2 : 0), &status);
    int room = view->columns - (int)status.used - 2;
    if (room > PROGRESS_MAX) room = PROGRESS_MAX;
    if (!isnan(fraction) && room >= PROGRESS_MIN) {
        int done = (int)(fraction * room + 0.5);
        add_blocks(view, COMPUTE, done, out);
        add_blocks(view, IDLE, room - done, out);
        at_text_add(out, "  ");
    }
    at_text_add(out, "%s%s", buffer, line_end);
}

/* Workers first .. first + count - 1, drawn as one bar. */
typedef struct group {
    uint32_t first, count, lost;
    double   compute, sleep, idle;
} group;

static group sum_group(const at_view *view, uint32_t first, uint32_t count)
{
    assert(count >= 1);
    assert(first + count <= view->progress->info->plan->workers_max);
    group sum = {.first = first, .count = count};
    for (uint32_t i = first; i < first + count; i++) {
        if (is_gone(view, i)) {
            sum.lost++;
            continue;
        }
        sum.compute += (double)view->split[i].compute;
        sum.sleep += (double)view->split[i].sleep;
        sum.idle += (double)view->split[i].idle;
    }
    return sum;
}

/* Proportional to the lost workers, and at least one column if there are any. */
static int lost_columns(const group *it, int columns)
{
    assert(it->lost <= it->count);
    int lost = (int)((double)it->lost / it->count * columns + 0.5);
    return it->lost > 0 && lost == 0 ? 1 : lost;
}

static void draw_bar(const at_view *view, const group *it, int columns, at_text *out)
{
    assert(columns >= 1);
    double whole = it->compute + it->sleep + it->idle;
    int    lost = lost_columns(it, columns), room = columns - lost;
    if (whole <= 0) {
        at_text_add(out, "%*s", room, "");
    } else {
        int compute = (int)(room * (it->compute / whole) + 0.5);
        int awake = (int)(room * (1 - it->idle / whole) + 0.5);
        if (awake < compute) awake = compute;
        assert(awake <= room);
        add_blocks(view, COMPUTE, compute, out);
        add_blocks(view, SLEEP, awake - compute, out);
        add_blocks(view, IDLE, room - awake, out);
    }
    add_blocks(view, LOST, lost, out);
}

/* A single worker that has not joined, is starting, lost or evicted gets a word instead of a
 * bar. */
static void draw_group(const at_view *view, const group *it, int bar, at_text *out)
{
    assert(bar >= 1);
    const char *state = view->progress->tally->worker[it->first].state;
    bool        waits = state == at_state_starting || state == at_state_absent;
    bool        is_word = it->count == 1 && (it->lost > 0 || waits);
    if (!is_word) {
        draw_bar(view, it, bar, out);
        return;
    }
    begin_shade(view, it->lost > 0 ? ALARM : IDLE, out);
    at_text_add(out, "%-*.*s", bar, bar, state);
    end_shade(view, out);
}

static int digits_of(uint32_t value)
{
    int digits = 1;
    while (value /= 10) digits++;
    return digits;
}

/* How the workers are laid out. */
typedef struct layout {
    uint32_t size;   /* workers per group */
    uint32_t across; /* groups per line, 0: there is no room */
    uint32_t groups;
    int      label, bar; /* columns */
} layout;

static layout arrange(const at_view *view, uint32_t size)
{
    assert(size >= 1);
    uint32_t workers = view->progress->info->plan->workers_max;
    int      digits = digits_of(workers);
    layout   it = {.size = size, .groups = (workers - 1) / size + 1};
    it.label = size == 1 ? digits : 2 * digits + 1;
    it.bar = view->columns - it.label - 1;
    if (it.bar > BAR) it.bar = BAR;
    if (it.bar < 1) return it;
    int cell = it.label + 1 + it.bar;
    it.across = (uint32_t)((view->columns - cell) / (cell + GAP)) + 1;
    return it;
}

/* The smallest groups whose bars fit into `lines` lines. */
static layout fit_workers(const at_view *view, int lines)
{
    layout it = arrange(view, 1);
    if (lines < 1 || it.across == 0) return (layout){0};
    if (it.groups <= it.across * (uint32_t)lines) return it;
    it = arrange(view, 2); /* labels of groups are wider */
    if (it.across == 0) return it;
    uint32_t room = it.across * (uint32_t)lines;
    return arrange(view, (view->progress->info->plan->workers_max - 1) / room + 1);
}

static void draw_label(const group *it, int columns, at_text *out)
{
    char    buffer[32];
    at_text label = at_text_in(buffer, sizeof buffer);
    at_text_add(&label, "%u", it->first + 1);
    if (it->count > 1) at_text_add(&label, "-%u", it->first + it->count);
    assert(label.used <= (size_t)columns);
    at_text_add(out, "%*s ", columns, buffer);
}

/* Returns the number of lines drawn. */
static int draw_workers(const at_view *view, const layout *it, at_text *out)
{
    assert(it->across >= 1);
    uint32_t workers = view->progress->info->plan->workers_max;
    int      lines = 0;
    for (uint32_t i = 0; i < it->groups; i++) {
        uint32_t first = i * it->size, left = workers - first;
        group    some = sum_group(view, first, left < it->size ? left : it->size);
        if (i % it->across > 0) at_text_add(out, "%*s", GAP, "");
        draw_label(&some, it->label, out);
        draw_group(view, &some, it->bar, out);
        if ((i + 1) % it->across && i + 1 < it->groups) continue;
        at_text_add(out, "%s", line_end);
        lines++;
    }
    return lines;
}

/* One line about all workers. */
static void draw_summary(const at_view *view, const group *all, at_text *out)
{
    assert(all->count == view->progress->info->plan->workers_max);
    char    buffer[LINE_SIZE];
    double  whole = fmax(all->compute + all->sleep + all->idle, 1);
    at_text text = at_text_in(buffer, sizeof buffer);
    at_text_add(&text, "all workers: compute %.0f%%, sleep %.0f%%, idle %.0f%%",
                100 * all->compute / whole, 100 * all->sleep / whole, 100 * all->idle / whole);
    if (all->lost > 0) at_text_add(&text, ", %u lost", all->lost);
    buffer[fit(buffer, view->columns)] = '\0';
    at_text_add(out, "%s%s", buffer, line_end);
}

int at_view_draw(const at_view *view, at_text *out)
{
    assert(view->columns >= 1);
    int    rows = view->rows > 0 ? view->rows : ROWS_UNKNOWN, lines = 1;
    int    room = rows - 1 - OTHER_LINES; /* the cursor is in the line below the block */
    layout it = fit_workers(view, room < WORKER_LINES ? room : WORKER_LINES);
    group  all = sum_group(view, 0, view->progress->info->plan->workers_max);
    bool   is_grouped = it.size > 1;
    if (rows > OTHER_LINES) {
        draw_title(view, is_grouped && all.lost > 0, out);
        lines++;
    }
    draw_progress(view, out);
    if (it.across == 0) return lines;
    lines += draw_workers(view, &it, out);
    if (!is_grouped) return lines;
    draw_summary(view, &all, out);
    return lines + 1;
}
