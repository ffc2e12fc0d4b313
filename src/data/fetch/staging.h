/* staging.h - where a data set is put together before it appears in the cache; for fetch*.c.
 *
 *     CACHE/.get-NAME-XXXXXX/        one attempt, gone when it ends
 *     CACHE/.part-NAME-0/            what came from mirror 0 so far; the next attempt goes on there
 *     CACHE/NAME/                    the set, renamed into place when every file was right
 *
 * One process at a time works in a cache: it holds a lock on the folder itself, which the kernel
 * drops when the process dies. So whatever .get-* is found under the lock is of somebody dead.
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
    char                     ready[PATH_MAX];     /* in it: the set's files and nothing else */
} at_staging;

/* Waits for the lock, removes what dead processes left, makes the temporary folder and in it the
 * empty one, ready. AT_ERR_IO, AT_ERR_STOPPED by a signal. Closed whatever happens. */
at_err at_staging_open(at_staging *stage, const at_catalog_row *row,
                       const at_fetch_progress *progress, at_fail *fail);

/* Removes the temporary folder and drops the lock. */
void at_staging_close(at_staging *stage);

/* Tells the listener. */
void at_staging_say(const at_fetch_progress *progress, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The path of the folder for what comes from a mirror. */
at_err at_staging_part(const at_staging *stage, size_t mirror, char path[PATH_MAX], at_fail *fail);

/* Removes a folder with all that is in it. */
void at_staging_remove(const char *path);

/* Moves the set's files from a folder into `ready`, raw or .gz as they are. */
at_err at_staging_collect(const at_staging *stage, const char *from, at_fail *fail);

/* Checks the files in `ready` and gives them their place; a broken set that stands there goes, and
 * what has come from mirrors is no longer needed. */
at_err at_staging_install(const at_staging *stage, at_fail *fail);

/* "cannot WHAT PATH: reason", from errno. */
at_err at_staging_cannot(const char *what, const char *path, at_fail *fail);

#endif
