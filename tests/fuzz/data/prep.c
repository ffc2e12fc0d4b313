/* Fuzz target: any text as a list of preparation steps, applied to a small image.
 *
 * The input is three bytes (channels, height and width, each 1 .. 16), then the list. The highest
 * bit of the first selects bytes instead of floats.
 */
#include "data/prep/prep.h"

#include "data/set/store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_SIZE_MAX = 512, NUMBERS_MAX = 1 << 20 };

static size_t size_of(at_image_shape p)
{
    return (size_t)p.channels * p.height * p.width;
}

static at_dataset *set_of(at_image_shape shape, at_element element)
{
    at_dataset *set = calloc(1, sizeof *set);
    assert(set);
    at_err err = at_store_reserve(set, 3, (uint32_t)size_of(shape), element, NULL);
    assert(!err);
    for (size_t i = 0; i < 3 * size_of(shape); i++)
        if (element == AT_ELEMENT_FLOAT)
            ((float *)(void *)set->rows)[i] = (float)i;
        else
            ((unsigned char *)set->rows)[i] = (unsigned char)i;
    set->classes = 1;
    set->shape = shape;
    return set;
}

static void prepare(at_prep *prep, at_dataset *set)
{
    size_t   numbers = size_of(at_prep_out(prep));
    float   *out = malloc(numbers * sizeof *out);
    float   *scratch = malloc(at_prep_scratch_size(prep) * sizeof *scratch);
    uint64_t index = 2;
    uint32_t label;
    assert(out && scratch);
    at_prep_rows(prep, out, &label, set, &index, 1, scratch, NULL);
    at_prep_rows(prep, out, &label, set, &index, 1, scratch, &(at_prep_key){1, 1, numbers});
    char *text = at_prep_text(prep);
    assert(text);
    free(text);
    free(out);
    free(scratch);
}

/* Steps for bytes refuse numbers that are not bytes. */
static void try_steps(at_prep *prep, at_image_shape shape, at_element element)
{
    at_dataset *set = set_of(shape, element);
    at_fail     fail = {0};
    at_err      err = at_prep_fit(prep, set, &fail);
    assert(err ? element == AT_ELEMENT_FLOAT && fail.text[0] : !fail.text[0]);
    if (!err) prepare(prep, set);
    at_dataset_free(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3 || size - 3 > TEXT_SIZE_MAX) return 0;
    at_image_shape shape = {data[0] % 16 + 1u, data[1] % 16 + 1u, data[2] % 16 + 1u};
    char           text[TEXT_SIZE_MAX + 1] = "";
    at_fail        fail = {0};
    at_prep       *prep;
    memcpy(text, data + 3, size - 3);
    at_err err = at_prep_new(text, shape, &prep, &fail);
    assert(err ? !prep && fail.err == err && fail.text[0] : prep != NULL);
    /* Large images are only slow. */
    if (prep && at_prep_scratch_size(prep) < NUMBERS_MAX)
        try_steps(prep, shape, data[0] < 128 ? AT_ELEMENT_FLOAT : AT_ELEMENT_BYTE);
    at_prep_free(prep);
    return 0;
}
