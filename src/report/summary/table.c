#include "report/summary/table.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "record/sinks/sinks.h"
#include "record/sinks/terminal.h"
#include "report/summary/utf8.h"

struct at_table {
    at_align *aligns; /* (columns) */
    char    **cells;  /* row by row; the first row holds the heads */
    size_t    columns, count, capacity;
    bool      failed; /* ran out of memory */
};

/* Ensures capacity for one more cell. */
static bool grow(at_table *table)
{
    assert(table->count <= table->capacity);
    if (table->count < table->capacity) return true;
    size_t capacity = table->capacity ? 2 * table->capacity : 64, size;
    if (!at_size_product(capacity, sizeof *table->cells, &size)) return false;
    char **cells = realloc(table->cells, size);
    if (!cells) return false;
    table->cells = cells;
    table->capacity = capacity;
    return true;
}

static void take_cell(at_table *table, char *text)
{
    if (text && grow(table)) {
        table->cells[table->count++] = text;
    } else {
        free(text);
        table->failed = true;
    }
}

at_table *at_table_new(const at_column *columns, size_t count)
{
    assert(columns);
    assert(count >= 1);
    at_table *table = calloc(1, sizeof *table);
    if (!table) return NULL;
    table->columns = count;
    table->aligns = calloc(count, sizeof *table->aligns);
    for (size_t i = 0; i < count && table->aligns; i++) {
        table->aligns[i] = columns[i].align;
        take_cell(table, strdup(columns[i].head));
    }
    if (table->aligns && !table->failed) return table;
    at_table_free(table);
    return NULL;
}

void at_table_free(at_table *table)
{
    if (!table) return;
    for (size_t i = 0; i < table->count; i++) free(table->cells[i]);
    free(table->cells);
    free(table->aligns);
    free(table);
}

void at_table_add(at_table *table, const char *format, ...)
{
    assert(table);
    char   *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) text = NULL;
    va_end(args);
    take_cell(table, text);
}

/* Whether the table has rows, and all of them have this text in the column. */
static bool is_all(const at_table *table, size_t column, const char *text)
{
    for (size_t i = table->columns + column; i < table->count; i += table->columns)
        if (strcmp(table->cells[i], text) != 0) return false;
    return table->count > table->columns;
}

static void drop_column(at_table *table, size_t column)
{
    size_t kept = 0;
    for (size_t i = 0; i < table->count; i++) {
        if (i % table->columns == column)
            free(table->cells[i]);
        else
            table->cells[kept++] = table->cells[i];
    }
    table->columns--;
    for (size_t i = column; i < table->columns; i++) table->aligns[i] = table->aligns[i + 1];
    table->count = kept;
}

void at_table_drop_columns(at_table *table, const char *nothing)
{
    assert(nothing);
    if (table->failed) return; /* cells are missing, and it will not be printed */
    assert(table->count % table->columns == 0);
    for (size_t i = table->columns; i-- > 0;)
        if (table->columns > 1 && is_all(table, i, nothing)) drop_column(table, i);
}

size_t at_table_width(const char *text)
{
    assert(text);
    size_t   width = 0;
    uint32_t code;
    while (*text) {
        text += at_utf8_next(text, &code);
        width += at_utf8_width(code);
    }
    return width;
}

static void print_text(FILE *file, const char *text)
{
    while (*text) {
        uint32_t code;
        size_t   size = at_utf8_next(text, &code);
        if (code == '?')
            fputc('?', file);
        else
            fwrite(text, 1, size, file);
        text += size;
    }
}

static void print_times(FILE *file, const char *text, size_t count)
{
    while (count-- > 0) fputs(text, file);
}

/* The last cell of a line is not padded, so that lines have no trailing blanks. */
static void print_cell(const at_table *table, size_t index, size_t width, bool last, FILE *file)
{
    const char *text = table->cells[index];
    size_t      column = index % table->columns;
    assert(at_table_width(text) <= width);
    size_t padding = width - at_table_width(text);
    if (column) fputs("  ", file);
    if (table->aligns[column] == AT_ALIGN_RIGHT) print_times(file, " ", padding);
    print_text(file, text);
    if (table->aligns[column] == AT_ALIGN_LEFT && !last) print_times(file, " ", padding);
    if (last) fputc('\n', file);
}

static size_t *measure_columns(const at_table *table)
{
    assert(table->columns >= 1);
    size_t *widths = calloc(table->columns, sizeof *widths);
    for (size_t i = 0; i < table->count && widths; i++) {
        size_t width = at_table_width(table->cells[i]), column = i % table->columns;
        if (width > widths[column]) widths[column] = width;
    }
    return widths;
}

