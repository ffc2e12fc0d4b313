/* window.h - windows that move over pictures: of convolutions and pools. */
#ifndef AT_LEARN_ENGINES_WINDOW_H
#define AT_LEARN_ENGINES_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "learn/engines/activation.h"

typedef struct at_window {
    uint32_t height, width, stride;
    uint32_t top, left, bottom, right; /* padding, with zeros for convolutions */
} at_window;

/* Works out the window: the whole picture when its height is 0, the padding when `same` (so that
 * out = ceil(in / stride), with the odd zero at the end as TensorFlow does it). Then the places it
 * can take: out's height and width; its channels are those of `in`. AT_ERR_USAGE with half a
 * sentence about both when it does not fit, or when it could lie in padding alone. */
at_err at_window_fit(at_window *window, bool same, const at_activation *in, at_activation *out,
                     at_fail *fail);

#endif
