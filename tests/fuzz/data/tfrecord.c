/* Fuzz target: any file as TFRecord (the first byte is even), or any bytes as the messages of two
 * records with correct checksums, which a fuzzer cannot find by itself. The second byte is the
 * position where the bytes are divided. */
#include "../sets.h"
#include "base/crc32c.h"

#include <string.h>

enum { AROUND = 16 }; /* bytes of a record besides its message */

static uint8_t *put_number(uint8_t *to, uint64_t value, int size)
{
    for (int i = 0; i < size; i++) *to++ = (uint8_t)(value >> (8 * i));
    return to;
}

static uint8_t *put_record(uint8_t *to, const uint8_t *message, size_t size)
{
    uint8_t *start = to;
    to = put_number(to, size, 8);
    to = put_number(to, at_crc32c_masked(start, 8), 4);
    memcpy(to, message, size);
    return put_number(to + size, at_crc32c_masked(message, size), 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3) return 0;
    size_t body = size - 2, cut = data[1] * body / 255;
    if (data[0] % 2 == 0) {
        check_file(&at_format_tfrecord, data + 2, body, (at_read_options){0});
        return 0;
    }
    uint8_t *file = malloc(body + 2 * AROUND), *end = file;
    assert(file);
    end = put_record(end, data + 2, cut);
    if (cut < body) end = put_record(end, data + 2 + cut, body - cut);
    check_file(&at_format_tfrecord, file, (size_t)(end - file), (at_read_options){0});
    free(file);
    return 0;
}
