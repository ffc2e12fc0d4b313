/* synthetic-clicks:ROWS,DIMENSIONS[,NUMBERS] - synthetic click data, sparse.
 *
 *     row       NUMBERS (default 39) features: a third are numeric and in every row, each of the
 *               others is a category from its own range
 *     category  Zipf distributed: each doubling of the rank has the same probability, so the first
 *               few make up half of all and the last ones are rare; ranks are scattered over the
 *               range, as by hashing
 *     label     1 with probability sigmoid(bias + sum of hidden weights); roughly three in ten
 *
 * The bits are the same on every machine: weights and draws are integers scaled by exact powers of
 * two, and the sigmoid is a table of 24-bit integers, which do not depend on the math library.
 */
#include "data/formats/format.h"

#include "base/rng.h"
#include "base/text.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define PREFIX "synthetic-clicks"
#define HINT                                                                                      \
    "write " PREFIX ":ROWS,DIMENSIONS or " PREFIX ":ROWS,DIMENSIONS,NUMBERS, for example " PREFIX \
    ":400000,1048576"

enum {
    SEED = 1,
    NODE_ROWS = 32, /* random streams next to those of synthetic.c; 33: the test split */
    ROWS_MAX = 100 * 1000 * 1000,
    NUMBERS_MIN = 3,
    NUMBERS_MAX = 1 << 12,
    TABLE_REACH = 8, /* the sigmoid from -8 to 8, clamped beyond */
    TABLE_STEPS = 16,
    TABLE_SIZE = 2 * TABLE_REACH * TABLE_STEPS + 1,
    PROBABILITY_BITS = 24,
};

static const uint64_t DIMENSIONS_MAX = (uint64_t)1 << 31;
static const uint64_t BYTES_MAX = (uint64_t)1 << 34; /* LIMIT: 16 GiB */
static const uint64_t SCATTER = 2654435761;          /* a prime larger than any range */
static const double   BIAS = -1.5;

typedef struct plan {
    int64_t  rows, dimensions, numbers;
    uint32_t numeric, categories; /* of the numbers */
    uint32_t range;               /* per category */
    uint32_t octaves;             /* doublings of the rank within a range */
} plan;

/* ---- the name -------------------------------------------------------------------------------- */

static bool claims(const char *name)
{
    size_t length = strlen(PREFIX);
    return strncmp(name, PREFIX, length) == 0 && (name[length] == '\0' || name[length] == ':');
}

static bool parse(const char *name, plan *p)
{
    *p = (plan){.rows = 400000, .dimensions = 1 << 20, .numbers = 39};
    int64_t *const fields[] = {&p->rows, &p->dimensions, &p->numbers};
    const char    *rest = strchr(name, ':');
    for (size_t i = 0; rest && i < 3; i++) {
        char   word[32];
        size_t length = strcspn(++rest, ",");
        if (length >= sizeof word) return false;
        memcpy(word, rest, length);
        word[length] = '\0';
        if (!at_text_whole(word, fields[i])) return false;
        rest = rest[length] == ',' ? rest + length : NULL;
        if (i == 0 && !rest) return false;
    }
    return rest == NULL;
}

