/* file.h - whole files in, whole files out. Nothing is ever left half-written. */
#ifndef AT_BASE_FILE_H
#define AT_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* Reads a whole file of at most size_max bytes into new memory (*bytes, to be freed by the
 * caller; one extra zero byte follows). AT_ERR_MISSING when there is no such file. */
at_err at_file_read(const char *path, size_t size_max, unsigned char **bytes, size_t *size,
                    at_fail *fail);

/* Writes bytes to path, whole or not at all (draft.h). */
at_err at_file_write(const char *path, const void *bytes, size_t size, at_fail *fail);

/* "PATH: cannot WHAT: ..", with what can be done about it; returns AT_ERR_IO. */
at_err at_file_cannot(const char *what, const char *path, int error, at_fail *fail);

/* Makes the folder and the ones above it. AT_ERR_IO when that cannot be done. */
at_err at_file_make_folder(const char *path, at_fail *fail);

/* Closes the file; AT_ERR_IO when any earlier write or the close failed (full disk). */
at_err at_file_close(FILE *file, const char *path, at_fail *fail);

/* SHA-256 of bytes that come piece by piece. */
typedef struct at_digest {
    void *hash;
} at_digest;

/* False when there is no memory. What was begun MUST be ended. */
bool at_digest_begin(at_digest *digest);
void at_digest_add(at_digest *digest, const void *bytes, size_t size);
void at_digest_end(at_digest *digest, unsigned char sum[32]);

/* SHA-256 of a whole file, read piece by piece. AT_ERR_MISSING, AT_ERR_IO. */
at_err at_file_digest(const char *path, unsigned char digest[32], at_fail *fail);

/* SHA-256 of bytes. */
void at_file_digest_bytes(const void *bytes, size_t size, unsigned char digest[32]);

/* SHA-256 of bytes as 64 hexadecimal digits and a zero byte. */
void at_file_sha256(const void *bytes, size_t size, char hex[65]);

#endif
