/* rows.h - bytes to floats, the only arithmetic on the way from a set to a model.
 *
 * All versions give the same bits: x[i] = (float)bytes[i] * (1/255 rounded to float).
 */
#ifndef AT_DATA_PREP_ROWS_H
#define AT_DATA_PREP_ROWS_H

#include <stddef.h>

typedef void at_rows_widen(float *restrict x, const unsigned char *restrict bytes, size_t count);

at_rows_widen at_rows_widen_portable;

/* Only where the processor has AVX2; elsewhere the same as the portable one. */
at_rows_widen at_rows_widen_avx2;

/* The fastest one that this processor can run. */
at_rows_widen *at_rows_widen_best(void);

#endif
