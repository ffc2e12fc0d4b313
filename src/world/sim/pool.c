#include "world/sim/pool.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_SIZE = 64 * 1024,
    HEAD_SIZE = 16 /* of a chunk: the pointer to the next, and alignment */
};

static bool grow(at_pool *pool)
{
    assert(pool->fresh == pool->end);
    assert(pool->size <= CHUNK_SIZE - HEAD_SIZE);
    char *chunk = malloc(CHUNK_SIZE);
    if (!chunk) return false;
    memcpy(chunk, &pool->chunks, sizeof pool->chunks);
    pool->chunks = chunk;
    pool->fresh = chunk + HEAD_SIZE;
    pool->end = pool->fresh + (CHUNK_SIZE - HEAD_SIZE) / pool->size * pool->size;
    return true;
}

void *at_pool_take(at_pool *pool)
{
    assert(pool->size >= sizeof(void *));
    assert(pool->size % 8 == 0);
    void *object = pool->unused;
    if (object) {
        memcpy(&pool->unused, object, sizeof pool->unused);
        __builtin_prefetch(pool->unused, 1);
        return object;
    }
    if (pool->fresh == pool->end && !grow(pool)) return NULL;
    object = pool->fresh;
    pool->fresh += pool->size;
    return object;
}

void at_pool_give(at_pool *pool, void *object)
{
    assert(pool->size >= sizeof(void *));
    if (!object) return;
    memcpy(object, &pool->unused, sizeof pool->unused);
    pool->unused = object;
}

void at_pool_deinit(at_pool *pool)
{
    while (pool->chunks) {
        void *chunk = pool->chunks;
        memcpy(&pool->chunks, chunk, sizeof pool->chunks);
        free(chunk);
    }
    *pool = (at_pool){.size = pool->size};
}
