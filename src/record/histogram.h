/* histogram.h - durations counted in buckets whose width grows with the value.
 *
 * Every power of two is cut into 64 buckets, so a percentile is off by less than 1 %, from 1 ns to
 * 300 years, in 30 kB. Mean and largest are exact.
 */
#ifndef AT_RECORD_HISTOGRAM_H
#define AT_RECORD_HISTOGRAM_H

#include "base/time.h"
#include "record/tally.h"

enum {
    AT_HISTOGRAM_BITS = 6, /* of a value that its bucket tells, below the leading one */
    AT_HISTOGRAM_BUCKETS = (63 - AT_HISTOGRAM_BITS + 1) << AT_HISTOGRAM_BITS
};

struct at_histogram {
    uint64_t count;
    double   sum;      /* ns */
    at_ns    min, max; /* void while count is 0 */
    uint64_t bucket[AT_HISTOGRAM_BUCKETS];
};

/* Counts one duration, >= 0. An all-zero histogram is an empty one. */
void at_histogram_add(at_histogram *histogram, at_ns value);

/* The value that a fraction 0 .. 1 of all does not exceed (nearest rank), 0 when empty. */
at_ns at_histogram_quantile(const at_histogram *histogram, double fraction);

/* The first value past a bucket; that of the one before is its own first value. */
at_ns at_histogram_edge(uint32_t index);

/* Everything people ask for, in seconds. */
at_duration_stats at_histogram_stats(const at_histogram *histogram);

#endif
