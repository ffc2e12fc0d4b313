#include "data/formats/csv_columns.h"

#include "base/text.h"
#include "data/files/decimal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    VALUES_MAX = 4096,     /* distinct values in a text column */
    CLASSES_MAX = 1 << 16, /* distinct labels */
    ROWS_MIN = 20,         /* with fewer rows, values may differ by chance */
    QUANTITIES_MIN = 100,  /* whole-number labels: as many distinct ones .. */
    ROWS_PER_QUANTITY = 5  /* .. of fewer rows each are quantities, not classes */
};

bool at_csv_number(const char *field, float *value)
{
    const char *end = at_decimal_float(field, value);
    return end && *end == '\0';
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
        at_string_table_deinit(&columns->column[i].values);
    }
    free(columns->column);
    *columns = (at_csv_columns){0};
}

/* ---- headers --------------------------------------------------------------------------------- */

static at_err add_column(at_csv_columns *columns, const char *name, at_fail *fail)
{
    at_csv_column *column = &columns->column[columns->count];
    *column = (at_csv_column){.place = columns->count,
                              .fill = (double)NAN,
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

static at_err visit_rows(const visitor *v, at_csv *csv, at_fail *fail)
{
    bool more, is_row;
    AT_TRY(at_csv_next(csv, &more, fail));
    if (!more)
        return at_fail_set(fail, AT_ERR_FORMAT, "check that it is the right file",
                           "%s: no rows found", at_source_path(csv->source));
    AT_TRY(begin_file(v->columns, csv, v->header, &is_row, fail));
    size_t fields = csv->count;
    if (is_row) AT_TRY(v->visit(v->self, csv, fail));
    for (;;) {
        AT_TRY(at_csv_next(csv, &more, fail));
        if (!more) return AT_OK;
        if (csv->count != fields)
            return at_csv_error(csv, "check for a missing comma or quote", fail,
                                "%zu fields, but the %s has %zu", csv->count,
                                is_row ? "first line" : "header", fields);
        AT_TRY(v->visit(v->self, csv, fail));
    }
}

static at_err visit_files(const visitor *v, const at_file_list *files, at_fail *fail)
{
    assert(files->count > 0);
    at_csv *csv = malloc(sizeof *csv);
    at_err  err = csv ? AT_OK : no_memory(fail);
    for (size_t i = 0; !err && i < files->count; i++) {
        at_source *source;
        err = at_source_open(files->path[i], &source, fail);
        if (err) break;
        at_csv_take(csv, source);
        err = visit_rows(v, csv, fail);
        at_csv_close(csv);
    }
    free(csv);
    return err;
}

at_err at_csv_visit_files(at_csv_columns *columns, const at_file_list *files, at_csv_visit *visit,
                          void *self, at_fail *fail)
{
    assert(columns->column);
    visitor v = {columns, visit, self, AT_HEADER_AUTO};
    return visit_files(&v, files, fail);
}

/* ---- which columns are what ------------------------------------------------------------------ */

static at_err no_such_column(const at_csv_columns *columns, const char *name, at_fail *fail)
{
    const char *names[64];
    size_t      count = 0;
    for (; count < columns->count && count < sizeof names / sizeof *names; count++)
        names[count] = columns->column[count].name;
    return at_text_unknown("column", name, names, count, fail);
}

static bool find_column(const at_csv_columns *columns, const char *name, size_t *index)
{
    for (*index = 0; *index < columns->count; ++*index)
        if (strcasecmp(columns->column[*index].name, name) == 0) return true;
    return false;
}

static at_err find_label(at_csv_columns *columns, const char *label, at_fail *fail)
{
    size_t *at = &columns->label;
    if (label && !find_column(columns, label, at)) return no_such_column(columns, label, fail);
    if (!label && !find_column(columns, "label", at) && !find_column(columns, "class", at) &&
        !find_column(columns, "target", at))
        *at = columns->count - 1;
    columns->column[*at].kind = AT_CSV_LABEL;
    return AT_OK;
}

/* --ignore NAME,..; a name may contain commas if it is the only one. */
static at_err ignore_columns(at_csv_columns *columns, const char *names, at_fail *fail)
{
    size_t index;
    if (!names || strcmp(names, "none") == 0) return AT_OK;
    char *copy = strdup(names), *rest = copy, *name;
    if (!copy) return no_memory(fail);
    at_err err = AT_OK;
    bool   whole = find_column(columns, names, &index);
    while (!err && (name = whole ? rest : strsep(&rest, ","))) {
        if (!find_column(columns, name, &index))
            err = no_such_column(columns, name, fail);
        else if (index == columns->label)
            err = at_fail_set(fail, AT_ERR_USAGE, "choose another label with --label",
                              "--ignore %s: this column is the label", name);
        else
            columns->column[index].kind = AT_CSV_IGNORED;
        if (whole) break;
    }
    free(copy);
    return err;
}

/* ---- scanning -------------------------------------------------------------------------------- */

typedef struct scanner {
    at_csv_columns        *columns;
    const at_read_options *options;
    bool                   begun;
} scanner;

/* What the numbers of a column look like. */
static void note_number(at_csv_column *column, float value, bool first)
{
    bool whole = value == rintf(value);
    column->nonzeros += value != 0.0f;
    column->whole = column->whole && whole;
    column->fraction = column->fraction || !whole;
    column->counts = column->counts && whole && (first || value == column->last + 1.0f);
    column->last = value;
}

static at_err scan_label(const scanner *s, at_csv_column *column, const at_csv *csv,
                         const char *field, at_fail *fail)
{
    float value;
    bool  drops = s->options->missing == AT_MISSING_DROP;
    if (at_csv_is_missing(field) && (drops || field[0] == '\0')) {
        if (drops) return AT_OK;
        return at_csv_error(csv, "every row needs a label; --missing drop leaves such rows out",
                            fail, "column '%s' is empty", column->name);
    }
    if (at_csv_number(field, &value))
        note_number(column, value, s->columns->rows == 0);
    else
        column->text = true;
    if (column->full) return AT_OK;
    if (!at_string_table_add(&column->values, field)) return no_memory(fail);
    column->full = column->values.count > CLASSES_MAX;
    if (!column->full || (s->options->any_labels && !column->text)) return AT_OK;
    return at_csv_error(csv, "choose another column with --label, or use --model linear", fail,
                        "more than %d distinct labels in column '%s'", CLASSES_MAX, column->name);
}

static at_err scan_real_label(const scanner *s, const at_csv_column *column, const at_csv *csv,
                              const char *field, at_fail *fail)
{
    float value;
    if (at_csv_number(field, &value)) return AT_OK;
    if (at_csv_is_missing(field) && s->options->missing == AT_MISSING_DROP) return AT_OK;
    return at_csv_error(csv, "choose a numeric column with --label", fail,
                        "the label '%.40s' in column '%s' is not a number", field, column->name);
}

/* A column that has had another value in each of more than VALUES_MAX rows is unlike any text that
 * could be a feature. */
static at_err scan_field(const scanner *s, at_csv_column *column, const at_csv *csv,
                         const char *field, at_fail *fail)
{
    float    value;
    uint64_t rows = s->columns->rows + 1;
    if (at_csv_number(field, &value))
        note_number(column, value, rows == 1);
    else if (!at_csv_is_missing(field))
        column->text = true;
    else if (column->missing++ == 0)
        column->missing_line = csv->line;
    if (!column->full && !at_string_table_add(&column->values, field)) return no_memory(fail);
    if (!column->full) column->differs = column->values.count == rows;
    if (column->values.count > VALUES_MAX) {
        column->full = true;
        at_string_table_deinit(&column->values);
    }
    bool finds = !s->options->ignore;
    if (!column->text || !column->full || (finds && column->differs)) return AT_OK;
    return at_csv_error(csv, "leave the column out with --ignore, or convert it to numbers", fail,
                        "column '%s' is text with more than %d distinct values", column->name,
                        VALUES_MAX);
}

static at_err scan_row(void *self, const at_csv *csv, at_fail *fail)
{
    scanner        *s = self;
    at_csv_columns *columns = s->columns;
    if (!s->begun) {
        AT_TRY(find_label(columns, s->options->label, fail));
        AT_TRY(ignore_columns(columns, s->options->ignore, fail));
    }
    s->begun = true;
    for (size_t i = 0; i < columns->count; i++) {
        at_csv_column *column = &columns->column[i];
        const char    *field = at_csv_cell(csv, i);
        if (column->kind == AT_CSV_IGNORED) continue;
        AT_TRY(i != columns->label ? scan_field(s, column, csv, field, fail)
               : columns->real     ? scan_real_label(s, column, csv, field, fail)
                                   : scan_label(s, column, csv, field, fail));
    }
    columns->rows++;
    return AT_OK;
}

/* Whether the name says so: id, user_id, userId, "order id". */
static bool is_named_id(const char *name)
{
    size_t length = strlen(name);
    if (length < 2 || strcasecmp(name + length - 2, "id") != 0) return false;
    return length == 2 || strchr("_- .", name[length - 3]) || name[length - 2] == 'I';
}

/* A column that tells rows apart and nothing else. */
static bool is_identifier(const at_csv_columns *columns, const at_csv_column *column)
{
    if (columns->rows < ROWS_MIN || !column->differs) return false;
    return column->text ||
           (column->whole && column->missing == 0 && (column->counts || is_named_id(column->name)));
}

/* After all rows: what the column is, and which features it has. */
static at_err finish_column(at_csv_columns *columns, at_csv_column *column, const char *path,
                            const at_read_options *options, at_fail *fail)
{
    assert(columns->rows > 0);
    column->feature = columns->features;
    if (column->kind == AT_CSV_IGNORED) return AT_OK;
    if (!options->ignore && is_identifier(columns, column)) {
        column->kind = AT_CSV_IDENTIFIER;
        at_string_table_deinit(&column->values);
        return AT_OK;
    }
    column->kind = column->text ? AT_CSV_TEXT : AT_CSV_NUMBER;
    if (!column->text && column->missing > 0 && options->missing == AT_MISSING_REFUSE)
        return at_fail_set(fail, AT_ERR_FORMAT,
                           "--missing fill puts the column's mean there, --missing drop leaves out "
                           "such rows",
                           "%s: line %llu: column '%s' is numeric, but the value is missing here",
                           path, (unsigned long long)column->missing_line, column->name);
    if (!column->text) at_string_table_deinit(&column->values);
    if (!at_string_table_sort(&column->values)) return no_memory(fail);
    columns->features += column->text ? column->values.count : 1;
    columns->numbers += column->text ? columns->rows : column->nonzeros + column->missing;
    columns->sparse = columns->sparse || column->text;
    return AT_OK;
}

/* Whether numeric labels are quantities instead of classes. */
static bool are_quantities(const at_csv_columns *columns, const at_csv_column *label)
{
    if (label->text) return false;
    return label->fraction || label->full ||
           (label->values.count >= QUANTITIES_MIN &&
            columns->rows < (uint64_t)label->values.count * ROWS_PER_QUANTITY);
}

static at_err finish_label(at_csv_columns *columns, const char *path,
                           const at_read_options *options, at_fail *fail)
{
    at_csv_column *label = &columns->column[columns->label];
    if (!columns->real && options->any_labels) columns->real = are_quantities(columns, label);
    if (!columns->real && label->fraction && !label->text)
        return at_fail_set(fail, AT_ERR_FORMAT,
                           "use --model linear (regression), or choose another column with --label",
                           "%s: the labels in column '%s' are real numbers, not classes", path,
                           label->name);
    if (columns->real) at_string_table_deinit(&label->values);
    return at_string_table_sort(&label->values) ? AT_OK : no_memory(fail);
}

static at_err no_rows(const at_file_list *files, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_FORMAT, "check that it is the right file",
                       "%s: no rows after the header", files->path[0]);
}

static at_err find_columns(at_csv_columns *columns, const at_file_list *files,
                           const at_read_options *options, at_fail *fail)
{
    scanner s = {.columns = columns, .options = options};
    visitor v = {columns, scan_row, &s, options->header};
    columns->real = options->real_labels;
    AT_TRY(visit_files(&v, files, fail));
    if (columns->rows == 0) return no_rows(files, fail);
    for (size_t i = 0; i < columns->count; i++)
        if (i != columns->label)
            AT_TRY(finish_column(columns, &columns->column[i], files->path[0], options, fail));
    AT_TRY(finish_label(columns, files->path[0], options, fail));
    if (columns->features > 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, "keep all columns with --ignore none",
                       "%s: no column is left besides the label: the others are ignored or only "
                       "tell rows apart",
                       files->path[0]);
}

static at_err count_row(void *self, const at_csv *csv, at_fail *fail)
{
    (void)csv;
    (void)fail;
    ((at_csv_columns *)self)->rows++;
    return AT_OK;
}

static at_err count_rows(at_csv_columns *columns, const at_file_list *files,
                         const at_read_options *options, at_fail *fail)
{
    AT_TRY(at_csv_columns_parse(columns, options->columns, fail));
    columns->unlabeled = options->unlabeled;
    AT_TRY(at_csv_visit_files(columns, files, count_row, columns, fail));
    if (columns->rows == 0) return no_rows(files, fail);
    for (size_t i = 0; i < columns->count; i++)
        if (columns->column[i].kind == AT_CSV_NUMBER || columns->column[i].kind == AT_CSV_TEXT)
            columns->numbers += columns->rows;
    return AT_OK;
}

at_err at_csv_columns_scan(at_csv_columns *columns, const at_file_list *files,
                           const at_read_options *options, at_fail *fail)
{
    *columns = (at_csv_columns){0};
    return options->columns ? count_rows(columns, files, options, fail)
                            : find_columns(columns, files, options, fail);
}
