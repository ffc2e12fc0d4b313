/* synthetic:SAMPLES,FEATURES,CLASSES - Gaussian clusters, one per class.
 * synthetic:SAMPLES,CxHxW,CLASSES    - synthetic images, one pattern per class.
 *
 * Class c has a center m_c, and its samples are m_c + noise with deviation 1 in every feature.
 * Centers are on average 5 apart for any number of features, which leaves a linear model a few
 * percent of errors with ten classes. The bits are the same on every machine (see synthetic.h).
 */
#include "data/formats/synthetic.h"

#include "base/rng.h"
#include "base/text.h"
#include "data/formats/format.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the name -------------------------------------------------------------------------------- */

#define PREFIX "synthetic"
#define HINT                                                                              \
    "write synthetic:SAMPLES,FEATURES,CLASSES, for example synthetic:6000,64,10, or for " \
    "images synthetic:6000,3x32x32,10"

enum {
    SEED = 1,
    SAMPLES_MAX = 100 * 1000 * 1000,
    FEATURES_MAX = 1 << 20,
    CLASSES_MAX = 1 << 16,
};

static const uint64_t BYTES_MAX = (uint64_t)1 << 34; /* LIMIT: 16 GiB */
static const double   CENTER_DISTANCE = 5.0;

typedef struct plan {
    int64_t        samples, features, classes;
    at_image_shape shape; /* zero: clusters */
} plan;

static bool claims(const char *name)
{
    size_t length = strlen(PREFIX);
    return strncmp(name, PREFIX, length) == 0 && (name[length] == '\0' || name[length] == ':');
}

/* Copies the text up to the next comma into word; returns the rest, or NULL at the end. */
static const char *next_word(const char *text, char word[32])
{
    assert(text);
    const char *comma = strchr(text, ',');
    size_t      length = comma ? (size_t)(comma - text) : strlen(text);
    if (length > 31) length = 31;
    memcpy(word, text, length);
    word[length] = '\0';
    return comma ? comma + 1 : NULL;
}

/* "3x32x32": channels, height, width, each 1 to FEATURES_MAX. */
static bool parse_shape(const char *word, at_image_shape *shape)
{
    uint32_t *const fields[] = {&shape->channels, &shape->height, &shape->width};
    for (size_t i = 0; i < 3; i++) {
        char *end;
        errno = 0;
        unsigned long value = strtoul(word, &end, 10);
        if (end == word || !isdigit((unsigned char)*word) || errno || value < 1) return false;
        if (value > FEATURES_MAX || *end != (i < 2 ? 'x' : '\0')) return false;
        *fields[i] = (uint32_t)value;
        word = end + 1;
    }
    return true;
}

/* FEATURES or CxHxW. */
static bool parse_features(const char *word, plan *p)
{
    if (!strchr(word, 'x')) return at_text_whole(word, &p->features);
    if (!parse_shape(word, &p->shape)) return false;
    uint64_t line = (uint64_t)p->shape.height * p->shape.width; /* at most 2^40 */
    p->features = (int64_t)(line * p->shape.channels);          /* at most 2^60 */
    return true;
}

static bool parse(const char *name, plan *p)
{
    *p = (plan){.samples = 6000, .features = 64, .classes = 10};
    const char *rest = strchr(name, ':');
    char        words[3][32];
    if (!rest) return true;
    rest++;
    for (size_t i = 0; i < 3; i++) {
        if (!rest) return false;
        rest = next_word(rest, words[i]);
    }
    return rest == NULL && at_text_whole(words[0], &p->samples) && parse_features(words[1], p) &&
           at_text_whole(words[2], &p->classes);
}

