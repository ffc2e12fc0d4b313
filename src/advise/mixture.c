/* A mixture of normal components for pauses, by expectation maximization. */
#include <assert.h>
#include <math.h>

#include "advise/fit.h"
#include "report/summary/stats.h"

enum { NORMALS_MAX = AT_FIT_MIXTURE_MAX - 1, ROUNDS = 60, SAMPLE_MAX = 20000 };
static const double NEGLIGIBLE = 0.01; /* a pause below this share of a round counts as none */

typedef struct normal {
    double mean, sd, weight;
} normal;

static double density(const normal *n, double x)
{
    double z = (x - n->mean) / n->sd;
    return n->weight * exp(-z * z / 2) / n->sd;
}

/* Spreads the components over the sorted values. */
static void begin(normal *part, uint32_t parts, const double *sorted, size_t count, double sd_min)
{
    double range = sorted[count - 1] - sorted[0];
    for (uint32_t k = 0; k < parts; k++)
        part[k] = (normal){.mean = at_stats_percentile(sorted, count, 100 * (k + 0.5) / parts),
                           .sd = fmax(range / (2 * parts), sd_min),
                           .weight = 1.0 / parts};
}

typedef struct sums {
    double weight, x, square;
} sums;

/* One round; returns the logarithm of the likelihood, without a constant. */
static double improve(normal *part, uint32_t parts, const double *value, size_t count,
                      double sd_min)
{
    sums   sum[NORMALS_MAX] = {{0}};
    double likelihood = 0;
    for (size_t i = 0; i < count; i++) {
        double each[NORMALS_MAX], all = 1e-300;
        for (uint32_t k = 0; k < parts; k++) all += each[k] = density(&part[k], value[i]);
        likelihood += log(all);
        for (uint32_t k = 0; k < parts; k++) {
            double share = each[k] / all;
            sum[k].weight += share;
            sum[k].x += share * value[i];
            sum[k].square += share * value[i] * value[i];
        }
    }
    for (uint32_t k = 0; k < parts; k++) {
        if (sum[k].weight < 1e-9) continue;
        double mean = sum[k].x / sum[k].weight;
        double variance = sum[k].square / sum[k].weight - mean * mean;
        part[k] = (normal){.mean = mean,
                           .sd = fmax(sqrt(fmax(variance, 0)), sd_min),
                           .weight = sum[k].weight / (double)count};
    }
    return likelihood;
}

/* The number of components that explains the values best for its number of parameters. */
static uint32_t choose(normal *best, const double *sorted, size_t count, double sd_min)
{
    double   score = INFINITY;
    uint32_t chosen = 1;
    for (uint32_t parts = 1; parts <= NORMALS_MAX; parts++) {
        normal part[NORMALS_MAX];
        double likelihood = 0;
        begin(part, parts, sorted, count, sd_min);
        for (int i = 0; i < ROUNDS; i++) likelihood = improve(part, parts, sorted, count, sd_min);
        double bic = (3.0 * parts - 1) * log((double)count) - 2 * likelihood;
        if (bic >= score) continue;
        score = bic;
        chosen = parts;
        for (uint32_t k = 0; k < parts; k++) best[k] = part[k];
    }
    return chosen;
}

/* Keeps evenly spaced values of a long sorted list: the shape is the same. */
static size_t thin(double *sorted, size_t count)
{
    if (count <= SAMPLE_MAX) return count;
    for (size_t i = 0; i < SAMPLE_MAX; i++)
        sorted[i] = sorted[(size_t)((double)i * (double)count / SAMPLE_MAX)];
    return SAMPLE_MAX;
}

void at_fit_mixture(at_fit *fit, double *pauses, size_t count, double scale)
{
    normal part[NORMALS_MAX];
    size_t none = 0;
    double square = 0;
    assert(count >= 1 && scale > 0);
    at_stats_sort(pauses, count);
    for (; none < count && pauses[none] <= NEGLIGIBLE * scale; none++)
        square += pauses[none] * pauses[none];
    double rest = (double)(count - none) / (double)count;
    fit->components = 0;
    if (none == count) return;
    if (none > 0) {
        fit->pause[0].mean = 0;
        fit->pause[0].sd = sqrt(square / (double)none);
        fit->pause[0].weight = 1 - rest;
        fit->components = 1;
    }
    double  *long_ones = pauses + none;
    size_t   kept = thin(long_ones, count - none);
    uint32_t parts = choose(part, long_ones, kept, NEGLIGIBLE * scale / 4);
    for (uint32_t k = 0; k < parts; k++) {
        if (part[k].weight * rest < 1e-4) continue;
        fit->pause[fit->components].mean = fmax(part[k].mean, 0);
        fit->pause[fit->components].sd = part[k].sd;
        fit->pause[fit->components].weight = part[k].weight * rest;
        fit->components++;
    }
    assert(fit->components <= AT_FIT_MIXTURE_MAX);
}
