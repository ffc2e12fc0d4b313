#include "data/formats/csv.h"

#include <assert.h>
#include <emmintrin.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_SIZE_MAX = 1 << 26, ROOM_FIRST = 1 << 12, END = -1 };

#define HINT "separate fields by commas, and put a field that contains a comma in quotes"

void at_csv_take(at_csv *csv, at_source *source)
{
    assert(source);
    memset(csv, 0, sizeof *csv);
    csv->source = source;
}

void at_csv_close(at_csv *csv)
{
    assert(csv);
    at_source_close(csv->source);
    free(csv->copy);
    free(csv->starts);
    memset(csv, 0, sizeof *csv);
}

at_err at_csv_error(const at_csv *csv, const char *hint, at_fail *fail, const char *format, ...)
{
    char    text[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return at_fail_set(fail, AT_ERR_FORMAT, hint, "%s: line %llu: %s", at_source_path(csv->source),
                       (unsigned long long)csv->line, text);
}

const char *at_csv_cell(const at_csv *csv, size_t index)
{
    assert(index < csv->count);
    return csv->row + csv->starts[index];
}

static at_err no_memory(const at_csv *csv, at_fail *fail)
{
    return at_fail_memory_for(fail, "for a row of %s", at_source_path(csv->source));
}

/* Fills the buffer, and moves what is left in it to its begin. */
static at_err refill(at_csv *csv, at_fail *fail)
{
    size_t left = csv->filled - csv->at, got;
    memmove(csv->buffer, csv->buffer + csv->at, left);
    csv->at = 0;
    csv->filled = left;
    AT_TRY(at_source_read(csv->source, csv->buffer + left, AT_CSV_BUFFER_SIZE - left, &got, fail));
    csv->filled += got;
    csv->ended = csv->filled < AT_CSV_BUFFER_SIZE;
    return AT_OK;
}

/* The next byte without consuming it, or END. */
static at_err peek(at_csv *csv, int *byte, at_fail *fail)
{
    if (csv->at == csv->filled) AT_TRY(refill(csv, fail));
    *byte = csv->at < csv->filled ? csv->buffer[csv->at] : END;
    return AT_OK;
}

static at_err grow_row(at_csv *csv, size_t size, at_fail *fail)
{
    assert(size <= sizeof csv->buffer);
    size_t room = csv->room ? csv->room : ROOM_FIRST;
    while (room < csv->used + size) room *= 2;
    if (room > ROW_SIZE_MAX)
        return at_csv_error(csv, "check for a missing quote", fail,
                            "the row that begins here is longer than %d bytes", ROW_SIZE_MAX);
    char *copy = realloc(csv->copy, room);
    if (!copy) return no_memory(csv, fail);
    csv->copy = copy;
    csv->room = room;
    return AT_OK;
}

/* Makes room for size more bytes of the row. */
static inline at_err reserve(at_csv *csv, size_t size, at_fail *fail)
{
    assert(csv->used <= csv->room);
    return size <= csv->room - csv->used ? AT_OK : grow_row(csv, size, fail);
}

/* Appends a byte to the current field. */
static at_err put(at_csv *csv, int byte, at_fail *fail)
{
    assert(byte >= 0);
    AT_TRY(reserve(csv, 1, fail));
    csv->copy[csv->used++] = (char)byte;
    return AT_OK;
}

/* The number of bytes, at most 16, before a separator, a line feed or a zero. */
static inline unsigned plain_bytes(const unsigned char from[16], char separator)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)from);
    __m128i ends = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(separator)),
                                _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n')),
                                             _mm_cmpeq_epi8(bytes, _mm_setzero_si128())));
    return (unsigned)__builtin_ctz((unsigned)_mm_movemask_epi8(ends) | 1u << 16);
}

/* Appends the bytes of the buffer up to the end of the field or of the buffer, sixteen at a time:
 * a field of numbers is usually shorter. */
static at_err put_plain(at_csv *csv, at_fail *fail)
{
    const unsigned char *from = csv->buffer + csv->at;
    size_t               left = csv->filled - csv->at, taken = 0;
    unsigned             plain = 16;
    assert(csv->at <= csv->filled && left + 16 <= sizeof csv->buffer);
    AT_TRY(reserve(csv, left + 16, fail));
    char *to = csv->copy + csv->used;
    for (; plain == 16 && taken < left; taken += plain) {
        memcpy(to + taken, from + taken, 16);
        plain = plain_bytes(from + taken, csv->separator);
    }
    if (taken > left) taken = left;
    csv->at += taken;
    csv->used += taken;
    return AT_OK;
}

