#include "data/fetch/fetch_web.h"

#include "base/file.h"
#include "base/text.h"
#include "data/fetch/staging.h"
#include "data/fetch/subprocess.h"
#include "data/files/folder.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

enum { CURL_CANNOT_RESUME = 33, URL_SIZE = 512 };

/* Runs curl once; it continues PART where that ends. */
static at_err run_curl(const char *folder, const char *url, const char *part, int *code,
                       at_fail *fail)
{
    const char *const words[] = {
        "curl", "--fail",        "--silent", "--show-error", "--location", "--connect-timeout",
        "15",   "--speed-limit", "1",        "--speed-time", "60",         "--retry",
        "2",    "--continue-at", "-",        "--output",     part,         url,
        NULL};
    return at_child_run_code(words, folder, "run: apt-get install curl", code, fail);
}

/* Downloads url to folder/name, through name.part: a file of the final name is complete. A server
 * that cannot send the rest of a file is asked for all of it. */
static at_err download(const char *folder, const char *url, const char *name, at_fail *fail)
{
    char part[PATH_MAX], path[PATH_MAX], part_name[128];
    int  code = 0;
    snprintf(part_name, sizeof part_name, "%s.part", name);
    AT_TRY(at_folder_join(path, folder, name, fail));
    AT_TRY(at_folder_join(part, folder, part_name, fail));
    if (access(path, F_OK) == 0) return AT_OK;
    at_err err = run_curl(folder, url, part, &code, fail);
    if (err && code == CURL_CANNOT_RESUME) {
        unlink(part);
        err = run_curl(folder, url, part, &code, fail);
    }
    if (err) return err;
    return rename(part, path) ? at_staging_cannot("make", path, fail) : AT_OK;
}

static at_err download_file(const at_staging *stage, const char *base, const char *folder,
                            const char *name, at_fail *fail)
{
    char    url[URL_SIZE];
    at_text text = at_text_in(url, sizeof url);
    at_text_add(&text, "%s/%s", base, name);
    assert(!text.full);
    at_staging_say(stage->progress, "getting %s with curl", url);
    return download(folder, url, name, fail);
}

/* All that the mirror has for us, into the part folder. */
static at_err download_all(const at_staging *stage, const at_mirror *mirror, const char *part,
                           at_fail *fail)
{
    assert(mirror->url);
    const at_catalog_row *row = stage->row;
    AT_TRY(at_file_make_folder(part, fail));
    if (mirror->archive) return download_file(stage, mirror->url, part, mirror->archive, fail);
    for (size_t i = 0; i < AT_CATALOG_FILES_MAX && row->files[i].name; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s.gz", row->files[i].name);
        AT_TRY(download_file(stage, mirror->url, part, name, fail));
    }
    return AT_OK;
}

static at_err use(const at_staging *stage, const at_mirror *mirror, const char *part, at_fail *fail)
{
    char archive[PATH_MAX], unpacked[PATH_MAX];
    at_staging_say(stage->progress, "checking");
    if (mirror->archive) {
        AT_TRY(at_folder_join(archive, part, mirror->archive, fail));
        AT_TRY(at_folder_join(unpacked, stage->temporary, mirror->folder, fail));
        const char *const unpack[] = {"tar",   "--no-same-owner", "-xzf",
                                      archive, mirror->folder,    NULL};
        AT_TRY(at_child_run(unpack, stage->temporary, "run: apt-get install tar", fail));
        part = unpacked;
    }
    AT_TRY(at_staging_collect(stage, part, fail));
    return at_staging_install(stage, fail);
}

/* What came stays only while more of it may come: complete but wrong, it goes. */
static at_err get_mirror(const at_staging *stage, size_t index, at_fail *fail)
{
    const at_mirror *mirror = &stage->row->mirrors[index];
    char             part[PATH_MAX];
    AT_TRY(at_staging_part(stage, index, part, fail));
    at_err err = download_all(stage, mirror, part, fail);
    if (err) {
        rmdir(part); /* succeeds only when nothing came */
        return err;
    }
    err = use(stage, mirror, part, fail);
    if (err && err != AT_ERR_STOPPED) at_staging_remove(part);
    return err;
}

at_err at_fetch_web(const at_catalog_row *row, const at_fetch_progress *progress, at_fail *fail)
{
    assert(row->mirrors[0].url);
    at_err err = AT_ERR_MISSING;
    for (size_t i = 0; i < AT_CATALOG_MIRRORS_MAX && row->mirrors[i].url; i++) {
        at_staging stage;
        err = at_staging_open(&stage, row, progress, fail);
        if (!err) err = get_mirror(&stage, i, fail);
        at_staging_close(&stage);
        if (!err || err == AT_ERR_STOPPED) break;
    }
    return err;
}
