/* Fuzz target: all implementations agree, at any alignment. */
#include "base/crc32c.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t skipped = size > 8 ? data[0] % 8 : 0;
    assert(at_crc32c(data + skipped, size - skipped) ==
           at_crc32c_portable(data + skipped, size - skipped));
    return 0;
}
