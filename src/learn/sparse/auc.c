#include "learn/sparse/auc.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

/* An integer that increases with the margin; 0 and -0 are equal. */
static uint32_t rank_of(float margin)
{
    float    number = margin + 0.0f;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static int by_rank(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Keys are rank and label, sorted, so equal ranks are adjacent. */
static double count_pairs(const uint64_t *keys, size_t count)
{
    double below = 0, pairs = 0, ones_all = 0; /* below: zeros of a smaller rank */
    for (size_t at = 0; at < count;) {
        double ones = 0, zeros = 0;
        for (uint64_t rank = keys[at] >> 1; at < count && keys[at] >> 1 == rank; at++) {
            ones += (double)(keys[at] & 1);
            zeros += (double)(~keys[at] & 1);
        }
        pairs += ones * (below + zeros / 2);
        below += zeros;
        ones_all += ones;
    }
    return ones_all > 0 && below > 0 ? pairs / (ones_all * below) : NAN;
}

double at_auc(const float *margins, const uint32_t *labels, size_t count)
{
    size_t    size;
    uint64_t *keys = at_size_product(count, sizeof *keys, &size) ? malloc(size + 1) : NULL;
    double    auc = NAN;
    bool      valid = keys != NULL;
    for (size_t i = 0; valid && i < count; i++) {
        assert(labels[i] <= 1);
        valid = !isnan(margins[i]);
        keys[i] = (uint64_t)rank_of(margins[i]) << 1 | labels[i];
    }
    if (valid) {
        qsort(keys, count, sizeof *keys, by_rank);
        auc = count_pairs(keys, count);
    }
    free(keys);
    return auc;
}
