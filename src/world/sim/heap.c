#include "world/sim/heap.h"

#include <assert.h>
#include <stdlib.h>

enum {
    SIZE_INITIAL = 1024,
    CHILDREN = 4 /* half the levels of a binary heap, whose lower ones are not in the cache */
};

void at_heap_deinit(at_heap *heap)
{
    assert(heap->count <= heap->size);
    free(heap->item);
    for (unsigned i = 0; i < AT_HEAP_LANES; i++) free(heap->lane[i].item);
    *heap = (at_heap){0};
}

static bool before(const at_heap_item *a, const at_heap_item *b)
{
    assert(a->birth != b->birth);
    return a->at != b->at ? a->at < b->at : a->birth < b->birth;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

static at_heap_item *lane_item(const at_heap_lane *lane, size_t n)
{
    assert(n < lane->size);
    return &lane->item[(lane->first + n) & (lane->size - 1)];
}

at_heap_entry *at_heap_lane_entry(const at_heap *heap, unsigned lane, size_t n)
{
    assert(lane < AT_HEAP_LANES);
    return n < heap->lane[lane].count ? lane_item(&heap->lane[lane], n)->entry : NULL;
}

static bool grow_lane(at_heap_lane *lane)
{
    size_t        size = lane->size ? 2 * lane->size : SIZE_INITIAL;
    at_heap_item *item = malloc(size * sizeof *item);
    assert(lane->count == lane->size);
    if (!item) return false;
    for (size_t i = 0; i < lane->count; i++) item[i] = *lane_item(lane, i);
    free(lane->item);
    *lane = (at_heap_lane){.item = item, .count = lane->count, .size = size};
    return true;
}

static bool append(at_heap_lane *lane, const at_heap_item *item)
{
    if (lane->count == lane->size && !grow_lane(lane)) return false;
    *lane_item(lane, lane->count++) = *item;
    assert(lane->count == 1 || lane_item(lane, lane->count - 2)->at <= item->at);
    return true;
}

/* The lane whose first item comes before all others; NULL: that of the heap does. */
static at_heap_lane *first_lane(const at_heap *heap, const at_heap_item **first)
{
    const at_heap_lane *found = NULL;
    *first = heap->count > 0 ? &heap->item[0] : NULL;
    for (unsigned i = 0; i < AT_HEAP_LANES; i++) {
        const at_heap_lane *lane = &heap->lane[i];
        if (lane->count == 0 || (*first && before(*first, lane_item(lane, 0)))) continue;
        *first = lane_item(lane, 0);
        found = lane;
    }
    return (at_heap_lane *)found;
}

/* ---- heap ------------------------------------------------------------------------------------ */

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

bool at_heap_put(at_heap *heap, at_ns at, at_heap_entry *entry, unsigned lane)
{
    assert(heap->count <= heap->size);
    assert(at != AT_NEVER);
    at_heap_item  item = {.at = at, .birth = heap->births++, .entry = entry};
    at_heap_lane *to = lane < AT_HEAP_LANES ? &heap->lane[lane] : NULL;
    if (to && (to->count == 0 || lane_item(to, to->count - 1)->at <= at)) return append(to, &item);
    if (heap->count == heap->size && !grow(heap)) return false;
    size_t hole = heap->count++;
    for (size_t parent; hole > 0; hole = parent) {
        parent = (hole - 1) / CHILDREN;
        if (!before(&item, &heap->item[parent])) break;
        heap->item[hole] = heap->item[parent];
    }
    heap->item[hole] = item;
    return true;
}

at_ns at_heap_due(const at_heap *heap)
{
    const at_heap_item *first;
    assert(heap->item || heap->count == 0);
    first_lane(heap, &first);
    return first ? first->at : AT_NEVER;
}

/* The first of the children of an item that start at `child`. */
static size_t first_child(const at_heap *heap, size_t child)
{
    assert(child < heap->count);
    size_t end = child + CHILDREN < heap->count ? child + CHILDREN : heap->count, first = child;
    for (size_t i = child; i < end && CHILDREN * i + 1 < heap->count; i++)
        __builtin_prefetch(&heap->item[CHILDREN * i + 1]); /* one of their families is next */
    for (size_t i = child + 1; i < end; i++)
        if (before(&heap->item[i], &heap->item[first])) first = i;
    return first;
}

static void remove_first(at_heap *heap)
{
    assert(heap->count > 0);
    at_heap_item last = heap->item[--heap->count];
    size_t       hole = 0;
    for (size_t child; (child = CHILDREN * hole + 1) < heap->count; hole = child) {
        child = first_child(heap, child);
        if (!before(&heap->item[child], &last)) break;
        heap->item[hole] = heap->item[child];
    }
    heap->item[hole] = last;
}

at_heap_item at_heap_take(at_heap *heap)
{
    const at_heap_item *it;
    at_heap_lane       *lane = first_lane(heap, &it);
    assert(it);
    at_heap_item first = *it;
    if (lane) {
        lane->first = (lane->first + 1) & (lane->size - 1);
        lane->count--;
    } else
        remove_first(heap);
    assert(at_heap_due(heap) >= first.at); /* in order */
    return first;
}
