#include "cli/options/resume.h"

#include <stdio.h>
#include <string.h>

#include "world/process/launcher.h"

static const char *const ends[] = {"steps", "epochs", "samples", "seconds", "target"};
static const char *const free_to_change[] = {"resume",  "workers",  "world", "checkpoint-every",
                                             "respawn", "lease",    "watch", "listen",
                                             "token",   "open",     "json",  "quiet",
                                             "config",  "topology", "hubs"};
enum {
    ENDS = sizeof ends / sizeof *ends,
    FREE = sizeof free_to_change / sizeof *free_to_change,
    EXCEPT_MAX = ENDS + 4
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
        if (at_options_given(parsed, option->name) && !is_among(option->name, ends, ENDS) &&
            !is_among(option->name, free_to_change, FREE))
            return at_fail_set(
                fail, AT_ERR_USAGE,
                "leave it out; only when a run ends, --workers, --world and --topology can change",
                "--%s cannot change when a run goes on", option->name);
    return AT_OK;
}

/* When an end is given, all others that the run had are void. The world is taken over when it is
 * virtual time; between the real ones it is the launcher that decides. */
static size_t list_exceptions(const at_parsed *parsed, const json_t *echo, const char **except)
{
    size_t      count = 0;
    bool        given = false;
    const char *world = json_string_value(json_object_get(echo, "world"));
    for (size_t i = 0; i < ENDS; i++) given = given || at_options_given(parsed, ends[i]);
    for (size_t i = 0; given && i < ENDS; i++) except[count++] = ends[i];
    except[count++] = "run";
    except[count++] = "resume";
    if (!world || strcmp(world, "sim") != 0) except[count++] = "world";
    if (at_launcher_detect().name) except[count++] = "workers";
    return count;
}

at_err at_resume_open(at_parsed *parsed, at_checkpoint *checkpoint, at_fail *fail)
{
    const char *except[EXCEPT_MAX];
    const char *run = parsed->settings.resume;
    AT_TRY(check_given(parsed, fail));
    AT_TRY(at_checkpoint_open(run, checkpoint, fail));
    if (checkpoint->damaged[0]) fprintf(stderr, "anytime: %s\n", checkpoint->damaged);
    const json_t *echo = json_object_get(checkpoint->state, "options");
    size_t        count = list_exceptions(parsed, echo, except);
    at_err        err = json_is_object(echo)
                            ? at_options_inherit(parsed, echo, except, count, fail)
                            : at_fail_set(fail, AT_ERR_FORMAT, NULL, "%s has no options", run);
    if (err) at_checkpoint_close(checkpoint);
    return err;
}
