/* csv_columns.h - what the columns of CSV files hold, found out before they are read into a set.
 *
 * A column in which every field is a number is one feature. Any other is text, and has one feature
 * for each different text in it, which is 1 in the rows that have it.
 */
#ifndef AT_DATA_FORMATS_CSV_COLUMNS_H
#define AT_DATA_FORMATS_CSV_COLUMNS_H

#include "data/files/file_list.h"
#include "data/formats/csv.h"
#include "data/set/string_table.h"

/* The most different texts in a column, and the most different labels. */
enum { AT_CSV_WORDS_MAX = 4096, AT_CSV_CLASSES_MAX = 1 << 16 };

typedef struct at_csv_column {
    char           *name;
    at_string_table words;    /* different texts; of the label: the classes */
    bool            text;     /* some field is not a number */
    bool            full;     /* too many different texts to collect them any further */
    uint32_t        feature;  /* the first of its features */
    uint64_t        nonzeros; /* fields that are numbers other than zero */
    uint64_t        missing_line;
} at_csv_column;

typedef struct at_csv_columns {
    at_csv_column *column; /* (count) */
    size_t         count;
    size_t         label; /* which one has the labels */
    uint64_t       rows;
    uint64_t       numbers;  /* that are not zero, of all features and rows */
    uint32_t       features; /* of all columns but the label */
    bool           sparse;   /* some column is text */
} at_csv_columns;

/* Called for every row of every file, the headers excepted. */
typedef at_err at_csv_visit(void *self, const at_csv *csv, at_fail *fail);

/* Reads all files, whose headers MUST be that of the columns, and visits their rows. Columns that
 * have no names yet take them from the first header. */
at_err at_csv_each(at_csv_columns *columns, const at_files *files, at_csv_visit *visit, void *self,
                   at_fail *fail);

/* Reads all files and fills *columns, which is to be deinited whatever happens. `label` may be
 * NULL: the column named label, class or target, or the last one. */
at_err at_csv_scan(at_csv_columns *columns, const at_files *files, const char *label,
                   at_fail *fail);
void   at_csv_columns_deinit(at_csv_columns *columns);

/* The number in a field; false when it is none. */
bool at_csv_number(const char *field, float *value);

#endif
