/* Finds out what the columns of a table are, while its rows are read. */
#include "data/formats/csv_columns.h"

#include "base/text.h"

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

static at_err no_memory(at_fail *fail)
{
    return at_fail_memory_for(fail, "for the columns of the data");
}

/* ---- which columns are what ------------------------------------------------------------------ */

static at_err no_such_column(const at_csv_columns *columns, const char *option, const char *name,
                             at_fail *fail)
{
    const char *names[64];
    size_t      count = 0;
    for (; count < columns->count && count < sizeof names / sizeof *names; count++)
        names[count] = columns->column[count].name;
    at_err err = at_text_unknown("column", name, names, count, fail);
    return fail ? at_fail_wrap(fail, "%s", option) : err;
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
    if (label && !find_column(columns, label, at))
        return no_such_column(columns, "--label", label, fail);
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
            err = no_such_column(columns, "--ignore", name, fail);
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
    const at_csv          *csv; /* the current row */
    bool                   begun;
} scanner;

/* All floats from 2^23 on are whole. */
static bool is_whole(float value)
{
    return fabsf(value) >= 8388608.0f || value == (float)(int32_t)value;
}

/* What the numbers of a column look like. */
static inline void note_number(at_csv_column *column, float value, bool first)
{
    column->nonzeros += value != 0.0f;
    if (column->fraction) return; /* nothing else can change */
    bool whole = is_whole(value);
    column->whole = column->whole && whole;
    column->fraction = !whole;
    column->counts = column->counts && whole && (first || value == column->last + 1.0f);
    column->last = value;
}

/* Makes the numbers of the values stand for the numbers that they are. */
static at_err mean_numbers(at_csv_column *column, at_fail *fail)
{
    uint32_t count = column->values.count;
    column->meaning = count ? malloc(count * sizeof *column->meaning) : NULL;
    if (count && !column->meaning) return no_memory(fail);
    for (uint32_t i = 0; i < count; i++)
        column->meaning[i] = at_csv_number_word(at_string_table_get(&column->values, i));
    return AT_OK;
}

/* Makes the numbers of the values stand for their ranks. */
static at_err mean_ranks(at_csv_column *column, at_fail *fail)
{
    uint32_t count = column->values.count;
    column->meaning = count ? malloc(count * sizeof *column->meaning) : NULL;
    if (count && !column->meaning) return no_memory(fail);
    return at_string_table_sort(&column->values, column->meaning) ? AT_OK : no_memory(fail);
}

static at_err too_many_labels(const scanner *s, const at_csv_column *column, at_fail *fail)
{
    return at_csv_error(s->csv, "choose another column with --label, or use --model linear", fail,
                        "more than %d distinct labels in column '%s'", CLASSES_MAX, column->name);
}

static at_err scan_label(const scanner *s, at_csv_column *column, const char *field, uint32_t *word,
                         at_fail *fail)
{
    float value;
    bool  drops = s->options->missing == AT_MISSING_DROP;
    *word = AT_CSV_NONE;
    if (at_csv_is_missing(field) && (drops || field[0] == '\0')) {
        if (drops) return AT_OK;
        return at_csv_error(s->csv, "every row needs a label; --missing drop leaves such rows out",
                            fail, "column '%s' is empty", column->name);
    }
    if (at_csv_number(field, &value))
        note_number(column, value, s->columns->rows == 0);
    else
        column->text = true;
    if (column->full && column->text) return too_many_labels(s, column, fail);
    *word = column->full ? at_csv_number_word(field) : at_string_table_add(&column->values, field);
    if (column->full) return AT_OK;
    if (*word == UINT32_MAX) return no_memory(fail);
    if (column->values.count <= CLASSES_MAX) return AT_OK;
    if (column->text || !s->options->any_labels) return too_many_labels(s, column, fail);
    column->full = true;
    column->numbered = s->columns->rows + 1;
    return AT_OK;
}

