#include "data/formats/csv_columns.h"

#include "base/text.h"
#include "data/files/decimal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool at_csv_number(const char *field, float *value)
{
    const char *end = at_decimal_float(field, value);
    return end && *end == '\0';
}

/* How programs write that there is no number. */
static bool is_missing(const char *field)
{
    static const char *const words[] = {"", "NA", "N/A", "NaN", "null", "?"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(field, words[i]) == 0) return true;
    return false;
}

static at_err no_memory(at_fail *fail)
{
    return at_fail_memory_for(fail, "for the columns of the data");
}

/* ---- headers --------------------------------------------------------------------------------- */

static at_err take_header(at_csv_columns *columns, const at_csv *csv, at_fail *fail)
{
    assert(!columns->column);
    bool  numbers = true;
    float value;
    columns->column = calloc(csv->count, sizeof *columns->column);
    if (!columns->column) return no_memory(fail);
    for (; columns->count < csv->count; columns->count++) {
        const char *name = at_csv_cell(csv, columns->count);
        columns->column[columns->count].name = strdup(name);
        if (!columns->column[columns->count].name) return no_memory(fail);
        numbers = numbers && at_csv_number(name, &value);
    }
    if (numbers)
        return at_csv_wrong(csv, "write the names of the columns into the first line", fail,
                            "has numbers only, but names of columns are expected");
    if (columns->count < 2)
        return at_csv_wrong(csv, "fields are separated by commas, semicolons or tabs", fail,
                            "has one column only: nothing to learn from");
    return AT_OK;
}

static at_err check_header(const at_csv_columns *columns, const at_csv *csv, at_fail *fail)
{
    bool same = csv->count == columns->count;
    for (size_t i = 0; same && i < columns->count; i++)
        same = strcmp(columns->column[i].name, at_csv_cell(csv, i)) == 0;
    if (same) return AT_OK;
    return at_csv_wrong(csv, "files of one set have the same first line", fail,
                        "the names of the columns are not those of the first file");
}

static at_err visit_rows(at_csv_columns *columns, at_csv *csv, at_csv_visit *visit, void *self,
                         at_fail *fail)
{
    bool more;
    AT_TRY(at_csv_next(csv, &more, fail));
    if (!more)
        return at_fail_set(fail, AT_ERR_FORMAT, "is it the right file?", "%s: holds no row",
                           at_source_path(csv->source));
    AT_TRY(columns->column ? check_header(columns, csv, fail) : take_header(columns, csv, fail));
    for (;;) {
        AT_TRY(at_csv_next(csv, &more, fail));
        if (!more) return AT_OK;
        if (csv->count != columns->count)
            return at_csv_wrong(csv, "is a comma or a quote missing?", fail,
                                "has %zu fields, but the header has %zu", csv->count,
                                columns->count);
        AT_TRY(visit(self, csv, fail));
    }
}

at_err at_csv_each(at_csv_columns *columns, const at_files *files, at_csv_visit *visit, void *self,
                   at_fail *fail)
{
    assert(files->count > 0);
    at_csv *csv = malloc(sizeof *csv);
    at_err  err = csv ? AT_OK : no_memory(fail);
    for (size_t i = 0; !err && i < files->count; i++) {
        at_source *source;
        err = at_source_open(files->path[i], &source, fail);
        if (err) break;
        at_csv_take(csv, source);
        err = visit_rows(columns, csv, visit, self, fail);
        at_csv_close(csv);
    }
    free(csv);
    return err;
}

/* ---- the label ------------------------------------------------------------------------------- */

static at_err no_such_label(const at_csv_columns *columns, const char *label, at_fail *fail)
{
    const char *names[64];
    size_t      count = 0;
    for (; count < columns->count && count < sizeof names / sizeof *names; count++)
        names[count] = columns->column[count].name;
    return at_text_unknown("column", label, names, count, fail);
}

static bool find_column(at_csv_columns *columns, const char *name)
{
    for (columns->label = 0; columns->label < columns->count; columns->label++)
        if (strcasecmp(columns->column[columns->label].name, name) == 0) return true;
    return false;
}

