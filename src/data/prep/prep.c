#include "data/prep/prep.h"

#include "data/prep/prep_kind.h"

#include <assert.h>
#include <string.h>

/* What lies in the scratch memory: two pictures, a step's own, a map of rows and columns, and a
 * sample as it was read. */
typedef struct bench {
    float      *picture[2], *own, *sample;
    at_prep_map map;
} bench;

_Static_assert(sizeof(int32_t) == sizeof(float), "maps lie among floats");

size_t at_prep_room(const at_prep *prep)
{
    assert(prep);
    return 3 * prep->size_max + prep->room_max + 2 * prep->side_max;
}

static bench bench_in(const at_prep *prep, float *scratch)
{
    bench b = {.picture = {scratch, scratch + prep->size_max}};
    b.sample = b.picture[1] + prep->size_max;
    b.own = b.sample + prep->size_max;
    b.map.row = (int32_t *)(void *)(b.own + prep->room_max);
    b.map.column = b.map.row + prep->side_max;
    return b;
}

static bool in_place(const at_prep_step *step)
{
    return !step->kind->bend && !step->kind->resizes;
}

static void start_map(at_prep_map *map, at_image_shape of)
{
    map->height = of.height;
    map->width = of.width;
    for (uint32_t i = 0; i < of.height; i++) map->row[i] = (int32_t)i;
    for (uint32_t i = 0; i < of.width; i++) map->column[i] = (int32_t)i;
}

/* A run of steps that move pixels becomes one copy. Returns the first step behind it. */
static size_t move_pixels(const at_prep *prep, size_t i, size_t end, float *out, const float *in,
                          bench *b, at_rng *rng)
{
    at_image_shape from = prep->step[i].in;
    assert(prep->step[i].kind->bend);
    start_map(&b->map, from);
    for (; i < end && prep->step[i].kind->bend; i++)
        prep->step[i].kind->bend(&prep->step[i], &b->map, rng);
    at_prep_copy(out, in, &b->map, from);
    return i;
}

/* Where the step's result goes: straight to the end if no later step changes the shape. */
static float *place_for(const at_prep *prep, size_t i, size_t end, float *out, const float *from,
                        const bench *b)
{
    bool move = prep->step[i].kind->bend;
    for (i++; move && i < end && prep->step[i].kind->bend; i++) {}
    while (i < end && in_place(&prep->step[i])) i++;
    if (i == end) return out;
    return from == b->picture[0] ? b->picture[1] : b->picture[0];
}

/* The first `end` steps. */
static void prepare(const at_prep *prep, size_t end, float *out, const float *in, bench *b,
                    at_rng *rng)
{
    const float *from = in;
    float       *to = NULL;
    assert(end <= prep->steps);
    for (size_t i = 0; i < end; from = to) {
        const at_prep_step *step = &prep->step[i];
        if (from == in || !in_place(step)) to = place_for(prep, i, end, out, from, b);
        if (step->kind->bend) {
            i = move_pixels(prep, i, end, to, from, b, rng);
        } else {
            step->kind->apply(step, to, from, b->own);
            i++;
        }
    }
    assert(end == 0 || to == out);
    if (end == 0) memcpy(out, in, at_image_shape_size(prep->in) * sizeof *out);
}

void at_prep_first(const at_prep *prep, size_t end, float *out, const float *in, float *scratch)
{
    assert(out && in && scratch);
    bench b = bench_in(prep, scratch);
    prepare(prep, end, out, in, &b, NULL);
}

static void prepare_at(const at_prep *prep, float *out, const float *in, bench *b,
                       const at_prep_key *key, uint64_t offset)
{
    assert(prep->fitted);
    at_rng rng = {0};
    if (key) rng = at_rng_stream(key->seed, key->walk, AT_RNG_PURPOSE_PREP, key->position + offset);
    prepare(prep, prep->steps, out, in, b, key ? &rng : NULL);
}

void at_prep_apply(const at_prep *prep, float *restrict out, const float *restrict in,
                   float *restrict scratch, const at_prep_key *key)
{
    assert(out && in && scratch);
    bench b = bench_in(prep, scratch);
    prepare_at(prep, out, in, &b, key, 0);
}

void at_prep_rows(const at_prep *prep, float *restrict x, uint32_t *labels, const at_dataset *set,
                  const uint64_t *indices, uint32_t count, float *restrict scratch,
                  const at_prep_key *first)
{
    assert(at_dataset_features(set) == at_image_shape_size(prep->in));
    bench  b = bench_in(prep, scratch);
    size_t size = at_image_shape_size(prep->out);
    for (uint32_t i = 0; i < count; i++) {
        at_dataset_rows(set, b.sample, &labels[i], &indices[i], 1);
        prepare_at(prep, x + i * size, b.sample, &b, first, i);
    }
}
