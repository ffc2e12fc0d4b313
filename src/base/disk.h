/* disk.h - the file operations with which a run writes and reads its own files.
 *
 * They are a table, so that tests can run everything above on a disk in memory that is full, loses
 * what was not synced, tears writes or is cut off at any operation (tests/unit/world/fake_disk.h).
 * Checkpoints, logs, tables and results go through it; data sets, sockets and /proc do not.
 *
 *     at_disk->write(fd, bytes, size)        as write(2), and so on
 */
#ifndef AT_BASE_DISK_H
#define AT_BASE_DISK_H

#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>

/* Called with each name in a folder. */
typedef void at_disk_visitor(void *self, const char *name);

/* Each is the POSIX function of its name: it sets errno, and may be interrupted. */
typedef struct at_disk_ops {
    int (*open)(const char *path, int flags, mode_t mode);
    int (*close)(int fd);
    ssize_t (*read)(int fd, void *bytes, size_t size);
    ssize_t (*pread)(int fd, void *bytes, size_t size, off_t at);
    ssize_t (*write)(int fd, const void *bytes, size_t size);
    int (*fsync)(int fd);
    int (*ftruncate)(int fd, off_t size);
    int (*fstat)(int fd, struct stat *status);
    int (*fstatvfs)(int fd, struct statvfs *status);
    int (*stat)(const char *path, struct stat *status);
    int (*rename)(const char *from, const char *to);
    int (*unlink)(const char *path);
    int (*mkdir)(const char *path, mode_t mode);
    FILE *(*stream)(const char *path); /* fopen, for reading; does not wait for a pipe */
    /* Visits the names in a folder, in any order; a folder that cannot be read has none. */
    void (*list)(const char *folder, at_disk_visitor *visit, void *self);
} at_disk_ops;

/* The operating system's. */
extern const at_disk_ops at_disk_posix;

/* The one in use: at_disk_posix, unless a test has put its own here. */
extern const at_disk_ops *at_disk;

#endif
