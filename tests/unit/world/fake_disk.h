/* fake_disk.h - a disk in memory (base/disk.h) with the faults of real ones.
 *
 *     disk_open(&rng) ─► at_disk is the fake one ─► .. ─► disk_close()
 *
 * What a process reads is not what a power cut leaves. Bytes are safe after an fsync of their file,
 * names after an fsync of their folder; of everything later the power cut keeps all, nothing, a
 * part, or leaves zeros (disk_cut). When a process is killed (disk_kill, disk_kill_at), what it has
 * written stays and nothing that it still does has an effect, so that a test may let it run on and
 * free its memory.
 */
#ifndef AT_TESTS_UNIT_WORLD_FAKE_DISK_H
#define AT_TESTS_UNIT_WORLD_FAKE_DISK_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/disk.h"
#include "base/rng.h"

enum { DISK_NODES = 512, DISK_NAMES = 128, DISK_CHANGES = 256, DISK_FDS = 32, DISK_PATH = 120 };

typedef struct disk_node {
    bool           folder;
    unsigned char *bytes, *safe; /* as processes see it, and as it is after a power cut */
    size_t         size, room, safe_size;
    bool           dirty; /* they differ */
} disk_node;

typedef struct disk_name {
    char path[DISK_PATH]; /* "": free */
    int  node;
} disk_name;

/* A change of a folder that is not safe yet; node -1: the name was removed. */
typedef struct disk_change {
    char path[DISK_PATH];
    int  node;
} disk_change;

typedef struct disk_fd {
    bool   used, appends;
    int    node;
    size_t at;
    char   path[DISK_PATH];
} disk_fd;

/* Operations that change something. */
typedef enum disk_op {
    DISK_CREATE,
    DISK_WRITE,
    DISK_SYNC,
    DISK_SYNC_FOLDER,
    DISK_TRUNCATE,
    DISK_RENAME,
    DISK_UNLINK,
    DISK_MKDIR,
    DISK_OP_COUNT
} disk_op;

/* What a power cut does to what was not synced. */
typedef enum disk_loss {
    DISK_KEEPS,    /* all of it is there */
    DISK_LOSES,    /* nothing of it */
    DISK_TEARS,    /* a part of the bytes, the first of the names */
    DISK_ZEROS,    /* sizes are there, bytes are zero; all names */
    DISK_NAMES_IN, /* all names, no bytes */
    DISK_BYTES_IN, /* all bytes, no names */
    DISK_MIXES,    /* of each byte and each name anything */
    DISK_LOSS_COUNT
} disk_loss;

typedef struct fake_disk {
    disk_node   node[DISK_NODES];
    disk_name   name[DISK_NAMES], safe_name[DISK_NAMES];
    disk_change change[DISK_CHANGES];
    disk_fd     fd[DISK_FDS];
    int         nodes, names, safe_names, changes;
    uint64_t    ops, kill_at; /* operations that change something; 0: no death */
    bool        dead;         /* the process has been killed */
    /* Faults. */
    at_rng  *rng;
    bool     lies;      /* an fsync does nothing */
    uint64_t full_from; /* the disk is full from this operation on; 0: it is not */
    uint64_t capacity;  /* bytes; 0: unlimited */
    double   short_writes, read_errors, write_errors;
    /* Counts. */
    uint64_t kinds[DISK_OP_COUNT];
    uint64_t full, failed_reads, failed_writes, cuts;
} fake_disk;

static fake_disk disk;

/* ---- names ---------------------------------------------------------------------------------- */

static inline disk_name *disk_find_in(disk_name *names, int count, const char *path)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i].path, path) == 0) return &names[i];
    return NULL;
}

/* Path without a final slash. */
static inline const char *disk_path(const char *path, char clean[DISK_PATH])
{
    size_t length = strlen(path);
    assert_true(length < DISK_PATH);
    memcpy(clean, path, length + 1);
    if (length > 1 && clean[length - 1] == '/') clean[length - 1] = '\0';
    return clean;
}

