/* Where LIBSVM files are found: see parts.h. */
#include "data/format.h"

#include "data/libsvm.h"
#include "data/parts.h"

enum { PEEK_SIZE = 4096 };

static bool is_ours(const char *path)
{
    char text[PEEK_SIZE];
    return at_lines_peek(path, text, sizeof text) > 0 && at_libsvm_begins(text);
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
    at_files files = {0};
    at_err   err = sources(name, split, &files, fail);
    if (!err)
        err = at_lines_load(set, &files, &at_libsvm_parser, &(at_piles_end){.path = name}, fail);
    at_files_deinit(&files);
    return err;
}

const at_format at_format_libsvm = {
    .name = "libsvm",
    .summary = "LIBSVM text, LABEL INDEX:VALUE ... (sparse), plain, gzip or xz",
    .wants = "text of LABEL INDEX:VALUE ...",
    .parses = true,
    .claims = claims,
    .holds = holds,
    .load = load,
    .sources = sources,
};
