/* row_changes.h - which weights of a sparse model have changed since a version.
 *
 * A step of a sparse model changes the weights of its rows, a small part of the vector. A worker
 * that has parameters of version B needs only those that changed after B. What changes is found by
 * comparing the vector with a copy of its previous version, so it does not depend on how it was
 * updated.
 *
 *     publish version v ─► log: (v, index) of every weight that differs from version v - 1
 *     since B           ─► the entries after B, each index once
 *
 * The log is bounded: when it is full, or when a step has changed very many weights, it starts
 * anew, and a worker with an older version gets the whole vector.
 */
#ifndef AT_WORLD_MPI_ROW_CHANGES_H
#define AT_WORLD_MPI_ROW_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "learn/sparse/sparse.h"

typedef struct at_row_change {
    uint64_t version;
    uint32_t index;
} at_row_change;

typedef struct at_row_changes {
    size_t         params;
    float         *previous; /* the vector as of `version`; NULL: changes are not tracked */
    uint32_t      *last;     /* by index: lower bits of the version that changed it last */
    at_row_change *log;      /* by version */
    size_t         count, max;
    uint64_t       since; /* the log has all changes after this version */
    uint64_t       version;
} at_row_changes;

/* Begins with this vector. */
at_err at_row_changes_open(at_row_changes *changes, const float *w, size_t params, uint64_t version,
                           at_fail *fail);
void   at_row_changes_close(at_row_changes *changes); /* accepts a zeroed one */

/* The vector has become that of a newer version. */
void at_row_changes_publish(at_row_changes *changes, const float *w, uint64_t version);

/* Writes the weights that changed after version `base`, at most `max`. False: there are more, or
 * the log does not reach back so far. */
bool at_row_changes_since(const at_row_changes *changes, uint64_t base, at_pair *pairs, size_t max,
                          size_t *count);

#endif
