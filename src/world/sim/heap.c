#include "world/sim/heap.h"

#include <assert.h>
#include <stdlib.h>

enum { SIZE_INITIAL = 1024 };

void at_heap_deinit(at_heap *heap)
{
    assert(heap->count <= heap->size);
    free(heap->item);
    *heap = (at_heap){0};
}

static bool before(const at_heap_item *a, const at_heap_item *b)
{
    assert(a->birth != b->birth);
    return a->at != b->at ? a->at < b->at : a->birth < b->birth;
}

static bool grow(at_heap *heap)
{
    assert(heap->count == heap->size);
    size_t        size = heap->size ? 2 * heap->size : SIZE_INITIAL;
    at_heap_item *item = realloc(heap->item, size * sizeof *item);
    if (!item) return false;
    heap->item = item;
    heap->size = size;
    return true;
}

bool at_heap_put(at_heap *heap, at_ns at, at_heap_entry *entry)
{
    assert(heap->count <= heap->size);
    assert(at != AT_NEVER);
    if (heap->count == heap->size && !grow(heap)) return false;
    at_heap_item item = {.at = at, .birth = heap->births++, .entry = entry};
    size_t       hole = heap->count++;
    for (size_t parent; hole > 0; hole = parent) {
        parent = (hole - 1) / 2;
        if (!before(&item, &heap->item[parent])) break;
        heap->item[hole] = heap->item[parent];
    }
    heap->item[hole] = item;
    return true;
}

at_ns at_heap_due(const at_heap *heap)
{
    assert(heap->item || heap->count == 0);
    return heap->count > 0 ? heap->item[0].at : AT_NEVER;
}

at_heap_item at_heap_take(at_heap *heap)
{
    assert(heap->count > 0);
    at_heap_item first = heap->item[0], last = heap->item[--heap->count];
    size_t       hole = 0;
    for (size_t child; (child = 2 * hole + 1) < heap->count; hole = child) {
        bool right = child + 1 < heap->count && before(&heap->item[child + 1], &heap->item[child]);
        child += right;
        if (!before(&heap->item[child], &last)) break;
        heap->item[hole] = heap->item[child];
    }
    heap->item[hole] = last;
    assert(heap->count == 0 || first.at <= heap->item[0].at); /* in order */
    return first;
}
