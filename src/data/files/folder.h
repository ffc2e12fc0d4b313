/* folder.h - paths, folder listings and lists of files.
 *
 * Listings are sorted, so they do not depend on the file system.
 */
#ifndef AT_DATA_FILES_FOLDER_H
#define AT_DATA_FILES_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* A growing list of paths, such as the files a data set was read from; zeroed: empty. */
typedef struct at_file_list {
    char **path; /* (count), owned */
    size_t count, room;
} at_file_list;

/* Adds a copy of the path. AT_ERR_FAILED when memory runs out. */
at_err at_file_list_add(at_file_list *files, const char *path, at_fail *fail);

/* Releases all paths; accepts a zeroed list. */
void at_file_list_deinit(at_file_list *files);

/* Whether the path is a folder, or a regular file; symbolic links are followed. */
bool at_folder_is(const char *path);
bool at_folder_is_file(const char *path);

/* Opens a regular file and returns its size; a named pipe is refused, never waited for.
 * AT_ERR_MISSING, AT_ERR_IO. */
at_err at_folder_open_file(const char *path, FILE **file, uint64_t *size, at_fail *fail);

/* Lists the entries that `wanted` accepts (NULL: all that do not begin with a dot) as PATH/NAME,
 * sorted byte by byte. *files MUST be empty; deinit it even after an error. AT_ERR_MISSING,
 * AT_ERR_IO, AT_ERR_FAILED (memory). */
at_err at_folder_list(const char *path, bool (*wanted)(const char *name), at_file_list *files,
                      at_fail *fail);

/* Whether the folder has such an entry; false for an unreadable folder. */
bool at_folder_has(const char *path, bool (*wanted)(const char *name));

/* The last component of a path; borrowed. */
const char *at_folder_name(const char *path);

/* "folder/name" into path; AT_ERR_IO when it is too long. */
at_err at_folder_join(char path[PATH_MAX], const char *folder, const char *name, at_fail *fail);

/* Whether the name begins or ends with that text, ignoring case. */
bool at_folder_begins(const char *name, const char *with);
bool at_folder_ends(const char *name, const char *with);

#endif
