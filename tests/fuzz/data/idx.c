/* Fuzz target: any two files as IDX images and labels.
 *
 * The input is two bytes with the position of the cut (little endian, modulo the length), then the
 * file of images, then the file of labels.
 */
#include "data/formats/idx.h"

#include "../memory.h"

#include <stdlib.h>

/* An accepted set must be consistent. */
static void check_set(const at_dataset *set)
{
    assert(set->count > 0 && set->features > 0);
    assert(set->classes == at_store_label_max(set) + 1);
    float   *x = malloc(set->features * sizeof *x);
    uint64_t last = set->count - 1;
    uint32_t label;
    assert(x);
    at_dataset_rows(set, x, &label, &last, 1);
    assert(label < set->classes);
    assert(x[set->features - 1] >= 0.0f && x[set->features - 1] <= 1.0f);
    free(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4) return 0;
    size_t      body = size - 2;
    size_t      cut = 1 + (data[0] | (size_t)data[1] << 8) % (body - 1);
    at_fail     fail = {0};
    at_dataset *set = calloc(1, sizeof *set);
    at_source  *images = memory_source(data + 2, cut, "images", &fail);
    at_source  *labels = memory_source(data + 2 + cut, body - cut, "labels", &fail);
    assert(set);
    at_err err = images && labels ? at_idx_read_pair(set, images, labels, &fail) : fail.err;
    check_error(err, &fail);
    if (!err) check_set(set);
    at_source_close(images);
    at_source_close(labels);
    at_dataset_free(set);
    return 0;
}
