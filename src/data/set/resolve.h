/* resolve.h - from what a user typed behind --data to a format and what it shall read.
 *
 *     fashion-mnist        a named set: its folder, whatever format claims that
 *     FORMAT:PATH          that format, and no other; synthetic:... is one of these
 *     PATH                 the first format that claims it, by its content; a colon in a path means
 *                          nothing unless a format's name stands before it (then write ./PATH)
 */
#ifndef AT_DATA_SET_RESOLVE_H
#define AT_DATA_SET_RESOLVE_H

#include <limits.h>

#include "data/fetch/catalog.h"
#include "data/formats/format.h"

typedef struct at_resolved {
    const at_format      *format;
    const at_catalog_row *row;  /* of a named set, else NULL */
    const char           *path; /* what the format is asked for; borrows from the name or below */
    char                  folder[PATH_MAX]; /* of a named set */
} at_resolved;

/* Finds the format. `name` MUST outlive *resolved, which MUST not be moved. AT_ERR_MISSING and
 * AT_ERR_FORMAT with what was looked for; AT_ERR_USAGE for a format that is not known. */
at_err at_resolve(const char *name, at_resolved *resolved, at_fail *fail);

#endif
