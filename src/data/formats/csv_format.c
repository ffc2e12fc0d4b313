/* Tables (CSV): scanned once to find out what each column is (csv_columns.h), then read into a
 * set. */
#include "data/formats/format.h"

#include "base/label.h"
#include "base/text.h"
#include "data/files/folder.h"
#include "data/files/lines.h"
#include "data/files/sniff.h"
#include "data/files/split_files.h"
#include "data/files/unpack.h"
#include "data/formats/csv_columns.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PEEK_SIZE = 8192 };

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
static size_t count_of(char separator, const char *line, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++) count += line[i] == separator;
    return count;
}

/* All whole lines, two or more, have the same number of this separator. */
static bool is_separated_by(char separator, const char *text)
{
    size_t count = 0, lines = 0;
    for (; text[strcspn(text, "\n")]; lines++) {
        size_t length = strcspn(text, "\n"), here = count_of(separator, text, length);
        if (lines == 0) count = here;
        if (here != count || here == 0) return lines > 0 && length <= 1;
        text += length + 1;
    }
    return lines > 1 || (lines == 1 && *text && count_of(separator, text, strlen(text)) == count);
}

static bool looks_like_csv(const char *text)
{
    if (strchr("<{[#", text[0])) return false;
    return is_separated_by(',', text) || is_separated_by(';', text) || is_separated_by('\t', text);
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
static size_t add_value_names(char *names, size_t used, const at_csv_column *column)
{
    for (uint32_t i = 0; i < column->values.count; i++) {
        used = add_name(names, used, column->name, "=") - 1;
        used = add_name(names, used, "", at_string_table_get(&column->values, i));
    }
    return used;
}

/* Writes the names of all classes, then of all features; returns the size in bytes. */
static size_t write_names(const at_csv_columns *columns, char *names)
{
    const at_string_table *classes = &columns->column[columns->label].values;
    size_t                 used = 0;
    for (uint32_t i = 0; i < classes->count; i++)
        used = add_name(names, used, "", at_string_table_get(classes, i));
    for (size_t i = 0; i < columns->count; i++) {
        const at_csv_column *column = &columns->column[i];
        if (column->kind == AT_CSV_TEXT) used = add_value_names(names, used, column);
        if (column->kind == AT_CSV_NUMBER) used = add_name(names, used, "", column->name);
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
    at_dataset           *set;
    const at_csv_columns *columns;
    uint64_t              row, rows_max, number;
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

/* A missing number: what the columns say, or NAN, to be filled when the train set is known. */
static at_err missing_number(const filler *f, const at_csv *csv, const at_csv_column *column,
                             const char *field, float *value, at_fail *fail)
{
    *value = isfinite(column->fill) ? (float)column->fill : NAN;
    if (!at_csv_is_missing(field))
        return f->columns->known ? at_csv_error(csv, "correct the field", fail,
                                                "column '%.80s' is numeric, and '%.40s' is not a "
                                                "number",
                                                column->name, field)
                                 : changed(csv, fail);
    if (isfinite(column->fill) || f->set->read_options.missing == AT_MISSING_FILL) return AT_OK;
    return at_csv_error(csv, "fill it in, or train with --missing fill", fail,
                        "column '%.80s' is numeric, but the value is missing here", column->name);
}

/* A value that the train set does not have is no feature. */
static at_err fill_field(filler *f, const at_csv *csv, const at_csv_column *column, at_fail *fail)
{
    const char *field = at_csv_cell(csv, column->place);
    uint32_t    feature = column->feature;
    float       value = 1.0f;
    if (column->kind == AT_CSV_TEXT) {
        uint32_t rank = at_string_table_find(&column->values, field);
        if (rank == UINT32_MAX) return f->columns->known ? AT_OK : changed(csv, fail);
        feature += rank;
    } else if (!at_csv_number(field, &value)) {
        AT_TRY(missing_number(f, csv, column, field, &value, fail));
    }
    assert(feature < f->set->features);
    if (f->columns->sparse) return fill_sparse(f, csv, feature, value, fail);
    float *rows = (float *)(void *)f->set->rows;
    rows[f->row * f->set->features + feature] = value;
    return AT_OK;
}

static at_err fill_label(filler *f, const at_csv *csv, at_fail *fail)
{
    const at_csv_columns *columns = f->columns;
    const at_csv_column  *column = &columns->column[columns->label];
    if (columns->unlabeled) return AT_OK;
    const char *field = at_csv_cell(csv, column->place);
    float       value;
    if (columns->real) {
        if (at_csv_number(field, &value)) {
            f->set->labels[f->row] = at_label_of_real(value);
            return AT_OK;
        }
        if (!columns->known) return changed(csv, fail);
        return at_csv_error(csv, "choose a numeric column with --label", fail,
                            "the label '%.40s' in column '%s' is not a number", field,
                            column->name);
    }
    uint32_t label = at_string_table_find(&column->values, field);
    f->set->labels[f->row] = label;
    if (label != UINT32_MAX) return AT_OK;
    if (!columns->known) return changed(csv, fail);
    return at_csv_error(csv, "use train and test files of the same data set", fail,
                        "the test set has a label '%.40s' that does not occur in the train set",
                        field);
}

/* Whether a number or the label is missing. */
static bool is_incomplete(const filler *f, const at_csv *csv)
{
    const at_csv_columns *columns = f->columns;
    for (size_t i = 0; i < columns->count; i++) {
        const at_csv_column *column = &columns->column[i];
        bool                 counts =
            column->kind == AT_CSV_NUMBER || (column->kind == AT_CSV_LABEL && !columns->unlabeled);
        if (counts && at_csv_is_missing(at_csv_cell(csv, column->place))) return true;
    }
    return false;
}

static at_err fill_row(void *self, const at_csv *csv, at_fail *fail)
{
    filler               *f = self;
    const at_csv_columns *columns = f->columns;
    if (f->rows_max-- == 0) return changed(csv, fail);
    if (f->set->read_options.missing == AT_MISSING_DROP && is_incomplete(f, csv)) return AT_OK;
    AT_TRY(fill_label(f, csv, fail));
    for (size_t i = 0; i < columns->count; i++) {
        const at_csv_column *column = &columns->column[i];
        if (column->kind == AT_CSV_NUMBER || column->kind == AT_CSV_TEXT)
            AT_TRY(fill_field(f, csv, column, fail));
    }
    f->row++;
    if (columns->sparse) f->set->starts[f->row] = f->number;
    return AT_OK;
}

static at_err fill_rows(filler *f, at_csv_columns *columns, const at_file_list *files,
                        at_fail *fail)
{
    at_dataset *set = f->set;
    AT_TRY(at_csv_visit_files(columns, files, fill_row, f, fail));
    if (f->rows_max > 0)
        return at_fail_set(fail, AT_ERR_FORMAT, "run the same command again",
                           "%s: the file changed while it was read", files->path[0]);
    if (f->row == 0)
        return at_fail_set(fail, AT_ERR_FORMAT,
                           "use --missing fill, or --ignore the columns that "
                           "lack values",
                           "%s: every row lacks a value, so --missing drop leaves none",
                           files->path[0]);
    set->dropped = set->count - f->row;
    set->count = f->row;
    set->columns = at_csv_columns_text(columns);
    return set->columns ? AT_OK : at_fail_memory_for(fail, "for the columns of the data");
}

static at_err fill(at_dataset *set, at_csv_columns *columns, const at_file_list *files,
                   at_fail *fail)
{
    filler f = {.set = set, .columns = columns, .rows_max = columns->rows};
    set->names_size = write_names(columns, NULL);
    AT_TRY(
        columns->sparse
            ? at_store_reserve_sparse(set, columns->rows, columns->numbers, columns->features, fail)
            : at_store_reserve(set, columns->rows, columns->features, AT_ELEMENT_FLOAT, fail));
    write_names(columns, set->names);
    set->classes = columns->column[columns->label].values.count;
    if (columns->sparse) AT_TRY(check_names(set, files->path[0], fail));
    AT_TRY(fill_rows(&f, columns, files, fail));
    size_t  used = 0;
    at_text form = at_text_in(set->form, sizeof set->form);
    for (size_t i = 0; i < columns->count; i++)
        used += columns->column[i].kind == AT_CSV_TEXT || columns->column[i].kind == AT_CSV_NUMBER;
    at_text_add(&form, columns->sparse ? "%zu columns, some of them text" : "%zu columns", used);
    return AT_OK;
}

static at_err load(at_dataset *set, const char *name, const at_file_list *files, at_fail *fail)
{
    (void)name; /* messages name the file instead */
    at_csv_columns columns;
    at_err         err = at_csv_columns_scan(&columns, files, &set->read_options, fail);
    if (!err) err = fill(set, &columns, files, fail);
    at_csv_columns_deinit(&columns);
    return err;
}

const at_format at_format_csv = {
    .name = "csv",
    .summary = "tables: one feature per numeric column or distinct text (sparse)",
    .expects = "fields separated by commas, semicolons or tabs",
    .slow_to_read = true,
    .reads_real_labels = true,
    .is_split_file = is_ours,
    .load_files = load,
};
