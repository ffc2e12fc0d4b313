/* source.h - a stream of raw bytes from a file; gzip and xz are unpacked on the fly.
 *
 *     file ──► at_source_open ──► at_source_read ... ──► at_source_end ──► at_source_close
 *
 * The first bytes decide whether a file is packed, not its name. A source never returns more than
 * was asked for, so a reader that knows what to expect is safe from decompression bombs. Every
 * error names the file and the position.
 */
#ifndef AT_DATA_FILES_SOURCE_H
#define AT_DATA_FILES_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

typedef struct at_source at_source;

/* The hint for damaged files. */
#define AT_SOURCE_GET_AGAIN "download the file again, or delete it and run `anytime data get NAME`"

#define AT_SOURCE_AUTO 0

/* How many raw bytes a packed file may expand to, for all sources of this process. AT_SOURCE_AUTO:
 * the larger of 1 GB and 200 times the size of the file, far beyond what data sets need.
 * UINT64_MAX: anything. Without a limit a few hundred kB can fill the memory. */
void at_source_limit(uint64_t bytes);

/* Opens a regular file for reading. AT_ERR_MISSING, AT_ERR_IO (no permission, a folder, ...),
 * AT_ERR_FORMAT (named .gz or .xz but is not). */
at_err at_source_open(const char *path, at_source **source, at_fail *fail);

/* The same for an open file of `file_size` bytes. Takes ownership of the file, even on failure;
 * `path` is used in messages and MUST outlive the source. */
at_err at_source_take(FILE *file, const char *path, uint64_t file_size, at_source **source,
                      at_fail *fail);

/* Closes; accepts NULL. */
void at_source_close(at_source *source);

/* Fills bytes with the next `size` raw bytes; *got is smaller only at the end of the source.
 * AT_ERR_FORMAT when a packed stream is damaged or truncated, AT_ERR_IO when reading fails. */
at_err at_source_read(at_source *source, void *bytes, size_t size, size_t *got, at_fail *fail);

/* Checks that nothing is left, and that the checksum of a packed stream is right. */
at_err at_source_end(at_source *source, at_fail *fail);

/* An upper bound on the raw bytes in the source: its size, or the most that a packed file of that
 * size can expand to. Sizes claimed by a header are checked against it before memory is
 * reserved. */
uint64_t at_source_size_max(const at_source *source);

/* Raw bytes returned so far. */
uint64_t at_source_position(const at_source *source);

/* Position in the file itself and its size, for progress reports. */
uint64_t at_source_file_position(const at_source *source);
uint64_t at_source_file_size(const at_source *source);

/* The name used in messages; valid until the source is closed. */
const char *at_source_path(const at_source *source);

#endif
