/* Fuzz target: any file as a CIFAR batch. The first byte selects CIFAR-10 or CIFAR-100. */
#include "data/formats/cifar.h"

#include "../memory.h"

#include <stdlib.h>

static at_err count_images(const at_cifar *kind, const uint8_t *data, size_t size, uint64_t *count,
                           at_fail *fail)
{
    at_source *source = memory_source(data, size, "batch", fail);
    if (!source) return fail->err;
    at_err err = at_cifar_count(kind, source, count, fail);
    at_source_close(source);
    return err;
}

/* A batch that was counted can be read, and its labels are in range. */
static void read_images(const at_cifar *kind, const uint8_t *data, size_t size, uint64_t count)
{
    at_fail     fail = {0};
    at_dataset *set = calloc(1, sizeof *set);
    uint64_t    filled = 0;
    at_source  *source = memory_source(data, size, "batch", &fail);
    assert(set && source);
    at_err err = at_store_reserve(set, count, AT_CIFAR_PIXELS_SIZE, AT_ELEMENT_BYTE, &fail);
    if (!err) err = at_cifar_append(kind, source, set, &filled, &fail);
    assert(!err && filled == count);
    assert(at_store_label_max(set) < kind->classes);
    at_source_close(source);
    at_dataset_free(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    const at_cifar *kind = data[0] & 1 ? &at_cifar_100 : &at_cifar_10;
    at_fail         fail = {0};
    uint64_t        count = 0;
    at_err          err = count_images(kind, data + 1, size - 1, &count, &fail);
    check_error(err, &fail);
    if (!err) read_images(kind, data + 1, size - 1, count);
    return 0;
}
