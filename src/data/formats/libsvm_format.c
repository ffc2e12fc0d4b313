/* Where LIBSVM files are found: see parts.h. */
#include "data/formats/format.h"

#include "data/files/parts.h"
#include "data/formats/libsvm.h"

enum { PEEK_SIZE = 4096 };

static bool is_ours(const char *path)
{
    char text[PEEK_SIZE];
    return at_lines_peek(path, text, sizeof text) > 0 && at_libsvm_begins(text);
}

static at_err load(at_dataset *set, const char *name, const at_files *files, at_fail *fail)
{
    return at_lines_load(set, files, &at_libsvm_parser, &(at_sparse_builders_end){.path = name},
                         fail);
}

const at_format at_format_libsvm = {
    .name = "libsvm",
    .summary = "LIBSVM text, LABEL INDEX:VALUE ... (sparse), plain, gzip or xz",
    .wants = "text of LABEL INDEX:VALUE ...",
    .parses = true,
    .is_part = is_ours,
    .load_parts = load,
};
