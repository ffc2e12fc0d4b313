/* memory.h - presents fuzzer input as files. */
#ifndef TESTS_FUZZ_MEMORY_H
#define TESTS_FUZZ_MEMORY_H

#include <assert.h>
#include <stdint.h>
#include <stdio.h>

#include "data/files/source.h"

/* Called by the fuzzer, or by driver.c, for every input. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A file with these bytes; fmemopen needs at least one. */
static inline FILE *memory_file(const uint8_t *data, size_t size)
{
    assert(size > 0);
    FILE *file = fmemopen((void *)(uintptr_t)data, size, "rb");
    assert(file);
    return file;
}

/* A source with these bytes, or NULL with the reason in *fail. */
static inline at_source *memory_source(const uint8_t *data, size_t size, const char *name,
                                       at_fail *fail)
{
    at_source *source = NULL;
    at_err     err = at_source_take(memory_file(data, size), name, size, &source, fail);
    assert(!err == (source != NULL));
    return source;
}

/* An error must have a text. */
static inline void check_error(at_err err, const at_fail *fail)
{
    if (err) assert(fail->err == err && fail->text[0]);
}

#endif
