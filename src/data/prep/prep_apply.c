/* Applies the steps to samples. */
#include "data/prep/prep_kind.h"

#include <assert.h>
#include <string.h>

/* The layout of the scratch memory: two images, the scratch of a step, a pixel map, and a sample as
 * it was read. */
typedef struct workspace {
    float      *image[2], *own, *sample;
    at_prep_map map;
} workspace;

_Static_assert(sizeof(int32_t) == sizeof(float), "a map is stored among floats");

size_t at_prep_scratch_size(const at_prep *prep)
{
    assert(prep);
    return 3 * prep->size_max + prep->scratch_max + 2 * prep->side_max;
}

static workspace workspace_in(const at_prep *prep, float *scratch)
{
    workspace w = {.image = {scratch, scratch + prep->size_max}};
    w.sample = w.image[1] + prep->size_max;
    w.own = w.sample + prep->size_max;
    w.map.row = (int32_t *)(void *)(w.own + prep->scratch_max);
    w.map.column = w.map.row + prep->side_max;
    return w;
}

static bool in_place(const at_prep_step *step)
{
    return !step->kind->remap && !step->kind->resizes;
}

static void start_map(at_prep_map *map, at_image_shape of)
{
    map->height = of.height;
    map->width = of.width;
    for (uint32_t i = 0; i < of.height; i++) map->row[i] = (int32_t)i;
    for (uint32_t i = 0; i < of.width; i++) map->column[i] = (int32_t)i;
}

/* Turns consecutive steps that move pixels into one copy. Returns the first step after them. */
static size_t move_pixels(const at_prep *prep, size_t i, size_t end, float *out, const float *in,
                          workspace *w, at_rng *rng)
{
    at_image_shape from = prep->step[i].in;
    assert(prep->step[i].kind->remap);
    start_map(&w->map, from);
    for (; i < end && prep->step[i].kind->remap; i++)
        prep->step[i].kind->remap(&prep->step[i], &w->map, rng);
    at_prep_copy(out, in, &w->map, from);
    return i;
}

/* The destination of a step: directly `out` if no later step needs another buffer. */
static float *destination_of(const at_prep *prep, size_t i, size_t end, float *out,
                             const float *from, const workspace *w)
{
    bool move = prep->step[i].kind->remap;
    for (i++; move && i < end && prep->step[i].kind->remap; i++) {}
    while (i < end && in_place(&prep->step[i])) i++;
    if (i == end) return out;
    return from == w->image[0] ? w->image[1] : w->image[0];
}

/* Applies the first `end` steps. */
static void prepare(const at_prep *prep, size_t end, float *out, const float *in, workspace *w,
                    at_rng *rng)
{
    const float *from = in;
    float       *to = NULL;
    assert(end <= prep->steps);
    for (size_t i = 0; i < end; from = to) {
        const at_prep_step *step = &prep->step[i];
        if (from == in || !in_place(step)) to = destination_of(prep, i, end, out, from, w);
        if (step->kind->remap) {
            i = move_pixels(prep, i, end, to, from, w, rng);
        } else {
            step->kind->apply(step, to, from, w->own);
            i++;
        }
    }
    assert(end == 0 || to == out);
    if (end == 0) memcpy(out, in, at_image_shape_size(prep->in) * sizeof *out);
}

void at_prep_apply_first(const at_prep *prep, size_t end, float *out, const float *in,
                         float *scratch)
{
    assert(out && in && scratch);
    workspace w = workspace_in(prep, scratch);
    prepare(prep, end, out, in, &w, NULL);
}

static void prepare_at(const at_prep *prep, float *out, const float *in, workspace *w,
                       const at_prep_key *key, uint64_t offset)
{
    assert(prep->fitted);
    at_rng rng = {0};
    if (key) rng = at_rng_stream(key->seed, key->walk, AT_RNG_PURPOSE_PREP, key->position + offset);
    prepare(prep, prep->steps, out, in, w, key ? &rng : NULL);
}

void at_prep_rows(const at_prep *prep, float *restrict x, uint32_t *labels, const at_dataset *set,
                  const uint64_t *indices, uint32_t count, float *restrict scratch,
                  const at_prep_key *first)
{
    assert(at_dataset_features(set) == at_image_shape_size(prep->in));
    workspace w = workspace_in(prep, scratch);
    size_t    size = at_image_shape_size(prep->out);
    for (uint32_t i = 0; i < count; i++) {
        at_dataset_rows(set, w.sample, &labels[i], &indices[i], 1);
        prepare_at(prep, x + i * size, w.sample, &w, first, i);
    }
}
