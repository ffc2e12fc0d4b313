/* CSV files with a header: scanned once to find the type of each column, then read into a set.
 *
 * A column of numbers only is one feature. Any other is text and has one feature per distinct
 * value, which is 1 in the rows with that value.
 */
#include "data/formats/format.h"

#include "base/label.h"
#include "base/text.h"
#include "data/files/decimal.h"
#include "data/files/folder.h"
#include "data/files/lines.h"
#include "data/files/sniff.h"
#include "data/files/split_files.h"
#include "data/files/unpack.h"
#include "data/formats/csv.h"
#include "data/set/string_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Limits of the distinct values in a text column, and of the distinct labels. */
enum { VALUES_MAX = 4096, CLASSES_MAX = 1 << 16, PEEK_SIZE = 8192 };

typedef struct csv_column {
    char           *name;
    at_string_table values;   /* distinct values; of the label: the classes */
    bool            text;     /* some field is not a number */
    bool            full;     /* too many distinct values to collect */
    uint32_t        feature;  /* its first feature */
    uint64_t        nonzeros; /* nonzero numbers */
    uint64_t        missing_line;
} csv_column;

typedef struct csv_columns {
    csv_column *column; /* (count) */
    size_t      count;
    size_t      label; /* index of the label column */
    uint64_t    rows;
    uint64_t    numbers;  /* nonzero, in all rows */
    uint32_t    features; /* of all columns except the label */
    bool        sparse;   /* some column is text */
    bool        real;     /* the label is a real number instead of a class */
} csv_columns;

/* Called for every row of every file, except headers. */
typedef at_err visit_row(void *self, const at_csv *csv, at_fail *fail);

/* The number in a field; false when it is not a number. */
static bool parse_number(const char *field, float *value)
{
    const char *end = at_decimal_float(field, value);
    return end && *end == '\0';
}

/* The usual ways to write a missing number. */
static bool is_missing(const char *field)
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

/* ---- headers --------------------------------------------------------------------------------- */

static at_err take_header(csv_columns *columns, const at_csv *csv, at_fail *fail)
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
        numbers = numbers && parse_number(name, &value);
    }
    if (numbers)
        return at_csv_error(csv, "put the column names into the first line", fail,
                            "only numbers, but the first line must have the column names");
    if (columns->count < 2)
        return at_csv_error(csv, "separate fields by commas, semicolons or tabs", fail,
                            "only one column; a label and at least one feature are needed");
    return AT_OK;
}

static at_err check_header(const csv_columns *columns, const at_csv *csv, at_fail *fail)
{
    bool same = csv->count == columns->count;
    for (size_t i = 0; same && i < columns->count; i++)
        same = strcmp(columns->column[i].name, at_csv_cell(csv, i)) == 0;
    if (same) return AT_OK;
    return at_csv_error(csv, "all files of a set must have the same first line", fail,
                        "the column names differ from those of the first file");
}

static at_err visit_rows(csv_columns *columns, at_csv *csv, visit_row *visit, void *self,
                         at_fail *fail)
{
    bool more;
    AT_TRY(at_csv_next(csv, &more, fail));
    if (!more)
        return at_fail_set(fail, AT_ERR_FORMAT, "check that it is the right file",
                           "%s: no rows found", at_source_path(csv->source));
    AT_TRY(columns->column ? check_header(columns, csv, fail) : take_header(columns, csv, fail));
    for (;;) {
        AT_TRY(at_csv_next(csv, &more, fail));
        if (!more) return AT_OK;
        if (csv->count != columns->count)
            return at_csv_error(csv, "check for a missing comma or quote", fail,
                                "%zu fields, but the header has %zu", csv->count, columns->count);
        AT_TRY(visit(self, csv, fail));
    }
}

/* Reads all files, whose headers MUST be the same, and visits their rows. The first header names
 * the columns. */
static at_err visit_files(csv_columns *columns, const at_file_list *files, visit_row *visit,
                          void *self, at_fail *fail)
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

static at_err no_such_label(const csv_columns *columns, const char *label, at_fail *fail)
{
    const char *names[64];
    size_t      count = 0;
    for (; count < columns->count && count < sizeof names / sizeof *names; count++)
        names[count] = columns->column[count].name;
    return at_text_unknown("column", label, names, count, fail);
}

