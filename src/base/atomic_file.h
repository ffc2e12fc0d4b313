/* atomic_file.h - writes a file piece by piece that appears complete or not at all.
 *
 *     at_atomic_file_begin ─► at_atomic_file_put, _put, .. ─► at_atomic_file_commit
 *
 * The pieces go to a temporary file in the same folder. Commit syncs and renames it, then syncs the
 * folder, so a reader sees either the old bytes or the new ones, even after a power cut. The first
 * failed write is remembered and reported by commit.
 */
#ifndef AT_BASE_ATOMIC_FILE_H
#define AT_BASE_ATOMIC_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/file.h"

enum { AT_ATOMIC_FILE_SEAL = 32 }; /* bytes; see at_atomic_file_seal */

typedef struct at_atomic_file {
    int       fd;
    int       error; /* errno of the first failure, 0: none */
    char     *path, *temporary;
    bool      sealed;
    at_digest digest; /* of everything written so far, if sealed */
} at_atomic_file;

/* Opens the temporary file. `sealed`: at_atomic_file_seal MUST be called before commit. */
at_err at_atomic_file_begin(at_atomic_file *file, const char *path, bool sealed, at_fail *fail);

/* Appends bytes. */
void at_atomic_file_put(at_atomic_file *file, const void *bytes, size_t size);

/* Appends the SHA-256 of everything before it; nothing may follow. */
void at_atomic_file_seal(at_atomic_file *file);

/* Gives the file its final name and releases `file`. After a failure (AT_ERR_IO) the old file, if
 * any, is untouched and no temporary file remains. */
at_err at_atomic_file_commit(at_atomic_file *file, at_fail *fail);

/* Removes the temporary files that killed processes have left in the folder. Nobody else may be
 * writing to it. */
void at_atomic_file_remove_drafts(const char *folder);

#endif
