#include "net/frame.h"

#include <assert.h>
#include <string.h>

static const unsigned char MAGIC[4] = {'A', 'N', 'T', 'S'};

static void put(unsigned char *to, uint64_t value, int size)
{
    for (int i = 0; i < size; i++) to[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get(const unsigned char *from, int size)
{
    uint64_t value = 0;
    for (int i = 0; i < size; i++) value |= (uint64_t)from[i] << (8 * i);
    return value;
}

void at_frame_write(unsigned char head[AT_FRAME_HEAD], uint32_t kind, uint64_t size)
{
    memcpy(head, MAGIC, sizeof MAGIC);
    put(head + 4, kind, 4);
    put(head + 8, size, 8);
}

at_err at_frame_read(const unsigned char head[AT_FRAME_HEAD], uint32_t kinds, uint32_t *kind,
                     uint64_t *size, at_fail *fail)
{
    assert(kinds > 0);
    *kind = (uint32_t)get(head + 4, 4);
    *size = get(head + 8, 8);
    if (memcmp(head, MAGIC, sizeof MAGIC) == 0 && *kind < kinds) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, "use the same version of anytime everywhere",
                       "not a message of a hub or a seat");
}
