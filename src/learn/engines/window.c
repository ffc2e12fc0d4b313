#include "learn/engines/window.h"

#include <assert.h>

static at_err does_not_fit(const at_window *w, const at_activation *in, at_fail *fail)
{
    bool padded = w->top || w->left || w->bottom || w->right;
    return at_fail_set(fail, AT_ERR_USAGE, "use a smaller window, or pad=same",
                       "a window of %ux%u does not fit into %ux%u%s", w->height, w->width,
                       in->height, in->width, padded ? " with its padding" : "");
}

/* As TensorFlow does: what is odd goes to the bottom. */
static void pad_same(uint32_t in, uint32_t size, uint32_t stride, uint32_t *top, uint32_t *bottom)
{
    assert(in > 0 && size > 0 && stride > 0);
    uint64_t need = (uint64_t)((in - 1) / stride) * stride + size;
    uint64_t missing = need > in ? need - in : 0;
    *top = (uint32_t)(missing / 2);
    *bottom = (uint32_t)(missing - missing / 2);
}

at_err at_window_fit(at_window *window, bool same, const at_activation *in, at_activation *out,
                     at_fail *fail)
{
    at_window *w = window;
    assert(at_activation_area(in) > 0);
    if (w->height == 0) *w = (at_window){.height = in->height, .width = in->width, .stride = 1};
    if (w->width == 0 || w->stride == 0)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "a window of %ux%u cannot move in steps of %u",
                           w->height, w->width, w->stride);
    if (same) {
        pad_same(in->height, w->height, w->stride, &w->top, &w->bottom);
        pad_same(in->width, w->width, w->stride, &w->left, &w->right);
    }
    uint64_t height = (uint64_t)in->height + w->top + w->bottom;
    uint64_t width = (uint64_t)in->width + w->left + w->right;
    if (height < w->height || width < w->width) return does_not_fit(w, in, fail);
    if (w->top >= w->height || w->bottom >= w->height || w->left >= w->width ||
        w->right >= w->width)
        return at_fail_set(fail, AT_ERR_USAGE, "pad with less than the window's size",
                           "a window of %ux%u would see nothing but padding around %ux%u",
                           w->height, w->width, in->height, in->width);
    out->channels = in->channels;
    out->height = (uint32_t)((height - w->height) / w->stride + 1);
    out->width = (uint32_t)((width - w->width) / w->stride + 1);
    return AT_OK;
}
