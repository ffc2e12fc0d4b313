/* synthetic:SAMPLES,FEATURES,CLASSES - Gaussian clusters, one a class.
 * synthetic:SAMPLES,CxHxW,CLASSES - made-up pictures, see synthetic_picture.c.
 *
 * Class c has a centre m_c, a sample of it is m_c + noise. Noise has deviation 1 in every
 * feature; centres are drawn so that two of them are 5 apart on average whatever the number of
 * features, which leaves a linear model a few per cent of errors with ten classes.
 *
 * The same bits on every machine: a normal number is the sum of eight 16-bit uniform ones, which
 * is exact, because log() and cos() differ in their last bits from one libm to another.
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

#define PREFIX "synthetic"
#define HINT                                                                               \
    "write synthetic:SAMPLES,FEATURES,CLASSES, for example synthetic:6000,64,10, or with " \
    "pictures, "                                                                           \
    "synthetic:6000,3x32x32,10"

enum {
    SEED = AT_SYNTHETIC_SEED,
    SAMPLES_MAX = 100 * 1000 * 1000,
    FEATURES_MAX = 1 << 20,
    CLASSES_MAX = 1 << 16,
};

static const uint64_t BYTES_MAX = (uint64_t)1 << 34; /* LIMIT: 16 GiB */
static const double   CENTRE_DISTANCE = 5.0;

typedef struct shape {
    int64_t        samples, features, classes;
    at_image_shape picture; /* zero: clusters */
} shape;

static bool claims(const char *name)
{
    size_t length = strlen(PREFIX);
    return strncmp(name, PREFIX, length) == 0 && (name[length] == '\0' || name[length] == ':');
}

/* Copies the text up to the next comma into word and returns what follows, or NULL at the end. */
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
static bool parse_picture(const char *word, at_image_shape *picture)
{
    uint32_t *const fields[] = {&picture->channels, &picture->height, &picture->width};
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

/* The middle number: so many features, or so many as the picture has. */
static bool parse_features(const char *word, shape *plan)
{
    if (!strchr(word, 'x')) return at_text_whole(word, &plan->features);
    if (!parse_picture(word, &plan->picture)) return false;
    uint64_t line = (uint64_t)plan->picture.height * plan->picture.width; /* at most 2^40 */
    plan->features = (int64_t)(line * plan->picture.channels);            /* at most 2^60 */
    return true;
}

static bool parse(const char *name, shape *plan)
{
    *plan = (shape){.samples = 6000, .features = 64, .classes = 10};
    const char *rest = strchr(name, ':');
    char        words[3][32];
    if (!rest) return true;
    rest++;
    for (size_t i = 0; i < 3; i++) {
        if (!rest) return false;
        rest = next_word(rest, words[i]);
    }
    return rest == NULL && at_text_whole(words[0], &plan->samples) &&
           parse_features(words[1], plan) && at_text_whole(words[2], &plan->classes);
}

static at_err check(const shape *plan, const char *name, at_fail *fail)
{
    assert(plan && name);
    if (plan->samples < 1 || plan->features < 1 || plan->classes < 1)
        return at_fail_set(fail, AT_ERR_USAGE, HINT, "%s: each number must be at least 1", name);
    if (plan->samples > SAMPLES_MAX || plan->features > FEATURES_MAX || plan->classes > CLASSES_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, HINT,
                           "%s: at most %d samples, %d features and %d classes", name, SAMPLES_MAX,
                           FEATURES_MAX, CLASSES_MAX);
    if (plan->samples < plan->classes)
        return at_fail_set(fail, AT_ERR_USAGE, HINT, "%s: fewer samples than classes", name);
    uint64_t numbers = (uint64_t)plan->samples * (uint64_t)plan->features; /* below 2^47 */
    size_t   size_each = plan->picture.channels ? 1 : sizeof(float);
    if (numbers > BYTES_MAX / size_each)
        return at_fail_set(fail, AT_ERR_USAGE, HINT, "%s: needs more than %llu GiB of memory", name,
                           (unsigned long long)(BYTES_MAX >> 30));
    return AT_OK;
}

static int64_t sum_of_four(uint64_t bits)
{
    return (int64_t)((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) +
                     (bits >> 48));
}

/* Mean 0, deviation 1: eight uniform numbers of 0 .. 65535 have mean 8 * 32767.5 and variance
 * 8 * 65536^2 / 12 (less 8/12). */
static double normal(at_rng *rng)
{
    int64_t sum = sum_of_four(at_rng_next(rng));
    sum += sum_of_four(at_rng_next(rng));
    return (double)(sum - 8 * 65535 / 2) * (1.0 / 53509.9199);
}

static void fill_row(float *row, uint32_t features, at_rng *centre, at_rng *noise, double spread)
{
    assert(features > 0 && spread > 0.0);
    for (uint32_t f = 0; f < features; f++)
        row[f] = (float)(normal(centre) * spread + normal(noise));
}

/* Centres are not stored: their stream is begun again for every sample. Classes take turns, so
 * every shard of the set has nearly the same number of each. */
static void fill(at_dataset *set, at_split split)
{
    assert(set->element == AT_ELEMENT_FLOAT);
    assert(set->classes > 0);
    double spread = CENTRE_DISTANCE / sqrt(2.0 * set->features);
    float *rows = (float *)(void *)set->rows;
    for (uint64_t i = 0; i < set->count; i++) {
        uint32_t label = (uint32_t)(i % set->classes);
        at_rng   centre = at_rng_stream(SEED, 0, AT_RNG_PURPOSE_SYNTHETIC, label);
        at_rng   noise = at_rng_stream(SEED, 1 + (uint64_t)split, AT_RNG_PURPOSE_SYNTHETIC, i);
        fill_row(rows + i * set->features, set->features, &centre, &noise, spread);
        set->labels[i] = label;
    }
}

static at_err load(at_dataset *set, const char *name, at_split split, at_fail *fail)
{
    shape plan;
    if (!parse(name, &plan))
        return at_fail_set(fail, AT_ERR_USAGE, HINT,
                           "%s: is not of the form " PREFIX ":SAMPLES,FEATURES,CLASSES", name);
    AT_TRY(check(&plan, name, fail));
    int64_t count = plan.samples;
    if (split == AT_SPLIT_TEST) count = count / 5 > plan.classes ? count / 5 : plan.classes;
    assert(count >= plan.classes);
    bool pictures = plan.picture.channels > 0;
    AT_TRY(at_store_reserve(set, (uint64_t)count, (uint32_t)plan.features,
                            pictures ? AT_ELEMENT_BYTE : AT_ELEMENT_FLOAT, fail));
    set->classes = (uint32_t)plan.classes;
    at_text form = at_text_in(set->form, sizeof set->form);
    if (pictures) {
        set->picture = plan.picture;
        at_synthetic_draw(set, split);
        at_text_add(&form, "%ux%ux%u bytes", plan.picture.channels, plan.picture.height,
                    plan.picture.width);
    } else {
        fill(set, split);
        at_text_add(&form, "%u floats", set->features);
    }
    return AT_OK;
}

const at_format at_format_synthetic = {
    .name = "synthetic",
    .summary = "made-up Gaussian clusters (SAMPLES,FEATURES,CLASSES) or pictures (CxHxW features)",
    .made_up = true,
    .claims = claims,
    .load = load,
};
