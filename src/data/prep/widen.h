/* widen.h - converts bytes to floats in [0, 1], with SIMD where available.
 *
 * All versions give the same bits: x[i] = (float)bytes[i] * (1/255 rounded to float).
 */
#ifndef AT_DATA_PREP_WIDEN_H
#define AT_DATA_PREP_WIDEN_H

#include <stddef.h>

typedef void at_widen(float *restrict x, const unsigned char *restrict bytes, size_t count);

at_widen at_widen_portable;

/* The fastest version for this processor. */
at_widen *at_widen_best(void);

#endif
