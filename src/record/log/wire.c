#include "record/log/wire.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(double) == 8, "reals are stored as IEEE 754 binary64");

enum { VARINT_SIZE = 10, /* 64 bits, 7 per byte */ SIZE_FIRST = 4096 };

void at_wire_write(at_wire *wire)
{
    wire->writes = true;
    wire->next = 0;
    wire->bad = NULL;
}

void at_wire_deinit(at_wire *wire)
{
    if (wire->writes) free(wire->bytes);
    wire->bytes = NULL;
    wire->size = wire->next = 0;
}

void at_wire_read(at_wire *wire, const unsigned char *bytes, size_t size)
{
    assert(!wire->writes);
    assert(bytes || size == 0);
    wire->bytes = (unsigned char *)(uintptr_t)bytes; /* only written to when `writes` */
    wire->size = size;
    wire->next = 0;
    wire->bad = NULL;
}

/* False when there is no memory; then the record is lost. */
static bool grow(at_wire *wire, size_t more)
{
    size_t size = wire->size ? wire->size : SIZE_FIRST;
    while (size - wire->next < more) size *= 2;
    unsigned char *bytes = realloc(wire->bytes, size);
    if (!bytes) {
        wire->bad = "not enough memory";
        return false;
    }
    wire->bytes = bytes;
    wire->size = size;
    return true;
}

/* Room for `size` more bytes, to be filled and added to `next`; NULL when there is no memory. */
static inline unsigned char *room(at_wire *wire, size_t size)
{
    assert(wire->writes);
    if (wire->size - wire->next < size && !grow(wire, size)) return NULL;
    return wire->bytes + wire->next;
}

static void too_short(at_wire *wire)
{
    if (!wire->bad) wire->bad = "the record is too short";
}

static bool get_bytes(at_wire *wire, void *bytes, size_t size)
{
    assert(!wire->writes);
    if (wire->bad || wire->size - wire->next < size) {
        too_short(wire);
        return false;
    }
    if (size > 0) memcpy(bytes, wire->bytes + wire->next, size);
    wire->next += size;
    return true;
}

/* Most numbers are small differences that take one byte. */
static inline void put_varint(at_wire *wire, uint64_t value)
{
    unsigned char *to = room(wire, VARINT_SIZE);
    size_t         size = 0;
    if (!to) return;
    for (; value >= 0x80; value >>= 7) to[size++] = (unsigned char)(value | 0x80);
    to[size++] = (unsigned char)value;
    assert(size <= VARINT_SIZE);
    wire->next += size;
}

static uint64_t get_varint(at_wire *wire)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (wire->bad || wire->next == wire->size) {
            too_short(wire);
            return 0;
        }
        unsigned char byte = wire->bytes[wire->next++];
        if (shift == 63 && byte > 1) break;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    wire->bad = "number exceeds 64 bits";
    return 0;
}

static inline void code_varint(at_wire *wire, uint64_t *value)
{
    if (wire->writes)
        put_varint(wire, *value);
    else
        *value = get_varint(wire);
}

static inline void code_signed(at_wire *wire, uint64_t *value)
{
    uint64_t zigzag = *value << 1 ^ (0 - (*value >> 63));
    code_varint(wire, &zigzag);
    *value = zigzag >> 1 ^ (0 - (zigzag & 1));
}

static inline void code_delta(at_wire *wire, uint64_t *value, uint64_t *last)
{
    uint64_t difference = *value - *last; /* wraps, so it works for every pair */
    code_signed(wire, &difference);
    *value = *last += difference;
}

void at_wire_u64(at_wire *wire, uint64_t *value)
{
    code_varint(wire, value);
}

void at_wire_u32(at_wire *wire, uint32_t *value)
{
    uint64_t wide = *value;
    code_varint(wire, &wide);
    if (wide > UINT32_MAX) wire->bad = "number exceeds 32 bits";
    *value = (uint32_t)wide;
}

void at_wire_i64(at_wire *wire, int64_t *value)
{
    uint64_t bits = (uint64_t)*value;
    code_signed(wire, &bits);
    *value = (int64_t)bits;
}

void at_wire_delta(at_wire *wire, uint64_t *value, uint64_t *last)
{
    code_delta(wire, value, last);
}

void at_wire_delta_u32(at_wire *wire, uint32_t *value, uint64_t *last)
{
    uint64_t wide = *value;
    code_delta(wire, &wide, last);
    if (wide > UINT32_MAX) wire->bad = "number exceeds 32 bits";
    *value = (uint32_t)wide;
}

void at_wire_delta_i64(at_wire *wire, int64_t *value, uint64_t *last)
{
    uint64_t bits = (uint64_t)*value;
    code_delta(wire, &bits, last);
    *value = (int64_t)bits;
}

unsigned at_wire_choice(at_wire *wire, unsigned value, unsigned limit)
{
    uint32_t wide = value;
    assert(value < limit);
    at_wire_u32(wire, &wide);
    if (wide < limit) return wide;
    wire->bad = "value out of range";
    return 0;
}

void at_wire_flag(at_wire *wire, bool *value)
{
    *value = at_wire_choice(wire, *value, 2);
}

void at_wire_flags(at_wire *wire, bool *const *flags, unsigned count)
{
    unsigned bits = 0;
    assert(count <= 7);
    for (unsigned i = 0; i < count; i++) bits |= (unsigned)*flags[i] << i;
    bits = at_wire_choice(wire, bits, 1u << count);
    for (unsigned i = 0; i < count; i++) *flags[i] = bits >> i & 1;
}

void at_wire_real(at_wire *wire, double *value)
{
    unsigned char bytes[sizeof(uint64_t)] = {0};
    uint64_t      bits = 0;
    if (wire->writes) {
        unsigned char *to = room(wire, sizeof bits);
        if (!to) return;
        memcpy(&bits, value, sizeof bits);
        for (int i = 0; i < 8; i++) to[i] = (unsigned char)(bits >> (8 * i));
        wire->next += sizeof bits;
        return;
    }
    get_bytes(wire, bytes, sizeof bytes);
    for (int i = 0; i < 8; i++) bits |= (uint64_t)bytes[i] << (8 * i);
    memcpy(value, &bits, sizeof bits);
}

void at_wire_put(at_wire *wire, const void *bytes, size_t size)
{
    unsigned char *to = room(wire, size);
    if (!to) return;
    if (size > 0) memcpy(to, bytes, size);
    wire->next += size;
}

void at_wire_text(at_wire *wire, const char **text)
{
    assert(wire->writes || *text == NULL);
    uint32_t size = wire->writes && *text ? (uint32_t)strnlen(*text, AT_WIRE_TEXT - 1) : 0;
    at_wire_u32(wire, &size);
    if (wire->writes) {
        at_wire_put(wire, *text, size);
        return;
    }
    if (size >= AT_WIRE_TEXT) {
        wire->bad = "text too long";
        size = 0;
    }
    if (!get_bytes(wire, wire->text, size)) size = 0;
    wire->text[size] = '\0';
    *text = wire->text;
}
