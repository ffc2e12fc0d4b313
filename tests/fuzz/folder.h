/* folder.h - presents fuzzer input as files of a folder in memory. */
#ifndef TESTS_FUZZ_FOLDER_H
#define TESTS_FUZZ_FOLDER_H

#include <assert.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Called by the fuzzer, or by driver.c, for every input. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char fuzz_folder_path[64];

static inline int fuzz_remove_entry(const char *path, const struct stat *about, int type,
                                    struct FTW *where)
{
    (void)about;
    (void)type;
    (void)where;
    return remove(path);
}

static inline void fuzz_remove_folder(void)
{
    (void)nftw(fuzz_folder_path, fuzz_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* A folder of this process, created on the first call and removed when it exits. */
static inline const char *fuzz_folder(void)
{
    char *path = fuzz_folder_path;
    if (path[0]) return path;
    snprintf(path, sizeof fuzz_folder_path, "/dev/shm/fuzz-XXXXXX");
    if (!mkdtemp(path)) {
        snprintf(path, sizeof fuzz_folder_path, "/tmp/fuzz-XXXXXX");
        char *made = mkdtemp(path);
        assert(made);
    }
    atexit(fuzz_remove_folder);
    return path;
}

/* FOLDER/NAME, with these bytes and what follows; returns its path until the next call. */
static inline const char *fuzz_file(const char *name, const uint8_t *data, size_t size,
                                    const uint8_t *more, size_t more_size)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert(fd >= 0);
    ssize_t done = write(fd, data, size);
    if (more_size > 0) done += write(fd, more, more_size);
    assert(done == (ssize_t)(size + more_size));
    close(fd);
    return path;
}

/* The text with this path in place of its first @; truncated to `size`. */
static inline void fuzz_put_path(char *to, size_t size, const char *text, const char *path)
{
    const char *mark = strchr(text, '@');
    if (mark)
        snprintf(to, size, "%.*s%s%s", (int)(mark - text), text, path, mark + 1);
    else
        snprintf(to, size, "%s", text);
}

#endif
