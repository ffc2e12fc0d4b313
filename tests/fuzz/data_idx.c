/* Fuzz target: any two files as IDX images and labels.
 *
 * The input is two bytes that say where it is cut (little endian, modulo its length), then the
 * images' file, then the labels' file.
 *
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Isrc \
 *         tests/fuzz/data_idx.c src/data/[a-z]*.c src/base/[a-z]*.c -lz -lcrypto -ljansson -lm
 *
 * With tests/fuzz/driver.c and any compiler it runs over given files instead.
 */
#include "data/idx.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static at_source *source_of(const uint8_t *data, size_t size, const char *name, at_fail *fail)
{
    at_source *source = NULL;
    FILE      *file = fmemopen((void *)(uintptr_t)data, size, "rb");
    assert(file);
    at_err err = at_source_take(file, name, size, &source, fail);
    assert(!err == (source != NULL));
    return source;
}

/* Whatever was accepted must hold together. */
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
    at_source  *images = source_of(data + 2, cut, "images", &fail);
    at_source  *labels = source_of(data + 2 + cut, body - cut, "labels", &fail);
    assert(set);
    at_err err = images && labels ? at_idx_read_pair(set, images, labels, &fail) : fail.err;
    if (err)
        assert(fail.err == err && fail.text[0]);
    else
        check_set(set);
    at_source_close(images);
    at_source_close(labels);
    at_dataset_free(set);
    return 0;
}
