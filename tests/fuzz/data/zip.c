/* Fuzz target: any bytes as a zip archive, of which a few entries are read. */
#include "data/files/zip.h"

#include "../folder.h"

enum { BLOCK = 4096, SIZE_MAX_READ = 1 << 22 };

static void read_entry(at_zip *zip, const char *name)
{
    static unsigned char block[BLOCK];
    at_fail              fail = {0};
    uint64_t             size = 0, sum = 0;
    size_t               got = 1;
    if (at_zip_enter(zip, name, &size, &fail)) {
        assert(fail.text[0]);
        return;
    }
    while (got > 0 && sum <= size && sum < SIZE_MAX_READ) {
        if (at_zip_read(zip, block, sizeof block, &got, &fail)) break;
        assert(got <= sizeof block);
        sum += got;
    }
    assert(sum <= size || fail.text[0]);
    at_err err = at_zip_leave(zip, &fail);
    assert(!err || fail.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"x_train.npy", "y_train.npy", "x_test.npy", "a"};
    at_zip                  *zip = NULL;
    at_fail                  fail = {0};
    const char              *path = fuzz_file("input.npz", data, size, NULL, 0);
    if (at_zip_open(path, &zip, &fail)) {
        assert(!zip && fail.text[0]);
        return 0;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (at_zip_has(zip, names[i])) read_entry(zip, names[i]);
    at_zip_close(zip);
    return 0;
}
