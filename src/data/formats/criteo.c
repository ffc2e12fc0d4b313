#include "data/formats/criteo.h"

#include "base/rng.h"
#include "data/files/decimal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIELDS = 1 + AT_CRITEO_NUMBERS + AT_CRITEO_CATEGORIES,
    MISSING_FIRST = AT_CRITEO_NUMBERS,
    HASHED_FIRST = 2 * AT_CRITEO_NUMBERS,
    ROW_SIZE_MIN = FIELDS, /* nothing but tabs between the label and the line feed */
    NUMBER_SIZE_MIN = 1,
};

#define HINT "a row is LABEL, 13 whole numbers and 26 categories with tabs between them"

static const char *field_end(const char *p)
{
    while (*p != '\t' && *p != '\n') p++;
    return p;
}

/* A carriage return before the line feed belongs to the end of the line. */
static const char *without_return(const char *begin, const char *end)
{
    return *end == '\n' && end > begin && end[-1] == '\r' ? end - 1 : end;
}

static const char *read_label(const char *p, int32_t *label, at_complaint *c)
{
    bool right = (*p == '0' || *p == '1') && p[1] == '\t';
    if (!right) return at_complain(c, p, HINT, "expected a label, 0 or 1"), NULL;
    *label = *p - '0';
    return p + 1;
}

/* Stands at the tab in front of the next field; complains where the line ends too early. */
static const char *next_field(const char *p, int index, at_complaint *c)
{
    assert(index > 0 && index < FIELDS);
    if (*p == '\t') return p + 1;
    const char *hint = index == FIELDS - 1 ? "is it a test file without labels?" : HINT;
    return at_complain(c, p, hint, "the line ends after %d of %d fields", index, FIELDS), NULL;
}

/* The 13 numbers; missing ones are noted and come behind them. */
static const char *read_numbers(const char *p, at_sparse_builder *builder, at_complaint *c)
{
    uint32_t missing[AT_CRITEO_NUMBERS], missing_count = 0;
    for (uint32_t i = 0; i < AT_CRITEO_NUMBERS; i++) {
        int64_t     x;
        const char *first = next_field(p, 1 + (int)i, c);
        if (!first) return NULL;
        if (*first == '\t' || *first == '\n') {
            missing[missing_count++] = MISSING_FIRST + i;
            p = first;
            continue;
        }
        p = at_decimal_int(first, &x);
        if (!p || (*p != '\t' && *p != '\n'))
            return at_complain(c, first, HINT, "field %u is not a whole number", 2 + i), NULL;
        double size = log1p(fabs((double)x));
        at_sparse_builder_put(builder, i, (float)(x < 0 ? -size : size));
    }
    for (uint32_t i = 0; i < missing_count; i++) at_sparse_builder_put(builder, missing[i], 1.0f);
    return p;
}

/* FNV-1a over the bytes, with the column in front, then mixed well: the lowest bits are used. */
static uint64_t hash(uint32_t column, const char *text, const char *end)
{
    uint64_t h = (14695981039346656037u ^ column) * 1099511628211u;
    for (; text < end; text++) h = (h ^ (unsigned char)*text) * 1099511628211u;
    return at_rng_mix(h);
}

static void sort(uint32_t *list, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        uint32_t value = list[i], k = i;
        for (; k > 0 && list[k - 1] > value; k--) list[k] = list[k - 1];
        list[k] = value;
    }
}

static const char *read_categories(const char *p, uint32_t bits, at_sparse_builder *builder,
                                   at_complaint *c)
{
    uint32_t list[AT_CRITEO_CATEGORIES];
    uint64_t room = ((uint64_t)1 << bits) - HASHED_FIRST;
    for (uint32_t i = 0; i < AT_CRITEO_CATEGORIES; i++) {
        const char *first = next_field(p, 1 + AT_CRITEO_NUMBERS + (int)i, c);
        if (!first) return NULL;
        p = field_end(first);
        list[i] = HASHED_FIRST + (uint32_t)(hash(i, first, without_return(first, p)) % room);
    }
    if (*p != '\n')
        return at_complain(c, p, HINT, "the line has more than %d fields", FIELDS), NULL;
    sort(list, AT_CRITEO_CATEGORIES);
    for (uint32_t i = 0, same; i < AT_CRITEO_CATEGORIES; i += same) {
        for (same = 1; i + same < AT_CRITEO_CATEGORIES && list[i + same] == list[i];) same++;
        at_sparse_builder_put(builder, list[i], (float)same);
    }
    return p;
}

static bool parse(const void *self, const char *begin, const char *end, at_sparse_builder *builder,
                  at_complaint *complaint)
{
    uint32_t bits = *(const uint32_t *)self;
    assert(end > begin && end[-1] == '\n');
    assert(bits >= AT_CRITEO_BITS_MIN && bits <= AT_CRITEO_BITS_MAX);
    for (const char *p = begin; p < end; p++, builder->lines++) {
        int32_t label;
        complaint->line = p;
        if (*p == '\n') continue;
        if (!(p = read_label(p, &label, complaint))) return false;
        if (!(p = read_numbers(p, builder, complaint))) return false;
        if (!(p = read_categories(p, bits, builder, complaint))) return false;
        at_sparse_builder_end_row(builder, label);
    }
    return true;
}

at_lines_parser at_criteo_parser(const uint32_t *bits)
{
    assert(bits);
    return (at_lines_parser){.self = bits,
                             .parse = parse,
                             .row_size_min = ROW_SIZE_MIN,
                             .number_size_min = NUMBER_SIZE_MIN};
}

bool at_criteo_begins(const char *text)
{
    assert(text);
    int tabs = 0;
    if ((*text != '0' && *text != '1') || text[1] != '\t') return false;
    for (; *text && *text != '\n'; text++) tabs += *text == '\t';
    return tabs == FIELDS - 1;
}
