/* Fuzz target: arbitrary bytes read as a safetensors file for a model of two tensors, and for its
 * other vectors and texts. */
#include "model_io/safetensors.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static at_err take(void *self, const char *name, const float *values, size_t count, at_fail *fail)
{
    float *sum = self;
    (void)fail;
    assert(name);
    for (size_t i = 0; i < count; i++) *sum += values[i];
    return AT_OK;
}

static void read_others(const char *path)
{
    at_safetensors_about about;
    at_fail              fail = {0};
    float                sum = 0;
    char                *text;
    at_err               err = at_safetensors_each(path, "dense1.", take, &sum, &fail);
    assert(!err == !fail.text[0]);
    err = at_safetensors_about_read(path, &about, &fail);
    assert(!err || fail.text[0]);
    err = at_safetensors_text(path, "inputs", &text, &fail);
    assert(err ? fail.text[0] && !text : true);
    free(text);
}

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
    read_others(path);
    close(fd);
    return 0;
}
