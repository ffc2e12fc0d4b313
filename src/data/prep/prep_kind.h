/* prep_kind.h - the interface of preparation steps. A new kind is a row of the table in prep.c.
 *
 * A step that only moves pixels (pad, crop, flip) changes a pixel map, and a sequence of such steps
 * costs one copy. Every other step computes new numbers.
 */
#ifndef AT_DATA_PREP_PREP_KIND_H
#define AT_DATA_PREP_PREP_KIND_H

#include <stdbool.h>
#include <stdio.h>

#include "base/rng.h"
#include "data/prep/prep.h"

typedef struct at_prep_step at_prep_step;

/* The source of each pixel: to(y, x) = from(row[y], column[x]), or 0 where either is -1. */
typedef struct at_prep_map {
    uint32_t height, width;
    int32_t *row, *column;
} at_prep_map;

/* Statistics of one group of numbers over all samples: a channel of an image, or one element of a
 * feature vector. */
typedef struct at_prep_stats {
    double mean, deviation, min, max;
} at_prep_stats;

typedef struct at_prep_kind {
    const char *name;
    /* Parses the text after the colon (NULL: none) and computes step->out from step->in; may set
     * step->state, one block for free(). On false *why is the hint. */
    bool (*plan)(at_prep_step *step, const char *args, const char **why);
    /* Moves pixels: changes the map of the previous steps. rng NULL: testing. */
    void (*remap)(const at_prep_step *step, at_prep_map *map, at_rng *rng);
    /* Computes. `out` and `in` are equal or do not overlap; never equal if it `resizes`. */
    void (*apply)(const at_prep_step *step, float *out, const float *in, float *scratch);
    bool resizes; /* changes the shape of an image */
    /* Optional: receives the statistics (one per group) if step->needs_stats. */
    void (*fit)(at_prep_step *step, const at_prep_stats *stats);
    /* Optional: writes the fitted step as it could have been typed: "NAME:..". */
    void (*write_fitted)(const at_prep_step *step, FILE *to);
    bool floats_only; /* no effect on bytes, which are already in 0 .. 1 */
    bool bytes_only;  /* needs bytes as they were read, so it must be the first step */
} at_prep_kind;

struct at_prep_step {
    const at_prep_kind *kind;
    at_image_shape      in, out;
    bool                needs_stats;
    size_t              scratch_size; /* floats, for apply */
    void               *state;
    char               *text; /* as typed */
};

enum { AT_PREP_STEPS_MAX = 16 };

struct at_prep {
    at_prep_step   step[AT_PREP_STEPS_MAX];
    size_t         steps;
    at_image_shape in, out;
    size_t         size_max;    /* numbers of the largest intermediate image */
    size_t         scratch_max; /* the largest scratch_size */
    size_t         side_max;    /* longest row or column of any intermediate image */
    bool           fitted;
};

extern const at_prep_kind at_prep_pad, at_prep_crop, at_prep_flip; /* window.c */
extern const at_prep_kind at_prep_scale, at_prep_normalise;        /* affine.c */
extern const at_prep_kind at_prep_raw, at_prep_standardise;        /* affine.c */
extern const at_prep_kind at_prep_rgb, at_prep_grey;               /* color.c */
extern const at_prep_kind at_prep_resize;                          /* resize.c */

/* Numbers per sample. */
static inline size_t at_image_shape_size(at_image_shape p)
{
    return (size_t)p.channels * p.height * p.width;
}

/* A feature vector, which has no neighboring pixels to move or mix. */
static inline bool at_image_shape_is_vector(at_image_shape p)
{
    return p.channels == 1 && p.height == 1;
}

/* Groups per sample (see at_prep_stats), each of at_image_shape_size / groups numbers. */
static inline size_t at_prep_groups(at_image_shape p)
{
    return at_image_shape_is_vector(p) ? p.width : p.channels;
}

/* Applies the first `end` steps in testing mode; scratch has at_prep_scratch_size floats. */
void at_prep_apply_first(const at_prep *prep, size_t end, float *out, const float *in,
                         float *scratch);

/* Parses "N" or "HxW", both from 1 to `max`. */
bool at_prep_parse_size(const char *args, uint32_t max, uint32_t *height, uint32_t *width);

/* to <- from through the map, channel by channel. */
void at_prep_copy(float *restrict to, const float *restrict from, const at_prep_map *map,
                  at_image_shape from_shape);

#endif
