/* activation.h - shape and memory layout of activations, the values between layers.
 *
 * A sample is an image (channels, height, width), or a flat vector with height and width 1. Between
 * layers, channels are stored in blocks of 8 or 16 (oneDNN's nChw8c and nChw16c), the size of
 * vector registers:
 *
 *     offset(c, h, w) = ((c / block * height + h) * width + w) * block + c % block
 *
 * Block 1 is the plain channel-first order of samples and flat vectors. Unused channels of the last
 * block are always zero.
 */
#ifndef AT_LEARN_ENGINES_ACTIVATION_H
#define AT_LEARN_ENGINES_ACTIVATION_H

#include <stddef.h>
#include <stdint.h>

typedef struct at_activation {
    uint32_t channels, height, width;
    uint32_t block; /* channels per block: 1, 8 or 16 */
} at_activation;

/* Blocks per sample. */
static inline size_t at_activation_blocks(const at_activation *shape)
{
    return (shape->channels + shape->block - 1) / shape->block;
}

/* Positions per channel. */
static inline size_t at_activation_area(const at_activation *shape)
{
    return (size_t)shape->height * shape->width;
}

/* Floats per sample, including the padding of the last block. */
static inline size_t at_activation_size(const at_activation *shape)
{
    return at_activation_blocks(shape) * shape->block * at_activation_area(shape);
}

/* Values per sample, without padding. */
static inline size_t at_activation_numbers(const at_activation *shape)
{
    return shape->channels * at_activation_area(shape);
}

#endif
