#include "data/formats/image_shape.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { GREY = 1, COLOR = 3, SIDE_MIN = 8 };

static bool is_channels(uint32_t extent)
{
    return extent == GREY || extent == COLOR;
}

at_image_shape at_image_shape_of(const uint32_t *extent, uint32_t dims, bool *interleaved)
{
    assert(interleaved);
    *interleaved = false;
    if (dims == 2) return (at_image_shape){GREY, extent[0], extent[1]};
    if (dims == 3 && is_channels(extent[2])) {
        *interleaved = extent[2] == COLOR;
        return (at_image_shape){extent[2], extent[0], extent[1]};
    }
    if (dims == 3 && is_channels(extent[0]))
        return (at_image_shape){extent[0], extent[1], extent[2]};
    return (at_image_shape){0};
}

at_image_shape at_image_shape_of_vector(uint32_t n)
{
    uint32_t side = SIDE_MIN;
    while ((uint64_t)side * side < n / COLOR) side++;
    if ((uint64_t)COLOR * side * side != n) return (at_image_shape){0};
    return (at_image_shape){COLOR, side, side};
}

static void deinterleave_bytes(unsigned char *restrict to, const unsigned char *restrict from,
                               size_t pixels, size_t channels)
{
    for (size_t c = 0; c < channels; c++)
        for (size_t p = 0; p < pixels; p++) *to++ = from[p * channels + c];
}

static void deinterleave_floats(float *restrict to, const float *restrict from, size_t pixels,
                                size_t channels)
{
    for (size_t c = 0; c < channels; c++)
        for (size_t p = 0; p < pixels; p++) *to++ = from[p * channels + c];
}

void at_image_shape_deinterleave(void *restrict to, const void *restrict from, at_element element,
                                 at_image_shape shape)
{
    assert(shape.channels > 0);
    size_t pixels = (size_t)shape.height * shape.width;
    switch (element) {
    case AT_ELEMENT_BYTE: deinterleave_bytes(to, from, pixels, shape.channels); return;
    case AT_ELEMENT_FLOAT: deinterleave_floats(to, from, pixels, shape.channels); return;
    }
    assert(!"unreachable");
}

at_err at_image_shape_deinterleave_rows(at_dataset *set, at_image_shape shape, at_fail *fail)
{
    assert((uint64_t)shape.channels * shape.height * shape.width == set->features);
    unsigned char *pixels = malloc(set->row_size);
    if (!pixels) return at_fail_memory_for(fail, "for one image");
    for (uint64_t i = 0; i < set->count; i++) {
        unsigned char *row = set->rows + i * set->row_size;
        memcpy(pixels, row, set->row_size);
        at_image_shape_deinterleave(row, pixels, set->element, shape);
    }
    free(pixels);
    set->shape = shape;
    return AT_OK;
}
