/* Sleeps from a file: line r is round r, column w the sleep of worker w in seconds. A run longer
 * than the trace repeats it. */
#include "pace/pace_model.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/text.h"

static const size_t TRACE_SIZE_MAX = (size_t)1 << 28; /* a million rounds of 50 workers */
static const double SLEEP_SECONDS_MAX = 1e7;          /* longer than any run */
static const char   BLANKS[] = " \t\r,";

typedef struct trace {
    uint32_t workers;
    size_t   rounds;
    double   mean;
    double   sleeps[]; /* rounds x workers */
} trace;

static at_err read_value(const char *field, size_t line, double *value, at_fail *fail)
{
    bool valid = at_text_real(field, value) && *value >= 0 && *value <= SLEEP_SECONDS_MAX &&
                 !strchr(field, '%');
    if (valid) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, "values are sleeps in seconds, 0 or more",
                       "line %zu: '%.40s' is not a valid sleep", line, field);
}

/* Reads the columns of a line, keeps the first `workers` of them, and counts all. */
static at_err read_line(char *text, size_t line, uint32_t workers, double *row, size_t *columns,
                        at_fail *fail)
{
    assert(*columns == 0);
    for (char *rest = text, *field; (field = strsep(&rest, BLANKS));) {
        double value;
        if (!*field) continue;
        AT_TRY(read_value(field, line, &value, fail));
        if (*columns < workers) row[*columns] = value;
        ++*columns;
    }
    return AT_OK;
}

static bool is_comment(const char *text)
{
    text += strspn(text, BLANKS);
    return *text == '\0' || *text == '#';
}

static at_err check_columns(size_t columns, size_t columns_before, uint32_t workers, size_t line,
                            at_fail *fail)
{
    assert(line >= 1);
    if (columns < workers)
        return at_fail_set(fail, AT_ERR_FORMAT, "give one sleep per worker, or use fewer workers",
                           "line %zu: %zu sleeps for %u workers", line, columns, workers);
    if (columns_before && columns != columns_before)
        return at_fail_set(fail, AT_ERR_FORMAT, "all lines need the same number of values",
                           "line %zu: %zu values, but earlier lines have %zu", line, columns,
                           columns_before);
    return AT_OK;
}

static at_err read_lines(char *text, trace *t, at_fail *fail)
{
    size_t columns_before = 0, line = 0;
    double sum = 0;
    for (char *row_text; (row_text = strsep(&text, "\n"));) {
        line++;
        if (is_comment(row_text)) continue;
        double *row = t->sleeps + t->rounds * t->workers;
        size_t  columns = 0;
        AT_TRY(read_line(row_text, line, t->workers, row, &columns, fail));
        AT_TRY(check_columns(columns, columns_before, t->workers, line, fail));
        columns_before = columns;
        for (uint32_t w = 0; w < t->workers; w++) sum += row[w];
        t->rounds++;
    }
    if (t->rounds == 0)
        return at_fail_set(fail, AT_ERR_FORMAT,
                           "write one line per round with one sleep per worker",
                           "the trace is empty");
    t->mean = sum / ((double)t->rounds * t->workers);
    return AT_OK;
}

/* Reserves memory for every line of the text. */
static trace *new_trace(const char *text, uint32_t workers)
{
    assert(workers >= 1);
    size_t lines = 1, values, size;
    for (const char *c = text; (c = strchr(c, '\n')); c++) lines++;
    if (!at_size_product(lines, workers, &values)) return NULL;
    if (!at_size_product(values, sizeof(double), &size)) return NULL;
    if (size > SIZE_MAX - sizeof(trace)) return NULL;
    trace *t = malloc(sizeof *t + size);
    if (t) *t = (trace){.workers = workers};
    return t;
}

static at_err parse(unsigned char *bytes, size_t size, uint32_t workers, void **self, at_fail *fail)
{
    char *text = (char *)bytes;
    if (memchr(bytes, '\0', size))
        return at_fail_set(fail, AT_ERR_FORMAT, "a trace is a plain text file",
                           "contains zero bytes");
    trace *t = *self = new_trace(text, workers);
    if (!t) return at_fail_memory(fail);
    return read_lines(text, t, fail);
}

static at_err create(const at_pace_options *options, char *arguments, void **self, at_fail *fail)
{
    assert(options->workers >= 1);
    unsigned char *bytes;
    size_t         size;
    if (!*arguments) return at_fail_set(fail, AT_ERR_USAGE, NULL, "FILE is missing");
    AT_TRY(at_file_read(arguments, TRACE_SIZE_MAX, &bytes, &size, fail));
    at_err err = parse(bytes, size, options->workers, self, fail);
    free(bytes);
    return err;
}

static double recorded_sleep(const void *self, const at_pace_draw *draw)
{
    const trace *t = self;
    assert(draw->worker >= 1 && draw->worker <= t->workers);
    return t->sleeps[draw->round % t->rounds * t->workers + draw->worker - 1];
}

static double mean(const void *self)
{
    const trace *t = self;
    assert(t->mean >= 0);
    return t->mean;
}

const at_pace_model at_pace_trace = {.create = create, .sleep = recorded_sleep, .mean = mean};
