#include "report/summary/utf8.h"

#include <assert.h>
#include <stdbool.h>

/* Bytes of the UTF-8 sequence that this byte begins; 0 when it begins none. */
static size_t sequence_size(unsigned char first)
{
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first <= 0xdf) return 2;
    if (first >= 0xe0 && first <= 0xef) return 3;
    if (first >= 0xf0 && first <= 0xf4) return 4;
    return 0;
}

size_t at_utf8_next(const char *text, uint32_t *letter)
{
    assert(*text);
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char  *bytes = (const unsigned char *)text;
    size_t                size = sequence_size(bytes[0]);
    uint32_t              code = size == 1 ? bytes[0] : bytes[0] & (0xffu >> (size + 1));
    for (size_t i = 1; i < size; i++) {
        if ((bytes[i] & 0xc0) != 0x80) size = 0; /* also at the final zero */
        code = code << 6 | (bytes[i] & 0x3f);
    }
    bool odd = size == 0 || code < least[size] || code > 0x10ffff || (code >> 11) == 0x1b;
    *letter = '?';
    if (odd) return 1;
    if (code >= 0x20 && (code < 0x7f || code > 0x9f)) *letter = code;
    return size;
}

typedef struct range {
    uint32_t first, last;
} range;

static bool is_in(uint32_t letter, const range *ranges, size_t count)
{
    assert(count > 0);
    for (size_t i = 0; i < count; i++)
        if (letter >= ranges[i].first && letter <= ranges[i].last) return true;
    return false;
}

/* wcwidth would depend on the locale, and tables must look the same everywhere. */
size_t at_utf8_width(uint32_t letter)
{
    static const range none[] = {{0x300, 0x36f},   {0x200b, 0x200f}, {0x202a, 0x202e},
                                 {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}};
    static const range wide[] = {{0x1100, 0x115f},   {0x2e80, 0xa4cf},   {0xac00, 0xd7a3},
                                 {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
                                 {0xffe0, 0xffe6},   {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff},
                                 {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
    assert(letter <= 0x10ffff);
    if (letter < 0x300) return 1;
    if (is_in(letter, none, sizeof none / sizeof *none)) return 0;
    return is_in(letter, wide, sizeof wide / sizeof *wide) ? 2 : 1;
}