static at_err check(const plan *p, const char *name, at_fail *fail)
{
    assert(p && name);
    if (p->samples < 1 || p->features < 1 || p->classes < 1)
        return at_fail_set(fail, AT_ERR_USAGE, HINT, "%s: every number must be at least 1", name);
    if (p->samples > SAMPLES_MAX || p->features > FEATURES_MAX || p->classes > CLASSES_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, HINT,
                           "%s: at most %d samples, %d features and %d classes", name, SAMPLES_MAX,
                           FEATURES_MAX, CLASSES_MAX);
    if (p->samples < p->classes)
        return at_fail_set(fail, AT_ERR_USAGE, HINT, "%s: needs at least one sample per class",
                           name);
    uint64_t numbers = (uint64_t)p->samples * (uint64_t)p->features; /* below 2^47 */
    size_t   size_each = p->shape.channels ? 1 : sizeof(float);
    if (numbers > BYTES_MAX / size_each)
        return at_fail_set(fail, AT_ERR_USAGE, HINT, "%s: needs more than %llu GiB of memory", name,
                           (unsigned long long)(BYTES_MAX >> 30));
    return AT_OK;
}

/* ---- Gaussian clusters ----------------------------------------------------------------------- */

static int64_t sum_of_four(uint64_t bits)
{
    return (int64_t)((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) +
                     (bits >> 48));
}

/* Eight uniform numbers of 0 .. 65535 have mean 8 * 32767.5 and variance 8 * 65536^2 / 12 (less
 * 8/12). */
double at_synthetic_normal(at_rng *rng)
{
    int64_t sum = sum_of_four(at_rng_next(rng));
    sum += sum_of_four(at_rng_next(rng));
    return (double)(sum - 8 * 65535 / 2) * (1.0 / 53509.9199);
}

static void fill_row(float *row, uint32_t features, at_rng *center, at_rng *noise, double spread)
{
    assert(features > 0 && spread > 0.0);
    for (uint32_t f = 0; f < features; f++)
        row[f] = (float)(at_synthetic_normal(center) * spread + at_synthetic_normal(noise));
}

/* Centers are not stored: their random stream restarts for every sample. Classes alternate, so
 * every shard of the set has nearly the same number of each. */
static void fill_clusters(at_dataset *set, at_split split)
{
    assert(set->element == AT_ELEMENT_FLOAT);
    assert(set->classes > 0);
    double spread = CENTER_DISTANCE / sqrt(2.0 * set->features);
    float *rows = (float *)(void *)set->rows;
    for (uint64_t i = 0; i < set->count; i++) {
        uint32_t label = (uint32_t)(i % set->classes);
        at_rng   center = at_rng_stream(SEED, 0, AT_RNG_PURPOSE_SYNTHETIC, label);
        at_rng   noise = at_rng_stream(SEED, 1 + (uint64_t)split, AT_RNG_PURPOSE_SYNTHETIC, i);
        fill_row(rows + i * set->features, set->features, &center, &noise, spread);
        set->labels[i] = label;
    }
}

/* ---- images ---------------------------------------------------------------------------------- */

/* An image is
 *
 *     grey + pattern of its class, shifted by a few pixels + noise
 *
 * A pattern is a checkerboard of CELL x CELL cells with random levels, wrapped around at the
 * borders. The shift blurs what a linear model sees; a small convolution finds the edges of the
 * cells anywhere. All arithmetic is in integers, so the bits are the same on every machine. */
enum {
    CELL = 4,
    SHIFT_END = 8, /* shifts are 0 .. 7 pixels in each direction */
    GREY = 128,
    LEVEL_MAX = 40,
    NODE_PATTERN = 16, /* random streams next to those of the clusters */
    NODE_NOISE = 17,   /* and 18 for the test split */
};

/* The offset of the pattern in an image. */
typedef struct shift {
    uint32_t down, right;
} shift;

/* The level of a cell, -LEVEL_MAX .. LEVEL_MAX, recomputed whenever needed. */
static int cell_level(uint64_t pattern, uint32_t channel, uint32_t row, uint32_t column)
{
    uint64_t where = (uint64_t)channel << 40 | (uint64_t)row << 20 | column;
    uint64_t bits = at_rng_mix(pattern ^ at_rng_mix(where));
    return (int)(bits % (2 * LEVEL_MAX + 1)) - LEVEL_MAX;
}

