#include "record/log/wire.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(double) == 8, "reals are stored as IEEE 754 binary64");

enum { VARINT_SIZE = 10 }; /* 64 bits, 7 per byte */

uint64_t at_wire_offset(const at_wire *wire)
{
    assert(wire->next <= wire->end);
    return wire->offset + wire->next;
}

void at_wire_rewind(at_wire *wire, uint64_t offset)
{
    assert(!wire->out);
    assert(offset <= at_wire_offset(wire));
    wire->offset = offset;
    wire->next = wire->end = 0;
    wire->ended = false;
    wire->bad = NULL;
    wire->error = lseek(wire->fd, (off_t)offset, SEEK_SET) < 0 ? errno : 0;
}

static void refill(at_wire *wire)
{
    assert(wire->next == wire->end);
    wire->offset += wire->end;
    wire->next = wire->end = 0;
    ssize_t got;
    do got = read(wire->fd, wire->buffer, sizeof wire->buffer);
    while (got < 0 && errno == EINTR);
    if (got < 0) wire->error = errno;
    if (got == 0) wire->ended = true;
    if (got > 0) wire->end = (size_t)got;
}

/* The next byte; 0 at the end. */
static unsigned char get_byte(at_wire *wire)
{
    assert(!wire->out);
    assert(wire->next <= wire->end);
    if (wire->next == wire->end && !at_wire_broken(wire)) refill(wire);
    return at_wire_broken(wire) ? 0 : wire->buffer[wire->next++];
}

bool at_wire_raw(at_wire *wire, void *bytes, size_t size)
{
    assert(!wire->out);
    unsigned char *to = bytes;
    if (wire->end - wire->next >= size && !at_wire_broken(wire)) {
        memcpy(to, wire->buffer + wire->next, size);
        wire->next += size;
        return true;
    }
    for (size_t i = 0; i < size && !at_wire_broken(wire); i++) to[i] = get_byte(wire);
    return !at_wire_broken(wire);
}

/* Most numbers are small differences that take one byte. */
static inline void put_varint(at_append_file *file, uint64_t value)
{
    char  *room = at_append_file_room(file, VARINT_SIZE);
    size_t size = 0;
    if (value < 0x80) {
        *room = (char)value;
        file->used++;
        return;
    }
    for (; value >= 0x80; value >>= 7) room[size++] = (char)(value | 0x80);
    room[size++] = (char)value;
    assert(size <= VARINT_SIZE);
    file->used += size;
}

static uint64_t get_slow_varint(at_wire *wire)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        unsigned char byte = get_byte(wire);
        if (shift == 63 && byte > 1) break;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    wire->bad = "number exceeds 64 bits";
    return 0;
}

/* The fast path: nearly all numbers lie completely within the buffer. */
static uint64_t get_varint(at_wire *wire)
{
    if (wire->end - wire->next < VARINT_SIZE || at_wire_broken(wire)) return get_slow_varint(wire);
    const unsigned char *bytes = wire->buffer + wire->next;
    uint64_t             value = 0;
    for (size_t i = 0; i < VARINT_SIZE - 1; i++) {
        value |= (uint64_t)(bytes[i] & 0x7f) << (7 * i);
        if (bytes[i] < 0x80) {
            wire->next += i + 1;
            return value;
        }
    }
    return get_slow_varint(wire);
}

static inline void code_varint(at_wire *wire, uint64_t *value)
{
    if (wire->out)
        put_varint(wire->out, *value);
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
    uint64_t bits = 0;
    memcpy(&bits, value, sizeof bits);
    if (wire->out) {
        char *room = at_append_file_room(wire->out, sizeof bits);
        for (int i = 0; i < 8; i++) room[i] = (char)(bits >> (8 * i));
        wire->out->used += sizeof bits;
        return;
    }
    unsigned char bytes[sizeof bits] = {0};
    if (!at_wire_raw(wire, bytes, sizeof bytes)) memset(bytes, 0, sizeof bytes);
    bits = 0;
    for (int i = 0; i < 8; i++) bits |= (uint64_t)bytes[i] << (8 * i);
    memcpy(value, &bits, sizeof bits);
}

void at_wire_text(at_wire *wire, const char **text)
{
    assert(wire->out || *text == NULL);
    uint32_t size = wire->out && *text ? (uint32_t)strnlen(*text, AT_WIRE_TEXT - 1) : 0;
    at_wire_u32(wire, &size);
    if (wire->out) {
        at_append_file_bytes(wire->out, *text ? *text : "", size);
        return;
    }
    if (size >= AT_WIRE_TEXT) {
        wire->bad = "text too long";
        size = 0;
    }
    at_wire_raw(wire, wire->text, size);
    wire->text[size] = '\0';
    *text = wire->text;
}
