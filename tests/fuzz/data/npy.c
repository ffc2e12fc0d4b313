/* Fuzz target: any file as a NumPy array (the first byte is even) or as an archive of arrays. */
#include "data/formats/npy.h"

#include "../sets.h"

enum { ELEMENTS_MAX = 1 << 20 };

static at_err read_source(void *self, void *bytes, size_t size, size_t *got, at_fail *fail)
{
    return at_source_read(self, bytes, size, got, fail);
}

/* Reads all elements after a valid header; as labels where a sample is one number. */
static at_err read_array(at_npy_input *input, at_fail *fail)
{
    at_npy npy;
    AT_TRY(at_npy_read_header(&npy, input, fail));
    assert(npy.count > 0 && npy.features > 0 && npy.dims >= 1);
    assert(npy.header_size == input->position);
    uint64_t elements = npy.count * npy.features;
    assert(elements <= input->size_max);
    if (elements > ELEMENTS_MAX) return AT_OK; /* valid, but slow */
    unsigned char *memory = malloc(elements * sizeof(float));
    assert(memory);
    at_err err = npy.features == 1
                     ? at_npy_read_labels(&npy, input, (uint32_t *)(void *)memory, fail)
                     : at_npy_read_rows(&npy, input, memory, fail);
    free(memory);
    return err;
}

static at_err read_file(const uint8_t *data, size_t size, at_fail *fail)
{
    at_source *source = memory_source(data, size, "array", fail);
    if (!source) return fail->err;
    at_npy_input input = {.read = read_source,
                          .self = source,
                          .name = "array",
                          .size_max = at_source_size_max(source)};
    at_err       err = read_array(&input, fail);
    at_source_close(source);
    return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    at_fail fail = {0};
    if (data[0] & 1)
        check_file(&at_format_npy, data + 1, size - 1, (at_read_options){0});
    else
        check_error(read_file(data + 1, size - 1, &fail), &fail);
    return 0;
}