/* Noise from two uniform bytes: triangular from -127 to 127 with deviation 52. */
static int noise_of(uint32_t bits)
{
    return ((int)(bits & 0xff) + (int)(bits >> 8 & 0xff) - 255) / 2;
}

static unsigned char clamp(int value)
{
    return (unsigned char)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* Draws one line of one channel; each random number gives the noise of four pixels. */
static void draw_line(unsigned char *line, uint32_t width, uint64_t pattern, uint32_t channel,
                      uint32_t cell_row, uint32_t right, at_rng *noise)
{
    assert(width > 0);
    uint64_t bits = 0;
    int      level = 0;
    for (uint32_t x = 0; x < width; x++) {
        uint32_t column = (x + right) % width;
        if (x == 0 || column % CELL == 0)
            level = cell_level(pattern, channel, cell_row, column / CELL);
        bits = x % 4 == 0 ? at_rng_next(noise) : bits >> 16;
        line[x] = clamp(GREY + level + noise_of((uint32_t)bits));
    }
}

static void draw_image(unsigned char *row, at_image_shape shape, uint64_t pattern, shift by,
                       at_rng *noise)
{
    assert(shape.channels > 0);
    for (uint32_t c = 0; c < shape.channels; c++)
        for (uint32_t y = 0; y < shape.height; y++, row += shape.width)
            draw_line(row, shape.width, pattern, c, (y + by.down) % shape.height / CELL, by.right,
                      noise);
}

static void fill_images(at_dataset *set, at_split split)
{
    assert(set->element == AT_ELEMENT_BYTE);
    assert(set->shape.channels > 0 && set->classes > 0);
    for (uint64_t i = 0; i < set->count; i++) {
        uint32_t label = (uint32_t)(i % set->classes);
        at_rng   class_of = at_rng_stream(SEED, NODE_PATTERN, AT_RNG_PURPOSE_SYNTHETIC, label);
        at_rng   noise =
            at_rng_stream(SEED, NODE_NOISE + (uint64_t)split, AT_RNG_PURPOSE_SYNTHETIC, i);
        uint64_t bits = at_rng_next(&noise);
        shift    by = {(uint32_t)(bits % SHIFT_END), (uint32_t)((bits >> 32) % SHIFT_END)};
        draw_image(set->rows + i * set->row_size, set->shape, at_rng_next(&class_of), by, &noise);
        set->labels[i] = label;
    }
}

/* ---- the format ------------------------------------------------------------------------------ */

static at_err load(at_dataset *set, const char *name, at_split split, at_fail *fail)
{
    plan p;
    if (!parse(name, &p))
        return at_fail_set(fail, AT_ERR_USAGE, HINT,
                           "%s: expected " PREFIX ":SAMPLES,FEATURES,CLASSES", name);
    AT_TRY(check(&p, name, fail));
    int64_t count = p.samples;
    if (split == AT_SPLIT_TEST) count = count / 5 > p.classes ? count / 5 : p.classes;
    assert(count >= p.classes);
    bool images = p.shape.channels > 0;
    AT_TRY(at_store_reserve(set, (uint64_t)count, (uint32_t)p.features,
                            images ? AT_ELEMENT_BYTE : AT_ELEMENT_FLOAT, fail));
    set->classes = (uint32_t)p.classes;
    at_text form = at_text_in(set->form, sizeof set->form);
    if (images) {
        set->shape = p.shape;
        fill_images(set, split);
        at_text_add(&form, "%ux%ux%u bytes", p.shape.channels, p.shape.height, p.shape.width);
    } else {
        fill_clusters(set, split);
        at_text_add(&form, "%u floats", set->features);
    }
    return AT_OK;
}

const at_format at_format_synthetic = {
    .name = "synthetic",
    .summary = "synthetic Gaussian clusters (SAMPLES,FEATURES,CLASSES) or images (CxHxW features)",
    .synthetic = true,
    .claims = claims,
    .load = load,
};
