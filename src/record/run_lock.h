/* run_lock.h - a run folder is written by one process at a time.
 *
 *     at_run_lock_take ─► the run writes its files ─► at_run_lock_release
 *
 * The lock is FOLDER/run.lock, held with flock and removed when it is released. The system releases
 * it when the process that took it dies, however it dies; the file that remains then locks nothing.
 * Children of the process do not hold the lock. Reading a run folder needs no lock.
 */
#ifndef AT_RECORD_RUN_LOCK_H
#define AT_RECORD_RUN_LOCK_H

#include <stdbool.h>

#include "base/err.h"

typedef struct at_run_lock {
    int   fd;
    char *path;      /* NULL: not taken */
    bool  exclusive; /* false: the file system has no locks, so that others may have it too */
} at_run_lock;

/* Locks an existing folder. AT_ERR_USAGE when another run has it, with its process id;
 * AT_ERR_MISSING when there is no such folder. */
at_err at_run_lock_take(const char *folder, at_run_lock *lock, at_fail *fail);

/* The same for something else than a run, such as a comparison of several: FOLDER/NAME is its
 * lock. */
at_err at_run_lock_take_as(const char *folder, const char *name, at_run_lock *lock, at_fail *fail);

/* Whether a run holds the lock of the folder now. */
bool at_run_lock_is_held(const char *folder);

/* Removes and releases the lock; accepts a zeroed one. What others have put at its path since stays
 * there. */
void at_run_lock_release(at_run_lock *lock);

#endif