static inline int disk_find(const char *path)
{
    char             clean[DISK_PATH];
    const disk_name *name = disk_find_in(disk.name, disk.names, disk_path(path, clean));
    return name ? name->node : -1;
}

static inline void disk_set(disk_name *names, int *count, const char *path, int node)
{
    disk_name *name = disk_find_in(names, *count, path);
    if (node < 0) {
        if (name) *name = names[--*count];
        return;
    }
    if (!name) {
        assert_true(*count < DISK_NAMES);
        name = &names[(*count)++];
        snprintf(name->path, sizeof name->path, "%s", path);
    }
    name->node = node;
}

/* A file system writes names back by itself after a while: the oldest half becomes safe. */
static inline void disk_write_back(void)
{
    enum { HALF = DISK_CHANGES / 2 };
    for (int i = 0; i < HALF; i++)
        disk_set(disk.safe_name, &disk.safe_names, disk.change[i].path, disk.change[i].node);
    disk.changes -= HALF;
    memmove(disk.change, disk.change + HALF, (size_t)disk.changes * sizeof *disk.change);
}

static inline void disk_change_name(const char *path, int node)
{
    if (disk.changes == DISK_CHANGES) disk_write_back();
    disk_change *change = &disk.change[disk.changes++];
    snprintf(change->path, sizeof change->path, "%s", path);
    change->node = node;
    disk_set(disk.name, &disk.names, path, node);
}

static inline bool disk_is_in(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    if (strcmp(folder, ".") == 0) return !strchr(path, '/');
    return strncmp(path, folder, length) == 0 && path[length] == '/' &&
           !strchr(path + length + 1, '/');
}

static inline bool disk_has_folder(const disk_name *names, int count, const char *path)
{
    char        folder[DISK_PATH];
    const char *slash = strrchr(path, '/');
    if (!slash) return true;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    return disk_find_in((disk_name *)(uintptr_t)names, count, folder) != NULL;
}

/* Whether a name, a change or an open file still needs the node. */
static inline bool disk_needs(int node)
{
    for (int i = 0; i < disk.names; i++)
        if (disk.name[i].node == node) return true;
    for (int i = 0; i < disk.safe_names; i++)
        if (disk.safe_name[i].node == node) return true;
    for (int i = 0; i < disk.changes; i++)
        if (disk.change[i].node == node) return true;
    for (int i = 0; i < DISK_FDS; i++)
        if (disk.fd[i].used && disk.fd[i].node == node) return true;
    return false;
}

/* Nodes are reused in turn. */
static inline int disk_new_node(bool folder)
{
    static int last;
    int        node = disk.nodes;
    if (disk.nodes < DISK_NODES) {
        last = disk.nodes++;
    } else {
        do node = last = (last + 1) % DISK_NODES;
        while (disk_needs(node));
    }
    free(disk.node[node].bytes);
    free(disk.node[node].safe);
    disk.node[node] = (disk_node){.folder = folder};
    return node;
}

/* ---- operations ----------------------------------------------------------------------------- */

static inline bool disk_chance(double probability)
{
    return probability > 0 && at_rng_uniform(disk.rng) < probability;
}

static inline int disk_fail(int error)
{
    errno = error;
    return -1;
}

/* One more operation that changes something; false: the process is dead. */
static inline bool disk_acts(disk_op kind)
{
    if (disk.dead) return false;
    disk.ops++;
    disk.kinds[kind]++;
    if (disk.ops == disk.kill_at) disk.dead = true;
    return !disk.dead;
}

static inline uint64_t disk_used(void)
{
    uint64_t used = 0;
    for (int i = 0; i < disk.names; i++) used += disk.node[disk.name[i].node].size;
    return used;
}

/* Memory of the disk itself, with removed files. */
static inline size_t disk_memory(void)
{
    size_t bytes = 0;
    for (int i = 0; i < disk.nodes; i++) bytes += disk.node[i].room + disk.node[i].safe_size;
    return bytes;
}

