/* slices.h - `anytime slices`: measures the cost of splitting a batch into micro-batches.
 *
 *     points (batch x slices) ─► measured, one micro-batch size after another, repeat by repeat
 *                             ─► table, slices.json, two plots
 *
 * A step computes the gradient of the whole batch, micro-batch by micro-batch, and updates the
 * parameters once. Only one micro-batch is in memory at a time; points whose micro-batch does not
 * fit are left out and noted on stderr.
 */
#ifndef AT_CLI_VERBS_SLICES_H
#define AT_CLI_VERBS_SLICES_H

#include <jansson.h>

#include "cli/options/options.h"

enum { AT_SLICES_LIST_MAX = 32, AT_SLICES_PATH_SIZE = 4096 };

/* A batch split into equal micro-batches. */
typedef struct at_slices_point {
    uint32_t batch, slices, micro_batch;
    bool     left_out; /* its micro-batch does not fit into memory */
    double  *seconds;  /* of a step, one value per complete repeat */
} at_slices_point;

typedef struct at_slices {
    const at_parsed *parsed;
    const char      *command;
    char             folder[AT_SLICES_PATH_SIZE];
    at_slices_point *point; /* sorted by batch, then by slices */
    double          *times; /* seconds of all points */
    uint32_t         points, repeats;
    uint32_t         done; /* complete repeats */
    /* Known after the first repeat: */
    char   engine[64];
    size_t parameters;
} at_slices;

/* Measures all points and shows progress on stderr. AT_ERR_STOPPED when a signal ended it; complete
 * repeats count. (slices_measure.c) */
at_err at_slices_measure(at_slices *slices, at_fail *fail);

#endif