static bool find_column(csv_columns *columns, const char *name)
{
    for (columns->label = 0; columns->label < columns->count; columns->label++)
        if (strcasecmp(columns->column[columns->label].name, name) == 0) return true;
    return false;
}

static at_err find_label(csv_columns *columns, const char *label, at_fail *fail)
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
    csv_columns *columns;
    const char  *label;
    bool         begun;
} scanner;

static at_err scan_label(csv_column *column, const at_csv *csv, const char *field, at_fail *fail)
{
    if (field[0] == '\0')
        return at_csv_error(csv, "every row needs a label", fail, "column '%s' is empty",
                            column->name);
    if (!at_string_table_add(&column->values, field)) return no_memory(fail);
    if (column->values.count <= CLASSES_MAX) return AT_OK;
    return at_csv_error(csv, "choose another column with --label, or use --model linear", fail,
                        "more than %d distinct labels in column '%s'", CLASSES_MAX, column->name);
}

static at_err scan_real_label(const csv_column *column, const at_csv *csv, const char *field,
                              at_fail *fail)
{
    float value;
    if (parse_number(field, &value)) return AT_OK;
    return at_csv_error(csv, "choose a numeric column with --label", fail,
                        "the label '%.40s' in column '%s' is not a number", field, column->name);
}

static at_err scan_field(csv_column *column, const at_csv *csv, const char *field, at_fail *fail)
{
    float value;
    if (parse_number(field, &value))
        column->nonzeros += value != 0.0f;
    else if (!is_missing(field))
        column->text = true;
    else if (column->missing_line == 0)
        column->missing_line = csv->line;
    if (!column->full && !at_string_table_add(&column->values, field)) return no_memory(fail);
    if (column->values.count > VALUES_MAX) {
        column->full = true;
        at_string_table_deinit(&column->values);
    }
    if (!column->text || !column->full) return AT_OK;
    return at_csv_error(csv, "remove the column, or convert it to numbers", fail,
                        "column '%s' is text with more than %d distinct values", column->name,
                        VALUES_MAX);
}

static at_err scan_row(void *self, const at_csv *csv, at_fail *fail)
{
    scanner     *s = self;
    csv_columns *columns = s->columns;
    if (!s->begun) AT_TRY(find_label(columns, s->label, fail));
    s->begun = true;
    for (size_t i = 0; i < columns->count; i++) {
        csv_column *column = &columns->column[i];
        const char *field = at_csv_cell(csv, i);
        AT_TRY(i != columns->label ? scan_field(column, csv, field, fail)
               : columns->real     ? scan_real_label(column, csv, field, fail)
                                   : scan_label(column, csv, field, fail));
    }
    columns->rows++;
    return AT_OK;
}

/* After all rows: sorts the values of a text column, or checks that no number is missing. */
static at_err finish_column(csv_columns *columns, csv_column *column, const char *path,
                            at_fail *fail)
{
    assert(columns->rows > 0);
    column->feature = columns->features;
    if (!column->text && column->missing_line > 0)
        return at_fail_set(fail, AT_ERR_FORMAT, "fill it in, or remove the row or the column",
                           "%s: line %llu: column '%s' is numeric, but the value is missing here",
                           path, (unsigned long long)column->missing_line, column->name);
    if (!column->text) at_string_table_deinit(&column->values);
    if (!at_string_table_sort(&column->values)) return no_memory(fail);
    columns->features += column->text ? column->values.count : 1;
    columns->numbers += column->text ? columns->rows : column->nonzeros;
    columns->sparse = columns->sparse || column->text;
    return AT_OK;
}

/* Reads all files and fills *columns, to be deinited even after an error. Without a label in the
 * options: the column named label, class or target, or the last one. */
static at_err scan_files(csv_columns *columns, const at_file_list *files,
                         const at_read_options *options, at_fail *fail)
{
    scanner s = {.columns = columns, .label = options->label};
    *columns = (csv_columns){.real = options->real_labels};
    AT_TRY(visit_files(columns, files, scan_row, &s, fail));
    if (columns->rows == 0)
        return at_fail_set(fail, AT_ERR_FORMAT, "check that it is the right file",
                           "%s: no rows after the header", files->path[0]);
    for (size_t i = 0; i < columns->count; i++) {
        csv_column *column = &columns->column[i];
        if (i != columns->label)
            AT_TRY(finish_column(columns, column, files->path[0], fail));
        else if (!at_string_table_sort(&column->values))
            return no_memory(fail);
    }
    assert(columns->features > 0);
    return AT_OK;
}

