/* catalog.h - the data sets that are known by name.
 *
 * A row says everything about a set: what it is, under which licence, how it is got, and what its
 * files must look like, by size and SHA-256 of their raw bytes (packagers compress anew, so a
 * hash of a .gz would prove nothing). A new set is one row.
 */
#ifndef AT_DATA_FETCH_CATALOG_H
#define AT_DATA_FETCH_CATALOG_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { AT_CATALOG_FILES_MAX = 6, AT_CATALOG_MIRRORS_MAX = 2 };

typedef struct at_catalog_file {
    const char *name; /* without .gz */
    uint64_t    size; /* raw */
    const char *sha256;
} at_catalog_file;

/* Turns what a package holds (unpacked in the folder `from`) into the set's files in `to`. */
typedef at_err at_convert(const char *from, const char *to, at_fail *fail);

/* How a set is got from a package. Exactly one of apt and npm is not NULL. */
typedef struct at_recipe {
    const char *apt;            /* Debian package */
    const char *apt_folder;     /* where it puts the files */
    const char *npm;            /* package@version */
    const char *tarball;        /* the file that `npm pack` leaves */
    const char *tarball_sha256; /* of it */
    const char *tarball_folder; /* the folder inside that holds the files */
    at_convert *convert;        /* NULL: the files are there as they should be */
} at_recipe;

/* Where on the web a set is, for machines on which the package cannot be had. */
typedef struct at_mirror {
    const char *url;     /* of the folder that holds NAME.gz of every file, or of an archive */
    const char *archive; /* name of the archive (.tar.gz) below url; NULL: single files */
    const char *folder;  /* inside the archive */
} at_mirror;

typedef struct at_catalog_row {
    const char     *name;
    const char     *summary;
    const char     *licence;
    const char     *form;       /* of one sample: "28x28 bytes" */
    uint64_t        samples[2]; /* by at_split */
    uint32_t        classes;
    at_recipe       recipe;
    at_catalog_file files[AT_CATALOG_FILES_MAX];     /* the unused ones have no name */
    at_mirror       mirrors[AT_CATALOG_MIRRORS_MAX]; /* the unused ones have no url */
} at_catalog_row;

/* All rows, for `data list`; *count of them. */
const at_catalog_row *at_catalog_rows(size_t *count);

/* The row of that name, or NULL. */
const at_catalog_row *at_catalog_find(const char *name);

/* The known name that looks most like `name`, or NULL when none is near. */
const char *at_catalog_nearest(const char *name);

/* The folder in which fetched sets are kept: $XDG_CACHE_HOME/anytime, or ~/.cache/anytime.
 * AT_ERR_MISSING when neither variable is set. */
at_err at_catalog_cache(char path[PATH_MAX], at_fail *fail);

/* The folder that holds the set's files, from its package or from the cache. AT_ERR_MISSING with
 * the command that would get it when neither is there. */
at_err at_catalog_locate(const at_catalog_row *row, char path[PATH_MAX], at_fail *fail);

/* The path of one of the set's files in that folder, raw or .gz; AT_ERR_MISSING. */
at_err at_catalog_file_path(const at_catalog_file *file, const char *folder, char path[PATH_MAX],
                            at_fail *fail);

#endif
