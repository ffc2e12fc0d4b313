/* The click log format of Criteo: one row per line, fields separated by tabs.
 *
 *     LABEL  13 integers  26 categories      LABEL is 0 or 1; other fields may be empty
 *
 * A row becomes up to 39 features in 2^bits dimensions:
 *     0 .. 12     a number x as sign(x) log(1 + |x|), so that large counts do not dominate
 *     13 .. 25    1 where the number is missing
 *     from 26 on  1 at the hash of (column, text) for each category; a missing one hashes the empty
 *                 string. Collisions within a row add up.
 *
 * For which files are read, see split_files.h.
 */
#include "data/formats/format.h"

#include "data/files/decimal.h"
#include "data/files/lines.h"
#include "data/files/split_files.h"
#include "data/set/string_table.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    NUMBERS = 13,
    CATEGORIES = 26,
    LANES = 32, /* categories, rounded up to whole vectors */
    BITS_DEFAULT = 20,
    BITS_MIN = 8,
    BITS_MAX = 31,
    FIELDS = 1 + NUMBERS + CATEGORIES,
    MISSING_FIRST = NUMBERS,
    HASHED_FIRST = 2 * NUMBERS,
    ROW_SIZE_MIN = FIELDS, /* the label and 39 tabs */
    NUMBER_SIZE_MIN = 1,
    PEEK_SIZE = 8192,
    LOGS_COUNT = 4096,
};

typedef int32_t                         lanes __attribute__((vector_size(16)));
__extension__ typedef unsigned __int128 wide;

#define HINT "expected LABEL, 13 integers and 26 categories, separated by tabs"

static const char *read_label(const char *p, int32_t *label, at_parse_error *e)
{
    bool valid = (*p == '0' || *p == '1') && p[1] == '\t';
    if (!valid) return at_parse_fail(e, p, HINT, "the label is not 0 or 1"), NULL;
    *label = *p - '0';
    return p + 1;
}

/* Skips the tab before the next field; fails where the line ends too early. */
static const char *next_field(const char *p, int index, at_parse_error *e)
{
    assert(index > 0 && index < FIELDS);
    if (*p == '\t') return p + 1;
    const char *hint = index == FIELDS - 1 ? "is this a test file without labels?" : HINT;
    return at_parse_fail(e, p, hint, "the line has only %d of %d fields", index, FIELDS), NULL;
}

/* What all threads share. */
typedef struct reader {
    uint64_t room;             /* features of categories */
    uint64_t inverse;          /* 2^64 / room, rounded down, or one less */
    float    logs[LOGS_COUNT]; /* log(1 + i): most numbers are small counts */
} reader;

static float compress(const reader *r, int64_t x)
{
    if (x >= 0 && x < LOGS_COUNT) return r->logs[x];
    double size = log1p(fabs((double)x));
    return (float)(x < 0 ? -size : size);
}

/* The 13 numbers, followed by the features for missing ones. */
static const char *read_numbers(const char *p, const reader *r, at_sparse_builder *builder,
                                at_parse_error *e)
{
    uint32_t missing[NUMBERS], missing_count = 0;
    for (uint32_t i = 0; i < NUMBERS; i++) {
        int64_t     x;
        const char *first = next_field(p, 1 + (int)i, e);
        if (!first) return NULL;
        if (*first == '\t' || *first == '\n') {
            missing[missing_count++] = MISSING_FIRST + i;
            p = first;
            continue;
        }
        p = at_decimal_int(first, &x);
        if (!p || (*p != '\t' && *p != '\n'))
            return at_parse_fail(e, first, HINT, "field %u is not an integer", 2 + i), NULL;
        at_sparse_builder_put(builder, i, compress(r, x));
    }
    for (uint32_t i = 0; i < missing_count; i++) at_sparse_builder_put(builder, missing[i], 1.0f);
    return p;
}

/* hash % room, without the slow division: the quotient is at most one too small. */
static inline uint32_t remainder_of(const reader *r, uint64_t hash)
{
    uint64_t rest = hash - (uint64_t)(((wide)hash * r->inverse) >> 64) * r->room;
    return (uint32_t)(rest >= r->room ? rest - r->room : rest);
}

/* *hash <- that of the column and the text. Returns the end of the field; a carriage return before
 * the line feed is not part of it. */
static inline const char *read_category(const char *p, uint32_t column, uint64_t *hash)
{
    uint64_t h = (AT_STRING_HASH_START ^ column) * AT_STRING_HASH_FACTOR;
    for (;; p++) {
        if ((unsigned char)*p <= '\r') {
            if (*p == '\t' || *p == '\n') break;
            if (*p == '\r' && p[1] == '\n') {
                p++;
                break;
            }
        }
        h = (h ^ (unsigned char)*p) * AT_STRING_HASH_FACTOR;
    }
    *hash = at_rng_mix(h);
    return p;
}