static void columns_deinit(csv_columns *columns)
{
    assert(columns);
    for (size_t i = 0; i < columns->count; i++) {
        free(columns->column[i].name);
        at_string_table_deinit(&columns->column[i].values);
    }
    free(columns->column);
    *columns = (csv_columns){0};
}

/* ---- which files ----------------------------------------------------------------------------- */

static bool is_named_csv(const char *path)
{
    const at_unpacker *unpacker = at_unpack_by_suffix(path);
    char               ending[16] = ".csv";
    at_text            text = {.bytes = ending, .used = 4, .size = sizeof ending};
    if (unpacker) at_text_add(&text, "%s", unpacker->suffix);
    return at_folder_ends(path, ending);
}

/* Ignores quotes. */
static size_t count_commas(const char *line, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++) count += line[i] == ',';
    return count;
}

/* Two lines with the same number of commas, the first of which does not begin with a number. */
static bool looks_like_csv(const char *text)
{
    size_t first = strcspn(text, "\n");
    if (text[first] != '\n' || strchr("<{[#", text[0])) return false;
    size_t second = strcspn(text + first + 1, "\n");
    size_t count = count_commas(text, first);
    float  value;
    return count > 0 && count == count_commas(text + first + 1, second) &&
           (text[0] == '"' || !parse_number(text, &value)) && !strchr("+-.0123456789", text[0]);
}

/* Accepts non-ASCII text, which the sniffer reports as unknown. */
static bool is_text(const char *text, size_t size)
{
    at_sniff_result sniffed =
        at_sniff((const unsigned char *)text, size < AT_SNIFF_SIZE ? size : AT_SNIFF_SIZE);
    return strlen(text) == size && (strcmp(sniffed.what, "text") == 0 ||
                                    strncmp(sniffed.what, "unknown", strlen("unknown")) == 0);
}

