/* Steps that scale numbers: scale, raw, normalise, standardise. */
#include "data/prep/prep_kind.h"

#include "base/arena.h"
#include "base/text.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 8 }; /* numbers per block, so that the compiler can vectorize */

/* ---- scale and normalise: x * factor + offset, one pair per group ---------------------------- */

typedef struct pair {
    float factor, offset;
} pair;

static bool make_pairs(at_prep_step *step, const char **why)
{
    size_t groups = at_prep_groups(step->in), size;
    *why = "not enough memory";
    if (!at_size_product(groups, sizeof(pair), &size)) return false;
    pair *pairs = malloc(size);
    if (!pairs) return false;
    for (size_t g = 0; g < groups; g++) pairs[g] = (pair){.factor = 1.0f};
    step->state = pairs;
    return true;
}

/* Works through a local block, so that the compiler can vectorize although out may equal in. */
static void affine(float *out, const float *in, size_t count, pair p)
{
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        float block[LANES];
        for (size_t l = 0; l < LANES; l++) block[l] = in[i + l] * p.factor + p.offset;
        memcpy(out + i, block, sizeof block);
    }
    for (; i < count; i++) out[i] = in[i] * p.factor + p.offset;
}

static void apply_pairs(const at_prep_step *step, float *out, const float *in, float *scratch)
{
    (void)scratch;
    const pair *pairs = step->state;
    size_t      groups = at_prep_groups(step->in), length = at_image_shape_size(step->in) / groups;
    assert(pairs && length >= 1);
    if (length == 1) {
        for (size_t g = 0; g < groups; g++) out[g] = in[g] * pairs[g].factor + pairs[g].offset;
        return;
    }
    for (size_t g = 0; g < groups; g++) affine(out + g * length, in + g * length, length, pairs[g]);
}

/* Both are (x - offset) / divisor, which can be written as a normalise step. */
static void write_pairs(const at_prep_step *step, FILE *to)
{
    const pair *pairs = step->state;
    size_t      groups = at_prep_groups(step->in);
    assert(pairs);
    fprintf(to, "%s:", at_prep_normalise.name);
    for (size_t g = 0; g < groups; g++)
        fprintf(to, "%s%.9g", g ? "," : "", -pairs[g].offset / (double)pairs[g].factor);
    for (size_t g = 0; g < groups; g++)
        fprintf(to, "%s%.9g", g ? "," : "/", 1 / (double)pairs[g].factor);
}

static bool plan_scale(at_prep_step *step, const char *args, const char **why)
{
    *why = "this step takes no numbers";
    if (args) return false;
    step->needs_stats = true;
    return make_pairs(step, why);
}

/* The channels of an image share one range, which preserves their relation; the elements of a
 * feature vector are independent. */
static void fit_scale(at_prep_step *step, const at_prep_stats *stats)
{
    pair  *pairs = step->state;
    size_t groups = at_prep_groups(step->in);
    double min = INFINITY, max = -INFINITY;
    bool   vector = at_image_shape_is_vector(step->in);
    assert(pairs);
    for (size_t g = 0; g < groups; g++) {
        min = fmin(min, stats[g].min);
        max = fmax(max, stats[g].max);
    }
    for (size_t g = 0; g < groups; g++) {
        double low = vector ? stats[g].min : min, high = vector ? stats[g].max : max;
        double width = high > low ? high - low : 1.0;
        pairs[g] = (pair){.factor = (float)(1.0 / width), .offset = (float)(-low / width)};
    }
}

const at_prep_kind at_prep_scale = {
    .name = "scale", /* to 0 .. 1: bytes already are; other numbers by their range */
    .plan = plan_scale,
    .apply = apply_pairs,
    .fit = fit_scale,
    .write_fitted = write_pairs,
    .floats_only = true,
};

static bool plan_raw(at_prep_step *step, const char *args, const char **why)
{
    (void)step;
    *why = "this step takes no numbers";
    return !args;
}

/* Rounding gives the byte exactly: reading it multiplied by 1/255, which is inexact. */
static void apply_raw(const at_prep_step *step, float *out, const float *in, float *scratch)
{
    (void)scratch;
    size_t count = at_image_shape_size(step->in);
    assert(count >= 1);
    for (size_t i = 0; i < count; i++) out[i] = rintf(in[i] * 255.0f);
}

const at_prep_kind at_prep_raw = {
    .name = "raw", /* bytes as 0 .. 255 */
    .plan = plan_raw,
    .apply = apply_raw,
    .bytes_only = true,
};

