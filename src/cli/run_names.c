#include "cli/run_names.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "record/run_lock.h"

enum { RESULT_SIZE_MAX = 64 << 20 };

/* Files by which folders are known; NULL ends them. */
static const char *const run_marks[] = {"result.json", "workers.json", "run.lock",
                                        "events.bin",  "checkpoint",   NULL};
static const char *const comparison_marks[] = {"compare.json", NULL};

static bool is_later(struct timespec a, struct timespec b)
{
    return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

/* Looks for the files by which a run, or a comparison, is known. */
static bool look_at(const char *folder, const char *const *marks, struct timespec *changed)
{
    bool found = false;
    *changed = (struct timespec){0};
    for (size_t i = 0; marks[i]; i++) {
        char        path[AT_RUN_PATH_SIZE];
        struct stat status;
        at_text     text = at_text_in(path, sizeof path);
        at_text_add(&text, "%s/%s", folder, marks[i]);
        if (text.full || stat(path, &status)) continue;
        if (!found || is_later(status.st_mtim, *changed)) *changed = status.st_mtim;
        found = true;
    }
    return found;
}

bool at_run_is_folder(const char *folder)
{
    struct timespec ignored;
    return look_at(folder, run_marks, &ignored);
}

struct timespec at_run_changed(const char *folder)
{
    struct timespec changed;
    look_at(folder, run_marks, &changed);
    return changed;
}

/* ---- names ----------------------------------------------------------------------------------- */

static at_err find_latest(const char *const *marks, char path[AT_RUN_PATH_SIZE], at_fail *fail)
{
    DIR            *folder = opendir(AT_RUNS_FOLDER);
    struct timespec best = {0};
    path[0] = '\0';
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char            tried[AT_RUN_PATH_SIZE];
        struct timespec changed;
        at_text         text = at_text_in(tried, sizeof tried);
        at_text_add(&text, "%s/%s", AT_RUNS_FOLDER, entry->d_name);
        if (text.full || entry->d_name[0] == '.' || !look_at(tried, marks, &changed)) continue;
        if (path[0] && !is_later(changed, best)) continue;
        best = changed;
        memcpy(path, tried, strlen(tried) + 1);
    }
    if (folder) closedir(folder);
    if (path[0]) return AT_OK;
    if (marks == comparison_marks)
        return at_fail_set(fail, AT_ERR_MISSING, "give the folder of a comparison",
                           "there is no comparison in %s/", AT_RUNS_FOLDER);
    return at_fail_set(fail, AT_ERR_MISSING, "give the folder of a run; `anytime runs` lists them",
                       "there is no run in %s/", AT_RUNS_FOLDER);
}

/* The path that a name stands for: `path`, or the name itself. */
static at_err path_of(const char **name, const char *const *marks, char path[AT_RUN_PATH_SIZE],
                      at_fail *fail)
{
    struct stat     status;
    struct timespec ignored;
    if (!*name || stat(*name, &status) == 0) return AT_OK;
    if (strcmp(*name, "latest") == 0 || strcmp(*name, AT_RUNS_FOLDER "/latest") == 0) {
        AT_TRY(find_latest(marks, path, fail));
        *name = path;
        return AT_OK;
    }
    at_text text = at_text_in(path, AT_RUN_PATH_SIZE);
    at_text_add(&text, "%s/%s", AT_RUNS_FOLDER, *name);
    if (!text.full && look_at(path, marks, &ignored)) *name = path;
    return AT_OK;
}

at_err at_run_names_resolve(at_parsed *parsed, unsigned verb, at_fail *fail)
{
    enum {
        NAMES_RUNS = AT_FOR_REPORT | AT_FOR_REPLAY | AT_FOR_TRAINED | AT_FOR_WATCH | AT_FOR_ADVISE |
                     AT_FOR_CALIBRATE | AT_FOR_SHOW | AT_FOR_LIST
    };
    const char **options[] = {&parsed->settings.resume, &parsed->settings.from,
                              &parsed->settings.init};
    char         path[AT_RUN_PATH_SIZE];
    /* `train --watch` has options of watch, but takes no words. */
    bool compares = verb & (AT_FOR_COMPARE | AT_FOR_SWEEP);
    bool has_words = (verb & NAMES_RUNS) && !(verb & AT_FOR_LIVE);
    for (uint32_t i = 0; has_words && i < parsed->words; i++) {
        AT_TRY(path_of(&parsed->word[i], run_marks, path, fail));
        if (parsed->word[i] == path) AT_TRY(at_options_keep(parsed, path, &parsed->word[i], fail));
    }
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        bool is_comparison = compares && options[i] == &parsed->settings.resume;
        AT_TRY(path_of(options[i], is_comparison ? comparison_marks : run_marks, path, fail));
        if (*options[i] == path) AT_TRY(at_options_keep(parsed, path, options[i], fail));
    }
    return AT_OK;
}

/* ---- removing -------------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status, (void)kind, (void)where;
    return remove(path);
}

at_err at_run_folder_remove(const char *folder, at_fail *fail)
{
    enum { OPEN_FILES = 16 };
    if (at_run_lock_is_held(folder))
        return at_fail_set(fail, AT_ERR_USAGE, "wait until it ends, or stop it first",
                           "%s is in use by a run", folder);
    if (nftw(folder, remove_one, OPEN_FILES, FTW_DEPTH | FTW_PHYS) == 0) return AT_OK;
    return at_file_error("remove", folder, errno, fail);
}

/* ---- results --------------------------------------------------------------------------------- */

at_err at_run_json_read(const char *folder, const char *name, json_t **document, at_fail *fail)
{
    char           path[AT_RUN_PATH_SIZE];
    unsigned char *bytes;
    size_t         size;
    json_error_t   error;
    at_text        text = at_text_in(path, sizeof path);
    *document = NULL;
    at_text_add(&text, "%s/%s", folder, name);
    if (text.full) return at_fail_set(fail, AT_ERR_USAGE, NULL, "the folder name is too long");
    AT_TRY(at_file_read(path, RESULT_SIZE_MAX, &bytes, &size, fail));
    *document = json_loadb((const char *)bytes, size, 0, &error);
    free(bytes);
    if (json_is_object(*document)) return AT_OK;
    at_fail_set(fail, AT_ERR_FORMAT, "was it written by anytime?", "%s:%d: %s", path,
                *document ? 1 : error.line, *document ? "not an object" : error.text);
    json_decref(*document);
    *document = NULL;
    return AT_ERR_FORMAT;
}

at_err at_run_result_read(const char *folder, json_t **result, at_fail *fail)
{
    at_err err = at_run_json_read(folder, "result.json", result, fail);
    if (err != AT_ERR_MISSING) return err;
    return at_fail_set(fail, err, "it is written when a run ends; give folders of finished runs",
                       "%s has no result.json", folder);
}
