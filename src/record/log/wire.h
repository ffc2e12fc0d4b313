/* wire.h - encodes and decodes numbers and texts, both directions through the same call.
 *
 * Each at_wire_* function writes the value when the wire has an output file and reads into it
 * otherwise, so a format is described once and writer and reader cannot drift apart. Input is
 * untrusted: after the first malformed byte all values read as 0 and `bad` says what is wrong.
 */
#ifndef AT_RECORD_LOG_WIRE_H
#define AT_RECORD_LOG_WIRE_H

#include "record/log/append_file.h"

enum {
    AT_WIRE_BUFFER = 65536,
    AT_WIRE_TEXT = 4096 /* longest text including its final zero; longer ones are cut */
};

typedef struct at_wire {
    at_append_file *out; /* NULL: reading from fd */
    int             fd;

    size_t      next, end; /* unread bytes of the buffer */
    uint64_t    offset;    /* of buffer[0] in the file */
    bool        ended;     /* end of file reached */
    const char *bad;       /* what is wrong with the bytes, NULL: nothing */
    int         error;     /* errno of a failed read, 0: none */

    char          text[AT_WIRE_TEXT]; /* the last text read */
    unsigned char buffer[AT_WIRE_BUFFER];
} at_wire;

/* Nothing more can be read. */
static inline bool at_wire_broken(const at_wire *wire)
{
    return wire->ended || wire->bad || wire->error;
}

/* Number of bytes consumed. */
uint64_t at_wire_offset(const at_wire *wire);

/* Goes back to where `offset` bytes had been consumed and clears errors. */
void at_wire_rewind(at_wire *wire, uint64_t offset);

/* Reads raw bytes; false when fewer are left. */
bool at_wire_raw(at_wire *wire, void *bytes, size_t size);

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

/* A text; NULL is written as an empty one. A text that was read is stored in the wire until the
 * next one. */
void at_wire_text(at_wire *wire, const char **text);

#endif
