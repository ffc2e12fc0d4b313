/* pool.h - many small objects of one size: taken and given back without a call to malloc. */
#ifndef AT_WORLD_SIM_POOL_H
#define AT_WORLD_SIM_POOL_H

#include <stddef.h>

/* A zeroed pool but for `size` (of an object, at least that of a pointer) is ready for use. */
typedef struct at_pool {
    size_t size;
    void  *unused; /* the objects that were given back; each one points to the next */
    void  *chunks; /* all memory; each chunk points to the next */
    char  *fresh;  /* never used yet: from here to `end` */
    char  *end;
} at_pool;

/* An object with undefined contents, aligned to 8 bytes; NULL when there is no memory. The one that
 * was given back last comes first, because it is in the cache. */
void *at_pool_take(at_pool *pool);

/* Gives an object back; accepts NULL. */
void at_pool_give(at_pool *pool, void *object);

/* Releases all objects at once, also those in use. */
void at_pool_deinit(at_pool *pool);

#endif
