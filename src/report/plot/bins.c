#include "report/plot/bins.h"

#include <assert.h>
#include <math.h>

enum { BINS_WANTED = 40 };

static const double VALUE_MAX = 1e100;  /* so that widths stay finite */
static const double TAIL_PERCENT = 0.5; /* at each end */
static const double TAIL_FACTOR = 0.25; /* a tail shorter than this part of the rest is shown */
static const double WIDTH_RELATIVE =
    1e-9; /* of the values: narrower bins could not be told apart */

/* ---- samples ------------------------------------------------------------------------------- */

/* Vitter's algorithm R: value i is kept with probability MAX / i, in the place of any other. */
void at_sample_add(at_sample *sample, double value)
{
    if (!(fabs(value) <= VALUE_MAX)) return; /* NAN, too */
    if (sample->all.count == 0) sample->choice = at_rng_stream(0, 0, AT_RNG_PURPOSE_SHUFFLE, 0);
    at_stats_add(&sample->all, value);
    if (value != floor(value)) sample->broken = true;
    if (sample->count < AT_SAMPLE_MAX) {
        sample->value[sample->count++] = value;
        return;
    }
    uint64_t place = at_rng_below(&sample->choice, sample->all.count);
    if (place < AT_SAMPLE_MAX) sample->value[place] = value;
}

/* ---- choosing bins ------------------------------------------------------------------------- */

typedef struct span {
    double low, high;
} span;

/* The part of a sample that is worth showing. */
static span body_of(at_sample *sample)
{
    assert(sample->count > 0);
    at_stats_sort(sample->value, sample->count);
    double low = at_stats_percentile(sample->value, sample->count, TAIL_PERCENT);
    double high = at_stats_percentile(sample->value, sample->count, 100 - TAIL_PERCENT);
    double air = TAIL_FACTOR * (high - low);
    if (low == high) return (span){sample->all.min, sample->all.max};
    return (span){fmax(sample->all.min, low - air), fmin(sample->all.max, high + air)};
}

/* The next one of 1, 2 and 5 times a power of ten. */
static double round_up(double width)
{
    assert(width > 0);
    double power = pow(10, floor(log10(width)));
    double digit = width / power;
    return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

static double choose_width(span body, bool whole)
{
    double largest = fmax(fabs(body.low), fabs(body.high));
    double width = (body.high - body.low) / BINS_WANTED;
    if (width == 0) width = largest / BINS_WANTED;
    width = fmax(width, largest * WIDTH_RELATIVE);
    if (whole) width = fmax(width, 1);
    return width > 0 ? round_up(width) : 1; /* all are 0 */
}

at_bins at_bins_choose(at_sample *samples, size_t count)
{
    span body = {INFINITY, -INFINITY};
    bool whole = true;
    for (size_t i = 0; i < count; i++) {
        if (samples[i].count == 0) continue;
        span one = body_of(&samples[i]);
        body = (span){fmin(body.low, one.low), fmax(body.high, one.high)};
        whole = whole && !samples[i].broken;
    }
    if (body.low > body.high) return (at_bins){0};
    double  width = choose_width(body, whole);
    at_bins bins = {.low = floor(body.low / width) * width, .width = width};
    if (whole) bins.low -= 0.5; /* each number in the middle of its place */
    bins.count = (size_t)floor((body.high - bins.low) / width) + 1;
    assert(bins.count <= AT_BINS_MAX);
    return bins;
}

/* ---- drawing ------------------------------------------------------------------------------- */

static void count_values(const at_bins *bins, const at_sample *sample, uint64_t *counts)
{
    assert(bins->width > 0);
    for (size_t i = 0; i < bins->count; i++) counts[i] = 0;
    for (size_t i = 0; i < sample->count; i++) {
        double place = floor((sample->value[i] - bins->low) / bins->width);
        if (place >= 0 && place < (double)bins->count) counts[(size_t)place]++;
    }
}

static void add_corner(at_outline *outline, double x, double y)
{
    assert(outline->count < AT_OUTLINE_MAX);
    outline->x[outline->count] = x;
    outline->y[outline->count++] = y;
}

void at_bins_outline(const at_bins *bins, const at_sample *sample, double total, bool density,
                     at_outline *outline)
{
    uint64_t counts[AT_BINS_MAX];
    size_t   first = 0, end = bins->count;
    assert(bins->count <= AT_BINS_MAX);
    outline->count = 0;
    if (sample->count == 0 || bins->count == 0) return;
    count_values(bins, sample, counts);
    while (first < end && counts[first] == 0) first++;
    while (first < end && counts[end - 1] == 0) end--;
    if (first == end) return; /* all of it lies beyond the bins */
    double each = total / (double)sample->count / (density ? bins->width : 1);
    add_corner(outline, bins->low + (double)first * bins->width, 0);
    for (size_t i = first; i < end; i++)
        add_corner(outline, bins->low + (double)i * bins->width, (double)counts[i] * each);
    add_corner(outline, bins->low + (double)end * bins->width, 0);
}
