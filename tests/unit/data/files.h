/* files.h - writes files for tests in a temporary folder that is emptied before each test. */
#ifndef AT_TESTS_UNIT_DATA_FILES_H
#define AT_TESTS_UNIT_DATA_FILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static char home[] = "/tmp/anytime-data-XXXXXX";

static inline int remove_inner(const char *path, const struct stat *s, int kind, struct FTW *where)
{
    (void)s, (void)kind;
    return where->level > 0 ? remove(path) : 0;
}

static inline int empty_home(void **state)
{
    (void)state;
    return nftw(home, remove_inner, 16, FTW_DEPTH | FTW_PHYS);
}

static inline int enter_home(void **state)
{
    (void)state;
    return !mkdtemp(home) || chdir(home);
}

static inline int leave_home(void **state)
{
    return empty_home(state) || chdir("/") || rmdir(home);
}

static inline void write_raw(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static inline void write_gz(const char *path, const void *bytes, size_t size)
{
    gzFile file = gzopen(path, "wb9");
    assert_non_null(file);
    if (size > 0) assert_int_equal(gzwrite(file, bytes, (unsigned)size), size);
    assert_int_equal(gzclose(file), Z_OK);
}

/* Reads a whole file, to be freed. */
static inline unsigned char *read_all(const char *path, size_t *size)
{
    FILE          *file = fopen(path, "rb");
    unsigned char *bytes = malloc(1 << 20);
    assert_non_null(file);
    assert_non_null(bytes);
    *size = fread(bytes, 1, 1 << 20, file);
    assert_true(feof(file));
    fclose(file);
    return bytes;
}

/* An IDX file in memory: header and elements that count 0, 1, 2, ... modulo `modulus`. */
typedef struct idx_bytes {
    unsigned char bytes[1 << 16];
    size_t        size;
} idx_bytes;

static inline void idx_make(idx_bytes *idx, unsigned modulus, unsigned dims, ...)
{
    size_t  elements = 1;
    va_list extents;
    memcpy(idx->bytes, "\0\0\x08", 3);
    idx->bytes[3] = (unsigned char)dims;
    idx->size = 4;
    va_start(extents, dims);
    for (unsigned d = 0; d < dims; d++) {
        unsigned extent = va_arg(extents, unsigned);
        for (int shift = 24; shift >= 0; shift -= 8)
            idx->bytes[idx->size++] = (unsigned char)(extent >> shift);
        elements *= extent;
    }
    va_end(extents);
    assert_true(elements <= sizeof idx->bytes - idx->size);
    for (size_t i = 0; i < elements; i++) idx->bytes[idx->size++] = (unsigned char)(i % modulus);
}

#endif
