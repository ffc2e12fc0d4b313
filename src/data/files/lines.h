/* lines.h - text files of rows: read in large blocks, parsed by as many threads as there are cores.
 *
 *     source ──► block of whole lines ──► one part a core ──► parse ──► builders, in order
 *
 * The result does not depend on the number of threads. They have all ended when a call returns, so
 * that workers can be forked.
 */
#ifndef AT_DATA_FILES_LINES_H
#define AT_DATA_FILES_LINES_H

#include "data/files/file_list.h"
#include "data/files/source.h"
#include "data/set/sparse_builder.h"

/* What is wrong in a line, and where. */
typedef struct at_complaint {
    const char *line, *at; /* the beginning of the line, and the place in it */
    char        text[160]; /* "expected ':' behind the index" */
    const char *hint;
} at_complaint;

typedef struct at_lines_parser {
    const void *self; /* for parse */
    /* Parses the lines from `begin` to `end` into the builder, counting them in builder->lines;
     * every line ends with a line feed. False with a complaint when one is wrong. Called by several
     * threads at once. */
    bool (*parse)(const void *self, const char *begin, const char *end, at_sparse_builder *builder,
                  at_complaint *complaint);
    /* No row and no number takes fewer bytes than these, so that a builder has room enough. */
    uint32_t row_size_min, number_size_min;
} at_lines_parser;

/* Fills *complaint (whose line is set) and returns false. */
bool at_complain(at_complaint *complaint, const char *at, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Reads all of the source. AT_ERR_FORMAT names file, line and column. */
at_err at_lines_read(at_source *source, const at_lines_parser *parser, const at_loading *loading,
                     at_sparse_builders *builders, at_fail *fail);

/* Reads the files one after the other into a set. */
at_err at_lines_load(at_dataset *set, const at_files *files, const at_lines_parser *parser,
                     const at_sparse_builders_end *end, at_fail *fail);

/* The first `size` - 1 bytes of a file, unpacked, with a zero byte behind them; returns how many.
 * 0 when the file cannot be read. For guessing formats. */
size_t at_lines_peek(const char *path, char *bytes, size_t size);

#endif
