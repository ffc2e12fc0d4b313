#include "base/crc32c.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

static const uint32_t POLYNOMIAL = 0x82f63b78; /* bit-reversed */
static const uint32_t MASK = 0xa282ead8;

typedef uint32_t update(uint32_t crc, const unsigned char *bytes, size_t size);

/* Four bits at a time: the table is small enough to build on each call. */
static uint32_t update_portable(uint32_t crc, const unsigned char *bytes, size_t size)
{
    uint32_t table[16];
    for (uint32_t i = 0; i < 16; i++) {
        table[i] = i;
        for (int bit = 0; bit < 4; bit++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? POLYNOMIAL : 0);
    }
    for (; size > 0; size--) {
        crc ^= *bytes++;
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return crc;
}

#if defined __x86_64__
__attribute__((target("sse4.2"))) static uint32_t
update_sse(uint32_t crc, const unsigned char *bytes, size_t size)
{
    uint64_t wide = crc;
    for (; size >= 8; size -= 8, bytes += 8) {
        uint64_t word;
        memcpy(&word, bytes, sizeof word);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    for (; size > 0; size--) crc = __builtin_ia32_crc32qi(crc, *bytes++);
    return crc;
}

static update *fastest(void)
{
    return __builtin_cpu_supports("sse4.2") ? update_sse : update_portable;
}
#else
static update *fastest(void)
{
    return update_portable;
}
#endif

uint32_t at_crc32c(const void *bytes, size_t size)
{
    assert(size == 0 || bytes);
    return ~fastest()(~(uint32_t)0, bytes, size);
}

uint32_t at_crc32c_portable(const void *bytes, size_t size)
{
    assert(size == 0 || bytes);
    return ~update_portable(~(uint32_t)0, bytes, size);
}

uint32_t at_crc32c_masked(const void *bytes, size_t size)
{
    uint32_t crc = at_crc32c(bytes, size);
    return (crc >> 15 | crc << 17) + MASK;
}
