#include "cli/options/inherit.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/output.h"
#include "world/process/launcher.h"

enum { RESULT_SIZE_MAX = 64 << 20 };

/* Runs of earlier versions, which do not mention these options, were made with these values. */
static at_err keep_old_defaults(at_parsed *parsed, const json_t *options, at_fail *fail)
{
    static const char *const old[][2] = {{"test-split", "0"}};
    bool scales = json_object_get(options, "missing"); /* came with the scaling of tables */
    if (!scales && !at_options_given(parsed, "prep") && !parsed->settings.prep)
        AT_TRY(at_options_set(parsed, AT_FOR_TRAIN, "prep", "none", fail));
    for (size_t i = 0; i < sizeof old / sizeof *old; i++) {
        const char *name = old[i][0];
        if (json_object_get(options, name) || at_options_given(parsed, name)) continue;
        AT_TRY(at_options_set(parsed, AT_FOR_TRAIN, name, old[i][1], fail));
    }
    return AT_OK;
}

/* Takes the options echoed in `document`, a result.json or the state of a checkpoint. */
static at_err inherit(at_parsed *parsed, const char *path, const json_t *document,
                      const char *const *except, size_t except_count, at_fail *fail)
{
    const json_t *options = json_object_get(document, "options");
    if (!json_is_object(options))
        return at_fail_set(fail, AT_ERR_FORMAT, "was it written by anytime?",
                           "%s does not have the options of its run", path);
    AT_TRY(at_options_inherit(parsed, AT_FOR_TRAIN, options, except, except_count, fail));
    parsed->inherits = true;
    return keep_old_defaults(parsed, options, fail);
}

static at_err inherit_checkpoint(at_parsed *parsed, const char *run, const char *const *except,
                                 size_t except_count, at_fail *fail)
{
    at_checkpoint checkpoint;
    AT_TRY(at_checkpoint_open(run, &checkpoint, fail));
    at_err err = inherit(parsed, checkpoint.path, checkpoint.state, except, except_count, fail);
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
        return inherit_checkpoint(parsed, run, except, except_count, fail);
    at_err found = at_file_read(path, RESULT_SIZE_MAX, &bytes, &size, fail);
    if (found == AT_ERR_MISSING)
        return at_fail_set(fail, found, "it is written when a run ends; `anytime runs` lists them",
                           "%s has no result.json", run);
    AT_TRY(found);
    json_error_t error;
    json_t      *result = json_loadb((const char *)bytes, size, 0, &error);
    at_err       err = inherit(parsed, path, result, except, except_count, fail);
    json_decref(result);
    free(bytes);
    return err;
}

at_err at_inherit_net_text(at_parsed *parsed, const char *weights, at_fail *fail)
{
    char *text;
    AT_TRY(at_safetensors_text(weights, "net", &text, fail));
    at_err err = text ? at_options_keep(parsed, text, &parsed->settings.net_text, fail) : AT_OK;
    free(text);
    return err;
}

/* ---- --resume ------------------------------------------------------------------------------ */

static const char *const stopping[] = {"steps", "epochs", "samples", "seconds", "target"};
static const char *const changeable[] = {
    "resume",      "workers",      "world",    "checkpoint-every",
    "respawn",     "lease",        "watch",    "listen",
    "token",       "open",         "json",     "quiet",
    "config",      "mix",          "faults",   "workers-min",
    "workers-max", "join-timeout", "restarts", "log-dir",
    "hub-file",    "standby",      "dry-run",  "bind",
    "log-style"};
enum {
    STOPPING = sizeof stopping / sizeof *stopping,
    CHANGEABLE = sizeof changeable / sizeof *changeable,
    EXCEPT_MAX = STOPPING + 4
};

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static at_err check_given(const at_parsed *parsed, at_fail *fail)
{
    for (const at_option *option = at_options; option->name; option++)
        if (at_options_given(parsed, option->name) && !is_among(option->name, stopping, STOPPING) &&
            !is_among(option->name, changeable, CHANGEABLE))
            return at_fail_set(fail, AT_ERR_USAGE,
                               "leave it out; --workers, --world, --mix, the stopping options and "
                               "a few others can be changed",
                               "--%s cannot be changed when resuming", option->name);
    return AT_OK;
}

/* Lists options that are not taken from the run. One stopping option given replaces all those of
 * the run. A simulation stays one; otherwise the launcher decides about world and workers. */
static size_t list_exceptions(const at_parsed *parsed, const json_t *echo, const char **except)
{
    size_t      count = 0;
    bool        given = false;
    const char *world = json_string_value(json_object_get(echo, "world"));
    for (size_t i = 0; i < STOPPING; i++) given = given || at_options_given(parsed, stopping[i]);
    for (size_t i = 0; given && i < STOPPING; i++) except[count++] = stopping[i];
    except[count++] = "run";
    except[count++] = "resume";
    if (!world || strcmp(world, "sim") != 0) except[count++] = "world";
    if (at_launcher_detect().name) except[count++] = "workers";
    return count;
}

void at_resume_again(at_parsed *parsed, const char *run)
{
    for (size_t i = 0; at_options[i].name; i++) {
        const char *name = at_options[i].name;
        bool kept = is_among(name, stopping, STOPPING) || is_among(name, changeable, CHANGEABLE);
        if (!kept) parsed->given[i] = false;
    }
    parsed->settings.run = NULL;
    parsed->settings.resume = run;
}

at_err at_resume_open(at_parsed *parsed, at_checkpoint *checkpoint, at_fail *fail)
{
    const char *except[EXCEPT_MAX];
    const char *run = parsed->settings.resume;
    AT_TRY(check_given(parsed, fail));
    AT_TRY(at_checkpoint_open(run, checkpoint, fail));
    if (checkpoint->damaged[0]) at_say("anytime: %s\n", checkpoint->damaged);
    const json_t *echo = json_object_get(checkpoint->state, "options");
    size_t        count = list_exceptions(parsed, echo, except);
    at_err        err = inherit(parsed, run, checkpoint->state, except, count, fail);
    if (!err) err = at_inherit_net_text(parsed, checkpoint->path, fail);
    if (err) at_checkpoint_close(checkpoint);
    return err;
}
