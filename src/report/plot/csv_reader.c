#include "report/plot/csv_reader.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/disk.h"
#include "base/file.h"
#include "base/text.h"

at_err at_csv_reader_malformed(const at_csv_reader *reader, const char *what, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_FORMAT, "was it written by anytime?", "%s:%llu: %s",
                       reader->path, (unsigned long long)reader->line_number, what);
}

/* Reads the next line without its newline; *more is false at the end of the file. A line without an
 * end was being written when the run was killed or its disk was full: it may be any part of one. */
static at_err next_line(at_csv_reader *reader, bool *more, at_fail *fail)
{
    assert(reader->file);
    reader->line_number++;
    *more = fgets(reader->line, sizeof reader->line, reader->file) != NULL;
    if (!*more && ferror(reader->file))
        return at_fail_set(fail, AT_ERR_IO, NULL, "%s: cannot read", reader->path);
    if (!*more) return AT_OK;
    char *end = strchr(reader->line, '\n');
    if (!end && !feof(reader->file))
        return at_csv_reader_malformed(reader, "the line is too long", fail);
    *more = end != NULL;
    if (end) *end = '\0';
    return AT_OK;
}

/* The index of the column in the header, or -1. */
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

/* Copies field `index` of the line; false when it is missing or too long for a number. */
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

/* Empty, or a number that is not finite: printf writes those as nan, inf and -inf. */
static bool is_gap(const char *text)
{
    const char *word = *text == '-' ? text + 1 : text;
    return !*text || strcmp(word, "nan") == 0 || strcmp(word, "inf") == 0;
}

at_err at_csv_reader_next(at_csv_reader *reader, double *values, bool *more, at_fail *fail)
{
    char text[64];
    assert(reader->count > 0);
    AT_TRY(next_line(reader, more, fail));
    for (size_t i = 0; *more && i < reader->count; i++) {
        if (!get_field(reader->line, reader->column[i], text, sizeof text))
            return at_csv_reader_malformed(reader, "a column is missing", fail);
        values[i] = NAN;
        if (!is_gap(text) && !at_text_real(text, &values[i]))
            return at_csv_reader_malformed(reader, "not a number", fail);
    }
    return AT_OK;
}

at_err at_csv_reader_open(at_csv_reader *reader, const char *folder, const char *name,
                          const char *const *columns, size_t count, at_fail *fail)
{
    bool more;
    assert(folder && name);
    assert(count >= 1 && count <= AT_CSV_READER_MAX);
    *reader = (at_csv_reader){.count = count};
    at_text path = at_text_in(reader->path, sizeof reader->path);
    at_text_add(&path, "%s/%s", folder, name);
    if (path.full)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "%s: the folder name is too long", folder);
    reader->file = at_disk->stream(reader->path);
    if (!reader->file && errno == ENOENT)
        return at_fail_set(fail, AT_ERR_MISSING, NULL, "%s: no such file", reader->path);
    if (!reader->file)
        return at_fail_set(fail, AT_ERR_IO, NULL, "%s: cannot open: %s", reader->path,
                           strerror(errno));
    AT_TRY(next_line(reader, &more, fail));
    if (!more && fseek(reader->file, 0, SEEK_SET)) /* ESPIPE: no file, although it may seem empty */
        return at_file_error("read", reader->path, errno, fail);
    if (!more)
        return at_fail_set(fail, AT_ERR_MISSING, NULL, "%s: it has no complete line", reader->path);
    for (size_t i = 0; i < count; i++) {
        reader->column[i] = find_column(reader->line, columns[i]);
        if (reader->column[i] < 0)
            return at_csv_reader_malformed(reader, "the header lacks a column", fail);
    }
    return AT_OK;
}

void at_csv_reader_close(at_csv_reader *reader)
{
    if (reader->file) fclose(reader->file);
    reader->file = NULL;
}
