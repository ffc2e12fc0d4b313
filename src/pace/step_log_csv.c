/* Reads the CSV form of a step log from blocks of bytes. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/rng.h"
#include "base/text.h"
#include "pace/step_rows.h"

enum {
    LINE_SIZE_MAX = AT_BUFFER(1 << 16, 256),
    TABLE_SIZE = AT_BUFFER(1 << 18, 1 << 12),
    UNUSED = -1
};

/* A step of a training job takes less than a month and more than a nanosecond. */
static const double SECONDS_MAX = 31 * 86400.0, SECONDS_MIN = 1e-9, SAMPLES_MAX = 1e12;

typedef enum column { STEP, TIME, WORKER, SECONDS, SAMPLES, COLUMNS } column;

typedef struct alias {
    const char *name;
    column      column;
    bool        normalised;
} alias;

/* The first of several names for a column that a file has is used. */
static const alias aliases[] = {{"step", STEP, false},
                                {"time", TIME, false},
                                {"worker", WORKER, false},
                                {"rank", WORKER, false},
                                {"seconds", SECONDS, false},
                                {"batch_time", SECONDS, false},
                                {"batch_time_norm", SECONDS, true},
                                {"compute_time", SECONDS, false},
                                {"samples", SAMPLES, false},
                                {"num_samples", SAMPLES, false},
                                {"num_batches", SAMPLES, false}};
enum { ALIASES = sizeof aliases / sizeof *aliases };

struct at_step_log_reader {
    at_step_rows rows;
    double       unit;
    bool         normalised, headed, too_long;
    char         separator;
    int          field[COLUMNS]; /* index of each column in a line, or UNUSED */
    uint32_t    *table;          /* hash of a name -> index + 1; open addressing */
    uint32_t     line_number;
    size_t       used;
    char         line[LINE_SIZE_MAX];
};

at_err at_step_log_reader_new(const at_step_log_options *options, at_step_log_reader **reader,
                              at_fail *fail)
{
    assert(options->unit >= 0);
    at_step_log_reader *r = calloc(1, sizeof *r);
    if (r) r->table = calloc(TABLE_SIZE, sizeof *r->table);
    if (!r || !r->table) {
        free(r);
        return at_fail_memory_for(fail, "to read a log");
    }
    r->unit = options->unit > 0 ? options->unit : 1;
    r->normalised = options->normalised;
    *reader = r;
    return AT_OK;
}

void at_step_log_reader_free(at_step_log_reader *reader)
{
    if (!reader) return;
    free(reader->rows.row);
    free(reader->rows.names);
    free(reader->table);
    free(reader);
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* Cuts the next field off *rest, without blanks and quotes around it. *rest becomes NULL after the
 * last one. */
static char *next_field(char **rest, char separator)
{
    char *begin = *rest, *end;
    while (*begin == ' ' || (*begin == '\t' && separator != '\t')) begin++;
    if (*begin == '"') {
        begin++;
        end = begin + strcspn(begin, "\"");
        char *after = *end ? end + 1 : end;
        char *next = strchr(after, separator);
        *end = '\0';
        *rest = next ? next + 1 : NULL;
        return begin;
    }
    end = strchr(begin, separator);
    *rest = end ? end + 1 : NULL;
    if (end) *end = '\0';
    for (size_t n = strlen(begin); n > 0 && (begin[n - 1] == ' ' || begin[n - 1] == '\t'); n--)
        begin[n - 1] = '\0';
    return begin;
}

static at_err bad(const at_step_log_reader *r, const char *hint, const char *what, const char *text,
                  at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_FORMAT, hint, "line %u: %s '%.40s'", r->line_number, what,
                       text);
}

/* ---- the header ------------------------------------------------------------------------------ */

static void find_separator(at_step_log_reader *r)
{
    static const char known[] = {',', ';', '\t'};
    r->separator = ',';
    for (size_t i = 0; i < sizeof known; i++)
        if (strchr(r->line, known[i])) {
            r->separator = known[i];
            return;
        }
}

static at_err check_header(const at_step_log_reader *r, at_fail *fail)
{
    const char *missing = NULL;
    if (r->field[STEP] == UNUSED && r->field[TIME] == UNUSED) missing = "step or time";
    if (r->field[WORKER] == UNUSED) missing = "worker or rank";
    if (r->field[SECONDS] == UNUSED) missing = "seconds or batch_time";
    if (!missing) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT,
                       "the first line names the columns: step, worker, seconds and, if known, "
                       "samples",
                       "line %u: there is no column %s", r->line_number, missing);
}