static at_err check(plan *p, const char *name, at_fail *fail)
{
    if (p->rows < 1 || p->rows > ROWS_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, HINT, "%s: ROWS must be from 1 to %d", name,
                           ROWS_MAX);
    if (p->numbers < NUMBERS_MIN || p->numbers > NUMBERS_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, HINT, "%s: NUMBERS must be from %d to %d", name,
                           NUMBERS_MIN, NUMBERS_MAX);
    if (p->dimensions < 2 * p->numbers || (uint64_t)p->dimensions > DIMENSIONS_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, HINT,
                           "%s: DIMENSIONS must be from twice NUMBERS to 2^31", name);
    if ((uint64_t)p->rows * (uint64_t)p->numbers > BYTES_MAX / 8) /* below 2^39 */
        return at_fail_set(fail, AT_ERR_USAGE, HINT, "%s: needs more than %llu GiB of memory", name,
                           (unsigned long long)(BYTES_MAX >> 30));
    p->numeric = (uint32_t)p->numbers / 3;
    p->categories = (uint32_t)p->numbers - p->numeric;
    p->range = (uint32_t)(((uint64_t)p->dimensions - p->numeric) / p->categories);
    for (p->octaves = 1; (uint64_t)2 << p->octaves <= p->range;) p->octaves++;
    assert(p->range >= 1);
    return AT_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The probability of a click at -8, -7.9375, ... 8, in units of 2^-24. */
static void make_table(uint32_t table[TABLE_SIZE])
{
    for (int i = 0; i < TABLE_SIZE; i++) {
        double z = (double)i / TABLE_STEPS - TABLE_REACH;
        table[i] = (uint32_t)lround(ldexp(1.0 / (1.0 + exp(-z)), PROBABILITY_BITS));
    }
}

/* Interpolates linearly in the table. */
static double probability(const uint32_t table[TABLE_SIZE], double z)
{
    double place = (z + TABLE_REACH) * TABLE_STEPS;
    if (place <= 0.0) return (double)table[0];
    if (place >= TABLE_SIZE - 1) return (double)table[TABLE_SIZE - 1];
    uint32_t below = (uint32_t)place;
    double   part = place - below;
    return (double)table[below] * (1.0 - part) + (double)table[below + 1] * part;
}

/* The hidden weight of a feature: a sum of four uniform numbers, deviation 0.36, recomputed each
 * time. */
static double weight(uint32_t feature)
{
    uint64_t bits = at_rng_mix(at_rng_mix(SEED) ^ feature);
    int64_t  sum =
        (int64_t)((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
    return (double)(sum - 2 * 65535) * (0x1p-16 * 0.625);
}

/* Fills one row; returns bias plus the sum of weights times values. */
static double fill_row(const plan *p, uint32_t *indices, float *values, at_rng *rng)
{
    double z = BIAS;
    for (uint32_t i = 0; i < p->numeric; i++) {
        uint64_t bits = at_rng_next(rng);
        indices[i] = i;
        values[i] = (float)(1 + (bits & 0xffff) + (bits >> 16 & 0xffff)) * 0x1p-16f;
        z += weight(i) * ((double)values[i] - 1.0); /* their mean is 1 */
    }
    for (uint32_t i = 0; i < p->categories; i++) {
        uint64_t bits = at_rng_next(rng);
        uint32_t octave = (uint32_t)((bits & 0xffff) * p->octaves >> 16);
        uint64_t rank = ((uint64_t)1 << octave) - 1 + (bits >> 32 & (((uint64_t)1 << octave) - 1));
        uint32_t index = p->numeric + i * p->range + (uint32_t)(rank * SCATTER % p->range);
        indices[p->numeric + i] = index;
        values[p->numeric + i] = 1.0f;
        z += weight(index);
    }
    return z;
}

static void fill(const plan *p, at_dataset *set, at_split split)
{
    uint32_t table[TABLE_SIZE];
    uint64_t numbers = (uint64_t)p->numbers;
    make_table(table);
    for (uint64_t i = 0; i < set->count; i++) {
        at_rng rng = at_rng_stream(SEED, NODE_ROWS + (uint64_t)split, AT_RNG_PURPOSE_SYNTHETIC, i);
        double z = fill_row(p, set->indices + i * numbers, set->values + i * numbers, &rng);
        double draw = (double)(at_rng_next(&rng) >> (64 - PROBABILITY_BITS));
        set->labels[i] = draw < probability(table, z);
        set->starts[i + 1] = (i + 1) * numbers;
    }
}

static at_err load(at_dataset *set, const char *name, at_split split, at_fail *fail)
{
    plan p;
    if (!parse(name, &p))
        return at_fail_set(fail, AT_ERR_USAGE, HINT,
                           "%s: expected " PREFIX ":ROWS,DIMENSIONS[,NUMBERS]", name);
    AT_TRY(check(&p, name, fail));
    uint64_t rows = (uint64_t)p.rows;
    if (split == AT_SPLIT_TEST) rows = rows / 5 > 0 ? rows / 5 : 1;
    AT_TRY(at_store_reserve_sparse(set, rows, rows * (uint64_t)p.numbers, (uint32_t)p.dimensions,
                                   fail));
    set->classes = 2;
    fill(&p, set, split);
    at_text form = at_text_in(set->form, sizeof set->form);
    at_text_add(&form, "sparse, %lld numbers per row", (long long)p.numbers);
    return AT_OK;
}

const at_format at_format_synthetic_clicks = {
    .name = PREFIX,
    .summary = "synthetic click data, " PREFIX ":ROWS,DIMENSIONS[,NUMBERS] (sparse)",
    .synthetic = true,
    .claims = claims,
    .load = load,
};
