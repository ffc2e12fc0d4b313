/* stats.h - mean, deviation and confidence interval of repeated measurements.
 *
 * An interval is the 95 % confidence interval of Student's t. With fewer than 3 values there is
 * none: its ends are NAN and tables leave it out.
 *
 *     at_stats s = {0};
 *     for (...) at_stats_add(&s, seconds[i]);
 *     printf("%g +- %g", s.mean, at_stats_sd(&s));
 */
#ifndef AT_REPORT_SUMMARY_STATS_H
#define AT_REPORT_SUMMARY_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A running mean and variance (Welford): one pass, no cancellation. Zeroed means empty. */
typedef struct at_stats {
    uint64_t count;
    double   mean;
    double   square_sum; /* of deviations from the mean */
    double   min, max;
} at_stats;

/* Adds a finite value. */
void at_stats_add(at_stats *stats, double value);

/* Sample standard deviation (n - 1); NAN with fewer than 2 values. */
double at_stats_sd(const at_stats *stats);

/* Sorts in ascending order, NANs last. Returns the number of values that are not NAN. */
size_t at_stats_sort(double *values, size_t count);

/* Percentile 0 .. 100 of sorted values, interpolated linearly (50 is the median). NAN without
 * values. */
double at_stats_percentile(const double *sorted, size_t count, double percent);

/* P(T <= t) for Student's t with `freedom` > 0 degrees of freedom. */
double at_stats_t_probability(double t, double freedom);

/* The t with P(T <= t) = probability, 0 < probability < 1; 95 % intervals use 0.975. */
double at_stats_t_quantile(double probability, double freedom);

/* An estimate with its 95 % interval. */
typedef struct at_interval {
    double value;
    double low, high; /* NAN with fewer than 3 values */
    size_t count;     /* number of values; with 0 the value is NAN too */
} at_interval;

/* False when there were too few values for an interval. */
bool at_interval_known(const at_interval *interval);

/* Writes "1.23 [1.10, 1.36]", "1.23" without an interval, or "-" without a value. `digits`
 * (1 .. 15) counts significant digits. Returns buffer. */
const char *at_interval_show(char *buffer, size_t size, const at_interval *interval, int digits);

/* Writes "1.23 ± 0.13", with half the width of the interval; as above if there is none or the value
 * is not in its middle. */
const char *at_interval_show_half(char *buffer, size_t size, const at_interval *interval,
                                  int digits);

/* The mean of the finite values. If none of them is negative, the interval begins at 0 or above. */
at_interval at_stats_mean(const double *values, size_t count);

/* The ratio of `values` to `bases`, pair by pair (same seed, same stragglers): the geometric mean
 * of values[i] / bases[i], with a t interval on the logarithms. A pair counts when both numbers are
 * finite and positive; a run that missed its target has NAN as time. */
at_interval at_stats_ratio(const double *values, const double *bases, size_t count);

#endif
