/* guard.h - a hub that is killed is started again.
 *
 *     this process ──fork──► hub, ends ─► this process ends with its code
 *          ▲                  │
 *          └──── killed ──────┘   from its last checkpoint
 *
 * Signals are passed on, and the hub dies with this process. A hub that its user has stopped is not
 * started again, nor one that is killed again and again without writing a checkpoint.
 */
#ifndef AT_CLI_GUARD_H
#define AT_CLI_GUARD_H

#include <stdbool.h>

#include "base/err.h"

typedef struct at_guarded {
    const char *folder;   /* of the run */
    unsigned    restarts; /* in a row, without another checkpoint */
    void       *self;
    /* Runs the hub; `again`: from the last checkpoint of the folder. */
    at_err (*run)(void *self, bool again, at_fail *fail);
} at_guarded;

/* Returns twice: in the hub what `run` returned, and in this process, when no hub is left, the same
 * code with nothing in *fail, because the hub tells the user. *is_hub says which it is. */
at_err at_guard(const at_guarded *guarded, bool *is_hub, at_fail *fail);

#endif
