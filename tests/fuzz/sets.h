/* sets.h - presents fuzzer input as a file that a format reads into a data set. */
#ifndef TESTS_FUZZ_SETS_H
#define TESTS_FUZZ_SETS_H

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/formats/format.h"
#include "memory.h"

enum { UNPACKED_MAX = 1 << 20 }; /* more only takes time */

/* An accepted set must be valid and match itself. */
static inline void check_set(const at_format *format, const char *path, at_dataset *set)
{
    at_fail     fail = {0};
    at_dataset *test = calloc(1, sizeof *test);
    assert(test && set->count > 0 && set->features > 0);
    assert(at_store_seal(set, &fail) == AT_OK);
    test->read_options = set->read_options;
    assert(at_format_load(format, test, path, AT_SPLIT_TRAIN, &fail) == AT_OK);
    assert(at_store_seal(test, &fail) == AT_OK);
    assert(at_dataset_match(set, test, &fail) == AT_OK);
    for (uint64_t i = 0; i < set->count; i++) assert(test->labels[i] == set->labels[i]);
    if (set->starts) assert(set->starts[set->count] == test->starts[test->count]);
    at_dataset_free(test);
}

/* Reads the bytes as a file of that format; an error must have a text. */
static inline void check_file(const at_format *format, const uint8_t *data, size_t size,
                              at_read_options options)
{
    char        path[64];
    at_fail     fail = {0};
    at_dataset *set = calloc(1, sizeof *set);
    int         fd = memfd_create("input", 0);
    assert(set && fd >= 0);
    at_source_limit(UNPACKED_MAX);
    assert(write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    (void)at_format_claims(format, path);
    set->read_options = options;
    at_err err = at_format_load(format, set, path, AT_SPLIT_TRAIN, &fail);
    check_error(err, &fail);
    if (!err) check_set(format, path, set);
    at_dataset_free(set);
    close(fd);
}

#endif
