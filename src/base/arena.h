/* arena.h - a block of memory that is allocated once, handed out in pieces and freed as a whole.
 *
 * State machines take all their memory from an arena at the start, then run without allocating.
 */
#ifndef AT_BASE_ARENA_H
#define AT_BASE_ARENA_H

#include <stddef.h>

typedef struct at_arena {
    unsigned char *base;
    size_t         used, size;
    void          *block; /* what was allocated; NULL: the memory is the caller's */
} at_arena;

/* Allocates size zeroed bytes on the heap; large parts that are never written take no memory. False
 * when out of memory. */
_Bool at_arena_init(at_arena *arena, size_t size);

/* Frees everything; accepts a zeroed arena. */
void at_arena_deinit(at_arena *arena);

/* Returns zeroed memory, aligned to 64 bytes, or NULL when the arena is full. */
void *at_arena_get(at_arena *arena, size_t count, size_t size_each);

/* Allocates a large buffer, aligned to 64 bytes and, where the system supports them, in huge pages,
 * which halves the cost of passing it to another process. NULL when out of memory. Free with
 * free(). */
void *at_large_new(size_t size);

/* Stores a * b in *product; false on overflow. Sizes from a file or an option MUST pass through
 * this before they reach an allocator. */
_Bool at_size_product(size_t a, size_t b, size_t *product);

#endif
