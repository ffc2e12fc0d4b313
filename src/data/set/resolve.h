/* resolve.h - maps the argument of --data to a format and what that format reads.
 *
 *     fashion-mnist        a named set: its folder, in the format that claims the folder
 *     FORMAT:PATH          that format and no other, including synthetic:...
 *     PATH                 the first format that claims its content; a colon in a path is ignored
 *                          unless a format name precedes it (then write ./PATH)
 */
#ifndef AT_DATA_SET_RESOLVE_H
#define AT_DATA_SET_RESOLVE_H

#include <limits.h>

#include "data/fetch/catalog.h"
#include "data/formats/format.h"

typedef struct at_resolved {
    const at_format      *format;
    const at_catalog_row *row;  /* of a named set, else NULL */
    const char           *path; /* what the format reads; borrows from the name or `folder` */
    char                  folder[PATH_MAX]; /* of a named set */
} at_resolved;

/* Finds the format. `name` MUST outlive *resolved, which MUST not be moved. AT_ERR_MISSING or
 * AT_ERR_FORMAT when nothing readable was found; AT_ERR_USAGE for an unknown format. */
at_err at_resolve(const char *name, at_resolved *resolved, at_fail *fail);

/* The name with all paths in it from the root, to be freed by the caller: PATH, FORMAT:PATH,
 * IMAGES,LABELS and FOLDER,SIZE. NULL when nothing changes: a known or synthetic set, or a path
 * that does not exist or begins at the root. */
char *at_resolve_absolute(const char *name);

#endif
