/* Windows, and the memory layout of convolution weights. A layout splits each index into an outer
 * part and parts within the inner blocks, and every inner block belongs to one dimension. So an
 * offset is a sum of four numbers, one per dimension. */
#include "learn/engines/conv_kernels.h"

#include <assert.h>
#include <string.h>

static at_err does_not_fit(const at_window *w, const at_activation *in, at_fail *fail)
{
    bool padded = w->top || w->left || w->bottom || w->right;
    return at_fail_set(fail, AT_ERR_USAGE, "use a smaller window, or pad=same",
                       "a window of %ux%u does not fit into %ux%u%s", w->height, w->width,
                       in->height, in->width, padded ? " with its padding" : "");
}

/* As TensorFlow does: an odd row of padding goes to the bottom. */
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
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "a window of %ux%u cannot have stride %u",
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
        return at_fail_set(fail, AT_ERR_USAGE, "use less padding than the window's size",
                           "a window of %ux%u would cover only padding around %ux%u", w->height,
                           w->width, in->height, in->width);
    out->channels = in->channels;
    out->height = (uint32_t)((height - w->height) / w->stride + 1);
    out->width = (uint32_t)((width - w->width) / w->stride + 1);
    return AT_OK;
}

at_window_reach at_window_reach_of(size_t offset, size_t before, size_t in, size_t out)
{
    at_window_reach r = {offset < before ? before - offset : 0,
                         in + before > offset ? in + before - offset : 0};
    if (r.end > out) r.end = out;
    if (r.begin > r.end) r.begin = r.end;
    return r;
}

/* Positions of all elements of the window along one axis. */
static size_t reach_sum(size_t elements, size_t before, size_t in, size_t out)
{
    size_t sum = 0;
    for (size_t offset = 0; offset < elements; offset++) {
        at_window_reach r = at_window_reach_of(offset, before, in, out);
        sum += r.end - r.begin;
    }
    return sum;
}

uint64_t at_window_products(const at_window *window, const at_activation *in,
                            const at_activation *out)
{
    assert(window->stride == 1);
    return (uint64_t)reach_sum(window->height, window->top, in->height, out->height) *
           reach_sum(window->width, window->left, in->width, out->width);
}

at_weight_layout at_weight_layout_plain(const at_conv_spec *spec)
{
    at_weight_layout layout = {
        .shape = {spec->out.channels, spec->in.channels, spec->window.height, spec->window.width},
    };
    layout.floats = 1;
    for (int d = 3; d >= 0; d--) {
        assert(layout.shape[d] > 0);
        layout.stride[d] = layout.floats;
        layout.floats *= layout.shape[d];
    }
    return layout;
}

/* The part of an offset that comes from index `i` of dimension `d`. */
static size_t part(const at_weight_layout *layout, uint32_t d, uint32_t i)
{
    size_t offset = 0, step = 1;
    for (uint32_t k = layout->inner_count; k-- > 0;) {
        uint32_t size = layout->inner_size[k];
        if (layout->inner_dim[k] == d) {
            offset += i % size * step;
            i /= size;
        }
        step *= size;
    }
    return offset + i * layout->stride[d];
}

size_t at_weight_layout_offset(const at_weight_layout *layout, uint32_t o, uint32_t i, uint32_t h,
                               uint32_t w)
{
    assert(layout->inner_count <= 4);
    assert(o < layout->shape[0]);
    assert(i < layout->shape[1]);
    assert(h < layout->shape[2]);
    assert(w < layout->shape[3]);
    size_t offset =
        part(layout, 0, o) + part(layout, 1, i) + part(layout, 2, h) + part(layout, 3, w);
    assert(offset < layout->floats);
    return offset;
}

bool at_weight_layout_is_blocked(const at_weight_layout *layout, const at_conv_spec *spec)
{
    uint32_t block = spec->in.block;
    assert(layout->inner_count <= 4);
    return block > 1 && spec->out.block == block && layout->inner_count == 2 &&
           layout->inner_dim[0] == 1 && layout->inner_dim[1] == 0 &&
           layout->inner_size[0] == block && layout->inner_size[1] == block &&
           layout->stride[3] == (size_t)block * block &&
           layout->stride[2] == layout->stride[3] * layout->shape[3];
}

/* Copies all weights to or from plain order. */
static void copy(const at_weight_layout *layout, float *plain, float *weights, bool to_plain)
{
    const uint32_t *n = layout->shape;
    assert(at_weight_layout_offset(layout, n[0] - 1, n[1] - 1, n[2] - 1, n[3] - 1) <
           layout->floats);
    for (uint32_t o = 0; o < n[0]; o++) {
        float *at_o = weights + part(layout, 0, o);
        for (uint32_t i = 0; i < n[1]; i++) {
            float *at_i = at_o + part(layout, 1, i);
            for (uint32_t h = 0; h < n[2]; h++) {
                float *at_h = at_i + part(layout, 2, h);
                for (uint32_t w = 0; w < n[3]; w++, plain++) {
                    float *at_w = at_h + part(layout, 3, w);
                    *(to_plain ? plain : at_w) = *(to_plain ? at_w : plain);
                }
            }
        }
    }
}

void at_weight_layout_to_plain(const at_weight_layout *layout, float *plain, const float *weights)
{
    assert(plain != weights);
    copy(layout, plain, (float *)weights, true); /* only reads it */
}

void at_weight_layout_from_plain(const at_weight_layout *layout, float *weights, const float *plain)
{
    assert(plain != weights);
    memset(weights, 0, layout->floats * sizeof *weights);
    copy(layout, (float *)plain, weights, false); /* only reads it */
}
