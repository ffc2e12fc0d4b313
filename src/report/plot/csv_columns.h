/* csv_columns.h - reads some numeric columns of a CSV table, line by line; inside the report layer
 * only.
 *
 *     at_csv_reader table;
 *     at_err err = at_csv_reader_open(&table, path, (const char *[]){"time", "loss"}, 2, fail);
 *     while (!err && !(err = at_csv_reader_next(&table, values, &more, fail)) && more) use(values);
 *     at_csv_reader_close(&table);
 */
#ifndef AT_REPORT_PLOT_CSV_COLUMNS_H
#define AT_REPORT_PLOT_CSV_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

enum {
    AT_CSV_READER_MAX = 8,
    AT_CSV_READER_LINE_SIZE = 1024 /* ours have at most thirteen numbers */
};

typedef struct at_csv_reader {
    FILE       *file;
    const char *path;
    uint64_t    number; /* of the line, from 1 */
    size_t      count;
    int         place[AT_CSV_READER_MAX]; /* of each column within a line, from 0 */
    char        line[AT_CSV_READER_LINE_SIZE];
} at_csv_reader;

/* Opens the table and finds the columns; `path` is kept. AT_ERR_MISSING when there is no such
 * file, AT_ERR_FORMAT when its header lacks a column. Close it in any case. */
at_err at_csv_reader_open(at_csv_reader *table, const char *path, const char *const *names,
                          size_t count, at_fail *fail);
void   at_csv_reader_close(at_csv_reader *table); /* accepts one that could not be opened */

/* The next line's numbers, in the order of the names. A field that is empty, or nan or inf, is
 * NAN. *more is false at the end of the file. AT_ERR_FORMAT, with the line, for anything else. */
at_err at_csv_reader_next(at_csv_reader *table, double *values, bool *more, at_fail *fail);

/* AT_ERR_FORMAT about the line that was read last. */
at_err at_csv_reader_malformed(const at_csv_reader *table, const char *what, at_fail *fail);

#endif
