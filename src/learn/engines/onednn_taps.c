/* Tap by tap of the window, the weight gradient is a product of matrices:
 *     dw[tap] (in, out) = transpose(x (places, in)) * dy (places, out)
 * over the places at which the tap lies in the picture. With pictures turned to (height, width,
 * sample, channel), a row of such places of all samples is one range of memory. */
#include "learn/engines/onednn_taps.h"

#include "learn/engines/vectorize.h"

#include <assert.h>
#include <dnnl.h>
#include <string.h>

static size_t whole(const at_activation *form)
{
    return at_activation_blocks(form) * form->block;
}

/* The places 0 .. out-1 of one axis, begin .. end-1, from which a tap falls into the picture. */
typedef struct reach {
    size_t begin, end;
} reach;

static reach places(size_t tap, size_t before, size_t in, size_t out)
{
    reach r = {tap < before ? before - tap : 0, in + before > tap ? in + before - tap : 0};
    if (r.end > out) r.end = out;
    if (r.begin > r.end) r.begin = r.end;
    return r;
}

/* Places of all taps of one axis. */
static size_t places_all(size_t taps, size_t before, size_t in, size_t out)
{
    size_t sum = 0;
    for (size_t tap = 0; tap < taps; tap++) {
        reach r = places(tap, before, in, out);
        sum += r.end - r.begin;
    }
    return sum;
}

/* Weights (out, in, height, width) in blocks of both channels, out innermost. */
static bool knows_form(const at_conv_spec *spec, const at_conv_form *form)
{
    uint32_t block = spec->in.block;
    return block > 1 && spec->out.block == block && form->inner_count == 2 &&
           form->inner_dim[0] == 1 && form->inner_dim[1] == 0 && form->inner_size[0] == block &&
           form->inner_size[1] == block;
}

bool at_onednn_taps_pay(const at_onednn_taps *taps)
{
    enum { CHANNELS_MIN = 64, STRETCH_MIN = 32 }; /* below, products are too small to be fast */
    const at_conv_spec *spec = taps->spec;
    const at_window    *k = &spec->window;
    if (k->stride != 1 || !knows_form(spec, taps->form)) return false;
    if (whole(&spec->in) < CHANNELS_MIN || whole(&spec->out) < CHANNELS_MIN) return false;
    if ((size_t)taps->rows * spec->out.width < STRETCH_MIN) return false;
    uint64_t inside = places_all(k->height, k->top, spec->in.height, spec->out.height) *
                      places_all(k->width, k->left, spec->in.width, spec->out.width);
    uint64_t all = at_activation_area(&spec->out) * k->height * k->width;
    return inside * 5 < all * 3; /* oneDNN does all of them, a little faster each */
}

static size_t rounded(size_t floats)
{
    return (floats + 15) / 16 * 16;
}

size_t at_onednn_taps_scratch(const at_onednn_taps *taps)
{
    const at_conv_spec *spec = taps->spec;
    return rounded(taps->rows * at_activation_size(&spec->in)) +
           rounded(taps->rows * at_activation_size(&spec->out)) +
           rounded(whole(&spec->in) * whole(&spec->out));
}

/* From (sample, block, place, in block) to (place, sample, channel). */
static void turn(float *to, const float *from, const at_activation *form, size_t rows)
{
    size_t area = at_activation_area(form), block = form->block;
    for (size_t n = 0; n < rows; n++)
        for (size_t b = 0; b < at_activation_blocks(form); b++)
            for (size_t p = 0; p < area; p++, from += block)
                memcpy(to + (p * rows + n) * whole(form) + b * block, from, block * sizeof *to);
}

/* sum (in, out) <- the gradient of one tap, from turned pictures. */
static void weigh(const at_onednn_taps *taps, float *sum, const float *dy, const float *x,
                  uint32_t h, uint32_t w)
{
    const at_conv_spec *spec = taps->spec;
    const at_window    *k = &spec->window;
    size_t              in = whole(&spec->in), out = whole(&spec->out), rows = taps->rows;
    reach               v = places(h, k->top, spec->in.height, spec->out.height);
    reach               u = places(w, k->left, spec->in.width, spec->out.width);
    size_t              range = (u.end - u.begin) * rows;
    if (range == 0 || v.begin == v.end) memset(sum, 0, in * out * sizeof *sum);
    for (size_t i = v.begin; i < v.end && range; i++) {
        const float *at_x =
            x + ((i + h - k->top) * spec->in.width + u.begin + w - k->left) * rows * in;
        const float  *at_dy = dy + (i * spec->out.width + u.begin) * rows * out;
        dnnl_status_t status =
            dnnl_sgemm('T', 'N', (dnnl_dim_t)in, (dnnl_dim_t)out, (dnnl_dim_t)range, 1.0f, at_x,
                       (dnnl_dim_t)in, at_dy, (dnnl_dim_t)out, i > v.begin, sum, (dnnl_dim_t)out);
        assert(status == dnnl_success);
    }
}

/* One tap's gradient to its places in the form. */
static void put(const at_onednn_taps *taps, float *dw, const float *sum, uint32_t h, uint32_t w)
{
    const at_conv_form *form = taps->form;
    size_t              block = taps->spec->in.block, out = whole(&taps->spec->out);
    dw += h * form->stride[2] + w * form->stride[3];
    for (size_t o = 0; o < at_activation_blocks(&taps->spec->out); o++)
        for (size_t i = 0; i < whole(&taps->spec->in); i++)
            memcpy(dw + o * form->stride[0] + i / block * form->stride[1] + i % block * block,
                   sum + i * out + o * block, block * sizeof *dw);
}

/* db <- sums of turned dy: of the samples at a place first, which `sum` holds, then of places. */
static void sum_bias(const at_onednn_taps *taps, float *db, const float *dy, float *sum)
{
    size_t out = whole(&taps->spec->out);
    memset(db, 0, out * sizeof *db);
    for (size_t p = 0; p < at_activation_area(&taps->spec->out); p++) {
        memset(sum, 0, out * sizeof *sum);
        for (size_t n = 0; n < taps->rows; n++, dy += out) at_vector_add(sum, dy, out);
        at_vector_add(db, sum, out);
    }
}

void at_onednn_taps_weight(const at_onednn_taps *taps, float *dw, float *db, const float *dy,
                           const float *x, float *scratch)
{
    const at_conv_spec *spec = taps->spec;
    assert(at_onednn_taps_pay(taps));
    float *at_dy = scratch + rounded(taps->rows * at_activation_size(&spec->in));
    float *sum = at_dy + rounded(taps->rows * at_activation_size(&spec->out));
    turn(scratch, x, &spec->in, taps->rows);
    turn(at_dy, dy, &spec->out, taps->rows);
    for (uint32_t h = 0; h < spec->window.height; h++)
        for (uint32_t w = 0; w < spec->window.width; w++) {
            weigh(taps, sum, at_dy, scratch, h, w);
            put(taps, dw, sum, h, w);
        }
    if (db) sum_bias(taps, db, at_dy, sum);
}
