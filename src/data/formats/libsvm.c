#include "data/formats/libsvm.h"

#include "data/files/decimal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum {
    ROW_SIZE_MIN = 2,    /* "1\n" */
    NUMBER_SIZE_MIN = 4, /* " 1:1" */
};

static const float LABEL_MAX = 16777216.0f; /* all whole numbers up to 2^24 are floats */

#define HINT "a row is LABEL INDEX:VALUE INDEX:VALUE ... with rising indices"

static inline unsigned digit(const char *p)
{
    return (unsigned)(unsigned char)*p - '0';
}

static inline const char *skip_blanks(const char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\r') p++;
    return p;
}

/* Whether a word may end here. */
static inline bool is_end(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '#';
}

static const char *end_of_line(const char *p)
{
    const char *end = rawmemchr(p, '\n');
    return end;
}

/* ---- one row; NULL after a complaint --------------------------------------------------------- */

static const char *read_label(const char *p, int32_t *label, at_complaint *c)
{
    float       value;
    const char *end = at_decimal_float(p, &value);
    if (!end && *p == 'q') return at_complain(c, p, HINT, "qid stands before the label"), NULL;
    if (!end) return at_complain(c, p, HINT, "expected a label"), NULL;
    if (*end == ',')
        return at_complain(c, end, "only one label a row can be learned",
                           "a row with several labels"),
               NULL;
    if (*end == ':') return at_complain(c, p, HINT, "the row has no label"), NULL;
    if (!is_end(*end)) return at_complain(c, end, HINT, "'%c' in a label", *end), NULL;
    if (!(fabsf(value) <= LABEL_MAX) || value != truncf(value))
        return at_complain(c, p, "labels should be the numbers of classes",
                           "the label is not a whole number of at most %.0f", (double)LABEL_MAX),
               NULL;
    *label = (int32_t)value;
    return end;
}

/* qid:7, behind the label. */
static const char *skip_qid(const char *p, at_complaint *c)
{
    int64_t     query;
    const char *word = skip_blanks(p);
    if (strncmp(word, "qid:", 4) != 0) return p;
    const char *end = at_decimal_int(word + 4, &query);
    if (!end || !is_end(*end))
        return at_complain(c, word, HINT, "expected a whole number behind qid:"), NULL;
    return end;
}

/* Explains what is wrong with the pair that begins at p. */
static const char *bad_pair(const char *p, at_complaint *c)
{
    const char *q = p;
    float       value;
    if (*p == '-') return at_complain(c, p, HINT, "a negative index"), NULL;
    if (digit(p) > 9) return at_complain(c, p, HINT, "expected INDEX:VALUE"), NULL;
    while (digit(q) <= 9) q++;
    if (q - p > 10)
        return at_complain(c, p, "indices are below 2^31", "the index is too large"), NULL;
    if (*q != ':') return at_complain(c, q, HINT, "expected ':' behind the index"), NULL;
    if (is_end(q[1])) return at_complain(c, q + 1, HINT, "expected a number behind ':'"), NULL;
    const char *end = at_decimal_float(q + 1, &value);
    if (!end) return at_complain(c, q + 1, HINT, "not a finite number"), NULL;
    return at_complain(c, end, HINT, "'%c' in a number", *end), NULL;
}

static const char *bad_index(const char *p, uint64_t index, int64_t last, at_complaint *c)
{
    if (index >= AT_SPARSE_BUILDER_FEATURES_MAX)
        return at_complain(c, p, "indices are below 2^31", "the index is too large"), NULL;
    const char *what =
        (int64_t)index == last ? "occurs twice" : "is smaller than the one before it";
    return at_complain(c, p, "sort each row by its indices", "index %llu %s",
                       (unsigned long long)index, what),
           NULL;
}

/* This loop sees every byte of the file: no call but that for numbers with a point. */
static const char *read_pairs(const char *p, at_sparse_builder *builder, at_complaint *c)
{
    int64_t last = -1;
    for (;;) {
        while (*p == ' ') p++;
        const char *first = p;
        if (digit(p) > 9) {
            p = skip_blanks(p);
            if (*p == '\n' || *p == '#') break;
            if (p == first) return bad_pair(p, c);
            continue;
        }
        uint64_t index = digit(p++);
        for (; digit(p) <= 9; p++) index = index * 10 + digit(p);
        if (*p != ':' || p - first > 10) return bad_pair(first, c);
        float value;
        if (digit(++p) <= 9 && is_end(p[1]))
            value = (float)digit(p++);
        else if (!(p = at_decimal_float(p, &value)) || !is_end(*p))
            return bad_pair(first, c);
        if ((int64_t)index <= last || index >= AT_SPARSE_BUILDER_FEATURES_MAX)
            return bad_index(first, index, last, c);
        last = (int64_t)index;
        builder->index_zero |= index == 0;
        at_sparse_builder_put(builder, (uint32_t)index, value);
    }
    if (last > (int64_t)builder->index_max) builder->index_max = (uint32_t)last;
    return p;
}

static bool parse(const void *self, const char *begin, const char *end, at_sparse_builder *builder,
                  at_complaint *complaint)
{
    (void)self;
    assert(end > begin && end[-1] == '\n');
    for (const char *p = begin; p < end; p++, builder->lines++) {
        complaint->line = p;
        p = skip_blanks(p);
        if (*p != '\n' && *p != '#') {
            int32_t label;
            if (!(p = read_label(p, &label, complaint))) return false;
            if (!(p = skip_qid(p, complaint))) return false;
            if (!(p = read_pairs(p, builder, complaint))) return false;
            at_sparse_builder_end_row(builder, label);
        }
        p = end_of_line(p);
        assert(p < end);
    }
    return true;
}

const at_lines_parser at_libsvm_parser = {
    .parse = parse,
    .row_size_min = ROW_SIZE_MIN,
    .number_size_min = NUMBER_SIZE_MIN,
};

bool at_libsvm_begins(const char *text)
{
    assert(text);
    const char *p = skip_blanks(text);
    while (*p == '\n' || *p == '#') {
        p += strcspn(p, "\n");
        p = skip_blanks(p + (*p == '\n'));
    }
    float   label;
    int64_t index;
    p = at_decimal_float(p, &label);
    if (!p || !(*p == ' ' || *p == '\t')) return false;
    p = skip_blanks(p);
    if (strncmp(p, "qid:", 4) == 0) return true;
    p = at_decimal_int(p, &index);
    return p && *p == ':';
}
