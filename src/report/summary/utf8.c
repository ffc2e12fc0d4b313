#include "report/summary/utf8.h"

#include <assert.h>
#include <stdbool.h>

/* Length of the UTF-8 sequence that begins with this byte; 0 when it is not a lead byte. */
static size_t sequence_size(unsigned char first)
{
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first <= 0xdf) return 2;
    if (first >= 0xe0 && first <= 0xef) return 3;
    if (first >= 0xf0 && first <= 0xf4) return 4;
    return 0;
}

size_t at_utf8_next(const char *text, uint32_t *code)
{
    assert(*text);
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char  *bytes = (const unsigned char *)text;
    size_t                size = sequence_size(bytes[0]);
    uint32_t              value = size == 1 ? bytes[0] : bytes[0] & (0xffu >> (size + 1));
    for (size_t i = 1; i < size; i++) {
        if ((bytes[i] & 0xc0) != 0x80) size = 0; /* also at the final zero */
        value = value << 6 | (bytes[i] & 0x3f);
    }
    bool invalid = size == 0 || value < least[size] || value > 0x10ffff || (value >> 11) == 0x1b;
    *code = '?';
    if (invalid) return 1;
    if (value >= 0x20 && (value < 0x7f || value > 0x9f)) *code = value;
    return size;
}

typedef struct range {
    uint32_t first, last;
} range;

static bool is_in(uint32_t code, const range *ranges, size_t count)
{
    assert(count > 0);
    for (size_t i = 0; i < count; i++)
        if (code >= ranges[i].first && code <= ranges[i].last) return true;
    return false;
}

/* Unlike wcwidth this does not depend on the locale: tables look the same everywhere. */
size_t at_utf8_width(uint32_t code)
{
    static const range none[] = {{0x300, 0x36f},   {0x200b, 0x200f}, {0x202a, 0x202e},
                                 {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}};
    static const range wide[] = {{0x1100, 0x115f},   {0x2e80, 0xa4cf},   {0xac00, 0xd7a3},
                                 {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
                                 {0xffe0, 0xffe6},   {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff},
                                 {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
    assert(code <= 0x10ffff);
    if (code < 0x300) return 1;
    if (is_in(code, none, sizeof none / sizeof *none)) return 0;
    return is_in(code, wide, sizeof wide / sizeof *wide) ? 2 : 1;
}
