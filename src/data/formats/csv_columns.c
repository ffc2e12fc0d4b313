#include "data/formats/csv_columns.h"

#include "base/text.h"
#include "data/files/decimal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool at_csv_number(const char *field, float *value)
{
    const char *end = at_decimal_float(field, value);
    return end && *end == '\0';
}

uint32_t at_csv_number_word(const char *field)
{
    float    value;
    uint32_t word;
    if (!at_csv_number(field, &value)) return AT_CSV_NONE;
    memcpy(&word, &value, sizeof word);
    return word;
}

bool at_csv_is_missing(const char *field)
{
    static const char *const values[] = {"", "NA", "N/A", "NaN", "null", "?"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (strcasecmp(field, values[i]) == 0) return true;
    return false;
}

static at_err no_memory(at_fail *fail)
{
    return at_fail_memory_for(fail, "for the columns of the data");
}

void at_csv_columns_deinit(at_csv_columns *columns)
{
    assert(columns);
    for (size_t i = 0; columns->column && i < columns->count; i++) {
        free(columns->column[i].name);
        free(columns->column[i].meaning);
        at_string_table_deinit(&columns->column[i].values);
    }
    free(columns->column);
    at_csv_cells_deinit(&columns->cells);
    *columns = (at_csv_columns){0};
}

/* ---- headers --------------------------------------------------------------------------------- */

static at_err add_column(at_csv_columns *columns, const char *name, at_fail *fail)
{
    at_csv_column *column = &columns->column[columns->count];
    *column = (at_csv_column){.place = columns->count,
                              .fill = (double)NAN,
                              .numbered = UINT64_MAX,
                              .differs = true,
                              .whole = true,
                              .counts = true};
    column->name = strdup(name);
    if (!column->name) return no_memory(fail);
    columns->count++;
    return AT_OK;
}

/* Names columns after the first row, or by number if that has a number: names hardly ever are. */
static at_err take_header(at_csv_columns *columns, const at_csv *csv, at_header header,
                          at_fail *fail)
{
    float value;
    assert(!columns->column);
    columns->headerless = header == AT_HEADER_NO;
    for (size_t i = 0; header == AT_HEADER_AUTO && i < csv->count; i++)
        columns->headerless = columns->headerless || at_csv_number(at_csv_cell(csv, i), &value);
    columns->column = calloc(csv->count, sizeof *columns->column);
    if (!columns->column) return no_memory(fail);
    for (size_t i = 0; i < csv->count; i++) {
        char number[24];
        snprintf(number, sizeof number, "%zu", i + 1);
        AT_TRY(add_column(columns, columns->headerless ? number : at_csv_cell(csv, i), fail));
    }
    if (columns->count < 2)
        return at_csv_error(csv, "separate fields by commas, semicolons or tabs", fail,
                            "only one column; a label and at least one feature are needed");
    return AT_OK;
}

static at_err check_header(const at_csv_columns *columns, const at_csv *csv, at_fail *fail)
{
    bool same = csv->count == columns->count;
    for (size_t i = 0; same && !columns->headerless && i < columns->count; i++)
        same = strcmp(columns->column[i].name, at_csv_cell(csv, i)) == 0;
    if (same) return AT_OK;
    return at_csv_error(csv, "all files of a set must have the same first line", fail,
                        "the column names differ from those of the first file");
}

/* The field of that name in the header, or AT_CSV_ABSENT. */
static size_t place_of(const at_csv *csv, const char *name)
{
    for (size_t i = 0; i < csv->count; i++)
        if (strcmp(at_csv_cell(csv, i), name) == 0) return i;
    return AT_CSV_ABSENT;
}

static bool is_needed(const at_csv_columns *columns, const at_csv_column *column)
{
    bool label = column->kind == AT_CSV_LABEL;
    return label ? !columns->unlabeled
                 : column->kind == AT_CSV_NUMBER || column->kind == AT_CSV_TEXT;
}

/* Rows without a header have all columns, or all but the label. */
static at_err place_by_number(at_csv_columns *columns, const at_csv *csv, at_fail *fail)
{
    bool lacks = columns->unlabeled && csv->count + 1 == columns->count;
    if (!lacks && csv->count != columns->count)
        return at_csv_error(csv, "give the columns of the training data, in their order", fail,
                            "%zu fields, but the training data has %zu columns", csv->count,
                            columns->count);
    for (size_t i = 0; i < columns->count; i++)
        columns->column[i].place = !lacks || i < columns->label ? i : i - 1;
    if (lacks) columns->column[columns->label].place = AT_CSV_ABSENT;
    return AT_OK;
}

static at_err place_by_name(at_csv_columns *columns, const at_csv *csv, at_fail *fail)
{
    for (size_t i = 0; i < columns->count; i++) {
        at_csv_column *column = &columns->column[i];
        column->place = place_of(csv, column->name);
        if (column->place == AT_CSV_ABSENT && is_needed(columns, column))
            return at_csv_error(csv,
                                "the first line must have the column names of the training "
                                "data",
                                fail, "there is no column '%.80s'", column->name);
    }
    return AT_OK;
}

/* Finds the columns in a file; *is_row when its first line is not a header but a row. */
static at_err begin_file(at_csv_columns *columns, const at_csv *csv, at_header header, bool *is_row,
                         at_fail *fail)
{
    if (columns->known) {
        AT_TRY(columns->headerless ? place_by_number(columns, csv, fail)
                                   : place_by_name(columns, csv, fail));
    } else if (columns->column) {
        AT_TRY(check_header(columns, csv, fail));
    } else {
        AT_TRY(take_header(columns, csv, header, fail));
    }
    *is_row = columns->headerless;
    return AT_OK;
}

typedef struct visitor {
    at_csv_columns *columns;
    at_csv_visit   *visit;
    void           *self;
    at_header       header;
} visitor;

static at_err visit_row(const visitor *v, const at_csv *csv, at_fail *fail)
{
    AT_TRY(v->visit(v->self, csv, fail));
    v->columns->rows++;
    return AT_OK;
}

static at_err visit_rows(const visitor *v, at_csv *csv, at_fail *fail)
{
    bool more, is_row;
    AT_TRY(at_csv_next(csv, &more, fail));
    if (!more)
        return at_fail_set(fail, AT_ERR_FORMAT, "check that it is the right file",
                           "%s: no rows found", at_source_path(csv->source));
    AT_TRY(begin_file(v->columns, csv, v->header, &is_row, fail));
    size_t fields = csv->count;
    if (is_row) AT_TRY(visit_row(v, csv, fail));
    for (;;) {
        AT_TRY(at_csv_next(csv, &more, fail));
        if (!more) return AT_OK;
        if (csv->count != fields)
            return at_csv_error(csv, "check for a missing comma or quote", fail,
                                "%zu fields, but the %s has %zu", csv->count,
                                is_row ? "first line" : "header", fields);
        AT_TRY(visit_row(v, csv, fail));
    }
}

at_err at_csv_visit_files(at_csv_columns *columns, const at_file_list *files, at_header header,
                          at_csv_visit *visit, void *self, at_fail *fail)
{
    visitor v = {columns, visit, self, header};
    assert(files->count > 0);
    at_csv *csv = malloc(sizeof *csv);
    at_err  err = csv ? AT_OK : no_memory(fail);
    for (size_t i = 0; !err && i < files->count; i++) {
        at_source *source;
        err = at_source_open(files->path[i], &source, fail);
        if (err) break;
        at_csv_take(csv, source);
        err = visit_rows(&v, csv, fail);
        at_csv_close(csv);
    }
    free(csv);
    if (err || columns->rows > 0) return err;
    return at_fail_set(fail, AT_ERR_FORMAT, "check that it is the right file",
                       "%s: no rows after the header", files->path[0]);
}

at_err at_csv_columns_read(at_csv_columns *columns, const at_file_list *files,
                           const at_read_options *options, at_fail *fail)
{
    *columns = (at_csv_columns){0};
    return options->columns ? at_csv_columns_follow(columns, files, options, fail)
                            : at_csv_columns_find(columns, files, options, fail);
}
