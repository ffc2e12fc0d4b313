/* atomic_file.h - a file written piece by piece that appears whole or not at all.
 *
 *     at_atomic_file_begin ─► at_atomic_file_put, _put, .. ─► at_atomic_file_commit
 *
 * The pieces go to a temporary file in the same folder, which is synced and renamed at the end, and
 * then the folder is synced. A reader therefore sees the old bytes or the new ones, also after a
 * power cut. A failed write is kept and told by the commit.
 */
#ifndef AT_BASE_ATOMIC_FILE_H
#define AT_BASE_ATOMIC_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/file.h"

enum { AT_ATOMIC_FILE_SEAL = 32 }; /* bytes of a seal */

typedef struct at_atomic_file {
    int       fd;
    int       error; /* errno of the first failure, 0: none */
    char     *path, *temporary;
    bool      sealed;
    at_digest digest; /* of everything put so far, when it will be sealed */
} at_atomic_file;

/* Opens the temporary file. `sealed`: at_atomic_file_seal will be called. */
at_err at_atomic_file_begin(at_atomic_file *draft, const char *path, bool sealed, at_fail *fail);

/* Adds bytes. */
void at_atomic_file_put(at_atomic_file *draft, const void *bytes, size_t size);

/* Adds the SHA-256 of everything before it; nothing may follow. */
void at_atomic_file_seal(at_atomic_file *draft);

/* Gives the file its name and releases the draft. After a failure (AT_ERR_IO) the old file, if any,
 * is untouched and no temporary file stays. */
at_err at_atomic_file_commit(at_atomic_file *draft, at_fail *fail);

#endif
