/* The text format of LIBSVM, liblinear and SVMlight.
 *
 *     LABEL INDEX:VALUE INDEX:VALUE ...      one row per line, ascending indices
 *     +1 qid:7 3:0.5 11:1e-3  # a comment    also accepted
 *
 * Blank lines, trailing blanks and comments are skipped; qid is parsed but not used. Indices begin
 * with 1, or with 0 if an index 0 occurs. A label is a class number or, for regression, any number.
 * For which files are read, see split_files.h.
 */
#include "data/formats/format.h"

#include "base/label.h"
#include "data/files/decimal.h"
#include "data/files/lines.h"
#include "data/files/split_files.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum {
    ROW_SIZE_MIN = 2,    /* "1\n" */
    NUMBER_SIZE_MIN = 4, /* " 1:1" */
    PEEK_SIZE = 4096,
};

static const float LABEL_MAX = 16777216.0f; /* all integers up to 2^24 are exact in a float */

#define HINT "expected LABEL INDEX:VALUE INDEX:VALUE ... with ascending indices"

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

/* ---- one row; NULL after an error ------------------------------------------------------------ */

/* The label as at_sparse_builder_end_row takes it. */
static const char *read_label(const char *p, bool real, int32_t *label, at_parse_error *e)
{
    float       value;
    const char *end = at_decimal_float(p, &value);
    if (!end && *p == 'q') return at_parse_fail(e, p, HINT, "qid before the label"), NULL;
    if (!end) return at_parse_fail(e, p, HINT, "expected a label"), NULL;
    if (*end == ',')
        return at_parse_fail(e, end, "multi-label data is not supported",
                             "the row has several labels"),
               NULL;
    if (*end == ':') return at_parse_fail(e, p, HINT, "the row has no label"), NULL;
    if (!is_end(*end))
        return at_parse_fail(e, end, HINT, "unexpected '%c' in the label", *end), NULL;
    if (real) return *label = (int32_t)at_label_of_real(value), end;
    if (!(fabsf(value) <= LABEL_MAX) || value != truncf(value))
        return at_parse_fail(e, p,
                             "labels must be class numbers; for regression use --model linear",
                             "the label is not an integer of at most %.0f", (double)LABEL_MAX),
               NULL;
    *label = (int32_t)value;
    return end;
}

/* Skips qid:7 after the label. */
static const char *skip_qid(const char *p, at_parse_error *e)
{
    int64_t     query;
    const char *word = skip_blanks(p);
    if (strncmp(word, "qid:", 4) != 0) return p;
    const char *end = at_decimal_int(word + 4, &query);
    if (!end || !is_end(*end))
        return at_parse_fail(e, word, HINT, "expected an integer after qid:"), NULL;
    return end;
}

/* Reports what is wrong with the pair that begins at p. */
static const char *bad_pair(const char *p, at_parse_error *e)
{
    const char *q = p;
    float       value;
    if (*p == '-') return at_parse_fail(e, p, HINT, "the index is negative"), NULL;
    if (digit(p) > 9) return at_parse_fail(e, p, HINT, "expected INDEX:VALUE"), NULL;
    while (digit(q) <= 9) q++;
    if (q - p > 10)
        return at_parse_fail(e, p, "indices must be below 2^31", "the index is too large"), NULL;
    if (*q != ':') return at_parse_fail(e, q, HINT, "expected ':' after the index"), NULL;
    if (is_end(q[1])) return at_parse_fail(e, q + 1, HINT, "expected a number after ':'"), NULL;
    const char *end = at_decimal_float(q + 1, &value);
    if (!end) return at_parse_fail(e, q + 1, HINT, "the value is not a finite number"), NULL;
    return at_parse_fail(e, end, HINT, "unexpected '%c' in the value", *end), NULL;
}

static const char *bad_index(const char *p, uint64_t index, int64_t last, at_parse_error *e)
{
    if (index >= AT_SPARSE_BUILDER_FEATURES_MAX)
        return at_parse_fail(e, p, "indices must be below 2^31", "the index is too large"), NULL;
    const char *what =
        (int64_t)index == last ? "occurs twice" : "is smaller than the one before it";
    return at_parse_fail(e, p, "sort each row by its indices", "index %llu %s",
                         (unsigned long long)index, what),
           NULL;
}

/* The hot loop over every byte of the file: calls a function only for values of several
 * characters. */
static const char *read_pairs(const char *p, at_sparse_builder *builder, at_parse_error *e)
{
    int64_t last = -1;
    for (;;) {
        while (*p == ' ') p++;
        const char *first = p;
        if (digit(p) > 9) {
            p = skip_blanks(p);
            if (*p == '\n' || *p == '#') break;
            if (p == first) return bad_pair(p, e);
            continue;
        }
        uint64_t index = digit(p++);
        for (; digit(p) <= 9; p++) index = index * 10 + digit(p);
        if (*p != ':' || p - first > 10) return bad_pair(first, e);
        float value;
        if (digit(++p) <= 9 && is_end(p[1]))
            value = (float)digit(p++);
        else if (!(p = at_decimal_float(p, &value)) || !is_end(*p))
            return bad_pair(first, e);
        if ((int64_t)index <= last || index >= AT_SPARSE_BUILDER_FEATURES_MAX)
            return bad_index(first, index, last, e);
        last = (int64_t)index;
        builder->index_zero |= index == 0;
        at_sparse_builder_put(builder, (uint32_t)index, value);
    }
    if (last > (int64_t)builder->index_max) builder->index_max = (uint32_t)last;
    return p;
}

static bool parse(const void *self, const char *begin, const char *end, at_sparse_builder *builder,
                  at_parse_error *error)
{
    const at_sparse_build_options *options = self;
    assert(end > begin && end[-1] == '\n');
    for (const char *p = begin; p < end; p++, builder->lines++) {
        error->line = p;
        p = skip_blanks(p);
        if (*p != '\n' && *p != '#') {
            int32_t label;
            if (!(p = read_label(p, options->real_labels, &label, error))) return false;
            if (!(p = skip_qid(p, error))) return false;
            if (!(p = read_pairs(p, builder, error))) return false;
            at_sparse_builder_end_row(builder, label);
        }
        p = end_of_line(p);
        assert(p < end);
    }
    return true;
}

/* Whether the text begins with a row; looks only at the first line, up to the first index. */
static bool begins_with_row(const char *text)
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

static bool is_ours(const char *path)
{
    char text[PEEK_SIZE];
    return at_lines_peek(path, text, sizeof text) > 0 && begins_with_row(text);
}

static at_err load(at_dataset *set, const char *name, const at_file_list *files, at_fail *fail)
{
    at_sparse_build_options options = {.path = name, .real_labels = set->read_options.real_labels};
    at_lines_parser         parser = {.self = &options,
                                      .parse = parse,
                                      .row_size_min = ROW_SIZE_MIN,
                                      .number_size_min = NUMBER_SIZE_MIN};
    return at_lines_load(set, files, &parser, &options, fail);
}

const at_format at_format_libsvm = {
    .name = "libsvm",
    .summary = "LIBSVM text, LABEL INDEX:VALUE ... (sparse), raw, gzip or xz",
    .expects = "text with LABEL INDEX:VALUE ...",
    .slow_to_read = true,
    .reads_real_labels = true,
    .is_split_file = is_ours,
    .load_files = load,
};
