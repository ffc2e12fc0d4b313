/* append_file.h - fast output to a file that is only appended to.
 *
 * Text and numbers are formatted into a large buffer, which is written when it is full or one
 * second old.
 *
 *     at_append_file_open ─► at_append_file_text, _whole, .. (cannot fail) ─► at_append_file_close
 *
 * After a failed write all further output is discarded; what was written remains, and close reports
 * the failure. Output also ends when the disk is nearly full (at_append_file_reserve).
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
    at_ns  flushed_at; /* in record time */
    size_t used;
    bool   fresh;   /* the file was empty */
    bool   bounded; /* grows slowly by itself: not counted by at_append_file_written */
    char   buffer[AT_APPEND_FILE_SIZE];
} at_append_file;

/* From now on all files stop when fewer than `bytes` are free on their disk, so that a checkpoint
 * finds room; 0: never. Forgets troubles of earlier runs. */
void at_append_file_reserve(uint64_t bytes);

/* A sentence about the first write that failed, once; NULL: none. */
const char *at_append_file_trouble(void);

/* Bytes written to all files that are not `bounded` since at_append_file_reserve was called. */
uint64_t at_append_file_written(void);

/* Opens FOLDER/NAME for appending, creating it if necessary. With `lines`, a file that ends in the
 * middle of a line (its run was killed) gets a line end first. */
at_err at_append_file_open(const char *folder, const char *name, bool lines, at_append_file **file,
                           at_fail *fail);

/* Writes the buffer to the file. */
void at_append_file_flush(at_append_file *file);

/* Room for `size` more bytes (at most AT_APPEND_FILE_SIZE), to be filled and added to `used`.
 * Inline because it is called about a hundred times per step. */
static inline char *at_append_file_room(at_append_file *file, size_t size)
{
    assert(size <= AT_APPEND_FILE_SIZE);
    if (file->used + size > AT_APPEND_FILE_SIZE) at_append_file_flush(file);
    return file->buffer + file->used;
}

/* One byte. */
static inline void at_append_file_byte(at_append_file *file, char byte)
{
    *at_append_file_room(file, 1) = byte;
    file->used++;
}

/* A text; raw bytes. */
void at_append_file_text(at_append_file *file, const char *text);
void at_append_file_bytes(at_append_file *file, const void *bytes, size_t size);

/* A whole number in decimal. */
void at_append_file_whole(at_append_file *file, uint64_t value);

/* A duration in seconds with six decimals; may be negative. */
void at_append_file_seconds(at_append_file *file, at_ns value);

/* A real number to seven significant digits or more: 0.4121387, 0.05, 1e-09, nan. */
void at_append_file_real(at_append_file *file, double value);

/* Raw bytes of any size, written to the file at once and with one call. */
void at_append_file_at_once(at_append_file *file, const void *bytes, size_t size);

/* Writes the buffer to the file when it is one second old at the time `at`, or at once when `now`
 * is set. */
void at_append_file_tick(at_append_file *file, at_ns at, bool now);

/* Writes the rest, closes and releases. AT_ERR_IO when any write failed. Accepts NULL. */
at_err at_append_file_close(at_append_file *file, at_fail *fail);

#endif
