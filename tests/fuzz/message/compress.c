/* Fuzz target: any bytes as a compressed vector. The first four bytes select the form and the
 * length. What is accepted decodes within its vector, and again to the same floats after it was
 * encoded. */
#include "message/compress.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 4, LENGTHS = 1 << 17 };

static at_packing choose(const uint8_t *head)
{
    at_compress how = {.kind = (at_compress_kind)(head[0] % 4), .share = (head[1] + 1) / 512.0};
    size_t      floats = (size_t)(head[2] | head[3] << 8) * 2 % LENGTHS;
    at_packing  packing;
    bool fits = at_packing_of_gradient(how, floats, floats % 5 == 0 ? floats / 5 : 0, &packing);
    assert(fits);
    return packing;
}

/* Every finite value of a decoded vector is a value that can be sent. */
static void try_again(const at_packing *packing, const float *vector)
{
    float  *residual = calloc(packing->packed + 1, sizeof *residual);
    float  *back = calloc(packing->floats + 1, sizeof *back);
    void   *bytes = malloc(packing->size + 1);
    at_fail fail;
    assert(residual && back && bytes);
    at_pack_with_residual(packing, bytes, vector, residual);
    assert(!at_unpack(packing, back, bytes, packing->size, &fail));
    for (size_t i = 0; i < packing->floats; i++)
        assert(back[i] == vector[i] || vector[i] != vector[i] || back[i] == 0);
    free(bytes);
    free(back);
    free(residual);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEAD) return 0;
    at_packing packing = choose(data);
    size_t     rest = size - HEAD;
    float     *vector = calloc(packing.floats + 1, sizeof *vector);
    void      *bytes = malloc(rest + 1); /* aligned, as a receive buffer is */
    at_fail    fail;
    assert(vector && bytes);
    memcpy(bytes, data + HEAD, rest);
    if (!at_unpack(&packing, vector, bytes, rest, &fail)) {
        assert(rest == packing.size);
        try_again(&packing, vector);
    } else {
        assert(fail.err == AT_ERR_FORMAT && fail.text[0]);
    }
    free(bytes);
    free(vector);
    return 0;
}