static inline void disk_resize(disk_node *node, size_t size)
{
    if (size > node->room) {
        node->room = size < 512 ? 1024 : 2 * size;
        node->bytes = realloc(node->bytes, node->room);
        assert_non_null(node->bytes);
    }
    if (size > node->size) memset(node->bytes + node->size, 0, size - node->size);
    node->size = size;
    node->dirty = true;
}

/* Whether an operation fails that changes a name or a size; what takes room also on a full disk. */
static inline bool disk_refuses(bool takes_room)
{
    bool over = disk.full_from > 0 && disk.ops >= disk.full_from;
    over = over || (disk.capacity > 0 && disk_used() >= disk.capacity);
    if (disk_chance(disk.write_errors)) {
        disk.failed_writes++;
        errno = EIO;
        return true;
    }
    if (!takes_room || !over) return false;
    disk.full++;
    errno = ENOSPC;
    return true;
}

static inline disk_fd *disk_get(int fd)
{
    assert_true(fd >= 1000 && fd < 1000 + DISK_FDS);
    assert_true(disk.fd[fd - 1000].used); /* a descriptor is closed once */
    return &disk.fd[fd - 1000];
}

static inline int disk_op_open(const char *path, int flags, mode_t mode)
{
    char clean[DISK_PATH];
    int  node = disk_find(path), free_fd = 0;
    (void)mode;
    if (disk.dead) return disk_fail(EIO);
    if (node >= 0 && (flags & O_EXCL)) return disk_fail(EEXIST);
    if (node < 0 && !(flags & O_CREAT)) return disk_fail(ENOENT);
    if ((flags & O_ACCMODE) == O_RDONLY && disk_chance(disk.read_errors)) {
        disk.failed_reads++;
        return disk_fail(EIO);
    }
    disk_path(path, clean);
    if (node < 0) {
        if (!disk_has_folder(disk.name, disk.names, clean)) return disk_fail(ENOENT);
        if (!disk_acts(DISK_CREATE)) return disk_fail(EIO);
        if (disk_refuses(true)) return -1;
        node = disk_new_node(false);
        disk_change_name(clean, node);
    } else if (flags & O_TRUNC) {
        if (!disk_acts(DISK_TRUNCATE)) return disk_fail(EIO);
        disk_resize(&disk.node[node], 0);
    }
    while (disk.fd[free_fd].used) free_fd++;
    assert_true(free_fd < DISK_FDS); /* no descriptor leaks */
    disk.fd[free_fd] = (disk_fd){.used = true, .appends = flags & O_APPEND, .node = node};
    memcpy(disk.fd[free_fd].path, clean, sizeof clean);
    return 1000 + free_fd;
}

static inline int disk_op_close(int fd)
{
    disk_get(fd)->used = false;
    return 0;
}

static inline ssize_t disk_op_pread(int fd, void *bytes, size_t size, off_t at)
{
    const disk_node *node = &disk.node[disk_get(fd)->node];
    if (disk.dead) return disk_fail(EIO);
    size_t left = (size_t)at < node->size ? node->size - (size_t)at : 0;
    if (size > left) size = left;
    if (size > 0) memcpy(bytes, node->bytes + at, size);
    return (ssize_t)size;
}

static inline ssize_t disk_op_read(int fd, void *bytes, size_t size)
{
    disk_fd *f = disk_get(fd);
    if (disk_chance(disk.read_errors)) {
        disk.failed_reads++;
        return disk_fail(EIO);
    }
    ssize_t got = disk_op_pread(fd, bytes, size, (off_t)f->at);
    if (got > 0) f->at += (size_t)got;
    return got;
}

