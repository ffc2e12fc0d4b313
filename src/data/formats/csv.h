/* csv.h - parses CSV files of data sets, as in RFC 4180 and as spreadsheets write them.
 *
 * A quoted field may contain commas, line feeds and, doubled, quotes. Blanks around an unquoted
 * field are dropped. The separator may also be a semicolon or a tab: the first line decides.
 */
#ifndef AT_DATA_FORMATS_CSV_H
#define AT_DATA_FORMATS_CSV_H

#include <stdbool.h>

#include "base/buffer.h"
#include "data/files/source.h"

enum { AT_CSV_COLUMNS_MAX = 1 << 16, AT_CSV_BUFFER_SIZE = AT_BUFFER(1 << 17, 64) };

/* Reads row by row; the fields of a row are valid until the next one is read. */
typedef struct at_csv {
    at_source    *source;
    const char   *row;    /* zero-terminated fields, in the buffer or copied */
    size_t       *starts; /* (count) of the fields in row */
    size_t        count, starts_room;
    char         *copy; /* (used) of a row that is not a plain line in the buffer */
    size_t        used, room;
    uint64_t      line;                            /* where the row begins, from 1 on */
    uint64_t      lines;                           /* read so far */
    char          separator;                       /* 0: unknown yet */
    unsigned char buffer[AT_CSV_BUFFER_SIZE + 16]; /* 16 are loaded at once, also at its end */
    size_t        at, filled;                      /* of the buffer */
    bool          ended;                           /* the buffer has the end of the source */
} at_csv;

/* Takes ownership of the source; reads nothing yet. */
void at_csv_take(at_csv *csv, at_source *source);
void at_csv_close(at_csv *csv); /* accepts a zeroed one */

/* Reads the next non-blank row; *more is false at the end. AT_ERR_FORMAT names file and
 * line. */
at_err at_csv_next(at_csv *csv, bool *more, at_fail *fail);

/* A field of the row. */
const char *at_csv_cell(const at_csv *csv, size_t index);

/* AT_ERR_FORMAT; prefixes the text with file and line. */
at_err at_csv_error(const at_csv *csv, const char *hint, at_fail *fail, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
