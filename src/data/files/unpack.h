/* unpack.h - the family of packings that a file may be in. A new one is one file and one line in
 * unpack.c.
 *
 *     find ──► start ──► turn ... ──► AT_UNPACK_END ──► start again, when another stream follows
 *                                                   └─► stop
 */
#ifndef AT_DATA_FILES_UNPACK_H
#define AT_DATA_FILES_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the next bytes come from and where they go; a turn moves both forward. */
typedef struct at_unpack_flow {
    const unsigned char *in;
    size_t               in_left;
    unsigned char       *out;
    size_t               out_left;
} at_unpack_flow;

typedef enum at_unpack_turn {
    AT_UNPACK_MORE,      /* there may be more, when there is more input or more room */
    AT_UNPACK_END,       /* the stream has ended and its checksum was right */
    AT_UNPACK_DAMAGED,   /* *why says how */
    AT_UNPACK_TOO_LARGE, /* it would take too much memory to unpack it; *why says what to do */
    AT_UNPACK_NO_MEMORY,
} at_unpack_turn;

typedef struct at_unpack {
    const char *name;   /* "gzip" */
    const char *suffix; /* ".gz" */
    const char *magic;  /* the first bytes of a stream */
    size_t      magic_size;
    bool        padded;        /* zero bytes may follow a stream */
    uint32_t    expansion_max; /* raw bytes from a packed one, at most */
    /* New state at the beginning of a stream; NULL when there is no memory. */
    void *(*start)(void);
    /* Unpacks as much as the flow allows. */
    at_unpack_turn (*turn)(void *state, at_unpack_flow *flow, const char **why);
    void (*stop)(void *state); /* accepts NULL */
} at_unpack;

extern const at_unpack at_unpack_gzip;
extern const at_unpack at_unpack_xz;

/* The packing whose stream begins with these bytes; NULL: none. */
const at_unpack *at_unpack_find(const unsigned char *bytes, size_t size);

/* The packing whose suffix the path has; NULL: none. */
const at_unpack *at_unpack_named(const char *path);

#endif