/* A process that is killed while it writes leaves a part of it. */
static inline ssize_t disk_op_write(int fd, const void *bytes, size_t size)
{
    disk_fd   *f = disk_get(fd);
    disk_node *node = &disk.node[f->node];
    if (disk.dead) return disk_fail(EIO);
    bool lives = disk_acts(DISK_WRITE);
    if (disk_chance(disk.write_errors)) {
        disk.failed_writes++;
        return disk_fail(disk_chance(0.5) ? EIO : EINTR);
    }
    if (disk.full_from > 0 && disk.ops >= disk.full_from) {
        disk.full++;
        return disk_fail(ENOSPC);
    }
    if (disk.capacity > 0) {
        uint64_t used = disk_used(), left = used < disk.capacity ? disk.capacity - used : 0;
        disk.full += left < size;
        if (left == 0) return disk_fail(ENOSPC);
        if (size > left) size = (size_t)left;
    }
    if ((!lives || disk_chance(disk.short_writes)) && size > 1)
        size = 1 + at_rng_below(disk.rng, size - 1);
    size_t at = f->appends ? node->size : f->at;
    if (at + size > node->size) disk_resize(node, at + size);
    memcpy(node->bytes + at, bytes, size);
    node->dirty = true;
    f->at = at + size;
    return lives ? (ssize_t)size : disk_fail(EIO);
}

static inline void disk_make_safe(disk_node *node)
{
    free(node->safe);
    node->safe = malloc(node->size + 1);
    assert_non_null(node->safe);
    if (node->size > 0) memcpy(node->safe, node->bytes, node->size);
    node->safe_size = node->size;
    node->dirty = false;
}

static inline int disk_op_fsync(int fd)
{
    const disk_fd *f = disk_get(fd);
    bool           folder = disk.node[f->node].folder;
    if (!disk_acts(folder ? DISK_SYNC_FOLDER : DISK_SYNC)) return disk_fail(EIO);
    if (disk_chance(disk.write_errors)) {
        disk.failed_writes++;
        return disk_fail(EIO);
    }
    if (disk.lies) return 0;
    if (!folder) {
        disk_make_safe(&disk.node[f->node]);
        return 0;
    }
    int left = 0;
    for (int i = 0; i < disk.changes; i++) {
        if (disk_is_in(disk.change[i].path, f->path))
            disk_set(disk.safe_name, &disk.safe_names, disk.change[i].path, disk.change[i].node);
        else
            disk.change[left++] = disk.change[i];
    }
    disk.changes = left;
    return 0;
}

static inline int disk_op_ftruncate(int fd, off_t size)
{
    if (!disk_acts(DISK_TRUNCATE)) return disk_fail(EIO);
    if (disk_refuses(false)) return -1;
    disk_resize(&disk.node[disk_get(fd)->node], (size_t)size);
    return 0;
}

static inline void disk_describe(int node, struct stat *status)
{
    *status = (struct stat){0};
    status->st_mode = disk.node[node].folder ? S_IFDIR | 0777 : S_IFREG | 0666;
    status->st_size = (off_t)disk.node[node].size;
    status->st_mtim.tv_sec = node;
}

static inline int disk_op_fstat(int fd, struct stat *status)
{
    if (disk.dead) return disk_fail(EIO);
    disk_describe(disk_get(fd)->node, status);
    return 0;
}

static inline int disk_op_stat(const char *path, struct stat *status)
{
    int node = disk_find(path);
    if (disk.dead || node < 0) return disk_fail(disk.dead ? EIO : ENOENT);
    disk_describe(node, status);
    return 0;
}

static inline int disk_op_fstatvfs(int fd, struct statvfs *status)
{
    uint64_t used = disk_used();
    (void)disk_get(fd);
    *status = (struct statvfs){.f_frsize = 1, .f_bavail = UINT32_MAX};
    if (disk.capacity > 0) status->f_bavail = used < disk.capacity ? disk.capacity - used : 0;
    return 0;
}

