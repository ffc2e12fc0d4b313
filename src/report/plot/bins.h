/* bins.h - histograms of many values in little memory.
 *
 *     values ─► at_sample (one for each series) ─► at_bins (common to all) ─► outlines to draw
 *
 * A sample holds at most AT_SAMPLE_MAX values. While they fit, all are there; past that it is a
 * fair random choice of them (a reservoir), the same one for the same values. Every k-th value
 * would not do: reports come in the order in which workers end, so that it would pick the same
 * place of each step again and again.
 */
#ifndef AT_REPORT_PLOT_BINS_H
#define AT_REPORT_PLOT_BINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "report/summary/stats.h"

enum { AT_SAMPLE_MAX = 8192, AT_BINS_MAX = 48, AT_OUTLINE_MAX = AT_BINS_MAX + 2 };

/* Zeroed means empty. */
typedef struct at_sample {
    at_stats all;    /* of all values, not only those kept */
    bool     broken; /* at least one value is no whole number */
    size_t   count;  /* values kept */
    at_rng   choice;
    double   value[AT_SAMPLE_MAX];
} at_sample;

/* Takes one more value in. One that is not finite, or past 1e100, does not count. */
void at_sample_add(at_sample *sample, double value);

/* Bin i is [low + i * width, low + (i + 1) * width). */
typedef struct at_bins {
    double low, width;
    size_t count; /* 0: there is nothing to show */
} at_bins;

/* Bins that suit all samples: 16 to 40 of a round width. Whole numbers get whole bins,
 * with their ends between two numbers. A far tail of less than 0.5 % of a sample is cut off.
 * Sorts the samples. */
at_bins at_bins_choose(at_sample *samples, size_t count);

/* The shape of one sample. */
typedef struct at_outline {
    size_t count;
    double x[AT_OUTLINE_MAX], y[AT_OUTLINE_MAX];
} at_outline;

/* Steps that begin and end at 0, without empty bins at the ends. The heights add up to `total`, if
 * nothing lies beyond the bins; with `density`, height times width does. */
void at_bins_outline(const at_bins *bins, const at_sample *sample, double total, bool density,
                     at_outline *outline);

#endif
