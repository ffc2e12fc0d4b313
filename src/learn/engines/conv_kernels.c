/* Where weights lie. A form splits each index into an outer part and parts within the inner blocks,
 * and every inner block belongs to one dimension. So an offset is a sum of four numbers, one a
 * dimension. */
#include "learn/engines/conv_kernels.h"

#include <assert.h>
#include <string.h>

at_conv_form at_conv_form_plain(const at_conv_spec *spec)
{
    at_conv_form form = {
        .shape = {spec->out.channels, spec->in.channels, spec->window.height, spec->window.width},
    };
    form.floats = 1;
    for (int d = 3; d >= 0; d--) {
        assert(form.shape[d] > 0);
        form.stride[d] = form.floats;
        form.floats *= form.shape[d];
    }
    return form;
}

/* What index `i` of dimension `d` adds to an offset. */
static size_t share(const at_conv_form *form, uint32_t d, uint32_t i)
{
    size_t offset = 0, step = 1;
    for (uint32_t k = form->inner_count; k-- > 0;) {
        uint32_t size = form->inner_size[k];
        if (form->inner_dim[k] == d) {
            offset += i % size * step;
            i /= size;
        }
        step *= size;
    }
    return offset + i * form->stride[d];
}

size_t at_conv_form_offset(const at_conv_form *form, uint32_t o, uint32_t i, uint32_t h, uint32_t w)
{
    assert(form->inner_count <= 4);
    assert(o < form->shape[0]);
    assert(i < form->shape[1]);
    assert(h < form->shape[2]);
    assert(w < form->shape[3]);
    size_t offset = share(form, 0, o) + share(form, 1, i) + share(form, 2, h) + share(form, 3, w);
    assert(offset < form->floats);
    return offset;
}

/* Visits all weights in plain order, and copies one way or the other. */
static void copy(const at_conv_form *form, float *plain, float *formed, bool to_plain)
{
    const uint32_t *n = form->shape;
    assert(at_conv_form_offset(form, n[0] - 1, n[1] - 1, n[2] - 1, n[3] - 1) < form->floats);
    for (uint32_t o = 0; o < n[0]; o++) {
        float *at_o = formed + share(form, 0, o);
        for (uint32_t i = 0; i < n[1]; i++) {
            float *at_i = at_o + share(form, 1, i);
            for (uint32_t h = 0; h < n[2]; h++) {
                float *at_h = at_i + share(form, 2, h);
                for (uint32_t w = 0; w < n[3]; w++, plain++) {
                    float *at_w = at_h + share(form, 3, w);
                    *(to_plain ? plain : at_w) = *(to_plain ? at_w : plain);
                }
            }
        }
    }
}

void at_conv_form_to_plain(const at_conv_form *form, float *plain, const float *formed)
{
    assert(plain != formed);
    copy(form, plain, (float *)formed, true); /* which only reads it */
}

void at_conv_form_from_plain(const at_conv_form *form, float *formed, const float *plain)
{
    assert(plain != formed);
    memset(formed, 0, form->floats * sizeof *formed);
    copy(form, (float *)plain, formed, false); /* which only reads it */
}
