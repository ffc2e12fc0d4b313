/* csv_columns.h - the columns of a table: what they hold, and which features they become.
 *
 *     files ──► at_csv_columns_read ──► columns ──► at_csv_columns_text: kept with a model
 *     text  ──► at_csv_columns_parse ──► columns ──► other files, read in the same way
 *
 * A column of numbers is one feature, a column of text one feature per distinct value. Columns that
 * identify rows are left out. A test set, and rows to predict, are read by the columns of the train
 * set: by name in any order, or by position if there is no header.
 */
#ifndef AT_DATA_FORMATS_CSV_COLUMNS_H
#define AT_DATA_FORMATS_CSV_COLUMNS_H

#include "data/files/folder.h"
#include "data/formats/csv.h"
#include "data/formats/csv_cells.h"
#include "data/set/dataset.h"
#include "data/set/string_table.h"

typedef enum at_csv_kind {
    AT_CSV_NUMBER,
    AT_CSV_TEXT,
    AT_CSV_LABEL,
    AT_CSV_IGNORED,   /* left out as the user wished */
    AT_CSV_IDENTIFIER /* left out because it only tells rows apart */
} at_csv_kind;

/* A word (csv_cells.h) of a number is its bits, of a text its rank among the distinct values, of a
 * label its class or its bits; AT_CSV_NONE: missing. The values of a column are numbered while it
 * is read, and what these numbers mean is only known at the end. */
typedef struct at_csv_column {
    char           *name;
    at_csv_kind     kind;
    at_string_table values;   /* distinct values of a text; of the label: the classes */
    uint32_t        feature;  /* its first feature */
    double          fill;     /* for missing numbers; NAN: none */
    size_t          place;    /* field in the file at hand; AT_CSV_ABSENT: none */
    uint64_t        nonzeros; /* nonzero numbers */
    uint64_t        missing, missing_line; /* missing numbers, and the first line of one */
    uint64_t        numbered;              /* in that many rows, words are numbers of values .. */
    uint32_t       *meaning;               /* .. and these are the words that they stand for */
    /* While it is scanned. */
    bool  text;     /* some field is not a number */
    bool  full;     /* too many distinct values to collect */
    bool  differs;  /* each row has another value, as far as is known */
    bool  whole;    /* only whole numbers */
    bool  fraction; /* some number is not whole */
    bool  counts;   /* each number is the one before plus one */
    float last;     /* number in the row before */
} at_csv_column;

/* As a float it is not a number. */
#define AT_CSV_NONE UINT32_MAX

#define AT_CSV_ABSENT SIZE_MAX

typedef struct at_csv_columns {
    at_csv_column *column; /* (count) */
    size_t         count;
    size_t         label; /* index of the label column */
    uint64_t       rows;
    at_csv_cells   cells;    /* the rows, without those that a known one drops */
    uint64_t       numbers;  /* nonzero, in all rows; an upper bound */
    uint32_t       features; /* of all columns that have any */
    bool           sparse;   /* some column is text */
    bool           real;     /* the label is a real number instead of a class */
    bool           headerless;
    bool           known;     /* read from a text: places are found by name */
    bool           unlabeled; /* of a known one: the label is not read */
} at_csv_columns;

/* Called for every row of every file, except headers. */
typedef at_err at_csv_visit(void *self, const at_csv *csv, at_fail *fail);

/* Reads all files, whose headers MUST agree, and visits their rows. */
at_err at_csv_visit_files(at_csv_columns *columns, const at_file_list *files, at_header header,
                          at_csv_visit *visit, void *self, at_fail *fail);

/* Reads all files and fills *columns, to be deinited even after an error. Without a label in the
 * options: the column named label, class or target, or the last one. With options->columns the
 * columns are those. */
at_err at_csv_columns_read(at_csv_columns *columns, const at_file_list *files,
                           const at_read_options *options, at_fail *fail);
/* Its two cases. */
at_err at_csv_columns_find(at_csv_columns *columns, const at_file_list *files,
                           const at_read_options *options, at_fail *fail);
at_err at_csv_columns_follow(at_csv_columns *columns, const at_file_list *files,
                             const at_read_options *options, at_fail *fail);

/* What a word of the column in that row means. */
static inline uint32_t at_csv_meaning(const at_csv_column *column, uint64_t row, uint32_t word)
{
    return row < column->numbered && word != AT_CSV_NONE ? column->meaning[word] : word;
}

/* The columns as text, to be freed by the caller; NULL when memory runs out. */
char *at_csv_columns_text(const at_csv_columns *columns);
/* Reads that text. To be deinited even after an error. AT_ERR_FORMAT. */
at_err at_csv_columns_parse(at_csv_columns *columns, const char *text, at_fail *fail);

/* Releases; accepts zeroed ones. */
void at_csv_columns_deinit(at_csv_columns *columns);

/* The number in a field; false when it is not a number. */
bool at_csv_number(const char *field, float *value);
/* The word of the number in a field; AT_CSV_NONE when it is not a number. */
uint32_t at_csv_number_word(const char *field);
/* One of the usual ways to write a missing number. */
bool at_csv_is_missing(const char *field);

#endif
