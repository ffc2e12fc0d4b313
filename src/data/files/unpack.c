#include "data/files/unpack.h"

#include <assert.h>
#include <string.h>

static const at_unpack *const kinds[] = {
    &at_unpack_gzip,
    &at_unpack_xz,
};

enum { KINDS_COUNT = sizeof kinds / sizeof *kinds };

const at_unpack *at_unpack_find(const unsigned char *bytes, size_t size)
{
    assert(size == 0 || bytes);
    for (size_t i = 0; i < KINDS_COUNT; i++) {
        size_t wanted = kinds[i]->magic_size;
        if (size >= wanted && memcmp(bytes, kinds[i]->magic, wanted) == 0) return kinds[i];
    }
    return NULL;
}

const at_unpack *at_unpack_named(const char *path)
{
    assert(path);
    size_t length = strlen(path);
    for (size_t i = 0; i < KINDS_COUNT; i++) {
        size_t wanted = strlen(kinds[i]->suffix);
        if (length >= wanted && strcmp(path + length - wanted, kinds[i]->suffix) == 0)
            return kinds[i];
    }
    return NULL;
}
