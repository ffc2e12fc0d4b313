#include "world/sim/fault_trace.h"

#include <assert.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"

static const size_t FILE_SIZE_MAX = (size_t)1 << 27;
static const double SECONDS_MAX = 50 * 365.25 * 86400; /* also how long a fault without end lasts */

/* The faults found so far. */
typedef struct found {
    const at_fault_options *options;
    at_fault               *fault;
    size_t                  count, capacity;
    double                  scale;
    at_ns                  *down; /* (workers_max) when the current outage began; AT_NEVER: none */
    at_fail                *fail;
} found;

static at_ns scaled(const found *f, double seconds)
{
    double s = seconds * f->scale;
    return AT_SEC(s < SECONDS_MAX ? s : SECONDS_MAX);
}

static at_err add(found *f, at_fault fault)
{
    if (f->count == AT_FAULTS_TRACE_MAX)
        return at_fail_set(f->fail, AT_ERR_FORMAT, "give a part of it, or use fewer workers",
                           "more than %d faults", AT_FAULTS_TRACE_MAX);
    if (f->count == f->capacity) {
        size_t capacity = f->capacity ? 2 * f->capacity : 256;
        void  *grown = realloc(f->fault, capacity * sizeof *f->fault);
        if (!grown) return at_fail_memory(f->fail);
        f->fault = grown;
        f->capacity = capacity;
    }
    f->fault[f->count++] = fault;
    return AT_OK;
}

/* A worker is away from `from` to `to`. A replacement comes by itself; where dead workers are not
 * replaced, it joins. */
static at_err add_outage(found *f, at_node worker, at_ns from, at_ns to)
{
    bool endless = to == AT_NEVER, respawn = f->options->respawn;
    if (to <= from) return AT_OK; /* too short for the clock */
    AT_TRY(add(f, (at_fault){.at = from,
                             .worker = worker,
                             .kind = AT_FAULT_DIE,
                             .lasts = endless ? AT_SEC(SECONDS_MAX) : to - from}));
    if (respawn || endless) return AT_OK;
    return add(f, (at_fault){.at = to, .worker = worker, .kind = AT_FAULT_JOIN});
}

/* ---- fault events ---------------------------------------------------------------------------- */

enum { WHEN, NODE, EVENT, COLUMNS };

typedef struct event_columns {
    int    index[COLUMNS];
    double unit; /* seconds per unit of the first */
} event_columns;

static at_err read_event_header(char *line, event_columns *columns, at_fail *fail)
{
    static const struct {
        const char *name;
        int         column;
        double      unit;
    } known[] = {{"days", WHEN, 86400}, {"hours", WHEN, 3600}, {"seconds", WHEN, 1},
                 {"node", NODE, 0},     {"worker", NODE, 0},   {"event", EVENT, 0}};
    *columns = (event_columns){.index = {-1, -1, -1}};
    char *name;
    for (int i = 0; (name = strsep(&line, ",")); i++)
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            if (strcmp(name, known[k].name) == 0) {
                columns->index[known[k].column] = i;
                if (known[k].unit > 0) columns->unit = known[k].unit;
            }
    for (int i = 0; i < COLUMNS; i++)
        if (columns->index[i] < 0)
            return at_fail_set(fail, AT_ERR_FORMAT,
                               "a trace of faults has the columns days, node and event (start or "
                               "end)",
                               "line 1: a column is missing");
    return AT_OK;
}

static at_err bad_line(const found *f, size_t line, const char *what)
{
    return at_fail_set(f->fail, AT_ERR_FORMAT, NULL, "line %zu: %s", line, what);
}

/* A start while the worker is down, and an end while it is not, change nothing. */
static at_err take_event(found *f, double seconds, int64_t node, bool start)
{
    if (node > f->options->workers_max) return AT_OK;
    at_ns *down = &f->down[node - 1], now = scaled(f, seconds);
    if (start && *down == AT_NEVER) *down = now;
    if (start || *down == AT_NEVER) return AT_OK;
    at_ns from = *down;
    *down = AT_NEVER;
    return add_outage(f, (at_node)node, from, now);
}

static at_err read_event(found *f, char *text, size_t line, const event_columns *columns,
                         double *before)
{
    const char *field[COLUMNS] = {NULL}, *part;
    for (int i = 0; (part = strsep(&text, ",")); i++)
        for (int c = 0; c < COLUMNS; c++)
            if (columns->index[c] == i) field[c] = part;
    double  when;
    int64_t node;
    for (int c = 0; c < COLUMNS; c++)
        if (!field[c]) return bad_line(f, line, "fewer fields than the header");
    if (!at_text_real(field[WHEN], &when) || when < 0)
        return bad_line(f, line, "the time is not a number of 0 or more");
    if (!at_text_whole(field[NODE], &node) || node < 1)
        return bad_line(f, line, "the node is not a whole number of 1 or more");
    bool start = strcmp(field[EVENT], "start") == 0;
    if (!start && strcmp(field[EVENT], "end") != 0)
        return bad_line(f, line, "the event is neither start nor end");
    if (when < *before) return bad_line(f, line, "the times go backwards");
    *before = when;
    return take_event(f, when * columns->unit, node, start);
}

