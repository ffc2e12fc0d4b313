/* heap.h - the queue of future events in virtual time, ordered by (time, birth).
 *
 * Most events of a simulation come in order: messages on a link do not overtake each other. Such
 * events are put into a lane, a queue in order of time, which costs nothing but a comparison; a
 * heap takes all others.
 */
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

enum { AT_HEAP_LANES = 2, AT_HEAP_NO_LANE = AT_HEAP_LANES };

/* A ring buffer in order of time. */
typedef struct at_heap_lane {
    at_heap_item *item;
    size_t        first, count, size; /* size is 0 or a power of two */
} at_heap_lane;

typedef struct at_heap {
    at_heap_item *item;
    size_t        count, size; /* without lanes */
    at_heap_lane  lane[AT_HEAP_LANES];
    uint64_t      births;
} at_heap;

/* Releases the heap but not the entries; accepts a zeroed one. */
void at_heap_deinit(at_heap *heap);

/* Inserts an entry; false when out of memory. `lane` is where it goes if it is not earlier than the
 * last one there, 0 .. AT_HEAP_LANES - 1; the order of events does not depend on it. */
bool at_heap_put(at_heap *heap, at_ns at, at_heap_entry *entry, unsigned lane);

/* Time of the first entry; AT_NEVER when the heap is empty. */
at_ns at_heap_due(const at_heap *heap);

/* Removes the first entry; the heap MUST NOT be empty. */
at_heap_item at_heap_take(at_heap *heap);

/* The entry in place n of a lane, 0 is its first one; NULL: it has fewer. */
at_heap_entry *at_heap_lane_entry(const at_heap *heap, unsigned lane, size_t n);

#endif
