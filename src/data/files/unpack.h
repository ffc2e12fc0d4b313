/* unpack.h - decompressors for packed files. A new one is a row of the table in unpack.c.
 *
 *     find ──► start ──► run ... ──► AT_UNPACK_END ──► start again, if another stream follows
 *                                                  └─► stop
 */
#ifndef AT_DATA_FILES_UNPACK_H
#define AT_DATA_FILES_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Input and output; each run advances both. */
typedef struct at_unpack_buffers {
    const unsigned char *in;
    size_t               in_left;
    unsigned char       *out;
    size_t               out_left;
} at_unpack_buffers;

typedef enum at_unpack_status {
    AT_UNPACK_MORE,      /* needs more input or more output space */
    AT_UNPACK_END,       /* the stream has ended and its checksum was right */
    AT_UNPACK_DAMAGED,   /* *why names the reason */
    AT_UNPACK_TOO_LARGE, /* unpacking would take too much memory; *why is the hint */
    AT_UNPACK_NO_MEMORY,
} at_unpack_status;

typedef struct at_unpacker {
    const char *name;   /* "gzip" */
    const char *suffix; /* ".gz" */
    const char *magic;  /* the first bytes of a stream */
    size_t      magic_size;
    bool        padded;        /* zero bytes may follow a stream */
    uint32_t    expansion_max; /* maximum raw bytes per packed byte */
    /* New state at the beginning of a stream; NULL when memory runs out. */
    void *(*start)(void);
    /* Unpacks as much as the buffers allow. */
    at_unpack_status (*run)(void *state, at_unpack_buffers *buffers, const char **why);
    void (*stop)(void *state); /* accepts NULL */
} at_unpacker;

/* The unpacker for a stream that begins with these bytes, or NULL. */
const at_unpacker *at_unpack_by_magic(const unsigned char *bytes, size_t size);

/* The unpacker whose suffix the path has, or NULL. */
const at_unpacker *at_unpack_by_suffix(const char *path);

#endif
