/* CSV files with a header: scanned once for what their columns hold, then read into a set. */
#include "data/formats/format.h"

#include "base/text.h"
#include "data/files/folder.h"
#include "data/files/lines.h"
#include "data/files/parts.h"
#include "data/files/sniff.h"
#include "data/files/unpack.h"
#include "data/formats/csv_columns.h"

#include <assert.h>
#include <string.h>

enum { PEEK_SIZE = 8192 };

/* ---- which files ----------------------------------------------------------------------------- */

static bool is_named_csv(const char *path)
{
    const at_unpack *packing = at_unpack_named(path);
    char             ending[16] = ".csv";
    at_text          text = {.bytes = ending, .used = 4, .size = sizeof ending};
    if (packing) at_text_add(&text, "%s", packing->suffix);
    return at_folder_ends(path, ending);
}

/* Separators of a line; quotes are not looked at. */
static size_t commas(const char *line, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++) count += line[i] == ',';
    return count;
}

/* Two lines with equally many commas, the first of which begins like a name. */
static bool looks_like_csv(const char *text)
{
    size_t first = strcspn(text, "\n");
    if (text[first] != '\n' || strchr("<{[#", text[0])) return false;
    size_t second = strcspn(text + first + 1, "\n");
    size_t count = commas(text, first);
    float  value;
    return count > 0 && count == commas(text + first + 1, second) &&
           (text[0] == '"' || !at_csv_number(text, &value)) && !strchr("+-.0123456789", text[0]);
}

/* Letters of other languages look unknown to the sniffer; pointers and archives do not. */
static bool is_text(const char *text, size_t size)
{
    at_sniffed sniffed =
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

/* Appends the two texts as one name; with names NULL only counts. */
static size_t add_name(char *names, size_t used, const char *left, const char *right)
{
    size_t left_size = strlen(left), right_size = strlen(right) + 1;
    if (names) {
        memcpy(names + used, left, left_size);
        memcpy(names + used + left_size, right, right_size);
    }
    return used + left_size + right_size;
}

/* "colour=" in front of each of its texts. */
static size_t add_texts(char *names, size_t used, const at_csv_column *column)
{
    for (uint32_t i = 0; i < column->words.count; i++) {
        used = add_name(names, used, column->name, "=") - 1;
        used = add_name(names, used, "", at_string_table_get(&column->words, i));
    }
    return used;
}

/* All classes, then all features; returns the bytes they take. */
static size_t write_names(const at_csv_columns *columns, char *names)
{
    const at_string_table *classes = &columns->column[columns->label].words;
    size_t                 used = 0;
    for (uint32_t i = 0; i < classes->count; i++)
        used = add_name(names, used, "", at_string_table_get(classes, i));
    for (size_t i = 0; i < columns->count; i++) {
        const at_csv_column *column = &columns->column[i];
        if (i == columns->label) continue;
        used =
            column->text ? add_texts(names, used, column) : add_name(names, used, "", column->name);
    }
    return used;
}

/* Features of a sparse set go by their names, so each needs one of its own. Columns may have the
 * same name, and colour=red may be a column as well as a text of one. */
static at_err check_names(const at_dataset *set, const char *path, at_fail *fail)
{
    assert(set->names);
    at_string_table words = {0};
    at_err          err = AT_OK;
    const char     *name = at_store_name(set, set->classes);
    for (uint32_t i = 0; !err && i < set->features; i++, name += strlen(name) + 1) {
        if (!at_string_table_add(&words, name))
            err = at_fail_memory_for(fail, "to compare names");
        else if (words.count == i)
            err = at_fail_set(fail, AT_ERR_FORMAT, "give each column a name of its own",
                              "%s: line 1: two features have the name '%.80s'", path, name);
    }
    at_string_table_deinit(&words);
    return err;
}

/* ---- rows ------------------------------------------------------------------------------------ */

typedef struct filler {
    at_dataset           *set;
    const at_csv_columns *columns;
    uint64_t              row, number;
} filler;

/* A file may have been written to since it was scanned: nothing of that is taken for granted. */
static at_err changed(const at_csv *csv, at_fail *fail)
{
    return at_csv_wrong(csv, "try again", fail, "the file has changed while it was read");
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
    const at_csv_column *column = &f->columns->column[index];
    const char          *field = at_csv_cell(csv, index);
    uint32_t             feature = column->feature;
    float                value = 1.0f;
    if (column->text) {
        uint32_t rank = at_string_table_find(&column->words, field);
        if (rank == UINT32_MAX) return changed(csv, fail);
        feature += rank;
    } else if (!at_csv_number(field, &value)) {
        return changed(csv, fail);
    }
    assert(feature < f->set->features);
    if (f->columns->sparse) return fill_sparse(f, csv, feature, value, fail);
    float *rows = (float *)(void *)f->set->rows;
    rows[f->row * f->set->features + feature] = value;
    return AT_OK;
}

static at_err fill_row(void *self, const at_csv *csv, at_fail *fail)
{
    filler               *f = self;
    const at_csv_columns *columns = f->columns;
    if (f->row == columns->rows) return changed(csv, fail);
    uint32_t label = at_string_table_find(&columns->column[columns->label].words,
                                          at_csv_cell(csv, columns->label));
    if (label == UINT32_MAX) return changed(csv, fail);
    f->set->labels[f->row] = label;
    for (size_t i = 0; i < columns->count; i++)
        if (i != columns->label) AT_TRY(fill_field(f, csv, i, fail));
    f->row++;
    if (columns->sparse) f->set->starts[f->row] = f->number;
    return AT_OK;
}

static at_err fill(at_dataset *set, at_csv_columns *columns, const at_files *files, at_fail *fail)
{
    filler f = {.set = set, .columns = columns};
    set->names_size = write_names(columns, NULL);
    AT_TRY(
        columns->sparse
            ? at_store_reserve_sparse(set, columns->rows, columns->numbers, columns->features, fail)
            : at_store_reserve(set, columns->rows, columns->features, AT_ELEMENT_FLOAT, fail));
    write_names(columns, set->names);
    set->classes = columns->column[columns->label].words.count;
    if (columns->sparse) AT_TRY(check_names(set, files->path[0], fail));
    AT_TRY(at_csv_each(columns, files, fill_row, &f, fail));
    if (f.row != columns->rows)
        return at_fail_set(fail, AT_ERR_FORMAT, "try again",
                           "%s: the file has changed while it was read", files->path[0]);
    at_text form = at_text_in(set->form, sizeof set->form);
    at_text_add(&form, columns->sparse ? "%zu columns, some of them text" : "%zu columns",
                columns->count - 1);
    return AT_OK;
}

static at_err load(at_dataset *set, const char *name, const at_files *files, at_fail *fail)
{
    (void)name; /* messages name the file of the set that is meant */
    at_csv_columns columns;
    at_err         err = at_csv_scan(&columns, files, set->reading.label, fail);
    if (!err) err = fill(set, &columns, files, fail);
    at_csv_columns_deinit(&columns);
    return err;
}

const at_format at_format_csv = {
    .name = "csv",
    .summary = "CSV with a header; numbers are features, texts one feature each (sparse)",
    .wants = "fields with commas, names in the first line",
    .parses = true,
    .is_part = is_ours,
    .load_parts = load,
};
