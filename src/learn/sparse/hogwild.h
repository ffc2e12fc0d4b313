/* hogwild.h - Hogwild: lock-free SGD or AdaGrad on a sparse linear model by several processes.
 *
 * All processes read and write the same weights (flat vector, see sparse.h), row by row. Rows share
 * few features, so little is lost when two processes write the same weight at once; except for hot
 * features, which many rows have: their cache lines would move between cores all the time. Each
 * process keeps copies of those (and of the bias), and after every call adds 1 / processes of their
 * change to the shared weights. Not the whole change, because all processes have moved the same few
 * weights in the same direction: whole changes would add up to several times the step.
 *
 * AdaGrad's sums of squares are a second vector, shared and merged in the same way: a process's
 * copy of a hot feature grows as if it were alone, and the shared one is the mean of what they saw.
 */
#ifndef AT_LEARN_SPARSE_HOGWILD_H
#define AT_LEARN_SPARSE_HOGWILD_H

#include <stdbool.h>

#include "learn/sparse/sparse.h"

enum { AT_HOT_FEATURES_MAX = 2048 };

/* Features that many rows have. They are renumbered from `base` on, so that the number tells
 * whether a feature is hot. */
typedef struct at_hot_features {
    uint64_t  base;                         /* the first number beyond the flat vector */
    uint32_t  feature[AT_HOT_FEATURES_MAX]; /* the feature with number base + i */
    uint32_t  count;
    uint32_t *indices; /* of all rows, with hot features renumbered; owned */
} at_hot_features;

/* Finds the features that more than one in `one_in` rows has, in an evenly spaced sample of the
 * rows, and renumbers them. False: no memory. */
bool at_hot_features_find(at_hot_features *hot, const at_csr *rows, uint64_t rows_count,
                          uint64_t dimension, uint32_t one_in);
void at_hot_features_deinit(at_hot_features *hot); /* accepts a zeroed one */

/* A process's copies of the hot features of a vector, and what was shared when they were made. */
typedef struct at_hot_copies {
    float own[AT_HOT_FEATURES_MAX], shared[AT_HOT_FEATURES_MAX];
} at_hot_copies;

/* The state of one process. */
typedef struct at_hogwild {
    const at_hot_features *hot;     /* NULL: the only process, no copies needed */
    float                  part;    /* 1 / processes */
    float                 *squares; /* AdaGrad: sums of squares of all weights and the bias, shared,
                                     * without their start; NULL: SGD */
    float                  start;   /* AdaGrad: of the sums of squares; above 0 */
    bool                   copied;  /* the copies are filled */
    at_hot_copies          weights, sums; /* sums: of squares */
} at_hogwild;

/* One step per row of the list, with the learning rate and scale in the vector. Returns the sum of
 * the losses, each before the step of its row. */
double at_hogwild_rows(at_hogwild *hogwild, const at_csr *rows, const at_csr_list *list,
                       float *flat, uint64_t dimension);

#endif
