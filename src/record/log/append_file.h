/* append_file.h - a file that is only ever appended to, fast: text and numbers are formatted by
 * hand into a large buffer, which goes out with write(2) when it is full or a second old.
 *
 *     at_append_file_open ─► at_append_file_text, _whole, .. (no failure to handle) ─►
 * at_append_file_close tells
 *
 * After a failed write everything further is discarded; the failure is kept for the close, which
 * removes the file, or what was added to it: a table that is cut off could be taken for whole.
 */
#ifndef AT_RECORD_LOG_APPEND_FILE_H
#define AT_RECORD_LOG_APPEND_FILE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/time.h"

enum { AT_APPEND_FILE_SIZE = 65536 };

typedef struct at_append_file {
    int    fd;
    int    error; /* errno of the first failed write, 0: none */
    char  *path;
    at_ns  flushed_at; /* time of the records, not of a clock */
    size_t used;
    off_t  size_before; /* of the file when it was opened */
    bool   fresh;       /* it was empty */
    char   buffer[AT_APPEND_FILE_SIZE];
} at_append_file;

/* Opens FOLDER/NAME for appending and makes it when it is not there. When the file ends within a
 * line (a run was killed), that line is ended first if `lines` is set. */
at_err at_append_file_open(const char *folder, const char *name, bool lines, at_append_file **spool,
                           at_fail *fail);

/* Writes out all there is. */
void at_append_file_flush(at_append_file *spool);

/* Room for `size` more bytes (at most AT_APPEND_FILE_SIZE), to be filled and added to `used`. It
 * is asked for a hundred times a step, and therefore inline. */
static inline char *at_append_file_room(at_append_file *spool, size_t size)
{
    assert(size <= AT_APPEND_FILE_SIZE);
    if (spool->used + size > AT_APPEND_FILE_SIZE) at_append_file_flush(spool);
    return spool->buffer + spool->used;
}

/* A single byte. */
static inline void at_append_file_byte(at_append_file *spool, char byte)
{
    *at_append_file_room(spool, 1) = byte;
    spool->used++;
}

/* A text, raw bytes. */
void at_append_file_text(at_append_file *spool, const char *text);
void at_append_file_bytes(at_append_file *spool, const void *bytes, size_t size);

/* A whole number in decimal. */
void at_append_file_whole(at_append_file *spool, uint64_t value);

/* A duration in seconds with six decimals; it may be negative. */
void at_append_file_seconds(at_append_file *spool, at_ns value);

/* A real number to seven significant digits or more: 0.4121387, 0.05, 1e-09, nan. */
void at_append_file_real(at_append_file *spool, double value);

/* Writes out what is a second old at the time `at`; or all of it now. */
void at_append_file_tick(at_append_file *spool, at_ns at, bool now);

/* Writes out the rest, closes and releases; AT_ERR_IO when anything could not be written, and then
 * nothing is. Accepts NULL. */
at_err at_append_file_close(at_append_file *spool, at_fail *fail);

#endif
