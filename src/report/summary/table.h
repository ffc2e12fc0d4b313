/* table.h - tables as aligned text, CSV or Markdown.
 *
 *     at_table *t = at_table_new((const at_column[]){{"strategy", AT_ALIGN_LEFT},
 *                                                    {"seconds", AT_ALIGN_RIGHT}}, 2);
 *     at_table_add(t, "amb");
 *     at_table_add(t, "%.1f", 12.3);
 *     err = at_table_print(t, stdout, &fail);
 *     at_table_free(t);
 *
 *     strategy  seconds
 *     ─────────────────
 *     amb          12.3
 */
#ifndef AT_REPORT_SUMMARY_TABLE_H
#define AT_REPORT_SUMMARY_TABLE_H

#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

typedef enum at_align { AT_ALIGN_LEFT, AT_ALIGN_RIGHT } at_align;

typedef struct at_column {
    const char *head;
    at_align    align;
} at_column;

typedef struct at_table at_table;

/* An empty table; the column heads are copied. NULL when out of memory. */
at_table *at_table_new(const at_column *columns, size_t count);
void      at_table_free(at_table *table); /* accepts NULL */

/* Fills the next cell, row by row, like printf. Running out of memory is reported when the table is
 * printed. */
void at_table_add(at_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Removes the columns in which every cell is `nothing`. The last row must be complete. */
void at_table_drop_columns(at_table *table, const char *nothing);

/* Prints the table with its heads; on a terminal that is too narrow for it, groups of columns below
 * each other or a line per cell, whichever takes fewer lines. */
at_err at_table_print(const at_table *table, FILE *file, at_fail *fail);

/* The same for a width of so many columns; 0: any. The last row may be incomplete. Columns are as
 * wide as their widest cell on a terminal: combining marks take no column, East Asian characters
 * two. Control characters and bytes that are not UTF-8 appear as '?'. AT_ERR_IO when writing
 * fails. */
at_err at_table_print_in(const at_table *table, FILE *file, size_t columns, at_fail *fail);

/* Columns of the terminal that a file is; 0: it is none, and lines may be as long as they like. */
size_t at_table_columns(FILE *file);

/* Prints the rest of a line that has `indent` columns already, wrapped between words to so many
 * columns; the lines that follow are indented alike. 0 columns: not wrapped. */
void at_table_print_wrapped(FILE *file, const char *text, size_t indent, size_t columns);

/* Prints the same cells as CSV (RFC 4180, but with bare newlines). */
at_err at_table_print_csv(const at_table *table, FILE *file, at_fail *fail);

/* Prints the same cells as a Markdown table, with markup in the texts escaped. */
at_err at_table_print_markdown(const at_table *table, FILE *file, at_fail *fail);

/* Prints a text as one line of Markdown without any markup. */
void at_markdown_text(FILE *file, const char *text);

/* Prints one CSV field, quoted if necessary. */
void at_csv_field(FILE *file, const char *text);

/* Columns that a text takes on a terminal. */
size_t at_table_width(const char *text);

#endif
