/* Reads rows by known columns: those of the train set. */
#include "data/formats/csv_columns.h"

#include <assert.h>
#include <math.h>
#include <string.h>

typedef struct follower {
    at_csv_columns *columns;
    at_missing      missing;
} follower;

/* A missing number: what the columns say, or none, to be filled when the train set is known. */
static at_err missing_number(const follower *f, const at_csv *csv, const at_csv_column *column,
                             const char *field, uint32_t *word, at_fail *fail)
{
    float fill = (float)column->fill;
    if (isfinite(column->fill)) memcpy(word, &fill, sizeof fill);
    if (!at_csv_is_missing(field))
        return at_csv_error(csv, "correct the field", fail,
                            "column '%.80s' is numeric, and '%.40s' is not a number", column->name,
                            field);
    if (isfinite(column->fill) || f->missing == AT_MISSING_FILL) return AT_OK;
    return at_csv_error(csv, "fill it in, or train with --missing fill", fail,
                        "column '%.80s' is numeric, but the value is missing here", column->name);
}

static at_err read_label(const at_csv_columns *columns, const at_csv *csv,
                         const at_csv_column *column, uint32_t *word, at_fail *fail)
{
    const char *field = at_csv_cell(csv, column->place);
    *word =
        columns->real ? at_csv_number_word(field) : at_string_table_find(&column->values, field);
    if (*word != AT_CSV_NONE) return AT_OK;
    if (columns->real)
        return at_csv_error(csv, "choose a numeric column with --label", fail,
                            "the label '%.40s' in column '%s' is not a number", field,
                            column->name);
    return at_csv_error(csv, "use train and test files of the same data set", fail,
                        "the test set has a label '%.40s' that does not occur in the train set",
                        field);
}

/* A value that the train set does not have is no feature. */
static at_err read_field(const follower *f, const at_csv *csv, const at_csv_column *column,
                         uint32_t *word, at_fail *fail)
{
    const char *field = at_csv_cell(csv, column->place);
    bool        text = column->kind == AT_CSV_TEXT;
    *word = text ? at_string_table_find(&column->values, field) : at_csv_number_word(field);
    return text || *word != AT_CSV_NONE ? AT_OK : missing_number(f, csv, column, field, word, fail);
}

/* Whether a number or the label is missing. */
static bool is_incomplete(const at_csv_columns *columns, const at_csv *csv)
{
    for (size_t i = 0; i < columns->count; i++) {
        const at_csv_column *column = &columns->column[i];
        bool                 counts =
            column->kind == AT_CSV_NUMBER || (column->kind == AT_CSV_LABEL && !columns->unlabeled);
        if (counts && at_csv_is_missing(at_csv_cell(csv, column->place))) return true;
    }
    return false;
}

static at_err read_row(void *self, const at_csv *csv, at_fail *fail)
{
    follower       *f = self;
    at_csv_columns *columns = f->columns;
    if (f->missing == AT_MISSING_DROP && is_incomplete(columns, csv)) return AT_OK;
    uint32_t *words = at_csv_cells_add(&columns->cells, columns->count);
    if (!words) return at_fail_memory_for(fail, "for the columns of the data");
    const at_csv_column *label = &columns->column[columns->label];
    if (!columns->unlabeled) AT_TRY(read_label(columns, csv, label, &words[columns->label], fail));
    for (size_t i = 0; i < columns->count; i++) {
        const at_csv_column *column = &columns->column[i];
        if (column->kind == AT_CSV_NUMBER || column->kind == AT_CSV_TEXT)
            AT_TRY(read_field(f, csv, column, &words[i], fail));
    }
    return AT_OK;
}

at_err at_csv_columns_follow(at_csv_columns *columns, const at_file_list *files,
                             const at_read_options *options, at_fail *fail)
{
    follower f = {columns, options->missing};
    AT_TRY(at_csv_columns_parse(columns, options->columns, fail));
    columns->unlabeled = options->unlabeled;
    AT_TRY(at_csv_visit_files(columns, files, AT_HEADER_AUTO, read_row, &f, fail));
    for (size_t i = 0; i < columns->count; i++)
        if (columns->column[i].kind == AT_CSV_NUMBER || columns->column[i].kind == AT_CSV_TEXT)
            columns->numbers += columns->rows;
    return AT_OK;
}
