/* arena.h - memory reserved once, handed out in order, released at once.
 *
 * State machines take all their memory from an arena at init, then run without allocation.
 */
#ifndef AT_BASE_ARENA_H
#define AT_BASE_ARENA_H

#include <stddef.h>

typedef struct at_arena {
    unsigned char *base;
    size_t         used, size;
} at_arena;

/* Reserves size bytes on the heap, zeroed. False when there is no memory. */
_Bool at_arena_init(at_arena *arena, size_t size);

/* Releases everything; accepts a zeroed arena. */
void at_arena_deinit(at_arena *arena);

/* Zeroed memory, aligned to 64 bytes, or NULL when the arena is too small. */
void *at_arena_get(at_arena *arena, size_t count, size_t size_each);

/* Memory for what may be large and is touched as a whole: aligned to 64 bytes and, where the system
 * has them, in huge pages, which halves what it costs to hand it to another process. NULL: not
 * enough. Ends with free(). */
void *at_large_new(size_t size);

/* a * b into *product; false (and *product untouched) when it would overflow. Sizes that come
 * from a file or an option MUST pass through this before they reach an allocator. */
_Bool at_size_product(size_t a, size_t b, size_t *product);

#endif
