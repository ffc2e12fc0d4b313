/* draft.h - a file written piece by piece that appears whole or not at all.
 *
 *     at_draft_begin ─► at_draft_put, _put, .. ─► at_draft_commit
 *
 * The pieces go to a temporary file in the same folder, which is synced and renamed at the end, and
 * then the folder is synced. A reader therefore sees the old bytes or the new ones, also after a
 * power cut. A failed write is kept and told by the commit.
 */
#ifndef AT_BASE_DRAFT_H
#define AT_BASE_DRAFT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/file.h"

enum { AT_DRAFT_SEAL = 32 }; /* bytes of a seal */

typedef struct at_draft {
    int       fd;
    int       error; /* errno of the first failure, 0: none */
    char     *path, *temporary;
    bool      sealed;
    at_digest digest; /* of everything put so far, when it will be sealed */
} at_draft;

/* Opens the temporary file. `sealed`: at_draft_seal will be called. */
at_err at_draft_begin(at_draft *draft, const char *path, bool sealed, at_fail *fail);

/* Adds bytes. */
void at_draft_put(at_draft *draft, const void *bytes, size_t size);

/* Adds the SHA-256 of everything before it; nothing may follow. */
void at_draft_seal(at_draft *draft);

/* Gives the file its name and releases the draft. After a failure (AT_ERR_IO) the old file, if any,
 * is untouched and no temporary file stays. */
at_err at_draft_commit(at_draft *draft, at_fail *fail);

#endif
