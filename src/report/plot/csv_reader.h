/* csv_reader.h - reads selected numeric columns of a CSV file, row by row; inside the report layer
 * only.
 *
 *     at_csv_reader reader;
 *     at_err err = at_csv_reader_open(&reader, folder, "master_stats.csv",
 *                                     (const char *[]){"time", "loss"}, 2, fail);
 *     while (!err && !(err = at_csv_reader_next(&reader, values, &more, fail)) && more)
 *         use(values);
 *     at_csv_reader_close(&reader);
 */
#ifndef AT_REPORT_PLOT_CSV_READER_H
#define AT_REPORT_PLOT_CSV_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

enum {
    AT_CSV_READER_MAX = 8,          /* columns */
    AT_CSV_READER_LINE_SIZE = 1024, /* files of a run have at most thirteen numbers per line */
    AT_CSV_READER_PATH_SIZE = 4096 + 256
};

typedef struct at_csv_reader {
    FILE    *file;
    uint64_t line_number; /* from 1 */
    size_t   count;
    int      column[AT_CSV_READER_MAX]; /* index within a line, from 0 */
    char     path[AT_CSV_READER_PATH_SIZE];
    char     line[AT_CSV_READER_LINE_SIZE];
} at_csv_reader;

/* Opens FOLDER/NAME and finds the columns. AT_ERR_MISSING when the file does not exist or was ended
 * before its header was written, AT_ERR_FORMAT when the header lacks a column. Close the reader in
 * any case. */
at_err at_csv_reader_open(at_csv_reader *reader, const char *folder, const char *name,
                          const char *const *columns, size_t count, at_fail *fail);
void   at_csv_reader_close(at_csv_reader *reader); /* accepts one that could not be opened */

/* Reads the next row; `values` are in the order of `columns`. An empty field, nan or inf gives NAN.
 * *more is false at the end of the file, and where a run was stopped while it wrote the last line.
 * AT_ERR_FORMAT, with the line number, for anything else. */
at_err at_csv_reader_next(at_csv_reader *reader, double *values, bool *more, at_fail *fail);

/* AT_ERR_FORMAT about the line that was read last. */
at_err at_csv_reader_malformed(const at_csv_reader *reader, const char *what, at_fail *fail);

#endif
