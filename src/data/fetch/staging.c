#include "data/fetch/staging.h"

#include "base/file.h"
#include "data/fetch/subprocess.h"
#include "data/files/folder.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NFTW_FILES_MAX = 16, LOCK_RETRY_NS = 200 * 1000 * 1000 };

#define TEMPORARY ".get-"

void at_staging_report(const at_fetch_progress *progress, const char *format, ...)
{
    if (!progress || !progress->report) return;
    char    line[PATH_MAX + 256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    progress->report(progress->self, line);
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status, (void)kind, (void)where;
    (void)remove(path); /* a file that cannot be removed must not keep the rest */
    return 0;
}

void at_staging_remove(const char *path)
{
    assert(path[0]);
    nftw(path, remove_entry, NFTW_FILES_MAX, FTW_DEPTH | FTW_PHYS);
}

/* Waits for the next try; true when a stop signal arrived, which stays pending. */
static bool stopped_while_waiting(void)
{
    sigset_t        stop = at_subprocess_stop_signals();
    struct timespec moment = {.tv_nsec = LOCK_RETRY_NS};
    int             number = sigtimedwait(&stop, NULL, &moment);
    if (number <= 0) return false;
    raise(number);
    return true;
}

/* A file system without locks does not prevent a download. */
static at_err lock_cache(at_staging *staging, at_fail *fail)
{
    staging->lock = open(staging->cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (staging->lock < 0) return at_file_error("open the folder", staging->cache, errno, fail);
    for (bool reported = false; flock(staging->lock, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;) {
        if (!reported)
            at_staging_report(staging->progress, "waiting for another `anytime data get`");
        reported = true;
        if (stopped_while_waiting())
            return at_fail_set(fail, AT_ERR_STOPPED, "run the same command again",
                               "stopped by a signal while another `anytime data get` was running");
    }
    return AT_OK;
}

static bool is_leftover(const char *name)
{
    return strncmp(name, TEMPORARY, strlen(TEMPORARY)) == 0;
}

static void remove_leftovers(const at_staging *staging)
{
    assert(staging->lock >= 0);
    at_file_list files = {0};
    if (at_folder_list(staging->cache, is_leftover, &files, NULL) == AT_OK)
        for (size_t i = 0; i < files.count; i++) at_staging_remove(files.path[i]);
    at_file_list_deinit(&files);
}

at_err at_staging_open(at_staging *staging, const at_catalog_row *row,
                       const at_fetch_progress *progress, at_fail *fail)
{
    assert(row->name);
    char name[128], path[PATH_MAX];
    *staging = (at_staging){.row = row, .progress = progress, .lock = -1};
    snprintf(name, sizeof name, TEMPORARY "%s-XXXXXX", row->name);
    AT_TRY(at_catalog_cache(staging->cache, fail));
    AT_TRY(at_file_make_folder(staging->cache, fail));
    AT_TRY(lock_cache(staging, fail));
    remove_leftovers(staging);
    AT_TRY(at_folder_join(path, staging->cache, name, fail));
    AT_TRY(at_folder_join(staging->ready, path, "ready", fail)); /* checks the length of the path */
    if (!mkdtemp(path)) return at_file_error("create the folder", path, errno, fail);
    memcpy(staging->temporary, path, sizeof path);
    AT_TRY(at_folder_join(staging->ready, staging->temporary, "ready", fail));
    if (mkdir(staging->ready, 0777))
        return at_file_error("create the folder", staging->ready, errno, fail);
    return AT_OK;
}

void at_staging_close(at_staging *staging)
{
    assert(staging);
    if (staging->temporary[0]) at_staging_remove(staging->temporary);
    if (staging->lock >= 0) close(staging->lock);
}

at_err at_staging_part(const at_staging *staging, size_t mirror, char path[PATH_MAX], at_fail *fail)
{
    assert(mirror < AT_CATALOG_MIRRORS_MAX);
    char name[128];
    snprintf(name, sizeof name, ".part-%s-%zu", staging->row->name, mirror);
    return at_folder_join(path, staging->cache, name, fail);
}

static void remove_parts(const at_staging *staging)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < AT_CATALOG_MIRRORS_MAX; i++)
        if (at_staging_part(staging, i, path, NULL) == AT_OK) at_staging_remove(path);
}

at_err at_staging_collect(const at_staging *staging, const char *from, at_fail *fail)
{
    assert(staging->ready[0]);
    const at_catalog_row *row = staging->row;
    char                  path[PATH_MAX], to[PATH_MAX];
    for (size_t i = 0; i < AT_CATALOG_FILES_MAX && row->files[i].name; i++) {
        AT_TRY(at_catalog_file_path(&row->files[i], from, path, fail));
        AT_TRY(at_folder_join(to, staging->ready, at_folder_name(path), fail));
        if (rename(path, to)) return at_file_error("move", path, errno, fail);
    }
    return AT_OK;
}

/* Nobody verifies an installed set again before it is read: after a power cut, a part of a file
 * must not be there under its name. */
static at_err sync_ready(const at_staging *staging, at_fail *fail)
{
    const at_catalog_row *row = staging->row;
    char                  path[PATH_MAX];
    for (size_t i = 0; i < AT_CATALOG_FILES_MAX && row->files[i].name; i++) {
        AT_TRY(at_catalog_file_path(&row->files[i], staging->ready, path, fail));
        int error = at_file_sync(path);
        if (!error) error = at_file_sync_folder(path);
        if (error) return at_file_error("sync", path, error, fail);
    }
    return AT_OK;
}

/* An existing broken set is moved into the temporary folder and removed with it. */
at_err at_staging_install(const at_staging *staging, at_fail *fail)
{
    char place[PATH_MAX], old[PATH_MAX];
    AT_TRY(at_fetch_verify(staging->row, staging->ready, fail));
    AT_TRY(sync_ready(staging, fail));
    AT_TRY(at_folder_join(place, staging->cache, staging->row->name, fail));
    AT_TRY(at_folder_join(old, staging->temporary, "old", fail));
    if (rename(place, old) && errno != ENOENT) return at_file_error("replace", place, errno, fail);
    if (rename(staging->ready, place)) return at_file_error("create", place, errno, fail);
    int error = at_file_sync_folder(place);
    if (error) return at_file_error("sync the folder of", place, error, fail);
    remove_parts(staging);
    at_staging_report(staging->progress, "%s is installed in %s", staging->row->name, place);
    return AT_OK;
}
