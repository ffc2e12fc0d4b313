/* prep_kind.h - the family of preparation steps. A new kind is a row of the table in prep_plan.c,
 * and a file when it is more than a few lines.
 *
 * There are two sorts. A step that only moves pixels (pad, crop, flip) bends a map, and a run of
 * such steps costs one copy. Every other step computes new numbers.
 */
#ifndef AT_DATA_PREP_PREP_KIND_H
#define AT_DATA_PREP_PREP_KIND_H

#include <stdbool.h>
#include <stdio.h>

#include "base/rng.h"
#include "data/prep/prep.h"

typedef struct at_prep_step at_prep_step;

/* Where pixels come from: to(y, x) = from(row[y], column[x]), and 0 where either is -1. */
typedef struct at_prep_map {
    uint32_t height, width;
    int32_t *row, *column;
} at_prep_map;

/* Statistics of one group of numbers over all samples: a channel of a picture, or one number of a
 * line of numbers. */
typedef struct at_prep_stats {
    double mean, deviation, min, max;
} at_prep_stats;

typedef struct at_prep_kind {
    at_prep_info info;
    /* Reads what stands behind the colon (NULL: nothing) and works out step->out from step->in; may
     * give the step a state, one block for free(). Says no in half a sentence, in *why. */
    bool (*plan)(at_prep_step *step, const char *args, const char **why);
    /* Moves pixels: changes the map of the steps before. rng NULL: for testing. */
    void (*bend)(const at_prep_step *step, at_prep_map *map, at_rng *rng);
    /* Computes; `out` and `in` are the same or, always if it `resizes`, do not overlap. */
    void (*apply)(const at_prep_step *step, float *out, const float *in, float *scratch);
    bool resizes; /* a picture into one of another shape */
    /* Optional: takes the statistics (groups of them), if the step wants them. */
    void (*fit)(at_prep_step *step, const at_prep_stats *stats);
    /* Optional: the numbers it goes by, once fitted, as they could have been typed: "NAME:..". */
    void (*tell)(const at_prep_step *step, FILE *to);
    bool floats_only; /* there is nothing to do for numbers that were bytes: they are 0 .. 1 */
} at_prep_kind;

struct at_prep_step {
    const at_prep_kind *kind;
    at_image_shape      in, out;
    bool                wants_stats;
    size_t              room; /* floats of scratch memory for apply */
    void               *state;
    char               *words; /* as typed */
};

enum { AT_PREP_STEPS_MAX = 16 };

struct at_prep {
    at_prep_step   step[AT_PREP_STEPS_MAX];
    size_t         steps;
    at_image_shape in, out;
    size_t         size_max; /* numbers of the largest picture on the way */
    size_t         room_max; /* floats of scratch of the greediest step */
    size_t         side_max; /* of the longest row or column on the way */
    bool           fitted;
};

extern const at_prep_kind at_prep_pad, at_prep_crop, at_prep_flip; /* prep_window.c */
extern const at_prep_kind at_prep_scale, at_prep_normalise;        /* prep_affine.c */
extern const at_prep_kind at_prep_standardise;                     /* prep_affine.c */
extern const at_prep_kind at_prep_rgb, at_prep_grey;               /* prep_colour.c */
extern const at_prep_kind at_prep_resize;                          /* prep_resize.c */

/* Numbers of one sample. */
static inline size_t at_image_shape_size(at_image_shape p)
{
    return (size_t)p.channels * p.height * p.width;
}

/* A line of numbers, which has no neighbours to move or mix. */
static inline bool at_image_shape_is_line(at_image_shape p)
{
    return p.channels == 1 && p.height == 1;
}

/* How many groups a sample has (see at_prep_stats), each of at_image_shape_size / groups
 * numbers. */
static inline size_t at_prep_groups(at_image_shape p)
{
    return at_image_shape_is_line(p) ? p.width : p.channels;
}

/* The first `end` steps as for testing; scratch has at_prep_room floats. */
void at_prep_first(const at_prep *prep, size_t end, float *out, const float *in, float *scratch);

/* Reads "N" or "HxW", both at least 1 and at most `max`. */
bool at_prep_sides(const char *args, uint32_t max, uint32_t *height, uint32_t *width);

/* to <- from through the map, channel by channel. */
void at_prep_copy(float *restrict to, const float *restrict from, const at_prep_map *map,
                  at_image_shape from_shape);

#endif
