/* file_list.h - a list of paths: the files from which a data set was read. */
#ifndef AT_DATA_FILES_FILE_LIST_H
#define AT_DATA_FILES_FILE_LIST_H

#include <stddef.h>

#include "base/err.h"

typedef struct at_files {
    char **path; /* (count), owned */
    size_t count, room;
} at_files;

/* Adds a copy of the path. AT_ERR_FAILED when there is no memory. */
at_err at_files_add(at_files *files, const char *path, at_fail *fail);

/* Releases all paths; accepts a zeroed list. */
void at_files_deinit(at_files *files);

#endif
