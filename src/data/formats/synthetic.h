/* synthetic.h - normal numbers for synthetic data, with the same bits on every machine. */
#ifndef AT_DATA_FORMATS_SYNTHETIC_H
#define AT_DATA_FORMATS_SYNTHETIC_H

#include <stdint.h>

#include "base/rng.h"

/* Mean 0, deviation 1, between -9.8 and 9.8: the exact sum of eight uniform 16-bit integers,
 * because log() and cos() differ in their last bits between math libraries. */
double at_synthetic_normal(at_rng *rng);

#endif
