/* Where Criteo files are found: see parts.h. */
#include "data/formats/format.h"

#include "data/files/parts.h"
#include "data/formats/criteo.h"

enum { PEEK_SIZE = 8192 };

static bool is_ours(const char *path)
{
    char text[PEEK_SIZE];
    return at_lines_peek(path, text, sizeof text) > 0 && at_criteo_begins(text);
}

static at_err load(at_dataset *set, const char *name, const at_files *files, at_fail *fail)
{
    uint32_t bits = set->reading.hash_bits ? set->reading.hash_bits : AT_CRITEO_BITS;
    if (bits < AT_CRITEO_BITS_MIN || bits > AT_CRITEO_BITS_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "--hash-bits must be %d to %d, but is %u",
                           AT_CRITEO_BITS_MIN, AT_CRITEO_BITS_MAX, bits);
    at_lines_parser        parser = at_criteo_parser(&bits);
    at_sparse_builders_end end = {
        .path = name, .features = 1u << bits, .zero_based = true, .plain_labels = true};
    return at_lines_load(set, files, &parser, &end, fail);
}

const at_format at_format_criteo = {
    .name = "criteo",
    .summary = "click logs of Criteo: label, 13 numbers, 26 categories, tabs (sparse)",
    .wants = "text of 40 fields with tabs",
    .parses = true,
    .is_part = is_ours,
    .load_parts = load,
};
