/* heap.h - what happens when, in virtual time: a binary heap ordered by (time, birth). */
#ifndef AT_WORLD_SIM_HEAP_H
#define AT_WORLD_SIM_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time.h"

typedef struct at_heap_entry at_heap_entry; /* what happens: the world's own business */

typedef struct at_heap_item {
    at_ns          at;
    uint64_t       birth; /* ties happen in the order in which they were put in */
    at_heap_entry *entry;
} at_heap_item;

typedef struct at_heap {
    at_heap_item *due;
    size_t        count, size;
    uint64_t      births;
} at_heap;

/* Releases the heap itself, not the entries; accepts a zeroed one. */
void at_heap_deinit(at_heap *heap);

/* Puts an entry in; false when there is no memory. */
bool at_heap_put(at_heap *heap, at_ns at, at_heap_entry *entry);

/* When the first entry is due; AT_NEVER when there is none. */
at_ns at_heap_due(const at_heap *heap);

/* Takes the first entry out; the heap MUST NOT be empty. */
at_heap_item at_heap_take(at_heap *heap);

#endif
