/* wire.h - encodes and decodes numbers and texts, both directions through the same call.
 *
 * Each at_wire_* function appends the value when the wire writes and reads into it otherwise, so a
 * format is described once and writer and reader cannot drift apart. Input is untrusted: after the
 * first malformed byte all values read as 0 and `bad` says what is wrong.
 */
#ifndef AT_RECORD_LOG_WIRE_H
#define AT_RECORD_LOG_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AT_WIRE_TEXT = 4096 /* longest text including its final zero; longer ones are cut */ };

/* The bytes of one record. */
typedef struct at_wire {
    bool           writes;
    unsigned char *bytes; /* writing: owned, grows; reading: the caller's */
    size_t         size;  /* writing: allocated; reading: of the record */
    size_t         next;  /* bytes written or read so far */
    const char    *bad;   /* what is wrong with the bytes or the record, NULL: nothing */

    char text[AT_WIRE_TEXT]; /* the last text read */
} at_wire;

/* Starts an empty record. Writing needs no more than at_wire_deinit afterwards. */
void at_wire_write(at_wire *wire);
void at_wire_deinit(at_wire *wire);

/* Starts reading a record, which is borrowed. */
void at_wire_read(at_wire *wire, const unsigned char *bytes, size_t size);

/* An unsigned number: 7 bits per byte, lowest first; the high bit marks that more bytes follow. */
void at_wire_u64(at_wire *wire, uint64_t *value);
void at_wire_u32(at_wire *wire, uint32_t *value);

/* A signed 64-bit number, zig-zag coded: short when close to zero, positive or negative. */
void at_wire_i64(at_wire *wire, int64_t *value);

/* The difference to *last, which is then set to the value. */
void at_wire_delta(at_wire *wire, uint64_t *value, uint64_t *last);
void at_wire_delta_u32(at_wire *wire, uint32_t *value, uint64_t *last);
void at_wire_delta_i64(at_wire *wire, int64_t *value, uint64_t *last);

/* A number below `limit`; returns the value written or read. */
unsigned at_wire_choice(at_wire *wire, unsigned value, unsigned limit);
void     at_wire_flag(at_wire *wire, bool *value);

/* Up to seven flags in one byte, the first one lowest. */
void at_wire_flags(at_wire *wire, bool *const *flags, unsigned count);

/* The eight bytes of a binary64, lowest first. */
void at_wire_real(at_wire *wire, double *value);

/* Appends raw bytes; only for writing. */
void at_wire_put(at_wire *wire, const void *bytes, size_t size);

/* A text; NULL is written as an empty one. A text that was read is stored in the wire until the
 * next one. */
void at_wire_text(at_wire *wire, const char **text);

#endif