static inline int disk_op_rename(const char *from, const char *to)
{
    char old_path[DISK_PATH], new_path[DISK_PATH];
    int  node = disk_find(from);
    if (disk.dead) return disk_fail(EIO);
    if (node < 0) return disk_fail(ENOENT);
    if (!disk_acts(DISK_RENAME)) return disk_fail(EIO);
    if (disk_refuses(true)) return -1;
    disk_change_name(disk_path(to, new_path), node);
    disk_change_name(disk_path(from, old_path), -1);
    return 0;
}

static inline int disk_op_unlink(const char *path)
{
    char clean[DISK_PATH];
    if (disk.dead) return disk_fail(EIO);
    if (disk_find(path) < 0) return disk_fail(ENOENT);
    if (!disk_acts(DISK_UNLINK)) return disk_fail(EIO);
    if (disk_refuses(false)) return -1;
    disk_change_name(disk_path(path, clean), -1);
    return 0;
}

static inline int disk_op_mkdir(const char *path, mode_t mode)
{
    char clean[DISK_PATH];
    (void)mode;
    if (disk.dead) return disk_fail(EIO);
    if (disk_find(path) >= 0) return disk_fail(EEXIST);
    if (!disk_acts(DISK_MKDIR)) return disk_fail(EIO);
    if (disk_refuses(true)) return -1;
    disk_change_name(disk_path(path, clean), disk_new_node(true));
    return 0;
}

static inline ssize_t disk_stream_read(void *cookie, char *bytes, size_t size)
{
    return disk_op_read(*(int *)cookie, bytes, size);
}

static inline int disk_stream_seek(void *cookie, off64_t *at, int whence)
{
    disk_fd *f = disk_get(*(int *)cookie);
    size_t   base = whence == SEEK_CUR ? f->at : whence == SEEK_END ? disk.node[f->node].size : 0;
    if ((off64_t)base + *at < 0) return disk_fail(EINVAL);
    f->at = (size_t)(*at += (off64_t)base);
    return 0;
}

static inline int disk_stream_close(void *cookie)
{
    disk_op_close(*(int *)cookie);
    free(cookie);
    return 0;
}

static inline FILE *disk_op_stream(const char *path)
{
    static const cookie_io_functions_t ops = {
        .read = disk_stream_read, .seek = disk_stream_seek, .close = disk_stream_close};
    int *fd = malloc(sizeof *fd);
    assert_non_null(fd);
    *fd = disk_op_open(path, O_RDONLY, 0);
    if (*fd >= 0) return fopencookie(fd, "rb", ops);
    free(fd);
    return NULL;
}

static inline void disk_op_list(const char *folder, at_disk_visitor *visit, void *self)
{
    static disk_name copy[DISK_NAMES];
    char             clean[DISK_PATH];
    int              count = disk.names;
    if (disk.dead) return;
    disk_path(folder, clean);
    memcpy(copy, disk.name, sizeof copy);
    for (int i = 0; i < count; i++)
        if (disk_is_in(copy[i].path, clean)) visit(self, copy[i].path + strlen(clean) + 1);
}

static const at_disk_ops disk_ops = {.open = disk_op_open,
                                     .close = disk_op_close,
                                     .read = disk_op_read,
                                     .pread = disk_op_pread,
                                     .write = disk_op_write,
                                     .fsync = disk_op_fsync,
                                     .ftruncate = disk_op_ftruncate,
                                     .fstat = disk_op_fstat,
                                     .fstatvfs = disk_op_fstatvfs,
                                     .stat = disk_op_stat,
                                     .rename = disk_op_rename,
                                     .unlink = disk_op_unlink,
                                     .mkdir = disk_op_mkdir,
                                     .stream = disk_op_stream,
                                     .list = disk_op_list};

/* ---- deaths and power cuts ------------------------------------------------------------------- */

/* From the next operation that changes something on: the `after`-th is the last, and is cut. */
static inline void disk_kill_at(uint64_t after)
{
    disk.kill_at = disk.ops + after;
}

static inline void disk_kill(void)
{
    disk.dead = true;
}

/* Another process begins: the faults of the one before are over. */
static inline void disk_revive(void)
{
    disk.dead = false;
    disk.kill_at = 0;
}

