/* csv.h - rows of fields with commas between them, as RFC 4180 and spreadsheets write them.
 *
 * A field in double quotes may hold commas, line feeds and, doubled, quotes. Blanks around a field
 * without quotes do not belong to it. Commas may be semicolons or tabs: the first line decides.
 */
#ifndef AT_DATA_FORMATS_CSV_H
#define AT_DATA_FORMATS_CSV_H

#include <stdbool.h>

#include "data/files/source.h"

enum { AT_CSV_COLUMNS_MAX = 1 << 16 };

/* Reads rows one after the other; the fields of a row are valid until the next one is read. */
typedef struct at_csv {
    at_source    *source;
    char         *row; /* (used) the fields, each with a zero byte at its end */
    size_t        used, room;
    size_t       *starts; /* (count) of the fields in row */
    size_t        count, starts_room;
    uint64_t      line;      /* in which the row begins, from 1 on */
    uint64_t      lines;     /* that were read */
    char          separator; /* 0: not known yet */
    unsigned char buffer[1 << 16];
    size_t        at, filled; /* of the buffer */
} at_csv;

/* Takes the source over and reads nothing yet. */
void at_csv_take(at_csv *csv, at_source *source);
void at_csv_close(at_csv *csv); /* accepts a zeroed one */

/* Reads the next row that is not blank; *more is false at the end. AT_ERR_FORMAT names file and
 * line. */
at_err at_csv_next(at_csv *csv, bool *more, at_fail *fail);

/* A field of the row. */
const char *at_csv_cell(const at_csv *csv, size_t index);

/* AT_ERR_FORMAT with file and line in front of the words. */
at_err at_csv_wrong(const at_csv *csv, const char *hint, at_fail *fail, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
