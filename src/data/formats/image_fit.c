/* Scaling is separable: first every line to the new width, then every column to the new height. A
 * new pixel is the mean of the old ones around its center, weighted by a triangle as wide as two
 * old pixels (bilinear interpolation) or, when the image shrinks, two new ones, so that no old
 * pixel is skipped. Weights are integers that add up to ONE, so results are bit-identical
 * everywhere. */
#include "data/formats/image.h"

#include "base/arena.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CHANNELS = 3, ONE = 1 << 14 };

/* The old pixels first .. first + count - 1 that make one new pixel, and their weights. */
typedef struct tap {
    uint32_t first, count;
    int32_t *weights;
} tap;

/* All new pixels of a line or column. */
typedef struct taps {
    tap     *each; /* (count) */
    int32_t *weights;
    uint32_t count;
} taps;

/* The part of the old line that becomes the new one, in units of half an old pixel, so that a
 * center is always an integer. */
typedef struct window {
    uint64_t start, length;
} window;

/* The height of the triangle at an old pixel, times a common factor that is divided out later. All
 * positions are in units of 1 / (2 * side) old pixels. */
static int64_t height_at(int64_t center, int64_t pixel, int64_t half, int64_t unit)
{
    int64_t distance = center - (2 * pixel + 1) * (unit / 2);
    if (distance < 0) distance = -distance;
    return distance < half ? half - distance : 0;
}

/* Weights of one new pixel around `center`. */
static void make_tap(tap *t, int64_t center, int64_t half, int64_t unit, uint32_t old)
{
    assert(half >= unit);
    int64_t first = (center - half) / unit, last = (center + half) / unit, sum = 0;
    if (first < 0) first = 0;
    if (last > (int64_t)old - 1) last = (int64_t)old - 1;
    for (int64_t p = first; p <= last; p++) sum += height_at(center, p, half, unit);
    assert(sum > 0);
    t->first = (uint32_t)first;
    t->count = (uint32_t)(last - first + 1);
    int32_t left = ONE;
    for (int64_t p = first; p <= last; p++) {
        int64_t weight = height_at(center, p, half, unit) * ONE / sum;
        t->weights[p - first] = (int32_t)weight;
        left -= (int32_t)weight;
    }
    t->weights[t->count / 2] += left; /* lost by rounding */
}

/* Old pixels are 2 * side units long, new ones window.length (half pixels). */
static bool make_taps(taps *all, uint32_t old, window part, uint32_t side)
{
    assert(old > 0 && side > 0 && part.length > 0);
    int64_t unit = 2 * (int64_t)side, step = (int64_t)part.length;
    int64_t half = step > unit ? step : unit;
    size_t  width = (size_t)(2 * half / unit) + 2, weights;
    *all = (taps){.count = side};
    if (!at_size_product(width, side, &weights)) return false;
    all->each = calloc(side, sizeof *all->each);
    all->weights = calloc(weights, sizeof *all->weights);
    if (!all->each || !all->weights) return false;
    for (uint32_t i = 0; i < side; i++) {
        int64_t center = (int64_t)part.start * side + (2 * i + 1) * step / 2;
        all->each[i].weights = all->weights + i * width;
        make_tap(&all->each[i], center, half, unit, old);
        assert(all->each[i].count <= width);
    }
    return true;
}

static void free_taps(taps *all)
{
    free(all->each);
    free(all->weights);
}

/* The old lines needed: first .. end - 1. */
typedef struct span {
    uint32_t first, end;
} span;

static span lines_of(const taps *down)
{
    const tap *top = &down->each[0], *bottom = &down->each[down->count - 1];
    return (span){top->first, bottom->first + bottom->count};
}