/* All files of a job have the same columns, because their rows become one table. */
static at_err take_header(at_step_log_reader *r, bool normalised, at_fail *fail)
{
    at_step_rows *rows = &r->rows;
    bool          by_time = r->field[STEP] == UNUSED, has_samples = r->field[SAMPLES] != UNUSED;
    bool          has_when = !by_time && r->field[TIME] != UNUSED, first = rows->count == 0;
    if (!first && (by_time != rows->by_time || has_samples != rows->has_samples ||
                   has_when != rows->has_when || normalised != rows->normalised))
        return at_fail_set(fail, AT_ERR_FORMAT, "give files with the same columns",
                           "line %u: the columns differ from those of the file before",
                           r->line_number);
    rows->normalised = normalised;
    rows->has_samples = has_samples;
    rows->by_time = by_time;
    rows->has_when = has_when;
    r->headed = true;
    return AT_OK;
}

static at_err read_header(at_step_log_reader *r, at_fail *fail)
{
    int best[COLUMNS], index = 0;
    for (int c = 0; c < COLUMNS; c++) {
        r->field[c] = UNUSED;
        best[c] = ALIASES;
    }
    char *rest = r->line;
    find_separator(r);
    for (; rest; index++) {
        const char *name = next_field(&rest, r->separator);
        for (int a = 0; a < ALIASES; a++) {
            column c = aliases[a].column;
            if (strcmp(name, aliases[a].name) != 0 || a >= best[c]) continue;
            best[c] = a;
            r->field[c] = index;
        }
    }
    AT_TRY(check_header(r, fail));
    return take_header(r, r->normalised || aliases[best[SECONDS]].normalised, fail);
}

/* ---- workers --------------------------------------------------------------------------------- */

static at_err add_name(at_step_log_reader *r, const char *name, uint32_t *place, at_fail *fail)
{
    at_step_rows *rows = &r->rows;
    if (rows->workers == AT_STEP_LOG_WORKERS_MAX)
        return at_fail_set(fail, AT_ERR_FORMAT, "is the right column called worker?",
                           "line %u: more than %d workers", r->line_number,
                           AT_STEP_LOG_WORKERS_MAX);
    if (rows->workers == rows->names_capacity) {
        uint32_t capacity = rows->names_capacity ? 2 * rows->names_capacity : 16;
        void    *grown = realloc(rows->names, capacity * sizeof *rows->names);
        if (!grown) return at_fail_memory(fail);
        rows->names = grown;
        rows->names_capacity = capacity;
    }
    snprintf(rows->names[rows->workers], sizeof *rows->names, "%s", name);
    *place = ++rows->workers;
    return AT_OK;
}

