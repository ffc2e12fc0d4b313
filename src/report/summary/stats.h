/* stats.h - means, spreads and honest intervals of a few repeats.
 *
 * An interval is the 95 % interval of Student's t. Under 3 values there is none: its ends are NAN,
 * and tables leave it out rather than print a number nobody should believe.
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

/* Takes one more finite value in. */
void at_stats_add(at_stats *stats, double value);

/* Sample standard deviation (n - 1); NAN under 2 values. */
double at_stats_sd(const at_stats *stats);

/* Sorts upwards, NANs last. Returns how many are not NAN. */
size_t at_stats_sort(double *values, size_t count);

/* Percentile 0 .. 100 of sorted values, linear between neighbours (50 is the median). NAN when
 * there are none. */
double at_stats_percentile(const double *sorted, size_t count, double percent);

/* P(T <= t) for Student's t with `freedom` > 0 degrees of freedom. */
double at_stats_t_probability(double t, double freedom);

/* The t with P(T <= t) = probability, 0 < probability < 1; 0.975 is the one for 95 % intervals. */
double at_stats_t_quantile(double probability, double freedom);

/* An estimate with its 95 % interval. */
typedef struct at_interval {
    double value;
    double low, high; /* NAN under 3 values */
    size_t count;     /* values it rests on; with 0 the value is NAN too */
} at_interval;

/* False when there were too few values for an interval. */
bool at_interval_known(const at_interval *interval);

/* Writes "1.23 [1.10, 1.36]", "1.23" without a known interval, or "-" when nothing is known.
 * `digits` (1 .. 15) counts significant digits. Returns buffer. */
const char *at_interval_show(char *buffer, size_t size, const at_interval *interval, int digits);

/* Writes "1.23 ± 0.13", half the interval's width behind the sign; otherwise as above. */
const char *at_interval_show_half(char *buffer, size_t size, const at_interval *interval,
                                  int digits);

/* The mean of the values that are finite. */
at_interval at_stats_mean(const double *values, size_t count);

/* The ratio of `values` to `bases`, pair by pair (same seed, same stragglers): the geometric mean
 * of values[i] / bases[i], its interval that of t on the logarithms. A pair counts when both of
 * its numbers are finite and more than 0; a run that missed its target has NAN for a time. */
at_interval at_stats_ratio(const double *values, const double *bases, size_t count);

#endif
