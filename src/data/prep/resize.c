/* resize:N and resize:HxW - bilinear, first along rows, then along columns.
 *
 * Each new pixel is a weighted sum of old ones around its center: a triangle as wide as two old
 * pixels when the image grows, and as wide as two new ones when it shrinks, so that no old pixel is
 * skipped. The weights of a side are computed once.
 */
#include "data/prep/prep_kind.h"

#include "base/arena.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE_MAX = 4096 };

/* The weights (taps) of each new position, for the old ones from `first` on. */
typedef struct side {
    uint32_t  taps;   /* per new position */
    uint32_t *first;  /* (to) */
    float    *weight; /* (to, taps) */
} side;

typedef struct resize_state {
    side row, column;
} resize_state;

static double support_of(uint32_t from, uint32_t to)
{
    double ratio = (double)from / to;
    return ratio > 1.0 ? ratio : 1.0;
}

static uint32_t taps_of(uint32_t from, uint32_t to)
{
    uint32_t taps = 2 * (uint32_t)ceil(support_of(from, to)) + 1;
    return taps < from ? taps : from;
}

/* Weights sum to 1 even at the edges, where part of the triangle lies outside. */
static void fill_side(side *s, uint32_t from, uint32_t to)
{
    assert(s->taps >= 1 && s->taps <= from);
    double support = support_of(from, to), ratio = (double)from / to;
    for (uint32_t i = 0; i < to; i++) {
        double   center = (i + 0.5) * ratio, sum = 0.0;
        double   low = floor(center - support);
        uint32_t first = low > 0.0 ? (uint32_t)low : 0;
        if (first > from - s->taps) first = from - s->taps;
        s->first[i] = first;
        for (int pass = 0; pass < 2; pass++)
            for (uint32_t t = 0; t < s->taps; t++) {
                double weight = fmax(0.0, 1.0 - fabs(first + t + 0.5 - center) / support);
                if (pass == 0) sum += weight;
                if (pass == 1) s->weight[(size_t)i * s->taps + t] = (float)(weight / sum);
            }
        assert(sum > 0.0);
    }
}

/* State, first positions and weights in one block. */
static bool make_state(at_prep_step *step)
{
    at_image_shape in = step->in, out = step->out;
    uint32_t row_taps = taps_of(in.height, out.height), column_taps = taps_of(in.width, out.width);
    size_t   firsts = (size_t)out.height + out.width;
    size_t   weights =
        (size_t)out.height * row_taps + (size_t)out.width * column_taps; /* sides are small */
    resize_state *state =
        malloc(sizeof *state + firsts * sizeof(uint32_t) + weights * sizeof(float));
    if (!state) return false;
    uint32_t *first = (uint32_t *)(void *)(state + 1);
    float    *weight = (float *)(void *)(first + firsts);
    state->row = (side){row_taps, first, weight};
    state->column = (side){column_taps, first + out.height, weight + (size_t)out.height * row_taps};
    fill_side(&state->row, in.height, out.height);
    fill_side(&state->column, in.width, out.width);
    step->state = state;
    return true;
}

static bool plan(at_prep_step *step, const char *args, const char **why)
{
    *why = "write resize:224 or resize:HEIGHTxWIDTH, at most 4096";
    if (!at_prep_parse_size(args, SIDE_MAX, &step->out.height, &step->out.width)) return false;
    *why = "not enough memory";
    step->scratch_size = (size_t)step->in.height * step->out.width; /* one channel after rows */
    return make_state(step);
}

/* to (height, new width) <- from (height, width) */
static void along_rows(float *restrict to, const float *restrict from, const side *s,
                       uint32_t height, uint32_t width, uint32_t to_width)
{
    assert(s->taps <= width);
    for (uint32_t y = 0; y < height; y++, from += width, to += to_width)
        for (uint32_t x = 0; x < to_width; x++) {
            const float *at = from + s->first[x], *weight = s->weight + (size_t)x * s->taps;
            float        sum = 0.0f;
            for (uint32_t t = 0; t < s->taps; t++) sum += weight[t] * at[t];
            to[x] = sum;
        }
}

/* to (new height, width) <- from (height, width) */
static void along_columns(float *restrict to, const float *restrict from, const side *s,
                          uint32_t to_height, uint32_t width)
{
    for (uint32_t y = 0; y < to_height; y++, to += width) {
        memset(to, 0, width * sizeof *to);
        for (uint32_t t = 0; t < s->taps; t++) {
            const float *at = from + (size_t)(s->first[y] + t) * width;
            float        weight = s->weight[(size_t)y * s->taps + t];
            if (weight == 0.0f) continue;
            for (uint32_t x = 0; x < width; x++) to[x] += weight * at[x];
        }
    }
}

static void apply(const at_prep_step *step, float *out, const float *in, float *scratch)
{
    const resize_state *state = step->state;
    at_image_shape      from = step->in, to = step->out;
    assert(state && from.channels == to.channels);
    for (uint32_t c = 0; c < from.channels; c++) {
        along_rows(scratch, in, &state->column, from.height, from.width, to.width);
        along_columns(out, scratch, &state->row, to.height, to.width);
        in += (size_t)from.height * from.width;
        out += (size_t)to.height * to.width;
    }
}

const at_prep_kind at_prep_resize = {
    .name = "resize",
    .plan = plan,
    .apply = apply,
    .resizes = true,
};
