/* prep.h - what is done to a sample between the data set and the model.
 *
 *     --prep "pad:4,crop:32,flip,normalise"
 *
 *     at_prep_new(text, at_dataset_picture(train), &prep, fail);  shapes are worked out, or refused
 *     at_prep_fit(prep, train, fail);                             what normalise needs to know
 *     at_prep_rows(prep, x, labels, train, indices, count, scratch, &key);
 *
 * A preparation is a short list of steps, done in order, for each sample as it is drawn. Steps that
 * draw lots (crop, flip) do so only in training, from the stream that belongs to (seed, walk,
 * position): the sample at a position of a walk looks the same in every world, after a restart, and
 * whatever the micro-batch; but it looks different in every pass. For testing, a crop is the middle
 * and nothing is flipped. Once fitted nothing changes any more, so forked workers share it.
 */
#ifndef AT_DATA_PREP_PREP_H
#define AT_DATA_PREP_PREP_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "data/set/dataset.h"

typedef struct at_prep at_prep;

/* Where in which walk a sample is drawn. Walk 0 is the one that all workers share. */
typedef struct at_prep_key {
    uint64_t seed, walk, position;
} at_prep_key;

/* One kind of step, for help texts and error messages. */
typedef struct at_prep_info {
    const char *name, *form, *summary;
} at_prep_info;

/* Reads a list of steps for samples of that picture. AT_ERR_USAGE for a step that is unknown, or
 * cannot be done to what the steps before it leave; the text names the step and the shapes. */
at_err at_prep_new(const char *text, at_image_shape in, at_prep **prep, at_fail *fail);
/* Releases it; accepts NULL. */
void at_prep_free(at_prep *prep);

/* The picture that a prepared sample is. */
at_image_shape at_prep_out(const at_prep *prep);

/* Works out the statistics that steps need, from the training samples as the steps before leave
 * them in testing form; of more than 65536 samples, from so many, evenly spread. MUST be done once
 * before the first sample. AT_ERR_FAILED (memory), AT_ERR_USAGE (a sparse set). */
at_err at_prep_fit(at_prep *prep, const at_dataset *train, at_fail *fail);

/* The steps as text, with the numbers that fitting found, so that somebody else can do the same:
 * new memory, to be freed by the caller. NULL: there is not enough. */
char *at_prep_text(const at_prep *prep);

/* How many floats of scratch memory preparing needs. */
size_t at_prep_room(const at_prep *prep);

/* out <- the prepared `in`. key NULL: as for testing, nothing is left to chance. */
void at_prep_apply(const at_prep *prep, float *restrict out, const float *restrict in,
                   float *restrict scratch, const at_prep_key *key);

/* at_dataset_rows, prepared: x (count, at_prep_out). Row i is drawn at position + i; first NULL: as
 * for testing. */
void at_prep_rows(const at_prep *prep, float *restrict x, uint32_t *labels, const at_dataset *set,
                  const uint64_t *indices, uint32_t count, float *restrict scratch,
                  const at_prep_key *first);

/* The kinds of steps there are, by index; NULL behind the last. */
const at_prep_info *at_prep_list(size_t index);

#endif