/* lines (span, side, 3) <- image (height, width, 3) */
static void scale_lines(unsigned char *lines, const at_image *image, const taps *across,
                        span needed)
{
    assert(needed.end <= image->height);
    for (uint32_t y = needed.first; y < needed.end; y++) {
        const unsigned char *line = image->pixels + (size_t)y * image->width * CHANNELS;
        for (uint32_t x = 0; x < across->count; x++) {
            const tap *t = &across->each[x];
            int32_t    sum[CHANNELS] = {ONE / 2, ONE / 2, ONE / 2};
            for (uint32_t i = 0; i < t->count; i++)
                for (size_t c = 0; c < CHANNELS; c++)
                    sum[c] += t->weights[i] * line[(size_t)(t->first + i) * CHANNELS + c];
            for (size_t c = 0; c < CHANNELS; c++) *lines++ = (unsigned char)(sum[c] / ONE);
        }
    }
}

/* row (3, side, side) <- lines (span, side, 3) */
static void scale_columns(unsigned char *row, const unsigned char *lines, const taps *down,
                          uint32_t side)
{
    uint32_t     first = lines_of(down).first;
    size_t const line_size = (size_t)side * CHANNELS;
    for (uint32_t y = 0; y < side; y++) {
        const tap *t = &down->each[y];
        for (size_t k = 0; k < line_size; k++) {
            int32_t sum = ONE / 2;
            for (uint32_t i = 0; i < t->count; i++)
                sum += t->weights[i] * lines[(t->first - first + i) * line_size + k];
            row[(k % CHANNELS * side + y) * side + k / CHANNELS] = (unsigned char)(sum / ONE);
        }
    }
}

/* The center square of the old image, in half pixels. */
static window center_of(uint32_t old, uint32_t shorter)
{
    return (window){.start = old - shorter, .length = 2 * (uint64_t)shorter};
}

static bool scale(const at_image *image, const taps *across, const taps *down, unsigned char *row)
{
    span   needed = lines_of(down);
    size_t size;
    if (!at_size_product((size_t)(needed.end - needed.first) * CHANNELS, across->count, &size))
        return false;
    unsigned char *lines = malloc(size);
    if (!lines) return false;
    scale_lines(lines, image, across, needed);
    scale_columns(row, lines, down, across->count);
    free(lines);
    return true;
}

static at_err resize(const at_image *image, uint32_t side, unsigned char *row, at_fail *fail)
{
    uint32_t shorter = image->width < image->height ? image->width : image->height;
    taps     across = {0}, down = {0};
    bool     done = make_taps(&across, image->width, center_of(image->width, shorter), side) &&
                make_taps(&down, image->height, center_of(image->height, shorter), side) &&
                scale(image, &across, &down, row);
    free_taps(&across);
    free_taps(&down);
    return done ? AT_OK : at_fail_memory_for(fail, "to scale an image");
}

static void crop(const at_image *image, uint32_t side, unsigned char *row)
{
    int64_t left = ((int64_t)image->width - side) / 2, top = ((int64_t)image->height - side) / 2;
    memset(row, 0, (size_t)CHANNELS * side * side);
    for (uint32_t y = 0; y < side; y++)
        for (uint32_t x = 0; x < side; x++) {
            int64_t old_x = left + x, old_y = top + y;
            if (old_x < 0 || old_y < 0 || old_x >= image->width || old_y >= image->height) continue;
            const unsigned char *pixel =
                image->pixels + ((size_t)old_y * image->width + (size_t)old_x) * CHANNELS;
            for (size_t c = 0; c < CHANNELS; c++) row[(c * side + y) * side + x] = pixel[c];
        }
}

at_err at_image_fit(const at_image *image, at_image_fit_mode mode, uint32_t side,
                    unsigned char *row, at_fail *fail)
{
    assert(image->pixels && row);
    assert(side > 0);
    switch (mode) {
    case AT_IMAGE_RESIZE: return resize(image, side, row, fail);
    case AT_IMAGE_CROP: crop(image, side, row); return AT_OK;
    }
    assert(!"unreachable");
    return AT_ERR_FAILED;
}
