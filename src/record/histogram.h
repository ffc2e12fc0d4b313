/* histogram.h - a histogram of durations in logarithmic buckets.
 *
 * Every power of two is divided into 64 buckets, so a percentile is off by less than 1 %, from 1 ns
 * to 300 years, in 30 kB. Mean and maximum are exact.
 */
#ifndef AT_RECORD_HISTOGRAM_H
#define AT_RECORD_HISTOGRAM_H

#include "base/time.h"
#include "record/tally.h"

enum {
    AT_HISTOGRAM_BITS = 6, /* resolution: bits of a value below the leading one */
    AT_HISTOGRAM_BUCKETS = (63 - AT_HISTOGRAM_BITS + 1) << AT_HISTOGRAM_BITS
};

struct at_histogram {
    uint64_t count;
    double   sum;      /* ns */
    at_ns    min, max; /* valid when count > 0 */
    uint64_t bucket[AT_HISTOGRAM_BUCKETS];
};

/* Adds one duration, >= 0. A zeroed histogram is empty. */
void at_histogram_add(at_histogram *histogram, at_ns value);

/* The value that a fraction 0 .. 1 of all values does not exceed (nearest rank), 0 when empty. */
at_ns at_histogram_quantile(const at_histogram *histogram, double fraction);

/* The upper edge of a bucket (exclusive), which is the lower edge of the next one. */
at_ns at_histogram_edge(uint32_t index);

/* Mean, percentiles and maximum in seconds. */
at_duration_stats at_histogram_stats(const at_histogram *histogram);

#endif
