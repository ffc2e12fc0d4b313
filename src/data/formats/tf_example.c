#include "data/formats/tf_example.h"

#include <assert.h>
#include <string.h>

enum wire { VARINT = 0, EIGHT_BYTES = 1, LENGTH = 2, FOUR_BYTES = 5 };

/* One field of a message. */
typedef struct field {
    uint64_t      number;
    unsigned      wire;
    uint64_t      value; /* VARINT */
    at_byte_range body;  /* all others */
} field;

static bool read_varint(at_byte_range *s, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && s->at < s->end; shift += 7) {
        unsigned char byte = *s->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

static bool take(at_byte_range *s, uint64_t size, at_byte_range *body)
{
    assert(s->at <= s->end);
    if (size > (uint64_t)(s->end - s->at)) return false;
    *body = (at_byte_range){s->at, s->at + size};
    s->at += size;
    return true;
}

static bool read_field(at_byte_range *s, field *f)
{
    uint64_t tag, size;
    *f = (field){0};
    if (!read_varint(s, &tag)) return false;
    f->number = tag >> 3;
    f->wire = tag & 7;
    if (f->wire == VARINT) return read_varint(s, &f->value);
    if (f->wire == EIGHT_BYTES) return take(s, 8, &f->body);
    if (f->wire == FOUR_BYTES) return take(s, 4, &f->body);
    return f->wire == LENGTH && read_varint(s, &size) && take(s, size, &f->body);
}

static bool is_message(const field *f, uint64_t number)
{
    return f->number == number && f->wire == LENGTH;
}

/* The last list of a feature counts. */
static bool read_feature(at_byte_range s, at_feature *feature)
{
    *feature = (at_feature){0};
    for (field f; s.at < s.end;) {
        if (!read_field(&s, &f)) return false;
        if (f.wire == LENGTH && f.number >= AT_FEATURE_BYTES && f.number <= AT_FEATURE_INTS)
            *feature = (at_feature){(at_feature_kind)f.number, f.body};
    }
    return true;
}

static bool equals(at_byte_range text, const char *name)
{
    size_t size = (size_t)(text.end - text.at);
    return size == strlen(name) && memcmp(text.at, name, size) == 0;
}

/* An entry of the map: key = 1, value = 2. */
static bool read_entry(at_byte_range s, const char *const *names, at_feature *found, size_t count)
{
    at_byte_range key = {s.at, s.at}, value = {s.at, s.at};
    for (field f; s.at < s.end;) {
        if (!read_field(&s, &f)) return false;
        if (is_message(&f, 1)) key = f.body;
        if (is_message(&f, 2)) value = f.body;
    }
    for (size_t i = 0; i < count; i++)
        if (equals(key, names[i])) return read_feature(value, &found[i]);
    return true;
}

static bool read_features(at_byte_range s, const char *const *names, at_feature *found,
                          size_t count)
{
    for (field f; s.at < s.end;) {
        if (!read_field(&s, &f)) return false;
        if (is_message(&f, 1) && !read_entry(f.body, names, found, count)) return false;
    }
    return true;
}

bool at_example_find(at_byte_range message, const char *const *names, at_feature *found,
                     size_t count)
{
    assert(names && found);
    memset(found, 0, count * sizeof *found);
    for (field f; message.at < message.end;) {
        if (!read_field(&message, &f)) return false;
        if (is_message(&f, 1) && !read_features(f.body, names, found, count)) return false;
    }
    return true;
}

int64_t at_example_ints(const at_feature *feature, int64_t *values, size_t room)
{
    assert(feature->kind == AT_FEATURE_INTS);
    size_t        count = 0;
    at_byte_range s = feature->list;
    for (field f; s.at < s.end;) {
        if (!read_field(&s, &f) || f.number != 1) return -1;
        if (f.wire == VARINT) {
            if (count < room) values[count] = (int64_t)f.value;
            count++;
            continue;
        }
        if (f.wire != LENGTH) return -1;
        for (uint64_t value; f.body.at < f.body.end; count++) {
            if (!read_varint(&f.body, &value)) return -1;
            if (count < room) values[count] = (int64_t)value;
        }
    }
    return (int64_t)count;
}

static float little_endian(const unsigned char *p)
{
    uint32_t bits = (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
    float    value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

int64_t at_example_floats(const at_feature *feature, float *values, size_t room)
{
    assert(feature->kind == AT_FEATURE_FLOATS);
    size_t        count = 0;
    at_byte_range s = feature->list;
    for (field f; s.at < s.end;) {
        if (!read_field(&s, &f) || f.number != 1) return -1;
        if (f.wire != FOUR_BYTES && f.wire != LENGTH) return -1;
        if ((f.body.end - f.body.at) % 4 != 0) return -1;
        for (; f.body.at < f.body.end; f.body.at += 4, count++)
            if (count < room) values[count] = little_endian(f.body.at);
    }
    return (int64_t)count;
}

bool at_example_bytes(const at_feature *feature, at_byte_range *bytes)
{
    assert(feature && bytes);
    field         f;
    at_byte_range s = feature->list;
    if (feature->kind != AT_FEATURE_BYTES || s.at == s.end) return false;
    if (!read_field(&s, &f) || !is_message(&f, 1)) return false;
    *bytes = f.body;
    return true;
}
