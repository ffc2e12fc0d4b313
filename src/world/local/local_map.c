#include <assert.h>
#include <sys/mman.h>

#include "base/arena.h"
#include "world/local/local.h"
#include "world/process/child.h"

enum { LINE_FLOATS = 16 }; /* floats in a cache line */

static size_t whole_lines(size_t floats)
{
    assert(floats <= SIZE_MAX - LINE_FLOATS);
    return (floats + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
}

at_err at_local_map_open(at_local_map *map, uint32_t workers, size_t params, size_t slot_floats,
                         at_fail *fail)
{
    assert(workers >= 1);
    assert(params >= 1 && slot_floats >= 1);
    size_t stride = whole_lines(params), slot_stride = whole_lines(slot_floats);
    size_t floats, bytes, head = sizeof(at_local_head) + workers * sizeof(at_local_slot);
    if (!at_size_product(slot_stride, (size_t)workers * AT_LOCAL_GRADIENTS, &floats) ||
        floats > SIZE_MAX - stride || !at_size_product(floats + stride, sizeof(float), &bytes) ||
        bytes > SIZE_MAX / 2)
        return at_fail_set(fail, AT_ERR_FAILED, "use fewer workers or a smaller model",
                           "%u workers with %zu parameters do not fit into memory", workers,
                           params);
    char *memory = at_child_share(head + bytes, fail);
    if (!memory) return fail->err;
    float *vector = (float *)(void *)(memory + head);
    *map = (at_local_map){.head = (at_local_head *)(void *)memory,
                          .slot = (at_local_slot *)(void *)(memory + sizeof(at_local_head)),
                          .params = vector,
                          .gradient = vector + stride,
                          .params_count = params,
                          .stride = stride,
                          .slot_stride = slot_stride,
                          .size = head + bytes};
    return AT_OK;
}

void at_local_map_close(at_local_map *map)
{
    if (map->head) munmap(map->head, map->size);
    *map = (at_local_map){0};
}

float *at_local_gradient(const at_local_map *map, at_node worker, uint32_t slot)
{
    assert(worker >= 1);
    assert(slot < AT_LOCAL_GRADIENTS);
    size_t index = (size_t)(worker - 1) * AT_LOCAL_GRADIENTS + slot;
    return map->gradient + index * map->slot_stride;
}