/* Counts, for each value, how many are smaller: its place in order. That takes more comparisons
 * than inserting one by one, but they do not depend on each other and need no branches, which would
 * be unpredictable: hashes are random. */
static void find_places(uint32_t places[LANES], const uint32_t list[LANES])
{
    lanes value[LANES / 4], place[LANES / 4] = {0};
    memcpy(value, list, sizeof value);
    for (int i = 0; i < CATEGORIES; i++) {
        int32_t one = (int32_t)list[i];
        lanes   all = {one, one, one, one};
#pragma GCC unroll 8
        for (int k = 0; k < LANES / 4; k++) place[k] -= all < value[k];
    }
    memcpy(places, place, sizeof place);
}

/* Adds the features of a row in order; equal ones have the same place, and add up. */
static void put_sorted(const uint32_t list[LANES], at_sparse_builder *builder)
{
    uint32_t places[LANES], sorted[LANES];
    uint8_t  counts[LANES] = {0};
    find_places(places, list);
    for (int i = 0; i < CATEGORIES; i++) {
        sorted[places[i]] = list[i];
        counts[places[i]]++;
    }
    for (int i = 0; i < CATEGORIES; i += counts[i])
        at_sparse_builder_put(builder, sorted[i], (float)counts[i]);
}

static const char *read_categories(const char *p, const reader *r, at_sparse_builder *builder,
                                   at_parse_error *e)
{
    uint32_t list[LANES] = {0};
    for (uint32_t i = 0; i < CATEGORIES; i++) {
        uint64_t    hash;
        const char *first = next_field(p, 1 + NUMBERS + (int)i, e);
        if (!first) return NULL;
        p = read_category(first, i, &hash);
        list[i] = HASHED_FIRST + remainder_of(r, hash);
    }
    if (*p != '\n')
        return at_parse_fail(e, p, HINT, "the line has more than %d fields", FIELDS), NULL;
    put_sorted(list, builder);
    return p;
}

static bool parse(const void *self, const char *begin, const char *end, at_sparse_builder *builder,
                  at_parse_error *error)
{
    const reader *r = self;
    assert(end > begin && end[-1] == '\n');
    for (const char *p = begin; p < end; p++, builder->lines++) {
        int32_t label;
        error->line = p;
        if (*p == '\n') continue;
        if (!(p = read_label(p, &label, error))) return false;
        if (!(p = read_numbers(p, r, builder, error))) return false;
        if (!(p = read_categories(p, r, builder, error))) return false;
        at_sparse_builder_end_row(builder, label);
    }
    return true;
}

/* Whether the text begins with a line of 40 fields, the first of which is 0 or 1. */
static bool begins_with_row(const char *text)
{
    assert(text);
    int tabs = 0;
    if ((*text != '0' && *text != '1') || text[1] != '\t') return false;
    for (; *text && *text != '\n'; text++) tabs += *text == '\t';
    return tabs == FIELDS - 1;
}

static bool is_ours(const char *path)
{
    char text[PEEK_SIZE];
    return at_lines_peek(path, text, sizeof text) > 0 && begins_with_row(text);
}

static at_err load(at_dataset *set, const char *name, const at_file_list *files, at_fail *fail)
{
    uint32_t bits = set->read_options.hash_bits ? set->read_options.hash_bits : BITS_DEFAULT;
    if (bits < BITS_MIN || bits > BITS_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "--hash-bits must be from %d to %d (got %u)",
                           BITS_MIN, BITS_MAX, bits);
    reader shared = {.room = ((uint64_t)1 << bits) - HASHED_FIRST};
    shared.inverse = UINT64_MAX / shared.room;
    for (int i = 0; i < LOGS_COUNT; i++) shared.logs[i] = (float)log1p(i);
    at_lines_parser         parser = {.self = &shared,
                                      .parse = parse,
                                      .row_size_min = ROW_SIZE_MIN,
                                      .number_size_min = NUMBER_SIZE_MIN};
    at_sparse_build_options options = {
        .path = name, .features = 1u << bits, .zero_based = true, .unnamed_labels = true};
    return at_lines_load(set, files, &parser, &options, fail);
}

const at_format at_format_criteo = {
    .name = "criteo",
    .summary = "Criteo click logs: label, 13 numbers, 26 categories, tab-separated (sparse)",
    .expects = "text with 40 tab-separated fields",
    .slow_to_read = true,
    .is_split_file = is_ours,
    .load_files = load,
};
