#include "record/histogram.h"

#include <assert.h>
#include <math.h>

enum { PART = 1 << AT_HISTOGRAM_BITS }; /* buckets per power of two */

/* Values below PART have a bucket each; above, the leading one and the next bits select it. */
static uint32_t bucket_of(at_ns value)
{
    assert(value >= 0);
    if (value < PART) return (uint32_t)value;
    int      shift = 63 - __builtin_clzll((unsigned long long)value) - AT_HISTOGRAM_BITS;
    uint32_t index = ((uint32_t)shift << AT_HISTOGRAM_BITS) + (uint32_t)(value >> shift);
    assert(index < AT_HISTOGRAM_BUCKETS);
    return index;
}

/* The middle of a bucket. */
static at_ns value_of(uint32_t index)
{
    assert(index < AT_HISTOGRAM_BUCKETS);
    if (index < PART) return (at_ns)index;
    uint32_t shift = (index >> AT_HISTOGRAM_BITS) - 1;
    uint64_t first = (uint64_t)(PART + index % PART) << shift;
    return (at_ns)(first + ((1ull << shift) - 1) / 2);
}

at_ns at_histogram_edge(uint32_t index)
{
    assert(index < AT_HISTOGRAM_BUCKETS);
    if (index < PART) return (at_ns)index + 1;
    uint32_t shift = (index >> AT_HISTOGRAM_BITS) - 1;
    uint64_t edge = (uint64_t)(PART + index % PART + 1) << shift;
    return edge > INT64_MAX ? INT64_MAX : (at_ns)edge;
}

void at_histogram_add(at_histogram *histogram, at_ns value)
{
    assert(value >= 0);
    if (histogram->count == 0 || value < histogram->min) histogram->min = value;
    if (histogram->count == 0 || value > histogram->max) histogram->max = value;
    histogram->count++;
    histogram->sum += (double)value;
    histogram->bucket[bucket_of(value)]++;
}

at_ns at_histogram_quantile(const at_histogram *histogram, double fraction)
{
    assert(fraction >= 0 && fraction <= 1);
    if (histogram->count == 0) return 0;
    uint64_t rank = (uint64_t)ceil(fraction * (double)histogram->count);
    if (rank >= histogram->count) return histogram->max;
    uint32_t index = 0;
    for (uint64_t seen = histogram->bucket[0]; seen < rank; seen += histogram->bucket[index]) {
        index++;
        assert(index < AT_HISTOGRAM_BUCKETS);
    }
    at_ns value = value_of(index); /* the middle of a bucket may lie outside min .. max */
    if (value < histogram->min) return histogram->min;
    return value > histogram->max ? histogram->max : value;
}

at_duration_stats at_histogram_stats(const at_histogram *histogram)
{
    assert(histogram->count == 0 || histogram->max >= histogram->min);
    if (histogram->count == 0) return (at_duration_stats){0};
    return (at_duration_stats){
        .count = histogram->count,
        .mean = histogram->sum / 1e9 / (double)histogram->count,
        .p50 = at_seconds(at_histogram_quantile(histogram, 0.50)),
        .p95 = at_seconds(at_histogram_quantile(histogram, 0.95)),
        .max = at_seconds(histogram->max),
    };
}