static at_err grow_starts(at_csv *csv, size_t more, at_fail *fail)
{
    size_t room = csv->starts_room ? csv->starts_room : 64;
    while (room < csv->count + more) room *= 2;
    size_t *starts = reallocarray(csv->starts, room, sizeof *starts);
    if (!starts) return no_memory(csv, fail);
    csv->starts = starts;
    csv->starts_room = room;
    return AT_OK;
}

static at_err begin_field(at_csv *csv, at_fail *fail)
{
    if (csv->count == AT_CSV_COLUMNS_MAX)
        return at_csv_error(csv, HINT, fail, "more than %d fields", AT_CSV_COLUMNS_MAX);
    if (csv->count == csv->starts_room) AT_TRY(grow_starts(csv, 1, fail));
    csv->starts[csv->count++] = csv->used;
    return AT_OK;
}

static inline bool is_blank(int byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r';
}

static bool ends_field(const at_csv *csv, int byte)
{
    return byte == csv->separator || byte == '\n' || byte == END;
}

static at_err skip_blanks(at_csv *csv, int *byte, at_fail *fail)
{
    AT_TRY(peek(csv, byte, fail));
    while (is_blank(*byte) && *byte != csv->separator) {
        csv->at++;
        AT_TRY(peek(csv, byte, fail));
    }
    return AT_OK;
}

/* Reads from after the opening quote to after the closing one. */
static at_err read_quoted(at_csv *csv, int *byte, at_fail *fail)
{
    for (;; csv->at++) {
        AT_TRY(peek(csv, byte, fail));
        if (*byte == END)
            return at_csv_error(csv, HINT, fail, "the closing quote of a field is missing");
        if (*byte == '\0') return at_csv_error(csv, HINT, fail, "contains a zero byte");
        csv->lines += *byte == '\n';
        if (*byte == '"') {
            csv->at++;
            AT_TRY(peek(csv, byte, fail));
            if (*byte != '"') break;
        }
        AT_TRY(put(csv, *byte, fail));
    }
    AT_TRY(skip_blanks(csv, byte, fail));
    if (ends_field(csv, *byte)) return AT_OK;
    return at_csv_error(csv, HINT, fail, "field %zu has text after its closing quote", csv->count);
}

static at_err read_plain(at_csv *csv, int *byte, at_fail *fail)
{
    size_t start = csv->used;
    while (!ends_field(csv, *byte)) {
        if (*byte == '\0') return at_csv_error(csv, HINT, fail, "contains a zero byte");
        AT_TRY(put_plain(csv, fail));
        AT_TRY(peek(csv, byte, fail));
    }
    while (csv->used > start && is_blank(csv->copy[csv->used - 1])) csv->used--;
    return AT_OK;
}

static at_err read_field(at_csv *csv, int *byte, at_fail *fail)
{
    AT_TRY(begin_field(csv, fail));
    AT_TRY(skip_blanks(csv, byte, fail));
    if (*byte == '"') {
        csv->at++;
        AT_TRY(read_quoted(csv, byte, fail));
    } else {
        AT_TRY(read_plain(csv, byte, fail));
    }
    return put(csv, '\0', fail);
}

/* The first comma, semicolon or tab in the first line is the separator; skips a byte order mark. */
static at_err begin_file(at_csv *csv, at_fail *fail)
{
    int byte;
    csv->separator = ',';
    AT_TRY(peek(csv, &byte, fail));
    if (csv->filled >= 3 && memcmp(csv->buffer, "\xef\xbb\xbf", 3) == 0) csv->at = 3;
    bool quoted = false;
    for (size_t i = csv->at; i < csv->filled && csv->buffer[i] != '\n'; i++) {
        char c = (char)csv->buffer[i];
        quoted ^= c == '"';
        if (quoted || !(c == ',' || c == ';' || c == '\t')) continue;
        csv->separator = c;
        break;
    }
    return AT_OK;
}

