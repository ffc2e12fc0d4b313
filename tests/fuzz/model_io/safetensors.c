/* Fuzz target: arbitrary bytes read as a safetensors file for a model of two tensors. */
#include "model_io/safetensors.h"

#include <assert.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const at_tensor tensors[] = {
        {.name = "dense1.weight", .dims = 2, .shape = {2, 3}, .at = 0},
        {.name = "dense1.bias", .dims = 1, .shape = {2}, .at = 6},
    };
    float   plain[9] = {[8] = 42}; /* canary after the tensors */
    char    path[64];
    at_fail fail = {0};
    int     fd = memfd_create("input", 0);
    assert(fd >= 0);
    assert(write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    at_err err = at_safetensors_read(path, tensors, 2, plain, &fail);
    if (err) assert(fail.err == err && fail.text[0]);
    assert(plain[8] == 42);
    close(fd);
    return 0;
}
