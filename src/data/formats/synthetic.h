/* synthetic.h - the parts of made-up data sets; for synthetic.c only. */
#ifndef AT_DATA_FORMATS_SYNTHETIC_H
#define AT_DATA_FORMATS_SYNTHETIC_H

#include "data/set/store.h"

enum { AT_SYNTHETIC_SEED = 1 };

/* Fills the rows and labels of a reserved set of bytes whose picture and classes are set. */
void at_synthetic_draw(at_dataset *set, at_split split);

#endif
