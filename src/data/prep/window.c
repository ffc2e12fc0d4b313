/* Steps that only move pixels: consecutive ones become one copy through a map of rows and
 * columns. */
#include "data/prep/prep_kind.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE_MAX = 16384 };

/* ---- pad:P and pad:P:reflect ----------------------------------------------------------------- */

typedef struct pad_state {
    uint32_t width;
    bool     reflect;
} pad_state;

static bool plan_pad(at_prep_step *step, const char *args, const char **why)
{
    pad_state pad = {0};
    uint32_t  same;
    char      number[16] = "";
    size_t    length = args ? strcspn(args, ":") : 0;
    *why = "write pad:4 or pad:4:reflect";
    if (length == 0 || length >= sizeof number) return false;
    memcpy(number, args, length);
    if (strchr(number, 'x') || !at_prep_parse_size(number, SIDE_MAX / 4, &pad.width, &same))
        return false;
    if (args[length] && strcmp(args + length, ":reflect") != 0) return false;
    pad.reflect = args[length] != '\0';
    *why = "a reflected border must be narrower than the image";
    if (pad.reflect && (pad.width >= step->in.height || pad.width >= step->in.width)) return false;
    *why = "the result would be too large";
    step->out.height += 2 * pad.width;
    step->out.width += 2 * pad.width;
    if (step->out.height > SIDE_MAX || step->out.width > SIDE_MAX) return false;
    step->state = malloc(sizeof pad);
    *why = "not enough memory";
    if (!step->state) return false;
    memcpy(step->state, &pad, sizeof pad);
    return true;
}

/* Mirrors without repeating the edge: 0 1 2 becomes 2 1 | 0 1 2 | 1 0. */
static void pad_side(int32_t *map, uint32_t size, const pad_state *pad)
{
    uint32_t width = pad->width;
    memmove(map + width, map, size * sizeof *map);
    for (uint32_t i = 0; i < width; i++) {
        map[i] = pad->reflect ? map[2 * width - i] : -1;
        map[width + size + i] = pad->reflect ? map[width + size - 2 - i] : -1;
    }
}

static void remap_pad(const at_prep_step *step, at_prep_map *map, at_rng *rng)
{
    (void)rng;
    const pad_state *pad = step->state;
    pad_side(map->row, map->height, pad);
    pad_side(map->column, map->width, pad);
    map->height += 2 * pad->width;
    map->width += 2 * pad->width;
    assert(map->height == step->out.height && map->width == step->out.width);
}

const at_prep_kind at_prep_pad = {
    .name = "pad", /* a border of zeros, or of mirrored pixels */
    .plan = plan_pad,
    .remap = remap_pad,
};

/* ---- crop:N ---------------------------------------------------------------------------------- */

static bool plan_crop(at_prep_step *step, const char *args, const char **why)
{
    *why = "write crop:32 or crop:HEIGHTxWIDTH";
    if (!at_prep_parse_size(args, SIDE_MAX, &step->out.height, &step->out.width)) return false;
    *why = "a crop cannot be larger than the image; pad or resize it first";
    return step->out.height <= step->in.height && step->out.width <= step->in.width;
}

static uint32_t choose(uint32_t max, at_rng *rng)
{
    return rng ? (uint32_t)at_rng_below(rng, (uint64_t)max + 1) : max / 2;
}

static void remap_crop(const at_prep_step *step, at_prep_map *map, at_rng *rng)
{
    uint32_t top = choose(map->height - step->out.height, rng);
    uint32_t left = choose(map->width - step->out.width, rng);
    assert(top + step->out.height <= map->height && left + step->out.width <= map->width);
    map->height = step->out.height;
    map->width = step->out.width;
    memmove(map->row, map->row + top, map->height * sizeof *map->row);
    memmove(map->column, map->column + left, map->width * sizeof *map->column);
}

const at_prep_kind at_prep_crop = {
    .name = "crop", /* a random part in training, the center in testing */
    .plan = plan_crop,
    .remap = remap_crop,
};

/* ---- flip ------------------------------------------------------------------------------------ */

static bool plan_flip(at_prep_step *step, const char *args, const char **why)
{
    (void)step;
    *why = "this step takes no numbers";
    return !args;
}

static void remap_flip(const at_prep_step *step, at_prep_map *map, at_rng *rng)
{
    assert(map->width == step->in.width);
    if (!rng || at_rng_next(rng) >> 63) return;
    for (uint32_t i = 0, j = map->width - 1; i < j; i++, j--) {
        int32_t swap = map->column[i];
        map->column[i] = map->column[j];
        map->column[j] = swap;
    }
}

const at_prep_kind at_prep_flip = {
    .name = "flip", /* mirrors half of the images, left to right, in training */
    .plan = plan_flip,
    .remap = remap_flip,
};

/* ---- the copy -------------------------------------------------------------------------------- */

/* Columns usually are some zeros, a run that ascends or descends by one, some zeros. */
typedef struct run {
    uint32_t left, end; /* columns left .. end-1 are the run */
    int32_t  first, by; /* by 0: not a single run */
} run;

static run find_run(const at_prep_map *map)
{
    run r = {.end = map->width, .by = 1};
    while (r.left < r.end && map->column[r.left] < 0) r.left++;
    while (r.end > r.left && map->column[r.end - 1] < 0) r.end--;
    if (r.left == r.end) return r;
    r.first = map->column[r.left];
    if (r.left + 1 < r.end) r.by = map->column[r.left + 1] - r.first;
    for (uint32_t x = r.left; x < r.end; x++)
        if (map->column[x] != r.first + (int32_t)(x - r.left) * r.by) r.by = 0;
    if (r.by != 1 && r.by != -1) r.by = 0;
    return r;
}

static void copy_run(float *restrict to, const float *restrict from, const run *r, uint32_t width)
{
    assert(r->by == 1 || r->by == -1);
    const float *first = from + r->first;
    uint32_t     length = r->end - r->left;
    for (uint32_t x = 0; x < r->left; x++) to[x] = 0.0f;
    if (r->by == 1)
        memcpy(to + r->left, first, length * sizeof *to);
    else
        for (uint32_t i = 0; i < length; i++) to[r->left + i] = first[-(ptrdiff_t)i];
    for (uint32_t x = r->end; x < width; x++) to[x] = 0.0f;
}

static void copy_any(float *restrict to, const float *restrict from, const at_prep_map *map)
{
    for (uint32_t x = 0; x < map->width; x++)
        to[x] = map->column[x] < 0 ? 0.0f : from[map->column[x]];
}

void at_prep_copy(float *restrict to, const float *restrict from, const at_prep_map *map,
                  at_image_shape from_shape)
{
    assert(map->height > 0 && map->width > 0);
    run r = find_run(map);
    for (uint32_t c = 0; c < from_shape.channels; c++) {
        const float *channel = from + (size_t)c * from_shape.height * from_shape.width;
        for (uint32_t y = 0; y < map->height; y++, to += map->width) {
            assert(map->row[y] < (int32_t)from_shape.height);
            const float *row =
                channel + (size_t)(map->row[y] < 0 ? 0 : map->row[y]) * from_shape.width;
            if (map->row[y] < 0)
                memset(to, 0, map->width * sizeof *to);
            else if (r.by != 0)
                copy_run(to, row, &r, map->width);
            else
                copy_any(to, row, map);
        }
    }
}