static inline void disk_cut_bytes(disk_node *node, disk_loss loss)
{
    size_t synced = node->safe_size, size = node->size;
    bool   grew = size >= synced && (synced == 0 || memcmp(node->bytes, node->safe, synced) == 0);
    if (loss == DISK_MIXES) loss = (disk_loss)at_rng_below(disk.rng, DISK_MIXES);
    if (!node->dirty || loss == DISK_KEEPS || loss == DISK_BYTES_IN) return;
    if (grew && loss == DISK_TEARS) {
        disk_resize(node, synced + at_rng_below(disk.rng, size - synced + 1));
    } else if (grew && loss == DISK_ZEROS) {
        if (size > synced) memset(node->bytes + synced, 0, size - synced);
    } else {
        disk_resize(node, synced);
        if (synced > 0) memcpy(node->bytes, node->safe, synced);
    }
}

static inline bool disk_keeps_change(disk_loss loss, int i)
{
    switch (loss) {
    case DISK_KEEPS:
    case DISK_ZEROS:
    case DISK_NAMES_IN: return true;
    case DISK_LOSES:
    case DISK_BYTES_IN: return false;
    case DISK_TEARS: return i < disk.changes / 2;
    case DISK_MIXES:
    case DISK_LOSS_COUNT: break;
    }
    return disk_chance(0.5);
}

/* The power fails: only what is safe is there for sure. Everything that is left is safe then. */
static inline void disk_cut(disk_loss loss)
{
    disk.cuts++;
    for (int i = 0; i < disk.nodes; i++) disk_cut_bytes(&disk.node[i], loss);
    for (int i = 0; i < disk.changes; i++)
        if (disk_keeps_change(loss, i))
            disk_set(disk.safe_name, &disk.safe_names, disk.change[i].path, disk.change[i].node);
    for (int i = 0; i < disk.safe_names;) {
        if (disk_has_folder(disk.safe_name, disk.safe_names, disk.safe_name[i].path)) {
            i++;
        } else {
            disk.safe_name[i] = disk.safe_name[--disk.safe_names];
            i = 0;
        }
    }
    memcpy(disk.name, disk.safe_name, sizeof disk.name);
    disk.names = disk.safe_names;
    disk.changes = 0;
    for (int i = 0; i < disk.nodes; i++) disk_make_safe(&disk.node[i]);
}

/* Flips one bit of a file; false: there is no such file, or it is empty. */
static inline bool disk_flip(const char *path)
{
    int node = disk_find(path);
    if (node < 0 || disk.node[node].size == 0) return false;
    uint64_t bit = at_rng_below(disk.rng, 8 * disk.node[node].size);
    disk.node[node].bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    disk.node[node].dirty = true;
    return true;
}

/* ---- the disk as a whole --------------------------------------------------------------------- */

static inline void disk_open(at_rng *rng)
{
    disk.rng = rng;
    at_disk = &disk_ops;
    disk_set(disk.name, &disk.names, ".", disk_new_node(true));
    disk_set(disk.safe_name, &disk.safe_names, ".", 0);
}

static inline void disk_close(void)
{
    for (int i = 0; i < DISK_FDS; i++) assert_false(disk.fd[i].used); /* none leaks */
    for (int i = 0; i < disk.nodes; i++) {
        free(disk.node[i].bytes);
        free(disk.node[i].safe);
        disk.node[i] = (disk_node){0};
    }
    disk.nodes = disk.names = disk.safe_names = disk.changes = 0;
    disk.ops = disk.kill_at = disk.capacity = disk.full = disk.failed_reads = disk.cuts = 0;
    disk.failed_writes = disk.full_from = 0;
    disk.dead = disk.lies = false;
    disk.short_writes = disk.read_errors = disk.write_errors = 0;
    memset(disk.fd, 0, sizeof disk.fd);
    at_disk = &at_disk_posix;
}

#endif
