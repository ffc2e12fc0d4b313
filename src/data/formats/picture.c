#include "data/formats/picture.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { GREY = 1, COLOUR = 3, LINE_SIDE_MIN = 8 };

static bool is_channels(uint32_t extent)
{
    return extent == GREY || extent == COLOUR;
}

at_image_shape at_image_shape_of(const uint32_t *extent, uint32_t dims, bool *interleaved)
{
    assert(interleaved);
    *interleaved = false;
    if (dims == 2) return (at_image_shape){GREY, extent[0], extent[1]};
    if (dims == 3 && is_channels(extent[2])) {
        *interleaved = extent[2] == COLOUR;
        return (at_image_shape){extent[2], extent[0], extent[1]};
    }
    if (dims == 3 && is_channels(extent[0]))
        return (at_image_shape){extent[0], extent[1], extent[2]};
    return (at_image_shape){0};
}

at_image_shape at_image_shape_of_line(uint32_t n)
{
    uint32_t side = LINE_SIDE_MIN;
    while ((uint64_t)side * side < n / COLOUR) side++;
    if ((uint64_t)COLOUR * side * side != n) return (at_image_shape){0};
    return (at_image_shape){COLOUR, side, side};
}

static void split_bytes(unsigned char *restrict to, const unsigned char *restrict from,
                        size_t pixels, size_t channels)
{
    for (size_t c = 0; c < channels; c++)
        for (size_t p = 0; p < pixels; p++) *to++ = from[p * channels + c];
}

static void split_floats(float *restrict to, const float *restrict from, size_t pixels,
                         size_t channels)
{
    for (size_t c = 0; c < channels; c++)
        for (size_t p = 0; p < pixels; p++) *to++ = from[p * channels + c];
}

void at_image_shape_split(void *restrict to, const void *restrict from, at_element element,
                          at_image_shape picture)
{
    assert(picture.channels > 0);
    size_t pixels = (size_t)picture.height * picture.width;
    switch (element) {
    case AT_ELEMENT_BYTE: split_bytes(to, from, pixels, picture.channels); return;
    case AT_ELEMENT_FLOAT: split_floats(to, from, pixels, picture.channels); return;
    }
    assert(!"unreachable");
}

at_err at_image_shape_split_rows(at_dataset *set, at_image_shape picture, at_fail *fail)
{
    assert((uint64_t)picture.channels * picture.height * picture.width == set->features);
    unsigned char *pixels = malloc(set->row_size);
    if (!pixels) return at_fail_memory_for(fail, "for one picture");
    for (uint64_t i = 0; i < set->count; i++) {
        unsigned char *row = set->rows + i * set->row_size;
        memcpy(pixels, row, set->row_size);
        at_image_shape_split(row, pixels, set->element, picture);
    }
    free(pixels);
    set->picture = picture;
    return AT_OK;
}
