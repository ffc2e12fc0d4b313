#include "report/summary/stats.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { INTERVAL_COUNT_MIN = 3 };

void at_stats_add(at_stats *stats, double value)
{
    assert(isfinite(value));
    stats->count++;
    double before = value - stats->mean;
    stats->mean += before / (double)stats->count;
    stats->square_sum += before * (value - stats->mean);
    if (stats->count == 1 || value < stats->min) stats->min = value;
    if (stats->count == 1 || value > stats->max) stats->max = value;
}

double at_stats_sd(const at_stats *stats)
{
    if (stats->count < 2) return NAN;
    assert(stats->square_sum >= 0);
    return sqrt(stats->square_sum / (double)(stats->count - 1));
}

static int compare_values(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    if (isnan(x) || isnan(y)) return isnan(x) - isnan(y);
    return (x > y) - (x < y);
}

size_t at_stats_sort(double *values, size_t count)
{
    assert(values || count == 0);
    if (count) qsort(values, count, sizeof *values, compare_values);
    while (count && isnan(values[count - 1])) count--;
    return count;
}

double at_stats_percentile(const double *sorted, size_t count, double percent)
{
    assert(percent >= 0 && percent <= 100);
    if (count == 0) return NAN;
    double position = percent / 100 * (double)(count - 1);
    size_t below = (size_t)position;
    assert(below < count);
    if (below + 1 == count) return sorted[below];
    assert(sorted[below] <= sorted[below + 1]);
    return sorted[below] + (position - (double)below) * (sorted[below + 1] - sorted[below]);
}

static double log_gamma(double x)
{
    assert(x > 0);
    int sign;
    return lgamma_r(x, &sign);
}

/* The m-th pair of coefficients of the continued fraction of the incomplete beta function
 * (Abramowitz and Stegun, 26.5.8). */
static double beta_even(double m, double a, double b, double x)
{
    return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
}

static double beta_odd(double m, double a, double b, double x)
{
    return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
}

static double away_from_zero(double value)
{
    return fabs(value) < 1e-300 ? 1e-300 : value;
}

/* 1 / (1 + d1 / (1 + d2 / (1 + ...))) from the front, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
    assert(a > 0 && b > 0);
    double c = 1, d = 0, result = 1;
    for (int i = 0; i < 1000; i++) {
        double m = (i + 1) / 2; /* integer division: odd coefficients come first */
        double term = i % 2 ? beta_even(m, a, b, x) : beta_odd(m, a, b, x);
        d = 1 / away_from_zero(1 + term * d);
        c = away_from_zero(1 + term / c);
        result *= c * d;
        if (fabs(c * d - 1) < 1e-15) break;
    }
    return 1 / result;
}

/* The regularized incomplete beta function I_x(a, b). */
static double beta_share(double a, double b, double x)
{
    assert(x >= 0 && x <= 1);
    if (x == 0 || x == 1) return x;
    if (x > (a + 1) / (a + b + 2)) return 1 - beta_share(b, a, 1 - x); /* converges faster */
    double front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
    return front * beta_fraction(a, b, x) / a;
}

double at_stats_t_probability(double t, double freedom)
{
    assert(freedom > 0);
    assert(!isnan(t));
    double beyond = beta_share(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2;
    return t < 0 ? beyond : 1 - beyond;
}

double at_stats_t_quantile(double probability, double freedom)
{
    assert(probability > 0 && probability < 1);
    assert(freedom > 0);
    if (probability < 0.5) return -at_stats_t_quantile(1 - probability, freedom);
    double low = 0, high = 1;
    while (high < 1e150 && at_stats_t_probability(high, freedom) < probability) high *= 2;
    for (int i = 0; i < 200; i++) { /* bisection: robust, and called only a few times */
        double middle = low + (high - low) / 2;
        if (at_stats_t_probability(middle, freedom) < probability)
            low = middle;
        else
            high = middle;
    }
    return low + (high - low) / 2;
}

bool at_interval_known(const at_interval *interval)
{
    assert(isnan(interval->low) == isnan(interval->high));
    return !isnan(interval->low);
}

/* Decimals that give `number` its significant digits, without an exponent. */
static int decimals_of(double number, int digits)
{
    assert(digits >= 1);
    if (number == 0 || !isfinite(number)) return digits - 1;
    int decimals = digits - 1 - (int)floor(log10(fabs(number)));
    return decimals < 0 ? 0 : decimals > 12 ? 12 : decimals;
}

const char *at_interval_show(char *buffer, size_t size, const at_interval *interval, int digits)
{
    assert(digits >= 1 && digits <= 15);
    at_text text = at_text_in(buffer, size);
    int     decimals = decimals_of(interval->value, digits);
    if (isnan(interval->value))
        at_text_add(&text, "-");
    else
        at_text_add(&text, "%.*f", decimals, interval->value);
    if (at_interval_known(interval))
        at_text_add(&text, " [%.*f, %.*f]", decimals, interval->low, decimals, interval->high);
    return buffer;
}

/* Whether the interval was cut off at zero, so that the value is not in its middle. */
static bool is_cut(const at_interval *interval)
{
    return interval->low == 0 && interval->high > 2 * interval->value;
}

const char *at_interval_show_half(char *buffer, size_t size, const at_interval *interval,
                                  int digits)
{
    if (at_interval_known(interval) && is_cut(interval))
        return at_interval_show(buffer, size, interval, digits);
    at_interval alone = {.value = interval->value, .low = NAN, .high = NAN};
    at_interval_show(buffer, size, &alone, digits);
    if (!at_interval_known(interval)) return buffer;
    at_text text = {.bytes = buffer, .used = strlen(buffer), .size = size};
    int     decimals = decimals_of(interval->value, digits);
    at_text_add(&text, " ± %.*f", decimals, (interval->high - interval->low) / 2);
    return buffer;
}

static at_interval interval_of(const at_stats *stats)
{
    at_interval interval = {.value = NAN, .low = NAN, .high = NAN, .count = stats->count};
    if (stats->count == 0) return interval;
    interval.value = stats->mean;
    if (stats->count < INTERVAL_COUNT_MIN) return interval;
    double freedom = (double)(stats->count - 1);
    double error = at_stats_sd(stats) / sqrt((double)stats->count);
    double half = at_stats_t_quantile(0.975, freedom) * error;
    assert(half >= 0);
    interval.low = stats->mean - half;
    interval.high = stats->mean + half;
    return interval;
}

at_interval at_stats_mean(const double *values, size_t count)
{
    assert(values || count == 0);
    at_stats stats = {0};
    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i])) at_stats_add(&stats, values[i]);
    at_interval mean = interval_of(&stats);
    /* Of times, rates and losses: what is never negative has no negative mean either. */
    if (stats.count > 0 && stats.min >= 0 && mean.low < 0) mean.low = 0;
    return mean;
}

static bool can_divide(double value, double base)
{
    return isfinite(value) && isfinite(base) && value > 0 && base > 0;
}

at_interval at_stats_ratio(const double *values, const double *bases, size_t count)
{
    assert((values && bases) || count == 0);
    at_stats logs = {0};
    for (size_t i = 0; i < count; i++)
        if (can_divide(values[i], bases[i])) at_stats_add(&logs, log(values[i]) - log(bases[i]));
    at_interval interval = interval_of(&logs);
    interval.value = exp(interval.value);
    interval.low = exp(interval.low);
    interval.high = exp(interval.high);
    return interval;
}
