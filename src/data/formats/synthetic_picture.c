/* Made-up pictures, one pattern a class: a picture is
 *
 *     grey + pattern of its class, shifted by a few pixels + noise
 *
 * A pattern is a chequerboard of CELL x CELL cells with random levels, wrapped around at the
 * borders. The shift blurs what a linear model sees; a small convolution finds the cells' edges
 * wherever they are. All arithmetic is in whole numbers: the same bits on every machine.
 */
#include "data/formats/synthetic.h"

#include "base/rng.h"

#include <assert.h>

enum {
    CELL = 4,
    SHIFT_END = 8, /* a shift is 0 .. 7 pixels each way */
    GREY = 128,
    LEVEL_MAX = 40,
    NODE_PATTERN = 16, /* streams beside those of the Gaussian clusters */
    NODE_NOISE = 17,   /* ... and 18 for the test split */
};

/* Where a picture's pattern begins. */
typedef struct shift {
    uint32_t down, right;
} shift;

/* The level of one cell, drawn anew whenever it is needed: -LEVEL_MAX .. LEVEL_MAX. */
static int cell_level(uint64_t pattern, uint32_t channel, uint32_t row, uint32_t column)
{
    uint64_t where = (uint64_t)channel << 40 | (uint64_t)row << 20 | column;
    uint64_t bits = at_rng_mix(pattern ^ at_rng_mix(where));
    return (int)(bits % (2 * LEVEL_MAX + 1)) - LEVEL_MAX;
}

/* Noise of two uniform bytes: a triangle from -127 to 127 with a deviation of 52. */
static int noise_of(uint32_t bits)
{
    return ((int)(bits & 0xff) + (int)(bits >> 8 & 0xff) - 255) / 2;
}

static unsigned char clamp(int value)
{
    return (unsigned char)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* One line of one channel; four pixels a draw of noise. */
static void draw_line(unsigned char *line, uint32_t width, uint64_t pattern, uint32_t channel,
                      uint32_t cell_row, uint32_t right, at_rng *noise)
{
    assert(width > 0);
    uint64_t bits = 0;
    int      level = 0;
    for (uint32_t x = 0; x < width; x++) {
        uint32_t column = (x + right) % width;
        if (x == 0 || column % CELL == 0)
            level = cell_level(pattern, channel, cell_row, column / CELL);
        bits = x % 4 == 0 ? at_rng_next(noise) : bits >> 16;
        line[x] = clamp(GREY + level + noise_of((uint32_t)bits));
    }
}

static void draw(unsigned char *row, at_image_shape picture, uint64_t pattern, shift by,
                 at_rng *noise)
{
    assert(picture.channels > 0);
    for (uint32_t c = 0; c < picture.channels; c++)
        for (uint32_t y = 0; y < picture.height; y++, row += picture.width)
            draw_line(row, picture.width, pattern, c, (y + by.down) % picture.height / CELL,
                      by.right, noise);
}

void at_synthetic_draw(at_dataset *set, at_split split)
{
    assert(set->element == AT_ELEMENT_BYTE);
    assert(set->picture.channels > 0 && set->classes > 0);
    for (uint64_t i = 0; i < set->count; i++) {
        uint32_t label = (uint32_t)(i % set->classes);
        at_rng   class_of =
            at_rng_stream(AT_SYNTHETIC_SEED, NODE_PATTERN, AT_RNG_PURPOSE_SYNTHETIC, label);
        at_rng   noise = at_rng_stream(AT_SYNTHETIC_SEED, NODE_NOISE + (uint64_t)split,
                                       AT_RNG_PURPOSE_SYNTHETIC, i);
        uint64_t bits = at_rng_next(&noise);
        shift    by = {(uint32_t)(bits % SHIFT_END), (uint32_t)((bits >> 32) % SHIFT_END)};
        draw(set->rows + i * set->row_size, set->picture, at_rng_next(&class_of), by, &noise);
        set->labels[i] = label;
    }
}
