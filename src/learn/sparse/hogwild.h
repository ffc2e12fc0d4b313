/* hogwild.h - SGD on a sparse linear model by several processes at once, without locks.
 *
 * Everybody reads and writes the same weights (flat vector, see sparse.h), one row after the other.
 * Rows have few features in common, so little is lost when two write the same weight at once;
 * except for hot features, which many rows have: their cache lines would wander between cores all
 * the time. Each process keeps copies of those (and of the bias), and after every call adds its
 * part, one of `processes`, of what has changed to the shared ones. A part only, because all have
 * moved the same few weights the same way: whole changes would add up to several times the step.
 */
#ifndef AT_LEARN_SPARSE_HOGWILD_H
#define AT_LEARN_SPARSE_HOGWILD_H

#include <stdbool.h>

#include "learn/sparse/sparse.h"

enum { AT_HOT_MAX = 2048 };

/* The hot features. They have numbers of their own, from `base` on, so that a loop sees at once
 * which one is hot. */
typedef struct at_hot {
    uint64_t  base;                /* the first number that no weight of the flat vector has */
    uint32_t  feature[AT_HOT_MAX]; /* that number base + i stands for */
    uint32_t  count;
    uint32_t *indices; /* of all rows, hot features by their own numbers; owned */
} at_hot;

/* Looks for features that more than one in `one_in` rows has, in an even choice of the rows, and
 * gives them their numbers. False when there is no memory for it. */
bool at_hot_find(at_hot *hot, const at_csr *rows, uint64_t rows_count, uint64_t dimension,
                 uint32_t one_in);
void at_hot_deinit(at_hot *hot); /* accepts a zeroed one */

/* What a process needs for itself. */
typedef struct at_hogwild {
    const at_hot *hot;   /* NULL: nobody else writes, nothing has to be copied */
    float         part;  /* 1 / processes */
    bool          taken; /* the next two are filled */
    float         mine[AT_HOT_MAX], seen[AT_HOT_MAX];
} at_hogwild;

/* One step of SGD a row of the list, with the learning rate and scale that are in the vector.
 * Returns the sum of losses, each before its row was used. */
double at_hogwild_rows(at_hogwild *hogwild, const at_csr *rows, const at_csr_list *list,
                       float *flat, uint64_t dimension);

#endif
