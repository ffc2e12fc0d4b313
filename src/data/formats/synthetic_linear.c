/* synthetic-linear:ROWS,FEATURES,NOISE - linear regression with known weights.
 *
 *     x        normal numbers, mean 0 and deviation 1
 *     label    y = w . x + NOISE * a normal number, w: hidden normal weights
 *
 * The problem of the AMB paper, which has NOISE^2 = 0.001. The lowest possible mean of the loss
 * 1/2 (y - w . x)^2 is NOISE^2 / 2; weights of zero have about FEATURES / 2. The bits are the same
 * on every machine (see synthetic.h).
 */
#include "data/formats/format.h"

#include "base/label.h"
#include "base/text.h"
#include "data/formats/synthetic.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "synthetic-linear"
#define HINT   "write " PREFIX ":ROWS,FEATURES,NOISE, for example " PREFIX ":10000,100,0.1"

enum {
    SEED = 1,
    NODE_WEIGHTS = 48, /* random streams next to those of the other synthetic sets */
    NODE_ROWS = 49,    /* 50: the test split */
    ROWS_MAX = 100 * 1000 * 1000,
    FEATURES_MAX = 1 << 20,
};

static const uint64_t BYTES_MAX = (uint64_t)1 << 34; /* LIMIT: 16 GiB */
static const double   NOISE_MAX = 1e6;

typedef struct plan {
    int64_t rows, features;
    double  noise;
} plan;

static bool claims(const char *name)
{
    size_t length = strlen(PREFIX);
    return strncmp(name, PREFIX, length) == 0 && (name[length] == '\0' || name[length] == ':');
}

static bool parse(const char *name, plan *p)
{
    *p = (plan){.rows = 10000, .features = 100, .noise = 0.1};
    const char *rest = strchr(name, ':');
    char        word[3][32];
    for (size_t i = 0; rest && i < 3; i++) {
        size_t length = strcspn(++rest, ",");
        if (length >= sizeof word[i]) return false;
        memcpy(word[i], rest, length);
        word[i][length] = '\0';
        rest += length;
        if ((*rest == '\0') != (i == 2)) return false;
    }
    return !rest || (at_text_whole(word[0], &p->rows) && at_text_whole(word[1], &p->features) &&
                     at_text_real(word[2], &p->noise));
}

static at_err check(const plan *p, const char *name, at_fail *fail)
{
    assert(p && name);
    if (p->rows < 1 || p->rows > ROWS_MAX || p->features < 1 || p->features > FEATURES_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, HINT,
                           "%s: ROWS must be from 1 to %d, FEATURES from 1 to %d", name, ROWS_MAX,
                           FEATURES_MAX);
    if (!(p->noise >= 0 && p->noise <= NOISE_MAX))
        return at_fail_set(fail, AT_ERR_USAGE, HINT, "%s: NOISE must be from 0 to %g", name,
                           NOISE_MAX);
    uint64_t numbers = (uint64_t)p->rows * (uint64_t)p->features; /* below 2^47 */
    if (numbers > BYTES_MAX / sizeof(float))
        return at_fail_set(fail, AT_ERR_USAGE, HINT, "%s: needs more than %llu GiB of memory", name,
                           (unsigned long long)(BYTES_MAX >> 30));
    return AT_OK;
}

static void fill(at_dataset *set, const double *weights, double noise, at_split split)
{
    assert(set->element == AT_ELEMENT_FLOAT);
    float *row = (float *)(void *)set->rows;
    for (uint64_t i = 0; i < set->count; i++, row += set->features) {
        at_rng rng = at_rng_stream(SEED, NODE_ROWS + (uint64_t)split, AT_RNG_PURPOSE_SYNTHETIC, i);
        double label = noise * at_synthetic_normal(&rng);
        for (uint32_t f = 0; f < set->features; f++) {
            row[f] = (float)at_synthetic_normal(&rng);
            label += weights[f] * (double)row[f];
        }
        set->labels[i] = at_label_of_real((float)label);
    }
}

static at_err load(at_dataset *set, const char *name, at_split split, at_fail *fail)
{
    plan p;
    if (!parse(name, &p))
        return at_fail_set(fail, AT_ERR_USAGE, HINT, "%s: expected " PREFIX ":ROWS,FEATURES,NOISE",
                           name);
    AT_TRY(check(&p, name, fail));
    int64_t rows = split == AT_SPLIT_TRAIN ? p.rows : (p.rows + 4) / 5;
    AT_TRY(at_store_reserve(set, (uint64_t)rows, (uint32_t)p.features, AT_ELEMENT_FLOAT, fail));
    double *weights = calloc((size_t)p.features, sizeof *weights);
    if (!weights) return at_fail_memory_for(fail, "for %s", name);
    at_rng rng = at_rng_stream(SEED, NODE_WEIGHTS, AT_RNG_PURPOSE_SYNTHETIC, 0);
    for (int64_t f = 0; f < p.features; f++) weights[f] = at_synthetic_normal(&rng);
    fill(set, weights, p.noise, split);
    free(weights);
    at_text form = at_text_in(set->form, sizeof set->form);
    at_text_add(&form, "%u floats", set->features);
    return AT_OK;
}

const at_format at_format_synthetic_linear = {
    .name = PREFIX,
    .summary = "synthetic linear regression (ROWS,FEATURES,NOISE), real-valued labels",
    .reads_real_labels = true,
    .synthetic = true,
    .claims = claims,
    .load = load,
};
