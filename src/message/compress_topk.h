/* compress_topk.h - the values of a vector with the largest absolute values. Internal to message/.
 *
 *     counts, one per block of 65,536 floats │ positions in their blocks │ values in bf16
 *     4 bytes each                           │ 2 bytes each              │ 2 bytes each
 *
 * Positions increase. Exactly `kept` values are sent, whatever the vector is: among equal ones
 * those at smaller positions, and NaN counts as larger than infinity. Nothing is sorted: three
 * passes count how often the leading, next and last bits of absolute values occur, which gives the
 * smallest value to keep, and a fourth one writes.
 */
#ifndef AT_MESSAGE_COMPRESS_TOPK_H
#define AT_MESSAGE_COMPRESS_TOPK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "message/compress_kernels.h"

enum { AT_TOPK_BLOCK = 1 << 16 };

/* Blocks of a vector. */
size_t at_topk_blocks(size_t floats);

/* sum += vector. */
void at_topk_add(float *sum, const float *vector, size_t floats);

/* Writes the `kept` largest values of v, which are replaced by what the message lacks of them. When
 * more values than that are not finite, the others become 0. */
void at_topk_pack(const at_compress_kernels *kernels, void *bytes, float *v, size_t floats,
                  size_t kept);

/* The inverse, zeros elsewhere. False: it is no such message. The caller has checked its size. */
bool at_topk_unpack(float *v, size_t floats, const void *bytes, size_t kept);

#endif
