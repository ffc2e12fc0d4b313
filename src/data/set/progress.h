/* progress.h - somebody who waits while a data set is read is told how far it is. Readers tell;
 * whether and how that is shown is decided by whoever listens. */
#ifndef AT_DATA_SET_PROGRESS_H
#define AT_DATA_SET_PROGRESS_H

#include <stdint.h>

typedef struct at_loading {
    /* `done` of `total` steps (bytes, pictures); total 0: not known. Called often, from one thread
     * at a time, so it MUST be cheap. */
    void (*tell)(void *self, uint64_t done, uint64_t total);
    void *self;
} at_loading;

/* Tells the listener; NULL: nobody listens. */
static inline void at_loading_tell(const at_loading *loading, uint64_t done, uint64_t total)
{
    if (loading && loading->tell) loading->tell(loading->self, done, total);
}

#endif
