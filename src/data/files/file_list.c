#include "data/files/file_list.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_FIRST = 16 };

at_err at_files_add(at_files *files, const char *path, at_fail *fail)
{
    assert(files && path);
    assert(files->count <= files->room);
    if (files->count == files->room) {
        size_t room = files->room ? 2 * files->room : ROOM_FIRST;
        char **more = reallocarray(files->path, room, sizeof *more);
        if (!more) return at_fail_memory_for(fail, "for paths");
        files->path = more;
        files->room = room;
    }
    char *copy = strdup(path);
    if (!copy) return at_fail_memory_for(fail, "for a path");
    files->path[files->count++] = copy;
    return AT_OK;
}

void at_files_deinit(at_files *files)
{
    assert(files);
    for (size_t i = 0; i < files->count; i++) free(files->path[i]);
    free(files->path);
    *files = (at_files){0};
}
