/* A recorded pace. Two kinds of files: sleeps, where line r is round r and column w the sleep of
 * worker w in seconds, and CSV files of step times (step_log.h). A longer run repeats the trace. */
#include "pace/pace_model.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/text.h"
#include "pace/step_log.h"

static const size_t TRACE_SIZE_MAX = (size_t)1 << 28; /* a million rounds of 50 workers */
static const double SLEEP_SECONDS_MAX = 1e7;          /* longer than any run */
static const double FACTOR_MAX = 1e9;
static const char   BLANKS[] = " \t\r,";

typedef struct trace {
    uint32_t workers;
    size_t   rounds;
    double   mean;     /* of the sleeps */
    double  *factors;  /* rounds x workers, behind the sleeps; NULL: 1 */
    double   sleeps[]; /* rounds x workers */
} trace;

void *at_pace_trace_new(const at_pace_rounds *rounds)
{
    size_t cells, size, twice = rounds->factor ? 2 : 1;
    if (!at_size_product(rounds->workers, rounds->rounds, &cells)) return NULL;
    if (!at_size_product(cells, twice * sizeof(double), &size)) return NULL;
    if (size > SIZE_MAX - sizeof(trace)) return NULL;
    trace *t = calloc(1, sizeof *t + size);
    if (!t) return NULL;
    t->workers = rounds->workers;
    t->rounds = rounds->rounds;
    if (rounds->sleep_s) memcpy(t->sleeps, rounds->sleep_s, cells * sizeof(double));
    if (rounds->factor) {
        t->factors = t->sleeps + cells;
        memcpy(t->factors, rounds->factor, cells * sizeof(double));
    }
    for (size_t i = 0; i < cells; i++) t->mean += t->sleeps[i] / (double)cells;
    return t;
}

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

/* ---- step times ------------------------------------------------------------------------------ */

/* Whether the first line that is no comment has a word in it: the header of a CSV file. */
static bool has_header(const char *text)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        size_t blank = strspn(text, BLANKS);
        if (blank < length && text[blank] != '#') {
            for (size_t i = 0; i < length; i++)
                if ((text[i] >= 'a' && text[i] <= 'z' && text[i] != 'e') || text[i] == '"')
                    return true;
            return false;
        }
        text += length + (text[length] == '\n');
    }
    return false;
}

/* Seconds of a round at factor 1: those of the run, or the mean of a trace without a scale. */
static at_err unit_of(const at_step_log *log, const at_pace_options *options, double *unit,
                      at_fail *fail)
{
    double sum = 0;
    size_t cells = (size_t)log->steps * log->workers;
    for (size_t i = 0; i < cells; i++) sum += log->seconds[i];
    *unit = sum / (double)cells;
    if (log->normalised) return AT_OK;
    if (options->round_ns_mean <= 0)
        return at_fail_set(fail, AT_ERR_USAGE, "give --sample-time",
                           "a trace of step times needs the time of a sample");
    *unit = at_seconds(options->round_ns_mean);
    return AT_OK;
}

/* The factor of every round of the first workers. Rounds of other sizes count as if they had the
 * trace's mean number of samples. */
static at_err to_factors(const at_step_log *log, const at_pace_options *options, double *factor,
                         at_fail *fail)
{
    double unit, scale = options->trace_scale > 0 ? options->trace_scale : 1, samples = 0;
    size_t cells = (size_t)log->steps * log->workers;
    AT_TRY(unit_of(log, options, &unit, fail));
    for (size_t i = 0; i < cells && log->samples; i++) samples += log->samples[i] / (double)cells;
    for (uint32_t step = 0; step < log->steps; step++)
        for (uint32_t w = 0; w < options->workers; w++) {
            size_t from = (size_t)step * log->workers + w;
            double f = log->seconds[from] * scale / unit;
            if (log->samples) f *= samples / log->samples[from];
            if (!(f > 0) || f > FACTOR_MAX)
                return at_fail_set(fail, AT_ERR_FORMAT, "check the unit, or set --trace-scale",
                                   "a round would take %.3g times as long as --sample-time says",
                                   f);
            factor[(size_t)step * options->workers + w] = f;
        }
    return AT_OK;
}

static at_err take_log(const at_step_log *log, const at_pace_options *options, void **self,
                       at_fail *fail)
{
    size_t cells, size;
    if (log->workers < options->workers)
        return at_fail_set(fail, AT_ERR_FORMAT, "use fewer workers",
                           "has step times of %u worker%s, but there are %u", log->workers,
                           log->workers == 1 ? "" : "s", options->workers);
    double *factor = NULL;
    if (at_size_product(log->steps, options->workers, &cells) &&
        at_size_product(cells, sizeof(double), &size))
        factor = malloc(size);
    if (!factor) return at_fail_memory(fail);
    at_err err = to_factors(log, options, factor, fail);
    if (!err) {
        *self = at_pace_trace_new(
            &(at_pace_rounds){.workers = options->workers, .rounds = log->steps, .factor = factor});
        if (!*self) err = at_fail_memory(fail);
    }
    free(factor);
    return err;
}

static at_err read_step_times(const char *bytes, size_t size, const at_pace_options *options,
                              void **self, at_fail *fail)
{
    at_step_log_reader *reader = NULL;
    at_step_log         log = {0};
    at_step_log_options plain = {0};
    at_err              err = at_step_log_reader_new(&plain, &reader, fail);
    if (!err) err = at_step_log_feed(reader, bytes, size, fail);
    if (!err) err = at_step_log_end(reader, &log, fail);
    if (!err) err = take_log(&log, options, self, fail);
    at_step_log_deinit(&log);
    at_step_log_reader_free(reader);
    return err;
}

/* ---- the model ------------------------------------------------------------------------------- */

static at_err create(const at_pace_options *options, char *arguments, void **self, at_fail *fail)
{
    assert(options->workers >= 1);
    unsigned char *bytes;
    size_t         size;
    if (!*arguments) return at_fail_set(fail, AT_ERR_USAGE, NULL, "FILE is missing");
    AT_TRY(at_file_read(arguments, TRACE_SIZE_MAX, &bytes, &size, fail));
    at_err err = has_header((const char *)bytes)
                     ? read_step_times((const char *)bytes, size, options, self, fail)
                     : parse(bytes, size, options->workers, self, fail);
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

static double recorded_factor(const void *self, const at_pace_draw *draw)
{
    const trace *t = self;
    assert(draw->worker >= 1 && draw->worker <= t->workers);
    if (!t->factors) return 1;
    return t->factors[draw->round % t->rounds * t->workers + draw->worker - 1];
}

const at_pace_model at_pace_trace = {
    .create = create, .sleep = recorded_sleep, .mean = mean, .factor = recorded_factor};
