/* wire.h - numbers and texts as bytes, in both directions through the same call.
 *
 * Each at_wire_* function writes the value when the wire has a spool and otherwise reads into it,
 * so a format is described once and its writer and reader cannot drift apart. Bytes that are read
 * are hostile: nothing is trusted, and after the first that cannot be, all values read as 0 and
 * `bad` says why.
 */
#ifndef AT_RECORD_LOG_WIRE_H
#define AT_RECORD_LOG_WIRE_H

#include "record/log/append_file.h"

enum {
    AT_WIRE_BUFFER = 65536,
    AT_WIRE_TEXT = 4096 /* longest text, its final zero included; longer ones are cut */
};

typedef struct at_wire {
    at_append_file *spool; /* NULL: reading from fd */
    int             fd;

    size_t      next, end; /* unread bytes of the buffer */
    uint64_t    offset;    /* of buffer[0] in the file */
    bool        ended;     /* the bytes ran out */
    const char *bad;       /* what is wrong with the bytes, NULL: nothing */
    int         error;     /* errno of a failed read, 0: none */

    char          text[AT_WIRE_TEXT]; /* the last text that was read */
    unsigned char buffer[AT_WIRE_BUFFER];
} at_wire;

/* Nothing more can be read. */
static inline bool at_wire_broken(const at_wire *wire)
{
    return wire->ended || wire->bad || wire->error;
}

/* How many bytes have been consumed. */
uint64_t at_wire_offset(const at_wire *wire);

/* Goes back to where `offset` bytes had been consumed, as if nothing behind had been read yet; what
 * was wrong with it is forgotten. */
void at_wire_rewind(at_wire *wire, uint64_t offset);

/* Reads raw bytes; false when there are fewer. */
bool at_wire_raw(at_wire *wire, void *bytes, size_t size);

/* A number: seven bits a byte, the lowest first, the high bit tells that more follow. */
void at_wire_u64(at_wire *wire, uint64_t *value);
void at_wire_u32(at_wire *wire, uint32_t *value);

/* A signed number in 64 bits: zig-zag, so that it is short when it is near zero on either side. */
void at_wire_i64(at_wire *wire, int64_t *value);

/* The difference to *hint, which then becomes the value. */
void at_wire_near(at_wire *wire, uint64_t *value, uint64_t *hint);
void at_wire_near32(at_wire *wire, uint32_t *value, uint64_t *hint);
void at_wire_near_i64(at_wire *wire, int64_t *value, uint64_t *hint);

/* A number below `limit`: returns what was written or read. */
unsigned at_wire_choice(at_wire *wire, unsigned value, unsigned limit);
void     at_wire_flag(at_wire *wire, bool *value);

/* Up to seven flags in one byte, the first one lowest. */
void at_wire_flags(at_wire *wire, bool *const *flags, unsigned count);

/* The eight bytes of a binary64, lowest first. */
void at_wire_real(at_wire *wire, double *value);

/* A text; NULL is written as the empty one. One that was read lives in the wire until the next. */
void at_wire_text(at_wire *wire, const char **text);

#endif
