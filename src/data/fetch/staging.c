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

void at_staging_say(const at_fetch_progress *progress, const char *format, ...)
{
    if (!progress || !progress->say) return;
    char    line[PATH_MAX + 256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    progress->say(progress->self, line);
}

at_err at_staging_cannot(const char *what, const char *path, at_fail *fail)
{
    assert(errno != 0);
    return at_fail_set(fail, AT_ERR_IO, "check free space and permissions", "cannot %s %s: %s",
                       what, path, strerror(errno));
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status, (void)kind, (void)where;
    (void)remove(path); /* what cannot be removed must not keep the rest */
    return 0;
}

void at_staging_remove(const char *path)
{
    assert(path[0]);
    nftw(path, remove_entry, NFTW_FILES_MAX, FTW_DEPTH | FTW_PHYS);
}

/* Waits a moment; true when a signal that stops us came. It stays pending. */
static bool stopped_meanwhile(void)
{
    sigset_t        stop = at_child_stop_signals();
    struct timespec moment = {.tv_nsec = LOCK_RETRY_NS};
    int             number = sigtimedwait(&stop, NULL, &moment);
    if (number <= 0) return false;
    raise(number);
    return true;
}

/* A file system that knows no locks does not keep anybody from getting data. */
static at_err lock_cache(at_staging *stage, at_fail *fail)
{
    stage->lock = open(stage->cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (stage->lock < 0) return at_staging_cannot("open the folder", stage->cache, fail);
    for (bool told = false; flock(stage->lock, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;) {
        if (!told) at_staging_say(stage->progress, "waiting for another `anytime data get`");
        told = true;
        if (stopped_meanwhile())
            return at_fail_set(fail, AT_ERR_STOPPED, "run the same command again",
                               "stopped by a signal while another `anytime data get` was running");
    }
    return AT_OK;
}

static bool is_left_over(const char *name)
{
    return strncmp(name, TEMPORARY, strlen(TEMPORARY)) == 0;
}

static void remove_left_overs(const at_staging *stage)
{
    assert(stage->lock >= 0);
    at_files files = {0};
    if (at_folder_list(stage->cache, is_left_over, &files, NULL) == AT_OK)
        for (size_t i = 0; i < files.count; i++) at_staging_remove(files.path[i]);
    at_files_deinit(&files);
}

at_err at_staging_open(at_staging *stage, const at_catalog_row *row,
                       const at_fetch_progress *progress, at_fail *fail)
{
    assert(row->name);
    char name[128], path[PATH_MAX];
    *stage = (at_staging){.row = row, .progress = progress, .lock = -1};
    snprintf(name, sizeof name, TEMPORARY "%s-XXXXXX", row->name);
    AT_TRY(at_catalog_cache(stage->cache, fail));
    AT_TRY(at_file_make_folder(stage->cache, fail));
    AT_TRY(lock_cache(stage, fail));
    remove_left_overs(stage);
    AT_TRY(at_folder_join(path, stage->cache, name, fail));
    AT_TRY(at_folder_join(stage->ready, path, "ready", fail)); /* as long as the real one */
    if (!mkdtemp(path)) return at_staging_cannot("make the folder", path, fail);
    memcpy(stage->temporary, path, sizeof path);
    AT_TRY(at_folder_join(stage->ready, stage->temporary, "ready", fail));
    if (mkdir(stage->ready, 0777)) return at_staging_cannot("make the folder", stage->ready, fail);
    return AT_OK;
}

void at_staging_close(at_staging *stage)
{
    assert(stage);
    if (stage->temporary[0]) at_staging_remove(stage->temporary);
    if (stage->lock >= 0) close(stage->lock);
}

at_err at_staging_part(const at_staging *stage, size_t mirror, char path[PATH_MAX], at_fail *fail)
{
    assert(mirror < AT_CATALOG_MIRRORS_MAX);
    char name[128];
    snprintf(name, sizeof name, ".part-%s-%zu", stage->row->name, mirror);
    return at_folder_join(path, stage->cache, name, fail);
}

static void remove_parts(const at_staging *stage)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < AT_CATALOG_MIRRORS_MAX; i++)
        if (at_staging_part(stage, i, path, NULL) == AT_OK) at_staging_remove(path);
}

at_err at_staging_collect(const at_staging *stage, const char *from, at_fail *fail)
{
    assert(stage->ready[0]);
    const at_catalog_row *row = stage->row;
    char                  path[PATH_MAX], to[PATH_MAX];
    for (size_t i = 0; i < AT_CATALOG_FILES_MAX && row->files[i].name; i++) {
        AT_TRY(at_catalog_file_path(&row->files[i], from, path, fail));
        AT_TRY(at_folder_join(to, stage->ready, at_folder_name(path), fail));
        if (rename(path, to)) return at_staging_cannot("move", path, fail);
    }
    return AT_OK;
}

/* A broken set that stands in the way moves into the temporary folder and goes with it. */
at_err at_staging_install(const at_staging *stage, at_fail *fail)
{
    char place[PATH_MAX], old[PATH_MAX];
    AT_TRY(at_fetch_verify(stage->row, stage->ready, fail));
    AT_TRY(at_folder_join(place, stage->cache, stage->row->name, fail));
    AT_TRY(at_folder_join(old, stage->temporary, "old", fail));
    if (rename(place, old) && errno != ENOENT) return at_staging_cannot("replace", place, fail);
    if (rename(stage->ready, place)) return at_staging_cannot("make", place, fail);
    remove_parts(stage);
    at_staging_say(stage->progress, "%s is in %s", stage->row->name, place);
    return AT_OK;
}
