/* pile.h - sparse rows while they are read, and the set they become.
 *
 *     text ──► part ──► pile 0 ─┐
 *          └─► part ──► pile 1 ─┼─► at_piles_finish ──► one set of exactly the right size
 *              ...              ┘
 *
 * How many rows a file has is known only when all of it was read, so each part of it is read into
 * a pile of its own, by whichever thread. A pile reserves addresses for the most its part can hold;
 * pages that are never touched cost nothing.
 */
#ifndef AT_DATA_PILE_H
#define AT_DATA_PILE_H

#include <assert.h>
#include <stdbool.h>

#include "data/store.h"

/* The most features there can be: indices are below 2^31. */
#define AT_PILE_FEATURES_MAX ((uint64_t)1 << 31)

typedef struct at_pile {
    uint64_t  rows, rows_max;
    uint64_t  numbers, numbers_max;
    int32_t  *labels;  /* (rows) as in the file */
    uint32_t *counts;  /* (rows) numbers of the row */
    uint32_t *indices; /* (numbers) as in the file */
    float    *values;  /* (numbers) */
    uint64_t  lines;   /* read so far, for messages */
    uint64_t  row_start;
    uint32_t  index_max;  /* largest index, also of numbers that were zero */
    bool      index_zero; /* index 0 occurs */
} at_pile;

/* Adds a number to the row under way. Zeros are left out. */
static inline void at_pile_put(at_pile *pile, uint32_t index, float value)
{
    assert(pile->numbers < pile->numbers_max);
    pile->indices[pile->numbers] = index;
    pile->values[pile->numbers] = value;
    pile->numbers += value != 0.0f;
}

/* Ends the row under way. */
static inline void at_pile_end_row(at_pile *pile, int32_t label)
{
    assert(pile->rows < pile->rows_max);
    pile->labels[pile->rows] = label;
    pile->counts[pile->rows++] = (uint32_t)(pile->numbers - pile->row_start);
    pile->row_start = pile->numbers;
}

/* All piles of a set, in the order of its files; zeroed: none. */
typedef struct at_piles {
    at_pile *pile;
    size_t   count, room;
} at_piles;

/* Adds `count` empty piles at the end, each with room for so many rows and numbers. The first of
 * them is *first, valid until the next call. */
at_err at_piles_add(at_piles *piles, size_t count, uint64_t rows_max, uint64_t numbers_max,
                    at_pile **first, at_fail *fail);

/* Gives back what a pile did not use of its room. */
void at_pile_trim(at_pile *pile);

/* What a set becomes of its piles. */
typedef struct at_piles_end {
    const char *path;         /* for messages */
    uint32_t    features;     /* 0: as many as the largest index says */
    bool        zero_based;   /* indices begin with 0; otherwise they do when there is an index 0 */
    bool        plain_labels; /* labels are 0 and 1 and need no names */
} at_piles_end;

/* Fills the set and releases the piles one by one, so that memory is hardly needed twice. Labels
 * become 0 .. classes-1 in rising order and keep their numbers as names. AT_ERR_FORMAT when there
 * is no row, or too many different labels. */
at_err at_piles_finish(at_piles *piles, at_dataset *set, const at_piles_end *end, at_fail *fail);

/* Releases; accepts zeroed ones. */
void at_piles_deinit(at_piles *piles);

#endif
