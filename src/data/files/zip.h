/* zip.h - the entries of a zip archive, one after the other, stored or deflated.
 *
 *     at_zip_open ──► at_zip_enter("data.npy") ──► at_zip_read ... ──► at_zip_leave ──► close
 *
 * Only what an .npz needs: no encryption, no archives in several parts; entries of more than 4 GB
 * (zip64) are read. The archive is not believed: offsets and sizes are compared with the file, and
 * an entry's checksum is compared at its end.
 */
#ifndef AT_DATA_FILES_ZIP_H
#define AT_DATA_FILES_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

typedef struct at_zip at_zip;

/* Opens a file and reads its list of entries. AT_ERR_MISSING, AT_ERR_IO, AT_ERR_FORMAT. */
at_err at_zip_open(const char *path, at_zip **zip, at_fail *fail);

/* The same for an open file that the archive will close, whatever happens; `path` is used in
 * messages and is copied. */
at_err at_zip_take(FILE *file, const char *path, at_zip **zip, at_fail *fail);

/* Closes; accepts NULL. */
void at_zip_close(at_zip *zip);

/* Whether there is an entry of that name. */
bool at_zip_has(const at_zip *zip, const char *name);

/* Goes to the first byte of an entry, which MUST be there; *size becomes its raw size. */
at_err at_zip_enter(at_zip *zip, const char *name, uint64_t *size, at_fail *fail);

/* Fills bytes with the next `size` raw bytes of the entry; *got is smaller only at its end. */
at_err at_zip_read(at_zip *zip, void *bytes, size_t size, size_t *got, at_fail *fail);

/* Checks that the entry was read to its end, and its checksum. */
at_err at_zip_leave(at_zip *zip, at_fail *fail);

#endif