static at_err scan_real_label(const scanner *s, const at_csv_column *column, const char *field,
                              uint32_t *word, at_fail *fail)
{
    *word = at_csv_number_word(field);
    if (*word != AT_CSV_NONE) return AT_OK;
    if (at_csv_is_missing(field) && s->options->missing == AT_MISSING_DROP) return AT_OK;
    return at_csv_error(s->csv, "choose a numeric column with --label", fail,
                        "the label '%.40s' in column '%s' is not a number", field, column->name);
}

/* Numbers the value; from the row after this one on, a column of too many is only read as
 * numbers. */
static at_err number_value(const scanner *s, at_csv_column *column, const char *field,
                           uint32_t *word, at_fail *fail)
{
    uint64_t rows = s->columns->rows + 1;
    *word = at_string_table_add(&column->values, field);
    if (*word == UINT32_MAX) return no_memory(fail);
    column->differs = column->values.count == rows;
    if (column->values.count <= VALUES_MAX) return AT_OK;
    column->full = true;
    column->numbered = rows;
    AT_TRY(mean_numbers(column, fail));
    at_string_table_deinit(&column->values);
    return AT_OK;
}

/* A column that has had another value in each of more than VALUES_MAX rows is unlike any text that
 * could be a feature. */
static at_err scan_field(const scanner *s, at_csv_column *column, const char *field, uint32_t *word,
                         at_fail *fail)
{
    float value;
    *word = AT_CSV_NONE;
    if (at_csv_number(field, &value)) {
        note_number(column, value, s->columns->rows == 0);
        memcpy(word, &value, sizeof value);
        if (column->full) return AT_OK;
    } else if (!at_csv_is_missing(field)) {
        column->text = true;
    } else if (column->missing++ == 0) {
        column->missing_line = s->csv->line;
    }
    if (!column->full) AT_TRY(number_value(s, column, field, word, fail));
    bool finds = !s->options->ignore;
    if (!column->text || !column->full || (finds && column->differs)) return AT_OK;
    return at_csv_error(s->csv, "leave the column out with --ignore, or convert it to numbers",
                        fail, "column '%s' is text with more than %d distinct values", column->name,
                        VALUES_MAX);
}

static at_err scan_row(void *self, const at_csv *csv, at_fail *fail)
{
    scanner        *s = self;
    at_csv_columns *columns = s->columns;
    if (!s->begun) {
        AT_TRY(find_label(columns, s->options->label, fail));
        AT_TRY(ignore_columns(columns, s->options->ignore, fail));
        if (columns->real) columns->column[columns->label].numbered = 0;
    }
    s->begun = true;
    s->csv = csv;
    uint32_t *words = at_csv_cells_add(&columns->cells, columns->count);
    if (!words) return no_memory(fail);
    for (size_t i = 0; i < columns->count; i++) {
        at_csv_column *column = &columns->column[i];
        const char    *field = at_csv_cell(csv, i);
        if (column->kind == AT_CSV_IGNORED) continue;
        AT_TRY(i != columns->label ? scan_field(s, column, field, &words[i], fail)
               : columns->real     ? scan_real_label(s, column, field, &words[i], fail)
                                   : scan_label(s, column, field, &words[i], fail));
    }
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
    if (!column->full) AT_TRY((column->text ? mean_ranks : mean_numbers)(column, fail));
    if (!column->text) at_string_table_deinit(&column->values);
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
    if (!columns->real) return mean_ranks(label, fail);
    AT_TRY(mean_numbers(label, fail));
    at_string_table_deinit(&label->values);
    return AT_OK;
}

at_err at_csv_columns_find(at_csv_columns *columns, const at_file_list *files,
                           const at_read_options *options, at_fail *fail)
{
    scanner s = {.columns = columns, .options = options};
    columns->real = options->real_labels;
    AT_TRY(at_csv_visit_files(columns, files, options->header, scan_row, &s, fail));
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
