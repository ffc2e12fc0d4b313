#include "report/plot/bins.h"

#include <assert.h>
#include <math.h>

enum { BINS_WANTED = 40 };

static const double VALUE_MAX = 1e100;  /* so that widths stay finite */
static const double TAIL_PERCENT = 0.5; /* at each end */
static const double TAIL_FACTOR = 0.25; /* tails shorter than this part of the rest are shown */
static const double WIDTH_RELATIVE =
    1e-9; /* to the values: narrower bins are not distinguishable */

/* ---- reservoir ----------------------------------------------------------------------------- */

/* Vitter's algorithm R: value i is kept with probability SIZE / i and replaces a random one. */
void at_reservoir_add(at_reservoir *reservoir, double value)
{
    if (!(fabs(value) <= VALUE_MAX)) return; /* also NAN */
    if (reservoir->all.count == 0) reservoir->rng = at_rng_stream(0, 0, AT_RNG_PURPOSE_SHUFFLE, 0);
    at_stats_add(&reservoir->all, value);
    if (value != floor(value)) reservoir->fractional = true;
    if (reservoir->count < AT_RESERVOIR_SIZE) {
        reservoir->value[reservoir->count++] = value;
        return;
    }
    uint64_t place = at_rng_below(&reservoir->rng, reservoir->all.count);
    if (place < AT_RESERVOIR_SIZE) reservoir->value[place] = value;
}

/* ---- choosing bins ------------------------------------------------------------------------- */

typedef struct span {
    double low, high;
} span;

/* The range of the values without long tails. */
static span body_of(at_reservoir *reservoir)
{
    assert(reservoir->count > 0);
    at_stats_sort(reservoir->value, reservoir->count);
    double low = at_stats_percentile(reservoir->value, reservoir->count, TAIL_PERCENT);
    double high = at_stats_percentile(reservoir->value, reservoir->count, 100 - TAIL_PERCENT);
    double margin = TAIL_FACTOR * (high - low);
    if (low == high) return (span){reservoir->all.min, reservoir->all.max};
    return (span){fmax(reservoir->all.min, low - margin), fmin(reservoir->all.max, high + margin)};
}

/* Rounds up to 1, 2 or 5 times a power of ten. */
static double round_up(double width)
{
    assert(width > 0);
    double power = pow(10, floor(log10(width)));
    double digit = width / power;
    return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

static double choose_width(span body, bool integral)
{
    double largest = fmax(fabs(body.low), fabs(body.high));
    double width = (body.high - body.low) / BINS_WANTED;
    if (width == 0) width = largest / BINS_WANTED;
    width = fmax(width, largest * WIDTH_RELATIVE);
    if (integral) width = fmax(width, 1);
    return width > 0 ? round_up(width) : 1; /* all are 0 */
}

at_bins at_bins_choose(at_reservoir *reservoirs, size_t count)
{
    span body = {INFINITY, -INFINITY};
    bool integral = true;
    for (size_t i = 0; i < count; i++) {
        if (reservoirs[i].count == 0) continue;
        span one = body_of(&reservoirs[i]);
        body = (span){fmin(body.low, one.low), fmax(body.high, one.high)};
        integral = integral && !reservoirs[i].fractional;
    }
    if (body.low > body.high) return (at_bins){0};
    double  width = choose_width(body, integral);
    at_bins bins = {.low = floor(body.low / width) * width, .width = width};
    if (integral) bins.low -= 0.5; /* integers are in the middle of their bins */
    bins.count = (size_t)floor((body.high - bins.low) / width) + 1;
    assert(bins.count <= AT_BINS_MAX);
    return bins;
}

/* ---- outlines ------------------------------------------------------------------------------ */

static void count_values(const at_bins *bins, const at_reservoir *reservoir, uint64_t *counts)
{
    assert(bins->width > 0);
    for (size_t i = 0; i < bins->count; i++) counts[i] = 0;
    for (size_t i = 0; i < reservoir->count; i++) {
        double bin = floor((reservoir->value[i] - bins->low) / bins->width);
        if (bin >= 0 && bin < (double)bins->count) counts[(size_t)bin]++;
    }
}

static void add_corner(at_outline *outline, double x, double y)
{
    assert(outline->count < AT_OUTLINE_MAX);
    outline->x[outline->count] = x;
    outline->y[outline->count++] = y;
}

void at_bins_outline(const at_bins *bins, const at_reservoir *reservoir, double total, bool density,
                     at_outline *outline)
{
    uint64_t counts[AT_BINS_MAX];
    size_t   first = 0, end = bins->count;
    assert(bins->count <= AT_BINS_MAX);
    outline->count = 0;
    if (reservoir->count == 0 || bins->count == 0) return;
    count_values(bins, reservoir, counts);
    while (first < end && counts[first] == 0) first++;
    while (first < end && counts[end - 1] == 0) end--;
    if (first == end) return; /* all values are outside the bins */
    double each = total / (double)reservoir->count / (density ? bins->width : 1);
    add_corner(outline, bins->low + (double)first * bins->width, 0);
    for (size_t i = first; i < end; i++)
        add_corner(outline, bins->low + (double)i * bins->width, (double)counts[i] * each);
    add_corner(outline, bins->low + (double)end * bins->width, 0);
}
