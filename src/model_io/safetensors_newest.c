/* Which weights of a run are the newest: it may have ended, been stopped, or still be running. */
#include "model_io/safetensors.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "model_io/checkpoint.h"

static bool is_newer(const struct stat *a, const struct stat *b)
{
    if (a->st_mtim.tv_sec != b->st_mtim.tv_sec) return a->st_mtim.tv_sec > b->st_mtim.tv_sec;
    return a->st_mtim.tv_nsec > b->st_mtim.tv_nsec;
}

/* The end of a run writes both, with the same weights; then the one without the rest is taken. */
static at_err choose(const char *run, char path[AT_SAFETENSORS_PATH_SIZE],
                     const at_checkpoint *saved, char note[AT_SAFETENSORS_NOTE_SIZE], at_fail *fail)
{
    struct stat model, checkpoint;
    int         length = snprintf(path, AT_SAFETENSORS_PATH_SIZE, "%s/model.safetensors", run);
    if (length < 0 || length >= AT_SAFETENSORS_PATH_SIZE)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "the folder's name is too long");
    bool there = stat(path, &model) == 0;
    if (!saved->path[0] || stat(saved->path, &checkpoint) != 0) return AT_OK;
    if (there && !is_newer(&checkpoint, &model)) return AT_OK;
    snprintf(path, AT_SAFETENSORS_PATH_SIZE, "%s", saved->path);
    if (note) snprintf(note, AT_SAFETENSORS_NOTE_SIZE, "%s", saved->damaged);
    return AT_OK;
}

at_err at_safetensors_newest(const char *source, char path[AT_SAFETENSORS_PATH_SIZE],
                             char note[AT_SAFETENSORS_NOTE_SIZE], at_fail *fail)
{
    struct stat   status;
    at_checkpoint saved;
    at_fail       none = {0};
    assert(source && path);
    if (note) note[0] = '\0';
    if (strlen(source) >= AT_SAFETENSORS_PATH_SIZE)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "the file's name is too long");
    if (stat(source, &status) != 0 || !S_ISDIR(status.st_mode)) {
        snprintf(path, AT_SAFETENSORS_PATH_SIZE, "%s", source);
        return AT_OK;
    }
    at_err found = at_checkpoint_open(source, &saved, &none);
    at_err err = choose(source, path, &saved, note, fail);
    if (!err && found == AT_ERR_FORMAT && stat(path, &status) != 0) {
        if (fail) *fail = none; /* there are only damaged ones */
        err = found;
    }
    at_checkpoint_close(&saved);
    return err;
}
