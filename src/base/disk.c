#include "base/disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

static int open_posix(const char *path, int flags, mode_t mode)
{
    return open(path, flags, mode);
}

static FILE *stream_posix(const char *path)
{
    int   fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not wait for a pipe */
    FILE *file = fd < 0 ? NULL : fdopen(fd, "rb");
    if (!file && fd >= 0) close(fd);
    return file;
}

static void list_posix(const char *folder, at_disk_visitor *visit, void *self)
{
    DIR *dir = opendir(folder);
    if (!dir) return;
    for (const struct dirent *entry; (entry = readdir(dir));) visit(self, entry->d_name);
    closedir(dir);
}

const at_disk_ops at_disk_posix = {.open = open_posix,
                                   .close = close,
                                   .read = read,
                                   .pread = pread,
                                   .write = write,
                                   .fsync = fsync,
                                   .ftruncate = ftruncate,
                                   .fstat = fstat,
                                   .fstatvfs = fstatvfs,
                                   .stat = stat,
                                   .rename = rename,
                                   .unlink = unlink,
                                   .mkdir = mkdir,
                                   .stream = stream_posix,
                                   .list = list_posix};

const at_disk_ops *at_disk = &at_disk_posix;
