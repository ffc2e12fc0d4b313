/* sparse_prep.h - preparation of sparse rows, which are scaled in memory before they are drawn.
 *
 *     --prep normalise    numbers get deviation 1; those that most rows have also get mean 0
 *     --prep scale        numbers are divided by the largest one
 *
 * Features that are only 0 or 1, such as words and categories, stay as they are, and a feature that
 * few rows have keeps its zeros: subtracting its mean would fill every row.
 */
#ifndef AT_DATA_PREP_SPARSE_PREP_H
#define AT_DATA_PREP_SPARSE_PREP_H

#include "data/set/set_pair.h"

/* The steps for a train set: those given, "none" as NULL, and without any (NULL) normalise for
 * tables with numbers, whose columns have different units. */
const char *at_prep_choose(const char *given, const at_dataset *train);

/* Adds a line when steps were chosen that nobody has given. */
void at_prep_note(const char *given, const at_set_pair *pair, const char *data, at_text *notes);

/* Scales both sets of a pair of sparse sets. `steps` is normalise or scale, whose numbers come from
 * the train set, or normalise:FEATURE=MEAN/DEVIATION,.. with given ones. *fitted is the latter, to
 * be freed by the caller. AT_ERR_USAGE for other steps. */
at_err at_sparse_prep(at_set_pair *pair, const char *steps, char **fitted, at_fail *fail);

#endif
