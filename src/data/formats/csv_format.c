/* Tables (CSV): read once, which finds out what each column is (csv_columns.h); then their words
 * become a set. */
#include "data/formats/format.h"

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
        if (at_string_table_add(&seen, name) == UINT32_MAX)
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
    const at_csv_column **used; /* (used_count) numbers and texts */
    size_t                used_count;
    uint64_t              row, number;
} filler;

static void put_sparse(filler *f, uint32_t feature, float value)
{
    if (value == 0.0f) return;
    assert(f->number < f->columns->numbers && feature < f->set->features);
    f->set->indices[f->number] = feature;
    f->set->values[f->number++] = value;
}

static inline float number_of(uint32_t word)
{
    float value;
    memcpy(&value, &word, sizeof value);
    return word == AT_CSV_NONE ? NAN : value;
}

static void put_sparse_row(filler *f, uint64_t row, const uint32_t *words)
{
    for (size_t i = 0; i < f->used_count; i++) {
        const at_csv_column *column = f->used[i];
        uint32_t             word = at_csv_meaning(column, row, words[column - f->columns->column]);
        if (column->kind == AT_CSV_NUMBER)
            put_sparse(f, column->feature, number_of(word));
        else if (word != AT_CSV_NONE)
            put_sparse(f, column->feature + word, 1.0f);
    }
    f->set->starts[f->row + 1] = f->number;
}

static void put_dense_row(const filler *f, uint64_t row, const uint32_t *words)
{
    float *x = (float *)(void *)f->set->rows + f->row * f->set->features;
    assert(f->used_count == f->set->features);
    for (size_t i = 0; i < f->used_count; i++) {
        const at_csv_column *column = f->used[i];
        x[i] = number_of(at_csv_meaning(column, row, words[column - f->columns->column]));
    }
}

/* Whether a number or the label is missing. */
static bool is_incomplete(const filler *f, uint64_t row, const uint32_t *words)
{
    const at_csv_columns *columns = f->columns;
    if (f->set->read_options.missing != AT_MISSING_DROP || columns->known) return false;
    if (at_csv_meaning(&columns->column[columns->label], row, words[columns->label]) == AT_CSV_NONE)
        return true;
    for (size_t i = 0; i < f->used_count; i++) {
        const at_csv_column *column = f->used[i];
        uint32_t             word = at_csv_meaning(column, row, words[column - columns->column]);
        if (column->kind == AT_CSV_NUMBER && word == AT_CSV_NONE) return true;
    }
    return false;
}

static void fill_rows(filler *f, at_csv_cells *cells)
{
    const at_csv_columns *columns = f->columns;
    const at_csv_column  *label = &columns->column[columns->label];
    const uint32_t       *words;
    for (uint64_t row = 0; (words = at_csv_cells_take(cells, columns->count)); row++) {
        if (is_incomplete(f, row, words)) continue;
        if (!columns->unlabeled)
            f->set->labels[f->row] = at_csv_meaning(label, row, words[columns->label]);
        if (columns->sparse)
            put_sparse_row(f, row, words);
        else
            put_dense_row(f, row, words);
        f->row++;
    }
}

static at_err finish(const filler *f, const char *path, at_fail *fail)
{
    at_dataset *set = f->set;
    at_text     form = at_text_in(set->form, sizeof set->form);
    if (f->row == 0)
        return at_fail_set(fail, AT_ERR_FORMAT,
                           "use --missing fill, or --ignore the columns that "
                           "lack values",
                           "%s: every row lacks a value, so --missing drop leaves none", path);
    set->dropped = set->count - f->row;
    set->count = f->row;
    at_text_add(&form, f->columns->sparse ? "%zu columns, some of them text" : "%zu columns",
                f->used_count);
    set->columns = at_csv_columns_text(f->columns);
    return set->columns ? AT_OK : at_fail_memory_for(fail, "for the columns of the data");
}

static at_err fill(at_dataset *set, at_csv_columns *columns, const char *path, at_fail *fail)
{
    filler f = {.set = set, .columns = columns};
    set->names_size = write_names(columns, NULL);
    AT_TRY(
        columns->sparse
            ? at_store_reserve_sparse(set, columns->rows, columns->numbers, columns->features, fail)
            : at_store_reserve(set, columns->rows, columns->features, AT_ELEMENT_FLOAT, fail));
    write_names(columns, set->names);
    set->classes = columns->column[columns->label].values.count;
    if (columns->sparse) AT_TRY(check_names(set, path, fail));
    f.used = calloc(columns->count, sizeof *f.used);
    if (!f.used) return at_fail_memory_for(fail, "for the columns of the data");
    for (size_t i = 0; i < columns->count; i++)
        if (columns->column[i].kind == AT_CSV_TEXT || columns->column[i].kind == AT_CSV_NUMBER)
            f.used[f.used_count++] = &columns->column[i];
    fill_rows(&f, &columns->cells);
    free(f.used);
    return finish(&f, path, fail);
}

static at_err load(at_dataset *set, const char *name, const at_file_list *files, at_fail *fail)
{
    (void)name; /* messages name the file instead */
    at_csv_columns columns;
    at_err         err = at_csv_columns_read(&columns, files, &set->read_options, fail);
    if (!err) err = fill(set, &columns, files->path[0], fail);
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
