/* compress_kernels.h - conversions between float32 and 16-bit floats, for each instruction set.
 *
 * All sets give the same bits, also for NaN, infinities and subnormal numbers.
 */
#ifndef AT_MESSAGE_COMPRESS_KERNELS_H
#define AT_MESSAGE_COMPRESS_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "base/isa.h"

typedef struct at_half_kernels {
    /* to[i] = from[i] in 16 bits. */
    void (*narrow)(uint16_t *to, const float *from, size_t count);
    /* to[i] = (from[i] + residual[i]) in 16 bits; residual[i] = what that lacks, 0 if that is not a
     * finite number. */
    void (*narrow_with_residual)(uint16_t *to, const float *from, float *residual, size_t count);
    void (*widen)(float *to, const uint16_t *from, size_t count);
} at_half_kernels;

enum { AT_COMPRESS_GROUP = 32 };

typedef struct at_compress_kernels {
    at_half_kernels fp16, bf16;
    /* Of AT_COMPRESS_GROUP floats, bit i: the bits of |v[i]| as a number are at least `least`, 1 or
     * more. NaN counts as larger than infinity. */
    uint32_t (*large_ones)(const float *v, uint32_t least);
} at_compress_kernels;

/* The kernels for this instruction set, which the processor MUST have. */
const at_compress_kernels *at_compress_kernels_for(at_isa isa);

#endif
