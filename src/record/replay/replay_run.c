/* The logs of a run's folder, one after the other, and what result.json says of them. */
#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "record/replay/replay.h"

enum { PATH_SIZE = 4096, RESULT_SIZE_MAX = 1 << 26 };

static at_err join(char *path, const char *folder, const char *name, at_fail *fail)
{
    int size = snprintf(path, PATH_SIZE, "%s/%s", folder, name);
    assert(size > 0);
    if (size < PATH_SIZE) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, NULL, "the path of the run folder is too long");
}

/* NULL without failure when the run has not left one: it was killed, or still goes on. */
static at_err read_result(const char *folder, json_t **result, at_fail *fail)
{
    char           path[PATH_SIZE];
    unsigned char *bytes;
    size_t         size;
    json_error_t   error;
    *result = NULL;
    AT_TRY(join(path, folder, "result.json", fail));
    at_err err = at_file_read(path, RESULT_SIZE_MAX, &bytes, &size, fail);
    if (err == AT_ERR_MISSING && fail) *fail = (at_fail){0};
    if (err) return err == AT_ERR_MISSING ? AT_OK : err;
    *result = json_loadb((const char *)bytes, size, 0, &error);
    free(bytes);
    if (*result) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, NULL, "%s: not JSON: %s", path, error.text);
}

/* ---- no log -------------------------------------------------------------------------------- */

static at_err no_log(const char *folder, at_fail *fail)
{
    static const char hint[] = "only runs with --record full, the default, can be replayed";
    json_t           *result;
    AT_TRY(read_result(folder, &result, fail));
    const char *record =
        json_string_value(json_object_get(json_object_get(result, "options"), "record"));
    at_err err =
        record
            ? at_fail_set(fail, AT_ERR_MISSING, hint,
                          "%s: has no event log, it was made with --record %.16s", folder, record)
            : at_fail_set(fail, AT_ERR_MISSING, hint, "%s: has no event log (events.bin)", folder);
    json_decref(result);
    return err;
}

static at_err check_folder(const char *folder, at_fail *fail)
{
    struct stat info;
    assert(folder);
    if (stat(folder, &info) == 0 && S_ISDIR(info.st_mode)) return AT_OK;
    return at_fail_set(fail, AT_ERR_MISSING, "give the folder of a run, as --run named it",
                       "%s: there is no such run folder", folder);
}

/* ---- the logs ------------------------------------------------------------------------------ */

static void name_log(char *name, size_t size, uint32_t log)
{
    assert(log >= 1);
    if (log == 1)
        snprintf(name, size, "events.bin");
    else
        snprintf(name, size, "events-%u.bin", log);
}

static at_err replay_logs(const char *folder, at_replay *replay, at_fail *fail)
{
    char path[PATH_SIZE];
    for (uint32_t log = 1; !replay->difference.found; log++) {
        name_log(replay->difference.log, sizeof replay->difference.log, log);
        AT_TRY(join(path, folder, replay->difference.log, fail));
        if (access(path, F_OK) != 0) return log == 1 ? no_log(folder, fail) : AT_OK;
        AT_TRY(at_replay_log(path, replay, fail));
    }
    return AT_OK;
}

/* ---- the result ---------------------------------------------------------------------------- */

static at_err check_number(const json_t *value, const char *name, uint64_t replayed, at_fail *fail)
{
    uint64_t told = (uint64_t)json_integer_value(value);
    if (!json_is_integer(value))
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "result.json: has no number `%s`", name);
    if (told == replayed) return AT_OK;
    return at_fail_set(fail, AT_ERR_FAILED, NULL,
                       "result.json tells %s %" PRIu64 ", the replay gives %" PRIu64, name, told,
                       replayed);
}

static at_err check_trace(const json_t *value, uint64_t replayed, at_fail *fail)
{
    char        trace[17];
    const char *told = json_string_value(value);
    if (!told) return at_fail_set(fail, AT_ERR_FORMAT, NULL, "result.json: has no `trace_hash`");
    snprintf(trace, sizeof trace, "%016" PRIx64, replayed);
    if (strcmp(told, trace) == 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_FAILED, NULL,
                       "result.json tells trace_hash %.32s, the replay gives %s", told, trace);
}

static at_err check_totals(const json_t *result, const at_replay *replay, at_fail *fail)
{
    const json_t *samples = json_object_get(result, "samples");
    AT_TRY(check_number(json_object_get(result, "steps"), "steps", replay->steps, fail));
    AT_TRY(
        check_number(json_object_get(samples, "used"), "samples.used", replay->samples_used, fail));
    AT_TRY(check_number(json_object_get(samples, "dropped"), "samples.dropped",
                        replay->samples_dropped, fail));
    return check_trace(json_object_get(result, "trace_hash"), replay->trace, fail);
}

static at_err check_result(const char *folder, at_replay *replay, at_fail *fail)
{
    json_t *result;
    if (!replay->complete) return AT_OK;
    AT_TRY(read_result(folder, &result, fail));
    if (!result) return AT_OK;
    at_err err = check_totals(result, replay, fail);
    if (err) at_fail_wrap(fail, "%s", folder);
    replay->compared = !err;
    json_decref(result);
    return err;
}

at_err at_replay_run(const char *folder, at_replay *replay, at_fail *fail)
{
    *replay = (at_replay){0};
    AT_TRY(check_folder(folder, fail));
    AT_TRY(replay_logs(folder, replay, fail));
    return replay->difference.found ? AT_OK : check_result(folder, replay, fail);
}
