/* source.h - the raw bytes of a file, unpacked on the way when the file is gzip or xz.
 *
 *     file ──► at_source_open ──► at_source_read ... ──► at_source_end ──► at_source_close
 *
 * Whether a file is packed is decided by its first bytes, not by its name. A source never hands out
 * more than it is asked for, so a reader that knows how much to expect cannot be flooded by a
 * small file that inflates to a huge one. Every error names the file and the position.
 */
#ifndef AT_DATA_FILES_SOURCE_H
#define AT_DATA_FILES_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

typedef struct at_source at_source;

/* The hint for files that are damaged beyond what we can explain. */
#define AT_SOURCE_GET_AGAIN "get the file again, or delete it and run `anytime data get NAME`"

/* Opens a regular file for reading. AT_ERR_MISSING, AT_ERR_IO (no permission, a folder, ...),
 * AT_ERR_FORMAT (named .gz or .xz but is not). */
at_err at_source_open(const char *path, at_source **source, at_fail *fail);

/* The same for an open file of `file_size` bytes that the source will close, whatever happens;
 * `path` is used in messages and MUST outlive the source. */
at_err at_source_take(FILE *file, const char *path, uint64_t file_size, at_source **source,
                      at_fail *fail);

/* Closes; accepts NULL. */
void at_source_close(at_source *source);

/* Fills bytes with the next `size` raw bytes; *got is smaller only at the end of the source.
 * AT_ERR_FORMAT when a packed stream is damaged or cut, AT_ERR_IO when the file cannot be read. */
at_err at_source_read(at_source *source, void *bytes, size_t size, size_t *got, at_fail *fail);

/* Checks that nothing is left, and that the checksum of a packed stream was right. */
at_err at_source_end(at_source *source, at_fail *fail);

/* No more raw bytes than this can be in the source: its size, or what that many packed bytes
 * can hold at most. Sizes promised by a header are compared with it before memory is reserved. */
uint64_t at_source_size_max(const at_source *source);

/* Raw bytes handed out so far. */
uint64_t at_source_position(const at_source *source);

/* How far it is in the file itself, and how long that is, to show to people. */
uint64_t at_source_done(const at_source *source);
uint64_t at_source_file_size(const at_source *source);

/* The name used in messages; valid until the source is closed. */
const char *at_source_path(const at_source *source);

#endif
