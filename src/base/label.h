/* label.h - labels of samples: classes or real numbers in one 32-bit word.
 *
 * The label of a sample is its class (0, 1, ..) or, in a set with real-valued labels (0 classes),
 * the bits of a float. So everything that stores, shuffles and hands out labels works for both, and
 * only the loss at the end knows which they are.
 */
#ifndef AT_BASE_LABEL_H
#define AT_BASE_LABEL_H

#include <stdint.h>
#include <string.h>

/* The label of a sample with this real value. */
static inline uint32_t at_label_of_real(float value)
{
    uint32_t label;
    _Static_assert(sizeof label == sizeof value, "a label has the bits of a float");
    memcpy(&label, &value, sizeof label);
    return label;
}

/* The real value of a label. */
static inline float at_label_real(uint32_t label)
{
    float value;
    memcpy(&value, &label, sizeof value);
    return value;
}

#endif
