/* folder.h - what is in a folder, in an order that does not depend on the file system. */
#ifndef AT_DATA_FILES_FOLDER_H
#define AT_DATA_FILES_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "data/files/file_list.h"

/* Whether the path is a folder, or a regular file; symbolic links are followed. */
bool at_folder_is(const char *path);
bool at_folder_is_file(const char *path);

/* Opens a regular file and tells its size; a named pipe is refused rather than waited for.
 * AT_ERR_MISSING, AT_ERR_IO. */
at_err at_folder_open_file(const char *path, FILE **file, uint64_t *size, at_fail *fail);

/* Adds the paths (PATH/NAME) of the entries that `wanted` says yes to (NULL: all that do not begin
 * with a full stop), sorted byte by byte. AT_ERR_MISSING, AT_ERR_IO, AT_ERR_FAILED (memory). *files
 * MUST be empty and is to be deinited whatever happens. */
at_err at_folder_list(const char *path, bool (*wanted)(const char *name), at_files *files,
                      at_fail *fail);

/* Whether there is at least one such entry; a folder that cannot be read has none. */
bool at_folder_has(const char *path, bool (*wanted)(const char *name));

/* The part of a path behind its last slash; borrowed. */
const char *at_folder_name(const char *path);

/* "folder/name" into path; AT_ERR_IO when it is too long. */
at_err at_folder_join(char path[PATH_MAX], const char *folder, const char *name, at_fail *fail);

/* Whether the name begins or ends like that, upper or lower case. */
bool at_folder_begins(const char *name, const char *with);
bool at_folder_ends(const char *name, const char *with);

#endif
