/* Where Criteo files are found: see parts.h. */
#include "data/format.h"

#include "data/criteo.h"
#include "data/parts.h"

enum { PEEK_SIZE = 8192 };

static bool is_ours(const char *path)
{
    char text[PEEK_SIZE];
    return at_lines_peek(path, text, sizeof text) > 0 && at_criteo_begins(text);
}

static bool claims(const char *name)
{
    return at_parts_claim(name, is_ours);
}

static bool holds(const char *name, at_split split)
{
    return at_parts_hold(name, split, is_ours);
}

static at_err sources(const char *name, at_split split, at_files *files, at_fail *fail)
{
    return at_parts_find(name, split, is_ours, files, fail);
}

static at_err load(at_dataset *set, const char *name, at_split split, at_fail *fail)
{
    uint32_t bits = set->reading.hash_bits ? set->reading.hash_bits : AT_CRITEO_BITS;
    if (bits < AT_CRITEO_BITS_MIN || bits > AT_CRITEO_BITS_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "--hash-bits must be %d to %d, but is %u",
                           AT_CRITEO_BITS_MIN, AT_CRITEO_BITS_MAX, bits);
    at_lines_parser parser = at_criteo_parser(&bits);
    at_piles_end    end = {
           .path = name, .features = 1u << bits, .zero_based = true, .plain_labels = true};
    at_files files = {0};
    at_err   err = sources(name, split, &files, fail);
    if (!err) err = at_lines_load(set, &files, &parser, &end, fail);
    at_files_deinit(&files);
    return err;
}

const at_format at_format_criteo = {
    .name = "criteo",
    .summary = "click logs of Criteo: label, 13 numbers, 26 categories, tabs (sparse)",
    .wants = "text of 40 fields with tabs",
    .parses = true,
    .claims = claims,
    .holds = holds,
    .load = load,
    .sources = sources,
};
