/* heap.h - the queue of future events in virtual time: a heap ordered by (time, birth). */
#ifndef AT_WORLD_SIM_HEAP_H
#define AT_WORLD_SIM_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time.h"

typedef struct at_heap_entry at_heap_entry; /* the event; defined by the user of the heap */

typedef struct at_heap_item {
    at_ns          at;
    uint64_t       birth; /* order of insertion; breaks ties */
    at_heap_entry *entry;
} at_heap_item;

typedef struct at_heap {
    at_heap_item *item;
    size_t        count, size;
    uint64_t      births;
} at_heap;

/* Releases the heap but not the entries; accepts a zeroed one. */
void at_heap_deinit(at_heap *heap);

/* Inserts an entry; false when out of memory. */
bool at_heap_put(at_heap *heap, at_ns at, at_heap_entry *entry);

/* Time of the first entry; AT_NEVER when the heap is empty. */
at_ns at_heap_due(const at_heap *heap);

/* Removes the first entry; the heap MUST NOT be empty. */
at_heap_item at_heap_take(at_heap *heap);

#endif
