/* spool.h - a file that is only ever appended to, fast: text and numbers are formatted by hand into
 * a large buffer, which goes out with write(2) when it is full or a second old.
 *
 *     at_spool_open ─► at_spool_text, _whole, .. (no failure to handle) ─► at_spool_close tells
 *
 * After a failed write everything further is discarded; the failure is kept for the close, which
 * removes the file, or what was added to it: a table that is cut off could be taken for whole.
 */
#ifndef AT_RECORD_SPOOL_H
#define AT_RECORD_SPOOL_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/time.h"

enum { AT_SPOOL_SIZE = 65536 };

typedef struct at_spool {
    int    fd;
    int    error; /* errno of the first failed write, 0: none */
    char  *path;
    at_ns  flushed_at; /* time of the records, not of a clock */
    size_t used;
    off_t  size_before; /* of the file when it was opened */
    bool   fresh;       /* it was empty */
    char   buffer[AT_SPOOL_SIZE];
} at_spool;

/* Opens FOLDER/NAME for appending and makes it when it is not there. When the file ends within a
 * line (a run was killed), that line is ended first if `lines` is set. */
at_err at_spool_open(const char *folder, const char *name, bool lines, at_spool **spool,
                     at_fail *fail);

/* Writes out all there is. */
void at_spool_flush(at_spool *spool);

/* Room for `size` more bytes (at most AT_SPOOL_SIZE), to be filled and added to `used`. It is asked
 * for a hundred times a step, and therefore inline. */
static inline char *at_spool_room(at_spool *spool, size_t size)
{
    assert(size <= AT_SPOOL_SIZE);
    if (spool->used + size > AT_SPOOL_SIZE) at_spool_flush(spool);
    return spool->buffer + spool->used;
}

/* A single byte. */
static inline void at_spool_byte(at_spool *spool, char byte)
{
    *at_spool_room(spool, 1) = byte;
    spool->used++;
}

/* A text, raw bytes. */
void at_spool_text(at_spool *spool, const char *text);
void at_spool_bytes(at_spool *spool, const void *bytes, size_t size);

/* A whole number in decimal. */
void at_spool_whole(at_spool *spool, uint64_t value);

/* A duration in seconds with six decimals; it may be negative. */
void at_spool_seconds(at_spool *spool, at_ns value);

/* A real number to seven significant digits or more: 0.4121387, 0.05, 1e-09, nan. */
void at_spool_real(at_spool *spool, double value);

/* Writes out what is a second old at the time `at`; or all of it now. */
void at_spool_tick(at_spool *spool, at_ns at, bool now);

/* Writes out the rest, closes and releases; AT_ERR_IO when anything could not be written, and then
 * nothing is. Accepts NULL. */
at_err at_spool_close(at_spool *spool, at_fail *fail);

#endif
