/* folder.h - what is in a folder, in an order that does not depend on the file system. */
#ifndef AT_DATA_FOLDER_H
#define AT_DATA_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Names of entries, sorted byte by byte. Zeroed means empty. */
typedef struct at_folder {
    char **names;
    size_t count;
} at_folder;

/* Whether the path is a folder, or a regular file; symbolic links are followed. */
bool at_folder_is(const char *path);
bool at_folder_is_file(const char *path);

/* Lists the entries that `wanted` (NULL: all) says yes to; names that begin with a full stop are
 * left out. AT_ERR_MISSING, AT_ERR_IO, AT_ERR_FAILED (memory). MUST be deinited after success. */
at_err at_folder_list(const char *path, bool (*wanted)(const char *name), at_folder *folder,
                      at_fail *fail);

/* Releases the names; accepts a zeroed folder. */
void at_folder_deinit(at_folder *folder);

/* Whether there is at least one such entry; a folder that cannot be read has none. */
bool at_folder_has(const char *path, bool (*wanted)(const char *name));

/* "folder/name" into path; AT_ERR_IO when it is too long. */
at_err at_folder_join(char path[PATH_MAX], const char *folder, const char *name, at_fail *fail);

/* Whether the name begins or ends like that, upper or lower case. */
bool at_folder_begins(const char *name, const char *with);
bool at_folder_ends(const char *name, const char *with);

#endif
