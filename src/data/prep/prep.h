/* prep.h - preparation of samples (--prep) between the data set and the model.
 *
 *     --prep "pad:4,crop:32,flip,normalise"
 *
 *     at_prep_new(text, at_dataset_shape(train), &prep, fail);  computes shapes, or refuses
 *     at_prep_fit(prep, train, fail);                             statistics for normalise
 *     at_prep_rows(prep, x, labels, train, indices, count, scratch, &key);
 *
 * A preparation is a list of steps, applied in order to each sample as it is drawn. Random steps
 * (crop, flip) are random only in training, with the random stream of (seed, walk, position): the
 * sample at a position of a walk is the same in every world, after a restart, and for any
 * micro-batch; but it differs in every epoch. For testing, a crop takes the center and nothing is
 * flipped. A fitted preparation never changes, so forked workers share it.
 */
#ifndef AT_DATA_PREP_PREP_H
#define AT_DATA_PREP_PREP_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "data/set/dataset.h"

typedef struct at_prep at_prep;

/* The position in a walk at which a sample is drawn. Walk 0 is shared by all workers. */
typedef struct at_prep_key {
    uint64_t seed, walk, position;
} at_prep_key;

/* Parses a list of steps for samples of that shape. AT_ERR_USAGE for a step that is unknown or
 * cannot be applied to the result of the previous steps; the text names the step and the shapes. */
at_err at_prep_new(const char *text, at_image_shape in, at_prep **prep, at_fail *fail);
/* Releases it; accepts NULL. */
void at_prep_free(at_prep *prep);

/* The shape of a prepared sample. */
at_image_shape at_prep_out(const at_prep *prep);

/* Computes the statistics that steps need, from the training samples after the previous steps in
 * testing mode; from 65536 evenly spaced samples if there are more. MUST be called once before the
 * first sample. AT_ERR_FAILED (memory), AT_ERR_USAGE (a sparse set). */
at_err at_prep_fit(at_prep *prep, const at_dataset *train, at_fail *fail);

/* The steps as text, with the fitted numbers, so that the preparation can be reproduced. To be
 * freed by the caller; NULL when memory runs out. */
char *at_prep_text(const at_prep *prep);

/* Floats of scratch memory needed by at_prep_rows. */
size_t at_prep_scratch_size(const at_prep *prep);

/* Like at_dataset_rows, prepared: x (count, at_prep_out). Row i is drawn at position + i; first
 * NULL: testing, nothing is random. */
void at_prep_rows(const at_prep *prep, float *restrict x, uint32_t *labels, const at_dataset *set,
                  const uint64_t *indices, uint32_t count, float *restrict scratch,
                  const at_prep_key *first);

#endif
