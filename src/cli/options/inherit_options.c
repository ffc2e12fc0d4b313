#include "cli/options/inherit_options.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "model_io/checkpoint.h"

enum { RESULT_SIZE_MAX = 64 << 20 };

static at_err adopt(at_parsed *parsed, const char *path, const json_t *root,
                    const char *const *except, size_t except_count, at_fail *fail)
{
    const json_t *options = json_object_get(root, "options");
    return json_is_object(options)
               ? at_options_inherit(parsed, options, except, except_count, fail)
               : at_fail_set(fail, AT_ERR_FORMAT, NULL, "%s has no options", path);
}

static at_err adopt_checkpoint(at_parsed *parsed, const char *run, const char *const *except,
                               size_t except_count, at_fail *fail)
{
    at_checkpoint checkpoint;
    AT_TRY(at_checkpoint_open(run, &checkpoint, fail));
    at_err err = adopt(parsed, checkpoint.path, checkpoint.state, except, except_count, fail);
    at_checkpoint_close(&checkpoint);
    return err;
}

static bool has_checkpoints(const char *run)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/checkpoint", run);
    return access(path, F_OK) == 0;
}

at_err at_inherit_run_options(at_parsed *parsed, const char *run, const char *const *except,
                              size_t except_count, at_fail *fail)
{
    char           path[4096];
    unsigned char *bytes = NULL;
    size_t         size;
    snprintf(path, sizeof path, "%s/result.json", run);
    if (access(path, F_OK) != 0 && has_checkpoints(run))
        return adopt_checkpoint(parsed, run, except, except_count, fail);
    AT_TRY(at_file_read(path, RESULT_SIZE_MAX, &bytes, &size, fail));
    json_error_t error;
    json_t      *result = json_loadb((const char *)bytes, size, 0, &error);
    at_err       err = adopt(parsed, path, result, except, except_count, fail);
    json_decref(result);
    free(bytes);
    return err;
}
