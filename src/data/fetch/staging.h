/* staging.h - the folders in which a data set is assembled before it is installed; for fetch.c.
 *
 *     CACHE/.get-NAME-XXXXXX/        one attempt, removed at its end
 *     CACHE/.part-NAME-0/            partial downloads from mirror 0, resumed by the next attempt
 *     CACHE/NAME/                    the set, renamed into place when every file is verified
 *
 * One process at a time works in a cache: it holds a lock on the folder itself, which the kernel
 * releases when the process dies. So any .get-* found under the lock belongs to a dead process.
 */
#ifndef AT_DATA_FETCH_STAGING_H
#define AT_DATA_FETCH_STAGING_H

#include "data/fetch/fetch.h"

typedef struct at_staging {
    const at_catalog_row    *row;
    const at_fetch_progress *progress;
    int                      lock;                /* the cache folder */
    char                     cache[PATH_MAX];     /* its path */
    char                     temporary[PATH_MAX]; /* of this attempt */
    char                     ready[PATH_MAX];     /* in it: only the files of the set */
} at_staging;

/* Waits for the lock, removes leftovers of dead processes, creates the temporary folder and in it
 * the empty `ready`. AT_ERR_IO, AT_ERR_STOPPED by a signal. MUST be closed even after an error. */
at_err at_staging_open(at_staging *staging, const at_catalog_row *row,
                       const at_fetch_progress *progress, at_fail *fail);

/* Removes the temporary folder and releases the lock. */
void at_staging_close(at_staging *staging);

/* Reports a line of progress. */
void at_staging_report(const at_fetch_progress *progress, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The folder for partial downloads from a mirror. */
at_err at_staging_part(const at_staging *staging, size_t mirror, char path[PATH_MAX],
                       at_fail *fail);

/* Removes a folder and everything in it. */
void at_staging_remove(const char *path);

/* Moves the files of the set from a folder into `ready`, raw or .gz. */
at_err at_staging_collect(const at_staging *staging, const char *from, at_fail *fail);

/* Verifies the files in `ready` and installs them; replaces a broken set, and removes the partial
 * downloads. */
at_err at_staging_install(const at_staging *staging, at_fail *fail);

#endif
