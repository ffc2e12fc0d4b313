/* csv_cells.h - the fields of a table as 32-bit words, row after row, while it is read.
 *
 *     at_csv_cells_add ... ──► at_csv_cells_take ...: the rows in order, each once
 *
 * The columns (csv_columns.h) say what a word means. Memory is released as rows are taken, so that
 * peak memory stays near the size of the set that they become.
 */
#ifndef AT_DATA_FORMATS_CSV_CELLS_H
#define AT_DATA_FORMATS_CSV_CELLS_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed: no rows. */
typedef struct at_csv_cells {
    struct at_csv_block *first, *last;
    size_t               taken; /* rows of the first block */
} at_csv_cells;

/* Appends a row and returns its `width` words, to be filled before the next call. All rows MUST
 * have the same width. NULL when memory runs out. */
uint32_t *at_csv_cells_add(at_csv_cells *cells, size_t width);

/* The next row, valid until the next call; NULL after the last one. */
const uint32_t *at_csv_cells_take(at_csv_cells *cells, size_t width);

/* Releases; accepts zeroed ones. */
void at_csv_cells_deinit(at_csv_cells *cells);

#endif