/* Reads one line, or several when a quoted field spans them. */
static at_err copy_row(at_csv *csv, bool *more, at_fail *fail)
{
    int byte;
    csv->used = csv->count = 0;
    AT_TRY(peek(csv, &byte, fail));
    *more = byte != END;
    if (!*more) return AT_OK;
    for (;;) {
        AT_TRY(read_field(csv, &byte, fail));
        if (byte != END) csv->at++;
        if (byte != csv->separator) break;
    }
    csv->lines += byte == '\n';
    csv->row = csv->copy;
    return AT_OK;
}

/* ---- plain lines, whose fields stay in the buffer -------------------------------------------- */

/* Bit i of each: byte i is a separator; ends a line; is not plain. */
typedef struct marks {
    unsigned separators, ends, others;
} marks;

static inline marks marks_of(const unsigned char from[16], char separator)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)from);
    __m128i others = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
                                  _mm_cmpeq_epi8(bytes, _mm_setzero_si128()));
    return (marks){
        (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(separator))),
        (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n'))),
        (unsigned)_mm_movemask_epi8(others),
    };
}

/* Unusual: with a quote, a zero or too many fields. Cut: not whole in the buffer. */
typedef enum line_kind { LINE_PLAIN, LINE_UNUSUAL, LINE_CUT } line_kind;

/* Finds where the fields of a plain line begin, and one more: after its end. */
static at_err find_fields(at_csv *csv, line_kind *kind, at_fail *fail)
{
    const unsigned char *line = csv->buffer + csv->at;
    size_t               left = csv->filled - csv->at;
    bool                 ended = false;
    *kind = LINE_UNUSUAL;
    csv->count = 1;
    for (size_t i = 0; i < left && !ended; i += 16) {
        marks m = marks_of(line + i, csv->separator);
        ended = m.ends != 0;
        unsigned before = ended ? (m.ends & -m.ends) - 1 : 0xffff; /* the end of the line */
        if (m.others & before || csv->count > AT_CSV_COLUMNS_MAX) return AT_OK;
        if (csv->count + 18 > csv->starts_room) AT_TRY(grow_starts(csv, 18, fail));
        size_t *next = csv->starts + csv->count;
        for (unsigned s = m.separators & before; s; s &= s - 1)
            *next++ = i + (unsigned)__builtin_ctz(s) + 1;
        if (ended) *next = i + (unsigned)__builtin_ctz(m.ends) + 1;
        csv->count = (size_t)(next - csv->starts);
    }
    if (!ended || csv->starts[csv->count] > left)
        *kind = LINE_CUT;
    else if (csv->count <= AT_CSV_COLUMNS_MAX)
        *kind = LINE_PLAIN;
    return AT_OK;
}

/* Drops blanks and puts zeros after the fields. */
static void cut_fields(at_csv *csv)
{
    char *line = (char *)csv->buffer + csv->at;
    csv->starts[0] = 0;
    for (size_t i = 0; i < csv->count; i++) {
        char *begin = line + csv->starts[i], *end = line + csv->starts[i + 1] - 1;
        *end = '\0';
        while (is_blank(*begin)) begin++;
        while (end > begin && is_blank(end[-1])) *--end = '\0';
        csv->starts[i] = (size_t)(begin - line);
    }
}

/* Most rows are plain lines. */
static at_err read_row(at_csv *csv, bool *more, at_fail *fail)
{
    line_kind kind;
    csv->line = csv->lines + 1;
    AT_TRY(find_fields(csv, &kind, fail));
    if (kind == LINE_CUT && csv->at > 0 && !csv->ended) {
        AT_TRY(refill(csv, fail));
        AT_TRY(find_fields(csv, &kind, fail));
    }
    if (kind != LINE_PLAIN) return copy_row(csv, more, fail);
    size_t size = csv->starts[csv->count];
    cut_fields(csv);
    csv->row = (char *)csv->buffer + csv->at;
    csv->at += size;
    csv->lines++;
    *more = true;
    return AT_OK;
}

at_err at_csv_next(at_csv *csv, bool *more, at_fail *fail)
{
    assert(csv->source && more);
    if (!csv->separator) AT_TRY(begin_file(csv, fail));
    do AT_TRY(read_row(csv, more, fail));
    while (*more && csv->count == 1 && at_csv_cell(csv, 0)[0] == '\0');
    return AT_OK;
}