/* Columns of a table that stand side by side: the first `keys`, then those from `from` to `to`. */
typedef struct block {
    size_t keys, from, to;
} block;

static bool is_in(const block *shown, size_t column)
{
    return column < shown->keys || (column >= shown->from && column < shown->to);
}

static size_t block_width(const at_table *table, const size_t *widths, const block *shown)
{
    assert(widths);
    size_t total = 0;
    for (size_t i = 0; i < table->columns; i++)
        if (is_in(shown, i)) total += widths[i] + (i > 0 ? 2 : 0);
    return total;
}

static void print_rule(const at_table *table, const size_t *widths, const block *shown, FILE *file)
{
    print_times(file, at_console_is_ascii() ? "-" : "─", block_width(table, widths, shown));
    fputc('\n', file);
}

static void print_block(const at_table *table, const size_t *widths, const block *shown, FILE *file)
{
    for (size_t i = 0; i < table->count; i++) {
        size_t column = i % table->columns;
        bool   last = column + 1 == shown->to || i + 1 == table->count;
        if (is_in(shown, column)) print_cell(table, i, widths[column], last, file);
        if (i + 1 == table->columns) print_rule(table, widths, shown, file);
    }
}

/* Bytes of the longest beginning that takes at most so many columns, up to a blank if possible. */
static size_t fitting(const char *text, size_t columns)
{
    size_t   size = 0, blank = 0, width = 0;
    uint32_t code;
    while (text[size]) {
        size_t next = at_utf8_next(text + size, &code);
        width += at_utf8_width(code);
        if (text[size] == ' ' && width <= columns + 1) blank = size;
        if (width > columns) return blank > 0 ? blank : size > 0 ? size : next;
        size += next;
    }
    return size;
}

void at_table_print_wrapped(FILE *file, const char *text, size_t indent, size_t columns)
{
    size_t room = columns > indent + 10 ? columns - indent : 10;
    while (columns > 0 && at_table_width(text) > room) {
        size_t size = fitting(text, room);
        char  *line = strndup(text, size);
        if (!line) break;
        print_text(file, line);
        free(line);
        fputc('\n', file);
        print_times(file, " ", indent);
        text += size;
        text += strspn(text, " ");
    }
    print_text(file, text);
    fputc('\n', file);
}

size_t at_table_columns(FILE *file)
{
    int columns = isatty(fileno(file)) ? at_terminal_window(file).columns : 0;
    return columns > 0 ? (size_t)columns : 0; /* files and pipes are as wide as needed */
}

/* Whether the first columns tell each row from the one before it. */
static bool tell_apart(const at_table *table, size_t keys)
{
    for (size_t i = table->columns; i < table->count; i += table->columns) {
        size_t same = 0;
        while (same < keys &&
               strcmp(table->cells[i + same], table->cells[i + same - table->columns]) == 0)
            same++;
        if (same == keys) return false;
    }
    return true;
}

/* Extends the block by the columns that fit. */
static void fill_block(const at_table *table, const size_t *widths, size_t columns, block *next)
{
    for (next->to = next->from; next->to < table->columns; next->to++) {
        block longer = {next->keys, next->from, next->to + 1};
        if (block_width(table, widths, &longer) > columns) return;
    }
}

/* Lines of the table in blocks below each other, which all begin with the columns that tell rows
 * apart; 0: it cannot be printed so. */
static size_t folded_lines(const at_table *table, const size_t *widths, size_t columns,
                           size_t *keys)
{
    size_t lines = 0, rows = table->count / table->columns;
    *keys = tell_apart(table, 1) ? 1 : 2;
    if (table->count % table->columns || table->columns <= *keys || !tell_apart(table, *keys))
        return 0;
    for (block next = {*keys, *keys, *keys}; next.from < table->columns; next.from = next.to) {
        fill_block(table, widths, columns, &next);
        if (next.to == next.from) return 0;
        lines += rows + 2;
    }
    return lines;
}

static void print_folded(const at_table *table, const size_t *widths, size_t columns, size_t keys,
                         FILE *file)
{
    for (block next = {keys, keys, keys}; next.from < table->columns; next.from = next.to) {
        fill_block(table, widths, columns, &next);
        assert(next.to > next.from);
        if (next.from > keys) fputc('\n', file);
        print_block(table, widths, &next, file);
    }
}

