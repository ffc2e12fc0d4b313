/* lines.h - text files with one row per line, read in large blocks and parsed on all cores.
 *
 *     source ──► block of whole lines ──► one chunk per core ──► parse ──► builders, in order
 *
 * The result does not depend on the number of threads. All threads have ended when a call returns,
 * so workers can be forked afterwards.
 */
#ifndef AT_DATA_FILES_LINES_H
#define AT_DATA_FILES_LINES_H

#include "data/files/folder.h"
#include "data/files/source.h"
#include "data/set/sparse_builder.h"

/* What is wrong in a line, and where. */
typedef struct at_parse_error {
    const char *line, *at; /* start of the line, and the position in it */
    char        text[160]; /* "expected ':' after the index" */
    const char *hint;
} at_parse_error;

typedef struct at_lines_parser {
    const void *self; /* for parse */
    /* Parses the lines from `begin` to `end` into the builder and counts them in builder->lines;
     * every line ends with a line feed. Returns false and fills *error at the first invalid line.
     * Called by several threads at once. */
    bool (*parse)(const void *self, const char *begin, const char *end, at_sparse_builder *builder,
                  at_parse_error *error);
    /* Minimum bytes per row and per number, which bound the capacity of a builder. */
    uint32_t row_size_min, number_size_min;
} at_lines_parser;

/* Fills *error (whose line is set) and returns false. */
bool at_parse_fail(at_parse_error *error, const char *at, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Reads the files in order into a set. AT_ERR_FORMAT names file, line and column. */
at_err at_lines_load(at_dataset *set, const at_file_list *files, const at_lines_parser *parser,
                     const at_sparse_build_options *options, at_fail *fail);

/* Reads the first `size` - 1 bytes of a file, unpacked, and appends a zero byte; returns the number
 * of bytes, 0 when the file cannot be read. For recognizing formats. */
size_t at_lines_peek(const char *path, char *bytes, size_t size);

#endif
