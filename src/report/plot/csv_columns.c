#include "report/plot/csv_columns.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/text.h"

at_err at_csv_reader_malformed(const at_csv_reader *table, const char *what, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_FORMAT, "was it written by anytime?", "%s:%llu: %s",
                       table->path, (unsigned long long)table->number, what);
}

/* The next line without its end; *more is false at the end of the file. */
static at_err next_line(at_csv_reader *table, bool *more, at_fail *fail)
{
    assert(table->file);
    table->number++;
    *more = fgets(table->line, sizeof table->line, table->file) != NULL;
    if (!*more && ferror(table->file))
        return at_fail_set(fail, AT_ERR_IO, NULL, "%s: cannot read", table->path);
    if (!*more) return AT_OK;
    char *end = strchr(table->line, '\n');
    if (!end && !feof(table->file))
        return at_csv_reader_malformed(table, "the line is too long", fail);
    if (end) *end = '\0';
    return AT_OK;
}

/* Where the field of this name stands in the header, or -1. */
static int find_column(const char *header, const char *name)
{
    size_t length = strlen(name);
    for (int i = 0;; i++) {
        size_t size = strcspn(header, ",");
        if (size == length && memcmp(header, name, size) == 0) return i;
        if (!header[size]) return -1;
        header += size + 1;
    }
}

/* Copies field `index` of the line; false when there is none or it is too long for a number. */
static bool get_field(const char *line, int index, char *text, size_t size)
{
    assert(index >= 0);
    for (; index > 0; index--) {
        line = strchr(line, ',');
        if (!line) return false;
        line++;
    }
    size_t length = strcspn(line, ",");
    if (length >= size) return false;
    memcpy(text, line, length);
    text[length] = '\0';
    return true;
}

/* Empty, or a number that cannot be drawn: printf spells those nan, inf and -inf. */
static bool is_gap(const char *text)
{
    const char *word = *text == '-' ? text + 1 : text;
    return !*text || strcmp(word, "nan") == 0 || strcmp(word, "inf") == 0;
}

at_err at_csv_reader_next(at_csv_reader *table, double *values, bool *more, at_fail *fail)
{
    char text[64];
    assert(table->count > 0);
    AT_TRY(next_line(table, more, fail));
    for (size_t i = 0; *more && i < table->count; i++) {
        if (!get_field(table->line, table->place[i], text, sizeof text))
            return at_csv_reader_malformed(table, "a column is missing", fail);
        values[i] = NAN;
        if (!is_gap(text) && !at_text_real(text, &values[i]))
            return at_csv_reader_malformed(table, "not a number", fail);
    }
    return AT_OK;
}

at_err at_csv_reader_open(at_csv_reader *table, const char *path, const char *const *names,
                          size_t count, at_fail *fail)
{
    bool more;
    assert(path);
    assert(count >= 1 && count <= AT_CSV_READER_MAX);
    *table = (at_csv_reader){.file = fopen(path, "re"), .path = path, .count = count};
    if (!table->file && errno == ENOENT)
        return at_fail_set(fail, AT_ERR_MISSING, NULL, "%s: no such file", path);
    if (!table->file)
        return at_fail_set(fail, AT_ERR_IO, NULL, "%s: cannot open: %s", path, strerror(errno));
    AT_TRY(next_line(table, &more, fail));
    for (size_t i = 0; i < count; i++) {
        table->place[i] = more ? find_column(table->line, names[i]) : -1;
        if (table->place[i] < 0)
            return at_csv_reader_malformed(table, "the header lacks a column", fail);
    }
    return AT_OK;
}

void at_csv_reader_close(at_csv_reader *table)
{
    if (table->file) fclose(table->file);
    table->file = NULL;
}
