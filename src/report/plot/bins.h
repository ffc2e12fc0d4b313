/* bins.h - histograms of many values in bounded memory.
 *
 *     values ─► at_reservoir (one per series) ─► at_bins (shared by all) ─► at_outline to draw
 *
 * While at most AT_RESERVOIR_SIZE values have been added, a reservoir holds all of them; beyond
 * that, a uniform random sample that depends only on the values. Keeping every k-th value instead
 * would be biased: reports arrive in the order in which workers finish, so it would pick the same
 * rank of each step again and again.
 */
#ifndef AT_REPORT_PLOT_BINS_H
#define AT_REPORT_PLOT_BINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "report/summary/stats.h"

enum { AT_RESERVOIR_SIZE = 8192, AT_BINS_MAX = 48, AT_OUTLINE_MAX = AT_BINS_MAX + 2 };

/* Zeroed means empty. */
typedef struct at_reservoir {
    at_stats all;        /* of all values, not only those kept */
    bool     fractional; /* at least one value is not an integer */
    size_t   count;      /* values kept */
    at_rng   rng;
    double   value[AT_RESERVOIR_SIZE];
} at_reservoir;

/* Adds a value. Values that are not finite or exceed 1e100 are ignored. */
void at_reservoir_add(at_reservoir *reservoir, double value);

/* Bin i is [low + i * width, low + (i + 1) * width). */
typedef struct at_bins {
    double low, width;
    size_t count; /* 0: no values */
} at_bins;

/* Bins that suit all reservoirs: 16 to 40 bins of a round width. For integers the width is an
 * integer and the edges are halfway between integers. A long tail of less than 0.5 % of the values
 * is cut off. Sorts the values. */
at_bins at_bins_choose(at_reservoir *reservoirs, size_t count);

/* The histogram of one reservoir, as corners of a step line. */
typedef struct at_outline {
    size_t count;
    double x[AT_OUTLINE_MAX], y[AT_OUTLINE_MAX];
} at_outline;

/* Begins and ends at height 0, without empty bins at the ends. The heights add up to `total`, if no
 * value is outside the bins; with `density`, heights times width do. */
void at_bins_outline(const at_bins *bins, const at_reservoir *reservoir, double total, bool density,
                     at_outline *outline);

#endif
