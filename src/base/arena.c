#include "base/arena.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { ALIGN = 64 }; /* a cache line, and the widest vector register */

_Bool at_size_product(size_t a, size_t b, size_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

_Bool at_arena_init(at_arena *arena, size_t size)
{
    assert(arena);
    if (size > (size_t)-1 - ALIGN) return 0;
    size_t rounded = (size + ALIGN - 1) / ALIGN * ALIGN;
    if (rounded > (size_t)-1 - ALIGN) return 0;
    void *block = calloc(1, rounded + ALIGN);
    *arena = (at_arena){0};
    if (!block) return 0;
    uintptr_t offset = (ALIGN - (uintptr_t)block % ALIGN) % ALIGN;
    *arena = (at_arena){.base = (unsigned char *)block + offset, .size = rounded, .block = block};
    return 1;
}

void *at_large_new(size_t size)
{
    enum { HUGE_PAGE = 2 << 20 };
    size_t align = size >= HUGE_PAGE ? HUGE_PAGE : ALIGN;
    assert(size > 0);
    if (size > (size_t)-1 - align) return NULL;
    size_t rounded = (size + align - 1) / align * align;
    void  *place = aligned_alloc(align, rounded);
    if (place && align == HUGE_PAGE) madvise(place, rounded, MADV_HUGEPAGE); /* a hint only */
    return place;
}

void at_arena_deinit(at_arena *arena)
{
    free(arena->block);
    *arena = (at_arena){0};
}

void *at_arena_get(at_arena *arena, size_t count, size_t size_each)
{
    size_t size;
    if (!at_size_product(count, size_each, &size)) return NULL;
    size_t start = (arena->used + ALIGN - 1) / ALIGN * ALIGN;
    if (start > arena->size || size > arena->size - start) return NULL;
    arena->used = start + size;
    return arena->base + start;
}