static at_err find_worker(at_step_log_reader *r, const char *name, uint32_t *worker, at_fail *fail)
{
    uint64_t hash = 0;
    if (!*name) return bad(r, "every row needs a worker", "no worker in", name, fail);
    if (strlen(name) >= AT_STEP_LOG_NAME_SIZE)
        return bad(r, "shorten it to 39 characters", "the name of the worker is too long:", name,
                   fail);
    for (const char *c = name; *c; c++) hash = at_rng_mix(hash ^ (unsigned char)*c);
    for (uint64_t i = hash % TABLE_SIZE;; i = (i + 1) % TABLE_SIZE) {
        if (r->table[i] == 0) AT_TRY(add_name(r, name, &r->table[i], fail));
        *worker = r->table[i] - 1;
        if (strcmp(r->rows.names[*worker], name) == 0) return AT_OK;
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static at_err read_number(const at_step_log_reader *r, const char *what, const char *text,
                          double *value, at_fail *fail)
{
    char message[64];
    if (at_text_real(text, value) && !strchr(text, '%')) return AT_OK;
    snprintf(message, sizeof message, "%s is not a number:", what);
    return bad(r, "remove the row if the value is not known", message, text, fail);
}

static at_err read_seconds(const at_step_log_reader *r, const char *text, double *value,
                           at_fail *fail)
{
    AT_TRY(read_number(r, "the time", text, value, fail));
    if (!(*value > 0))
        return bad(r, "every worker of every step needs a time above 0",
                   *value < 0 ? "the time is negative:" : "the time is zero:", text, fail);
    if (r->rows.normalised) return AT_OK;
    *value *= r->unit;
    if (*value < SECONDS_MIN || *value > SECONDS_MAX)
        return bad(r, "give the unit of the times with --unit, or use --normalised",
                   *value > SECONDS_MAX ? "a step of more than a month; wrong unit?"
                                        : "a step of less than a nanosecond; wrong unit?",
                   text, fail);
    return AT_OK;
}

static at_err read_field(at_step_log_reader *r, column c, const char *text, at_step_row *row,
                         at_fail *fail)
{
    switch (c) {
    case STEP: return read_number(r, "the step", text, &row->key, fail);
    case TIME:
        return read_number(r, "the time stamp", text, r->rows.by_time ? &row->key : &row->when,
                           fail);
    case WORKER: return find_worker(r, text, &row->worker, fail);
    case SECONDS: return read_seconds(r, text, &row->seconds, fail);
    case SAMPLES:
        AT_TRY(read_number(r, "samples", text, &row->samples, fail));
        if (row->samples > 0 && row->samples <= SAMPLES_MAX) return AT_OK;
        return bad(r, "remove rows of rounds without samples", "the number of samples is", text,
                   fail);
    case COLUMNS: break;
    }
    assert(!"a column of the table");
    return AT_OK;
}

static at_err reserve_row(at_step_log_reader *r, at_fail *fail)
{
    at_step_rows *rows = &r->rows;
    if (rows->count == AT_STEP_LOG_ROWS_MAX)
        return at_fail_set(fail, AT_ERR_FORMAT, "give a part of it: head -n 1000000 LOG > PART",
                           "the log has more than %d rows", AT_STEP_LOG_ROWS_MAX);
    if (rows->count < rows->capacity) return AT_OK;
    size_t capacity = rows->capacity ? 2 * rows->capacity : 1024;
    void  *grown = realloc(rows->row, capacity * sizeof *rows->row);
    if (!grown) return at_fail_memory(fail);
    rows->row = grown;
    rows->capacity = capacity;
    return AT_OK;
}

static at_err read_row(at_step_log_reader *r, at_fail *fail)
{
    at_step_row row = {.line = r->line_number};
    unsigned    seen = 0, needed = 0;
    char       *rest = r->line;
    for (int i = 0; rest; i++) {
        const char *text = next_field(&rest, r->separator);
        for (int c = 0; c < COLUMNS; c++) {
            if (r->field[c] != i) continue;
            AT_TRY(read_field(r, (column)c, text, &row, fail));
            seen |= 1u << c;
        }
    }
    for (int c = 0; c < COLUMNS; c++)
        if (r->field[c] != UNUSED) needed |= 1u << c;
    if (seen != needed)
        return at_fail_set(fail, AT_ERR_FORMAT, "was the file cut off?",
                           "line %u has fewer fields than the header", r->line_number);
    AT_TRY(reserve_row(r, fail));
    r->rows.row[r->rows.count++] = row;
    return AT_OK;
}

static void drop_byte_order_mark(at_step_log_reader *r)
{
    static const char mark[] = "\xef\xbb\xbf";
    size_t            size = sizeof mark - 1;
    if (r->line_number != 1 || r->used < size || memcmp(r->line, mark, size) != 0) return;
    r->used -= size;
    memmove(r->line, r->line + size, r->used);
}

static at_err end_line(at_step_log_reader *r, at_fail *fail)
{
    r->line_number++;
    if (r->too_long)
        return at_fail_set(fail, AT_ERR_FORMAT, "a log is a text file with short lines",
                           "line %u is longer than %d bytes", r->line_number, LINE_SIZE_MAX - 1);
    drop_byte_order_mark(r);
    if (r->used > 0 && r->line[r->used - 1] == '\r') r->used--;
    r->line[r->used] = '\0';
    bool binary = strlen(r->line) != r->used;
    r->used = 0;
    if (binary)
        return at_fail_set(fail, AT_ERR_FORMAT, "a log is a plain text file",
                           "line %u contains zero bytes", r->line_number);
    const char *text = r->line + strspn(r->line, " \t");
    if (!*text || *text == '#') return AT_OK;
    return r->headed ? read_row(r, fail) : read_header(r, fail);
}

at_err at_step_log_next_file(at_step_log_reader *reader, at_fail *fail)
{
    if (reader->used > 0) AT_TRY(end_line(reader, fail));
    reader->headed = false;
    reader->line_number = 0;
    return AT_OK;
}

at_err at_step_log_feed(at_step_log_reader *reader, const void *bytes, size_t size, at_fail *fail)
{
    const char *next = bytes;
    while (size > 0) {
        const char *end = memchr(next, '\n', size);
        size_t      part = end ? (size_t)(end - next) : size;
        size_t      room = LINE_SIZE_MAX - 1 - reader->used;
        if (part > room) reader->too_long = true;
        memcpy(reader->line + reader->used, next, part < room ? part : room);
        reader->used += part < room ? part : room;
        if (end || reader->too_long) AT_TRY(end_line(reader, fail));
        size -= part + (end != NULL);
        next += part + (end != NULL);
    }
    return AT_OK;
}

at_err at_step_log_end(at_step_log_reader *reader, at_step_log *log, at_fail *fail)
{
    if (reader->used > 0) AT_TRY(end_line(reader, fail));
    if (!reader->headed)
        return at_fail_set(fail, AT_ERR_FORMAT, "the first line names the columns",
                           "the log is empty");
    return at_step_rows_build(&reader->rows, log, fail);
}