static bool is_ours(const char *path)
{
    char   text[PEEK_SIZE];
    size_t size = at_lines_peek(path, text, sizeof text);
    return size > 0 && is_text(text, size) && (is_named_csv(path) || looks_like_csv(text));
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Appends left and right as one name; names NULL: only counts. */
static size_t add_name(char *names, size_t used, const char *left, const char *right)
{
    size_t left_size = strlen(left), right_size = strlen(right) + 1;
    if (names) {
        memcpy(names + used, left, left_size);
        memcpy(names + used + left_size, right, right_size);
    }
    return used + left_size + right_size;
}

/* Appends "color=VALUE" for each value. */
static size_t add_value_names(char *names, size_t used, const csv_column *column)
{
    for (uint32_t i = 0; i < column->values.count; i++) {
        used = add_name(names, used, column->name, "=") - 1;
        used = add_name(names, used, "", at_string_table_get(&column->values, i));
    }
    return used;
}

/* Writes the names of all classes, then of all features; returns the size in bytes. */
static size_t write_names(const csv_columns *columns, char *names)
{
    const at_string_table *classes = &columns->column[columns->label].values;
    size_t                 used = 0;
    for (uint32_t i = 0; i < classes->count; i++)
        used = add_name(names, used, "", at_string_table_get(classes, i));
    for (size_t i = 0; i < columns->count; i++) {
        const csv_column *column = &columns->column[i];
        if (i == columns->label) continue;
        used = column->text ? add_value_names(names, used, column)
                            : add_name(names, used, "", column->name);
    }
    return used;
}

/* Features of a sparse set are matched by name, so names must be unique. Two columns may have the
 * same name, and color=red may be both a column and a value. */
static at_err check_names(const at_dataset *set, const char *path, at_fail *fail)
{
    assert(set->names);
    at_string_table seen = {0};
    at_err          err = AT_OK;
    const char     *name = at_store_name(set, set->classes);
    for (uint32_t i = 0; !err && i < set->features; i++, name += strlen(name) + 1) {
        if (!at_string_table_add(&seen, name))
            err = at_fail_memory_for(fail, "to compare names");
        else if (seen.count == i)
            err = at_fail_set(fail, AT_ERR_FORMAT, "give each column a unique name",
                              "%s: line 1: two features are named '%.80s'", path, name);
    }
    at_string_table_deinit(&seen);
    return err;
}

/* ---- rows ------------------------------------------------------------------------------------ */

typedef struct filler {
    at_dataset        *set;
    const csv_columns *columns;
    uint64_t           row, number;
} filler;

/* A file may have changed since it was scanned. */
static at_err changed(const at_csv *csv, at_fail *fail)
{
    return at_csv_error(csv, "run the same command again", fail,
                        "the file changed while it was read");
}

static at_err fill_sparse(filler *f, const at_csv *csv, uint32_t feature, float value,
                          at_fail *fail)
{
    if (value == 0.0f) return AT_OK;
    if (f->number == f->columns->numbers) return changed(csv, fail);
    f->set->indices[f->number] = feature;
    f->set->values[f->number++] = value;
    return AT_OK;
}

static at_err fill_field(filler *f, const at_csv *csv, size_t index, at_fail *fail)
{
    const csv_column *column = &f->columns->column[index];
    const char       *field = at_csv_cell(csv, index);
    uint32_t          feature = column->feature;
    float             value = 1.0f;
    if (column->text) {
        uint32_t rank = at_string_table_find(&column->values, field);
        if (rank == UINT32_MAX) return changed(csv, fail);
        feature += rank;
    } else if (!parse_number(field, &value)) {
        return changed(csv, fail);
    }
    assert(feature < f->set->features);
    if (f->columns->sparse) return fill_sparse(f, csv, feature, value, fail);
    float *rows = (float *)(void *)f->set->rows;
    rows[f->row * f->set->features + feature] = value;
    return AT_OK;
}

static at_err fill_label(filler *f, const at_csv *csv, at_fail *fail)
{
    const csv_columns *columns = f->columns;
    const char        *field = at_csv_cell(csv, columns->label);
    float              value;
    if (columns->real) {
        if (!parse_number(field, &value)) return changed(csv, fail);
        f->set->labels[f->row] = at_label_of_real(value);
        return AT_OK;
    }
    uint32_t label = at_string_table_find(&columns->column[columns->label].values, field);
    if (label == UINT32_MAX) return changed(csv, fail);
    f->set->labels[f->row] = label;
    return AT_OK;
}

static at_err fill_row(void *self, const at_csv *csv, at_fail *fail)
{
    filler            *f = self;
    const csv_columns *columns = f->columns;
    if (f->row == columns->rows) return changed(csv, fail);
    AT_TRY(fill_label(f, csv, fail));
    for (size_t i = 0; i < columns->count; i++)
        if (i != columns->label) AT_TRY(fill_field(f, csv, i, fail));
    f->row++;
    if (columns->sparse) f->set->starts[f->row] = f->number;
    return AT_OK;
}

static at_err fill(at_dataset *set, csv_columns *columns, const at_file_list *files, at_fail *fail)
{
    filler f = {.set = set, .columns = columns};
    set->names_size = write_names(columns, NULL);
    AT_TRY(
        columns->sparse
            ? at_store_reserve_sparse(set, columns->rows, columns->numbers, columns->features, fail)
            : at_store_reserve(set, columns->rows, columns->features, AT_ELEMENT_FLOAT, fail));
    write_names(columns, set->names);
    set->classes = columns->column[columns->label].values.count;
    if (columns->sparse) AT_TRY(check_names(set, files->path[0], fail));
    AT_TRY(visit_files(columns, files, fill_row, &f, fail));
    if (f.row != columns->rows)
        return at_fail_set(fail, AT_ERR_FORMAT, "run the same command again",
                           "%s: the file changed while it was read", files->path[0]);
    at_text form = at_text_in(set->form, sizeof set->form);
    at_text_add(&form, columns->sparse ? "%zu columns, some of them text" : "%zu columns",
                columns->count - 1);
    return AT_OK;
}

static at_err load(at_dataset *set, const char *name, const at_file_list *files, at_fail *fail)
{
    (void)name; /* messages name the file instead */
    csv_columns columns;
    at_err      err = scan_files(&columns, files, &set->read_options, fail);
    if (!err) err = fill(set, &columns, files, fail);
    columns_deinit(&columns);
    return err;
}

const at_format at_format_csv = {
    .name = "csv",
    .summary = "CSV with a header; one feature per numeric column or distinct text (sparse)",
    .expects = "comma-separated fields, column names in the first line",
    .slow_to_read = true,
    .reads_real_labels = true,
    .is_split_file = is_ours,
    .load_files = load,
};