static at_err read_events(found *f, char *text)
{
    event_columns columns = {0};
    double        before = 0;
    size_t        line = 0;
    for (char *row; (row = strsep(&text, "\n"));) {
        line++;
        row[strcspn(row, "\r")] = '\0';
        if (line == 1) {
            AT_TRY(read_event_header(row, &columns, f->fail));
        } else if (*row) {
            AT_TRY(read_event(f, row, line, &columns, &before));
        }
    }
    for (uint32_t i = 0; i < f->options->workers_max; i++)
        if (f->down[i] != AT_NEVER) AT_TRY(add_outage(f, i + 1, f->down[i], AT_NEVER));
    return AT_OK;
}

/* ---- availability ---------------------------------------------------------------------------- */

static at_err bad_availability(const found *f, const char *what)
{
    return at_fail_set(f->fail, AT_ERR_FORMAT,
                       "expected {\"metadata\": {\"gap_seconds\": S}, \"data\": [counts]}",
                       "not a trace of availability: %s", what);
}

/* The first sample with enough instances for the run to begin. */
static at_err find_start(const found *f, const json_t *data, size_t *start)
{
    size_t     size = json_array_size(data);
    json_int_t most = 0;
    for (*start = 0; *start < size; ++*start) {
        const json_t *count = json_array_get(data, *start);
        if (!json_is_integer(count) || json_integer_value(count) < 0)
            return bad_availability(f, "a count is not a whole number of 0 or more");
        if (json_integer_value(count) >= f->options->workers) return AT_OK;
        if (json_integer_value(count) > most) most = json_integer_value(count);
    }
    return at_fail_set(f->fail, AT_ERR_FORMAT, "use fewer --workers",
                       "at most %lld instances were available, and --workers is %u",
                       (long long)most, f->options->workers);
}

/* The number of instances changes at `now`: the highest ids go first and come last. */
static at_err change_count(found *f, uint32_t present, uint32_t now_present, at_ns now)
{
    for (uint32_t i = now_present; i < present; i++) f->down[i] = now;
    for (uint32_t i = present; i < now_present; i++) {
        at_ns from = f->down[i];
        f->down[i] = AT_NEVER;
        if (from == AT_NEVER) { /* it comes for the first time */
            if (now > 0)
                AT_TRY(add(f, (at_fault){.at = now, .worker = i + 1, .kind = AT_FAULT_JOIN}));
        } else {
            AT_TRY(add_outage(f, i + 1, from, now));
        }
    }
    return AT_OK;
}

static at_err read_counts(found *f, const json_t *data, double gap)
{
    size_t   start;
    uint32_t present = f->options->workers;
    AT_TRY(find_start(f, data, &start));
    for (size_t i = start; i < json_array_size(data); i++) {
        const json_t *value = json_array_get(data, i);
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return bad_availability(f, "a count is not a whole number of 0 or more");
        json_int_t count = json_integer_value(value);
        if (count > f->options->workers_max) count = f->options->workers_max;
        /* Those above --workers that are there from the beginning join at once. */
        at_ns now = scaled(f, (double)(i - start) * gap);
        if (i == start) now = 1;
        AT_TRY(change_count(f, present, (uint32_t)count, now));
        present = (uint32_t)count;
    }
    for (uint32_t i = 0; i < f->options->workers_max; i++)
        if (f->down[i] != AT_NEVER) AT_TRY(add_outage(f, i + 1, f->down[i], AT_NEVER));
    return AT_OK;
}

static at_err read_availability(found *f, const char *text, size_t size)
{
    json_error_t  error;
    json_t       *root = json_loadb(text, size, 0, &error);
    const json_t *data = json_object_get(root, "data");
    const json_t *gap = json_object_get(json_object_get(root, "metadata"), "gap_seconds");
    at_err        err;
    if (!root)
        err = at_fail_set(f->fail, AT_ERR_FORMAT, NULL, "line %d: %s", error.line, error.text);
    else if (!json_is_array(data) || json_array_size(data) == 0)
        err = bad_availability(f, "data is not a list of counts");
    else if (!json_is_number(gap) || !(json_number_value(gap) > 0))
        err = bad_availability(f, "gap_seconds is not a number above 0");
    else
        err = read_counts(f, data, json_number_value(gap));
    json_decref(root);
    return err;
}

/* ---- files ----------------------------------------------------------------------------------- */

static at_err read_bytes(found *f, char *text, size_t size)
{
    if (memchr(text, '\0', size))
        return at_fail_set(f->fail, AT_ERR_FORMAT, "a trace is a plain text file",
                           "contains zero bytes");
    const char *first = text + strspn(text, " \t\r\n");
    return *first == '{' ? read_availability(f, text, size) : read_events(f, text);
}

at_err at_fault_trace_read(const char *path, const at_fault_options *options, at_fault **faults,
                           size_t *count, at_fail *fail)
{
    unsigned char *bytes;
    size_t         size;
    found          f = {.options = options, .fail = fail};
    f.scale = options->trace_scale > 0 ? options->trace_scale : 1;
    assert(options->workers_max >= options->workers);
    AT_TRY(at_file_read(path, FILE_SIZE_MAX, &bytes, &size, fail));
    f.down = malloc(options->workers_max * sizeof *f.down);
    for (uint32_t i = 0; f.down && i < options->workers_max; i++) f.down[i] = AT_NEVER;
    at_err err = f.down ? read_bytes(&f, (char *)bytes, size) : at_fail_memory(fail);
    if (!err) at_faults_sort(f.fault, f.count);
    if (err) at_fail_wrap(fail, "--faults trace:%.200s", path);
    free(f.down);
    free(bytes);
    *faults = f.fault;
    *count = err ? 0 : f.count;
    return err;
}
