/* zip.h - reads the entries of a zip archive, stored or deflated.
 *
 *     at_zip_open ──► at_zip_enter("data.npy") ──► at_zip_read ... ──► at_zip_leave ──► close
 *
 * Supports what an .npz needs: no encryption, no multi-part archives; entries of more than 4 GB
 * (zip64) are read. The archive is not trusted: offsets and sizes are checked against the file, and
 * the checksum of an entry is verified at its end.
 */
#ifndef AT_DATA_FILES_ZIP_H
#define AT_DATA_FILES_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

typedef struct at_zip at_zip;

/* Opens a file and reads its directory. AT_ERR_MISSING, AT_ERR_IO, AT_ERR_FORMAT. */
at_err at_zip_open(const char *path, at_zip **zip, at_fail *fail);

/* Closes; accepts NULL. */
void at_zip_close(at_zip *zip);

/* Whether the archive has an entry of that name. */
bool at_zip_has(const at_zip *zip, const char *name);

/* Starts reading an entry, which MUST exist; *size becomes its raw size. */
at_err at_zip_enter(at_zip *zip, const char *name, uint64_t *size, at_fail *fail);

/* Fills bytes with the next `size` raw bytes of the entry; *got is smaller only at its end. */
at_err at_zip_read(at_zip *zip, void *bytes, size_t size, size_t *got, at_fail *fail);

/* Checks that the entry was read to its end, and its checksum. */
at_err at_zip_leave(at_zip *zip, at_fail *fail);

#endif
