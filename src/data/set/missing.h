/* missing.h - fills the numbers that are missing in a table. */
#ifndef AT_DATA_SET_MISSING_H
#define AT_DATA_SET_MISSING_H

#include "data/set/dataset.h"

/* Puts the mean of its feature, over the rows of `train` that have one, in place of each missing
 * number (NAN) of both sets, and keeps the means with the columns of `train`. `test` may be NULL.
 * Sets that are not tables, or were read without AT_MISSING_FILL, stay as they are. */
at_err at_missing_fill(at_dataset *train, at_dataset *test, at_fail *fail);

#endif
