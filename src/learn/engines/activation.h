/* activation.h - how activations lie in memory.
 *
 * A sample is a picture (channels, height, width) or a line of numbers, which is a picture of
 * height and width 1. Between layers that work on pictures, channels lie in blocks of 8 or 16 side
 * by side (oneDNN's nChw8c and nChw16c), because that is what vector registers want:
 *
 *     offset(c, h, w) = ((c / block * height + h) * width + w) * block + c % block
 *
 * Block 1 is the plain channel-first order in which samples come and in which lines of numbers
 * stay. When the channels do not fill the last block, the rest of it is zero, always.
 */
#ifndef AT_LEARN_ENGINES_ACTIVATION_H
#define AT_LEARN_ENGINES_ACTIVATION_H

#include <stddef.h>
#include <stdint.h>

typedef struct at_activation {
    uint32_t channels, height, width;
    uint32_t block; /* 1, 8 or 16 channels side by side */
} at_activation;

/* Blocks of channels of one sample. */
static inline size_t at_activation_blocks(const at_activation *form)
{
    return (form->channels + form->block - 1) / form->block;
}

/* Places of one channel. */
static inline size_t at_activation_area(const at_activation *form)
{
    return (size_t)form->height * form->width;
}

/* Floats of one sample, with what fills up the last block. */
static inline size_t at_activation_size(const at_activation *form)
{
    return at_activation_blocks(form) * form->block * at_activation_area(form);
}

/* Numbers of one sample, without it. */
static inline size_t at_activation_numbers(const at_activation *form)
{
    return form->channels * at_activation_area(form);
}

#endif
