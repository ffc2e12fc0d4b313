#include "data/formats/csv_cells.h"

#include "base/buffer.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { BLOCK_SIZE = AT_BUFFER(2 << 20, 1 << 15), WORDS = BLOCK_SIZE / 4 - 8 };

typedef struct at_csv_block block;

/* One huge page, which saves page faults. */
struct at_csv_block {
    block   *next;
    size_t   rows;
    uint32_t words[WORDS];
};
_Static_assert(sizeof(block) <= BLOCK_SIZE, "a block must be one page");

/* Small tables have one block and touch little of it, so that small pages are better. */
static block *new_block(bool huge)
{
    block *b = aligned_alloc(BLOCK_SIZE, BLOCK_SIZE);
    if (!b) return NULL;
    if (huge) (void)madvise(b, BLOCK_SIZE, MADV_HUGEPAGE); /* failure does not matter */
    b->next = NULL;
    b->rows = 0;
    return b;
}

uint32_t *at_csv_cells_add(at_csv_cells *cells, size_t width)
{
    assert(width > 0 && width <= WORDS);
    block *last = cells->last;
    if (!last || (last->rows + 1) * width > WORDS) {
        block *b = new_block(last != NULL);
        if (!b) return NULL;
        *(last ? &last->next : &cells->first) = b;
        cells->last = last = b;
    }
    return last->words + last->rows++ * width;
}

static void drop_first(at_csv_cells *cells)
{
    block *first = cells->first;
    cells->first = first->next;
    cells->taken = 0;
    if (!cells->first) cells->last = NULL;
    free(first);
}

const uint32_t *at_csv_cells_take(at_csv_cells *cells, size_t width)
{
    assert(width > 0 && width <= WORDS);
    if (cells->first && cells->taken == cells->first->rows) drop_first(cells);
    return cells->first ? cells->first->words + cells->taken++ * width : NULL;
}

void at_csv_cells_deinit(at_csv_cells *cells)
{
    assert(cells);
    while (cells->first) drop_first(cells);
}