static at_err find_label(at_csv_columns *columns, const char *label, at_fail *fail)
{
    if (label) return find_column(columns, label) ? AT_OK : no_such_label(columns, label, fail);
    if (find_column(columns, "label") || find_column(columns, "class") ||
        find_column(columns, "target"))
        return AT_OK;
    columns->label = columns->count - 1;
    return AT_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

typedef struct scanner {
    at_csv_columns *columns;
    const char     *label;
    bool            begun;
} scanner;

static at_err scan_label(at_csv_column *column, const at_csv *csv, const char *field, at_fail *fail)
{
    if (field[0] == '\0')
        return at_csv_wrong(csv, "every row needs a label", fail, "column '%s' is empty",
                            column->name);
    if (!at_string_table_add(&column->words, field)) return no_memory(fail);
    if (column->words.count <= AT_CSV_CLASSES_MAX) return AT_OK;
    return at_csv_wrong(csv, "choose another column with --label", fail,
                        "more than %d different labels in column '%s'", AT_CSV_CLASSES_MAX,
                        column->name);
}

static at_err scan_field(at_csv_column *column, const at_csv *csv, const char *field, at_fail *fail)
{
    float value;
    if (at_csv_number(field, &value))
        column->nonzeros += value != 0.0f;
    else if (!is_missing(field))
        column->text = true;
    else if (column->missing_line == 0)
        column->missing_line = csv->line;
    if (!column->full && !at_string_table_add(&column->words, field)) return no_memory(fail);
    if (column->words.count > AT_CSV_WORDS_MAX) {
        column->full = true;
        at_string_table_deinit(&column->words);
    }
    if (!column->text || !column->full) return AT_OK;
    return at_csv_wrong(csv, "leave the column out, or write numbers into it", fail,
                        "column '%s' holds text, of more than %d different ones", column->name,
                        AT_CSV_WORDS_MAX);
}

static at_err scan_row(void *self, const at_csv *csv, at_fail *fail)
{
    scanner        *s = self;
    at_csv_columns *columns = s->columns;
    if (!s->begun) AT_TRY(find_label(columns, s->label, fail));
    s->begun = true;
    for (size_t i = 0; i < columns->count; i++) {
        at_csv_column *column = &columns->column[i];
        const char    *field = at_csv_cell(csv, i);
        AT_TRY(i == columns->label ? scan_label(column, csv, field, fail)
                                   : scan_field(column, csv, field, fail));
    }
    columns->rows++;
    return AT_OK;
}

/* A column is known by now: sorts its texts, or sees that no number is missing. */
static at_err finish_column(at_csv_columns *columns, at_csv_column *column, const char *path,
                            at_fail *fail)
{
    assert(columns->rows > 0);
    column->feature = columns->features;
    if (!column->text && column->missing_line > 0)
        return at_fail_set(fail, AT_ERR_FORMAT, "fill it in, or take the row or the column out",
                           "%s: line %llu: column '%s' holds numbers, but here it is empty", path,
                           (unsigned long long)column->missing_line, column->name);
    if (!column->text) at_string_table_deinit(&column->words);
    if (!at_string_table_sort(&column->words)) return no_memory(fail);
    columns->features += column->text ? column->words.count : 1;
    columns->numbers += column->text ? columns->rows : column->nonzeros;
    columns->sparse = columns->sparse || column->text;
    return AT_OK;
}

at_err at_csv_scan(at_csv_columns *columns, const at_files *files, const char *label, at_fail *fail)
{
    scanner s = {.columns = columns, .label = label};
    *columns = (at_csv_columns){0};
    AT_TRY(at_csv_each(columns, files, scan_row, &s, fail));
    if (columns->rows == 0)
        return at_fail_set(fail, AT_ERR_FORMAT, "is it the right file?",
                           "%s: holds no row behind the names of the columns", files->path[0]);
    for (size_t i = 0; i < columns->count; i++) {
        at_csv_column *column = &columns->column[i];
        if (i != columns->label)
            AT_TRY(finish_column(columns, column, files->path[0], fail));
        else if (!at_string_table_sort(&column->words))
            return no_memory(fail);
    }
    assert(columns->features > 0);
    return AT_OK;
}

void at_csv_columns_deinit(at_csv_columns *columns)
{
    assert(columns);
    for (size_t i = 0; i < columns->count; i++) {
        free(columns->column[i].name);
        at_string_table_deinit(&columns->column[i].words);
    }
    free(columns->column);
    *columns = (at_csv_columns){0};
}
