/* slices.h - `anytime slices`: what does it cost to cut a batch into micro-batches?
 *
 *     points (batch x slices) ─► measured, one micro-batch size after another, repeat by repeat
 *                             ─► table, slices.json, two plots
 *
 * A step computes the gradient of the whole batch, micro-batch by micro-batch, and updates the
 * parameters once. Only one micro-batch is in memory, so a large one may not fit: such points are
 * left out and named.
 */
#ifndef AT_CLI_VERBS_SLICES_H
#define AT_CLI_VERBS_SLICES_H

#include <jansson.h>

#include "cli/options/options.h"

enum { AT_SLICES_LIST_MAX = 32, AT_SLICES_PATH_SIZE = 4096 };

/* A batch cut into equal micro-batches. */
typedef struct at_slices_point {
    uint32_t batch, slices, micro_batch;
    bool     left_out; /* a micro-batch does not fit into memory */
    double  *seconds;  /* of a step, one number a complete repeat */
} at_slices_point;

typedef struct at_slices {
    const at_parsed *parsed;
    const char      *command;
    char             folder[AT_SLICES_PATH_SIZE];
    at_slices_point *point; /* batches up, slices up within a batch */
    double          *times; /* of all points */
    uint32_t         points, repeats;
    uint32_t         done; /* complete repeats */
    /* What was measured; known after the first repeat. */
    char   engine[64];
    size_t parameters;
} at_slices;

/* Lists the points that --batches and --slices ask for. */
at_err at_slices_plan(at_slices *slices, at_fail *fail);
/* Releases them; accepts a zeroed one. */
void at_slices_deinit(at_slices *slices);

/* Measures all points, telling progress on stderr. AT_ERR_STOPPED when a signal ended it; the
 * repeats that were complete by then count. (slices_measure.c) */
at_err at_slices_measure(at_slices *slices, at_fail *fail);

/* ---- numbers (slices_show.c) --------------------------------------------------------------- */

/* The best time of a step, and how far the others lie above it, as a part of the slowest. */
double at_slices_best(const at_slices *slices, const at_slices_point *point);
double at_slices_spread(const at_slices *slices, const at_slices_point *point);

/* How many times as long as the step that does not cut the batch; NAN when there is none. */
double at_slices_relative(const at_slices *slices, const at_slices_point *point);

/* slices.json as a document; NULL when there is no memory. */
json_t *at_slices_json(const at_slices *slices);

/* Prints the table to stdout. */
at_err at_slices_print(const at_slices *slices, at_fail *fail);

/* Draws both plots and a page with the two of them into the folder. */
at_err at_slices_plot(const at_slices *slices, at_fail *fail);

#endif
