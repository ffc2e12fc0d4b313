#include "cli/adopt.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"

enum { RESULT_SIZE_MAX = 64 << 20 };

at_err at_adopt_run(at_parsed *parsed, const char *run, const char *const *except,
                    size_t except_count, at_fail *fail)
{
    char           path[4096];
    unsigned char *bytes = NULL;
    size_t         size;
    snprintf(path, sizeof path, "%s/result.json", run);
    AT_TRY(at_file_read(path, RESULT_SIZE_MAX, &bytes, &size, fail));
    json_error_t  error;
    json_t       *result = json_loadb((const char *)bytes, size, 0, &error);
    const json_t *options = json_object_get(result, "options");
    at_err        err = json_is_object(options)
                            ? at_options_adopt(parsed, options, except, except_count, fail)
                            : at_fail_set(fail, AT_ERR_FORMAT, NULL, "%s has no options", path);
    json_decref(result);
    free(bytes);
    return err;
}
