/* hogwild.h - SGD on a sparse linear model by several processes at once, without locks.
 *
 * Everybody reads and writes the same weights (flat vector, see sparse.h), one row after the other.
 * Rows have few features in common, so little is lost when two write the same weight at once;
 * except for hot features, which many rows have: their cache lines would wander between cores all
 * the time. Each process keeps copies of those (and of the bias), and after every call adds its part, one
 * of `processes`, of what has changed to the shared ones. A part only, because all have moved the
 * same few weights the same way: whole changes would add up to several times the step.
 */
#ifndef AT_LEARN_HOGWILD_H
#define AT_LEARN_HOGWILD_H

#include <stdbool.h>

#include "learn/sparse.h"

enum { AT_HOT_BITS = 11, AT_HOT_SLOTS = 1 << AT_HOT_BITS };

/* The hot features, each in the slot that its hash names; of two with the same, one stays cold. */
typedef struct at_hot {
    uint32_t key[AT_HOT_SLOTS]; /* feature, or UINT32_MAX: none */
    float    mine[AT_HOT_SLOTS], seen[AT_HOT_SLOTS];
    uint16_t used[AT_HOT_SLOTS]; /* slots in use, `count` of them */
    uint32_t count;
} at_hot;

/* Looks for features that more than one in `one_in` rows has, in an even choice of the rows. False
 * when there is no memory to count. */
bool at_hot_find(at_hot *hot, const at_csr *rows, uint64_t rows_count, uint64_t dimension,
                 uint32_t one_in);

/* Where the weights of a row are while it is computed: room for its longest. */
typedef struct at_hogwild {
    at_hot *hot;   /* NULL: nobody else writes, nothing has to be copied */
    float **where; /* (longest row) */
    float   part;  /* 1 / processes */
} at_hogwild;

/* One step of SGD a row of the list, with the learning rate and scale that are in the vector.
 * Returns the sum of losses, each before its row was used. */
double at_hogwild_rows(const at_hogwild *hogwild, const at_csr *rows, const at_csr_list *list,
                       float *flat, uint64_t dimension);

#endif
