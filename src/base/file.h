/* file.h - reading and writing whole files, folders, and SHA-256. */
#ifndef AT_BASE_FILE_H
#define AT_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* Reads a whole file of at most size_max bytes into new memory (*bytes, freed by the caller, with
 * one zero byte appended). AT_ERR_MISSING when the file does not exist. A pipe is read to its end;
 * one that nobody writes to is refused (AT_ERR_IO), not waited for. */
at_err at_file_read(const char *path, size_t size_max, unsigned char **bytes, size_t *size,
                    at_fail *fail);

/* The same for a text, which has no zero bytes but the last one: AT_ERR_FORMAT. */
at_err at_file_read_text(const char *path, size_t size_max, char **text, at_fail *fail);

/* Writes bytes to path, completely or not at all (atomic_file.h). */
at_err at_file_write(const char *path, const void *bytes, size_t size, at_fail *fail);

/* "PATH: cannot WHAT: REASON" for this errno, with a hint where one is known; returns AT_ERR_IO. */
at_err at_file_error(const char *what, const char *path, int error, at_fail *fail);

/* Syncs the folder that `path` is in, so that a power cut does not undo that it was created,
 * renamed or removed. Returns an errno; a file system that cannot sync a folder is no error. */
int at_file_sync_folder(const char *path);

/* Syncs the bytes of a file that another program has written. Returns an errno. */
int at_file_sync(const char *path);

/* Creates the folder and its parents, durably; an existing one is fine. AT_ERR_IO on failure. */
at_err at_file_make_folder(const char *path, at_fail *fail);

/* Creates the folder, which must not exist, and its parents. AT_ERR_IO on failure; *exists tells
 * whether something of that name is in the way. */
at_err at_file_new_folder(const char *path, bool *exists, at_fail *fail);

/* Closes the file; AT_ERR_IO when any earlier write or the close failed (full disk). */
at_err at_file_close(FILE *file, const char *path, at_fail *fail);

/* Incremental SHA-256. */
typedef struct at_digest {
    void *hash;
} at_digest;

/* begin returns false when out of memory; a digest that was begun MUST be ended. */
bool at_digest_begin(at_digest *digest);
void at_digest_add(at_digest *digest, const void *bytes, size_t size);
void at_digest_end(at_digest *digest, unsigned char sum[32]);

/* SHA-256 of a file of any size. AT_ERR_MISSING, AT_ERR_IO. */
at_err at_file_digest(const char *path, unsigned char digest[32], at_fail *fail);

/* SHA-256 of bytes. */
void at_file_digest_bytes(const void *bytes, size_t size, unsigned char digest[32]);

/* SHA-256 of bytes as 64 hexadecimal digits and a zero byte. */
void at_file_sha256(const void *bytes, size_t size, char hex[65]);

#endif