/* A line per cell, with the head of its column; rows begin with a line that is not indented. */
static void print_cells(const at_table *table, size_t columns, FILE *file)
{
    size_t heads = 0;
    for (size_t c = 0; c < table->columns; c++) {
        size_t width = at_table_width(table->cells[c]);
        if (width > heads) heads = width;
    }
    for (size_t i = table->columns; i < table->count; i++) {
        const char *head = table->cells[i % table->columns], *text = table->cells[i];
        bool        first = i % table->columns == 0;
        if (!first && (!*text || strcmp(text, " ") == 0)) continue;
        print_times(file, " ", first ? 0 : 2);
        print_text(file, head);
        print_times(file, " ", heads - at_table_width(head) + (first ? 4 : 2));
        at_table_print_wrapped(file, text, heads + 4, columns);
    }
}

/* Whichever form has fewer lines. */
static void print_narrow(const at_table *table, const size_t *widths, size_t columns, FILE *file)
{
    size_t keys, folded = folded_lines(table, widths, columns, &keys);
    if (folded > 0 && folded < table->count - table->columns)
        print_folded(table, widths, columns, keys, file);
    else
        print_cells(table, columns, file);
}

static at_err no_memory(at_fail *fail)
{
    return at_fail_memory_for(fail, "for a table");
}

static at_err check_written(FILE *file, at_fail *fail)
{
    errno = 0;
    if (!fflush(file) && !ferror(file)) return AT_OK;
    return at_fail_set(fail, AT_ERR_IO, "is the disk full?", "cannot write a table: %s",
                       errno ? strerror(errno) : "an earlier write failed");
}

at_err at_table_print_in(const at_table *table, FILE *file, size_t columns, at_fail *fail)
{
    assert(table->count >= table->columns);
    size_t *widths = measure_columns(table);
    if (!widths || table->failed) {
        free(widths);
        return no_memory(fail);
    }
    block all = {.to = table->columns};
    if (columns > 0 && block_width(table, widths, &all) > columns)
        print_narrow(table, widths, columns, file);
    else
        print_block(table, widths, &all, file);
    free(widths);
    return check_written(file, fail);
}

at_err at_table_print(const at_table *table, FILE *file, at_fail *fail)
{
    return at_table_print_in(table, file, at_table_columns(file), fail);
}

void at_csv_field(FILE *file, const char *text)
{
    assert(text);
    size_t size = strlen(text);
    bool   blank_edge = size && (text[0] == ' ' || text[size - 1] == ' ');
    if (!blank_edge && !strpbrk(text, ",\"\r\n")) {
        fputs(text, file);
        return;
    }
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"') fputc('"', file);
        fputc(*text, file);
    }
    fputc('"', file);
}

at_err at_table_print_csv(const at_table *table, FILE *file, at_fail *fail)
{
    assert(table->count >= table->columns);
    if (table->failed) return no_memory(fail);
    for (size_t i = 0; i < table->count; i++) {
        bool last = (i + 1) % table->columns == 0 || i + 1 == table->count;
        at_csv_field(file, table->cells[i]);
        fputc(last ? '\n' : ',', file);
    }
    return check_written(file, fail);
}

/* Characters that could begin markup or end a cell are escaped with a backslash. */
void at_markdown_text(FILE *file, const char *text)
{
    while (*text) {
        uint32_t code;
        size_t   size = at_utf8_next(text, &code);
        if (size == 1 && strchr("\\|`*_<>[]&", (int)code)) fputc('\\', file);
        if (code == '?')
            fputc('?', file);
        else
            fwrite(text, 1, size, file);
        text += size;
    }
}

static void print_markdown_rule(const at_table *table, FILE *file)
{
    assert(table->columns >= 1);
    for (size_t i = 0; i < table->columns; i++)
        fputs(table->aligns[i] == AT_ALIGN_RIGHT ? "|---:" : "|:---", file);
    fputs("|\n", file);
}

at_err at_table_print_markdown(const at_table *table, FILE *file, at_fail *fail)
{
    assert(table->count >= table->columns);
    if (table->failed) return no_memory(fail);
    for (size_t i = 0; i < table->count; i++) {
        bool last = (i + 1) % table->columns == 0 || i + 1 == table->count;
        if (i == table->columns) print_markdown_rule(table, file);
        fputs("| ", file);
        at_markdown_text(file, table->cells[i]);
        fputs(last ? " |\n" : " ", file);
    }
    if (table->count == table->columns) print_markdown_rule(table, file);
    return check_written(file, fail);
}