static pair pair_of(double mean, double deviation)
{
    double divisor = deviation > 0.0 ? deviation : 1.0; /* constant numbers become 0 */
    return (pair){.factor = (float)(1.0 / divisor), .offset = (float)(-mean / divisor)};
}

/* Parses "0.5" or "0.49,0.48,0.45", `size` characters, into value[0 .. groups-1]. */
static bool read_numbers(const char *text, size_t size, double *value, size_t groups)
{
    size_t      count = 0;
    const char *end = text + size;
    while (count < groups) {
        char        word[32] = "";
        const char *comma = memchr(text, ',', (size_t)(end - text));
        size_t      length = (size_t)((comma ? comma : end) - text);
        if (length == 0 || length >= sizeof word) return false;
        memcpy(word, text, length);
        if (!at_text_real(word, &value[count++])) return false;
        if (!comma) break;
        text = comma + 1;
        if (count == groups) return false;
    }
    for (size_t g = 1; count == 1 && g < groups; g++) value[g] = value[0];
    return count == 1 || count == groups;
}

/* "MEANS/DEVIATIONS" */
static bool read_pairs(pair *pairs, size_t groups, const char *args)
{
    const char *slash = strchr(args, '/');
    double     *value = calloc(groups, 2 * sizeof *value);
    bool good = value && slash && read_numbers(args, (size_t)(slash - args), value, groups) &&
                read_numbers(slash + 1, strlen(slash + 1), value + groups, groups);
    for (size_t g = 0; good && g < groups; g++) {
        good = value[groups + g] > 0.0;
        pairs[g] = pair_of(value[g], value[groups + g]);
        good = good && isfinite(pairs[g].factor) && isfinite(pairs[g].offset);
    }
    free(value);
    return good;
}

static bool plan_normalise(at_prep_step *step, const char *args, const char **why)
{
    if (!make_pairs(step, why)) return false;
    step->needs_stats = !args;
    *why = "write MEANS/DEVIATIONS with one number, or one per channel, each: normalise:0.5/0.25";
    return !args || read_pairs(step->state, at_prep_groups(step->in), args);
}

static void fit_normalise(at_prep_step *step, const at_prep_stats *stats)
{
    pair *pairs = step->state;
    assert(pairs && step->needs_stats);
    for (size_t g = 0; g < at_prep_groups(step->in); g++)
        pairs[g] = pair_of(stats[g].mean, stats[g].deviation);
}

const at_prep_kind at_prep_normalise = {
    .name = "normalise", /* each channel to mean 0 and deviation 1, by the train set or as given */
    .plan = plan_normalise,
    .apply = apply_pairs,
    .fit = fit_normalise,
    .write_fitted = write_pairs,
};

/* ---- standardise: each image by itself ------------------------------------------------------- */

static double sum_of(const float *x, size_t count)
{
    float  lane[LANES] = {0};
    double sum = 0.0;
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (size_t l = 0; l < LANES; l++) lane[l] += x[i + l];
    for (; i < count; i++) sum += (double)x[i];
    for (size_t l = 0; l < LANES; l++) sum += (double)lane[l];
    return sum;
}

static double squares_of(const float *x, size_t count, float mean)
{
    float  lane[LANES] = {0};
    double sum = 0.0;
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (size_t l = 0; l < LANES; l++) lane[l] += (x[i + l] - mean) * (x[i + l] - mean);
    for (; i < count; i++) sum += (double)((x[i] - mean) * (x[i] - mean));
    for (size_t l = 0; l < LANES; l++) sum += (double)lane[l];
    return sum;
}

static bool plan_standardise(at_prep_step *step, const char *args, const char **why)
{
    (void)step;
    *why = "this step takes no numbers";
    return !args;
}

/* An image of one color has no deviation; 1/sqrt(n) as the minimum keeps it finite. */
static void apply_standardise(const at_prep_step *step, float *out, const float *in, float *scratch)
{
    (void)scratch;
    size_t count = at_image_shape_size(step->in);
    assert(count >= 1);
    double mean = sum_of(in, count) / (double)count;
    double variance = squares_of(in, count, (float)mean) / (double)count;
    double least = 1.0 / sqrt((double)count);
    double deviation = sqrt(variance) > least ? sqrt(variance) : least;
    affine(out, in, count, pair_of(mean, deviation));
}

const at_prep_kind at_prep_standardise = {
    .name = "standardise",
    .plan = plan_standardise,
    .apply = apply_standardise,
};
