/* Computes the statistics of the training set that some steps need. */
#include "data/prep/prep_kind.h"

#include "data/set/store.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* Means over this many samples are exact to less than a hundredth of a deviation. */
enum { FIT_SAMPLES_MAX = 65536 };

/* Sums over one group, relative to its first number: otherwise rounding would swamp the variance of
 * a group that varies little around a large number. */
typedef struct sums {
    double origin, sum, squares, min, max;
} sums;

static void add_sample(sums *of, size_t groups, size_t length, const float *x)
{
    for (size_t g = 0; g < groups; g++, x += length) {
        sums s = of[g];
        for (size_t i = 0; i < length; i++) {
            double value = (double)x[i], d = value - s.origin;
            s.sum += d;
            s.squares += d * d;
            s.min = value < s.min ? value : s.min;
            s.max = value > s.max ? value : s.max;
        }
        of[g] = s;
    }
}

static at_prep_stats stats_of(const sums *s, double count)
{
    assert(count >= 1.0);
    double mean = s->sum / count, variance = s->squares / count - mean * mean;
    return (at_prep_stats){.mean = s->origin + mean,
                           .deviation = variance > 0.0 ? sqrt(variance) : 0.0,
                           .min = s->min,
                           .max = s->max};
}

/* Sums over the samples after the steps before `step`. Returns the number of values per group. */
static uint64_t sum_samples(const at_prep *prep, size_t step, const at_dataset *train, sums *of,
                            float *scratch)
{
    at_image_shape shape = prep->step[step].in;
    size_t         groups = at_prep_groups(shape), length = at_image_shape_size(shape) / groups;
    uint64_t       all = at_dataset_count(train);
    uint64_t       count = all < FIT_SAMPLES_MAX ? all : FIT_SAMPLES_MAX;
    float         *sample = scratch + at_prep_scratch_size(prep), *x = sample + prep->size_max;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t index = count == all ? i : (uint64_t)((double)i * (double)all / (double)count);
        uint32_t label;
        at_dataset_rows(train, sample, &label, &index, 1);
        at_prep_apply_first(prep, step, x, sample, scratch);
        for (size_t g = 0; i == 0 && g < groups; g++)
            of[g] = (sums){.origin = (double)x[g * length], .min = INFINITY, .max = -INFINITY};
        add_sample(of, groups, length, x);
    }
    return count * length;
}

static at_err fit_step(at_prep *prep, size_t step, const at_dataset *train, at_fail *fail)
{
    size_t groups = at_prep_groups(prep->step[step].in);
    float *scratch = calloc(at_prep_scratch_size(prep) + 2 * prep->size_max, sizeof *scratch);
    sums  *of = calloc(groups, sizeof *of);
    at_prep_stats *stats = calloc(groups, sizeof *stats);
    bool           enough = scratch && of && stats;
    if (enough) {
        double count = (double)sum_samples(prep, step, train, of, scratch);
        for (size_t g = 0; g < groups; g++) stats[g] = stats_of(&of[g], count);
        prep->step[step].kind->fit(&prep->step[step], stats);
    }
    free(scratch);
    free(of);
    free(stats);
    return enough ? AT_OK : at_fail_memory_for(fail, "for --prep");
}

at_err at_prep_fit(at_prep *prep, const at_dataset *train, at_fail *fail)
{
    assert(prep && !prep->fitted);
    if (at_dataset_is_sparse(train))
        return at_fail_set(fail, AT_ERR_USAGE, "remove --prep",
                           "--prep works only with dense data, but this set is sparse");
    assert(at_dataset_features(train) == at_image_shape_size(prep->in));
    bool bytes = train->element == AT_ELEMENT_BYTE;
    if (!bytes && prep->steps > 0 && prep->step[0].kind->bytes_only)
        return at_fail_set(fail, AT_ERR_USAGE,
                           "leave it out: numbers that are not bytes are never scaled",
                           "--prep %s works only with bytes, but the samples are %s",
                           prep->step[0].text, at_dataset_form(train));
    for (size_t i = 0; i < prep->steps; i++) {
        bool needed = prep->step[i].needs_stats && !(bytes && prep->step[i].kind->floats_only);
        if (needed) AT_TRY(fit_step(prep, i, train, fail));
    }
    prep->fitted = true;
    return AT_OK;
}
