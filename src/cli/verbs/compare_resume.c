/* `compare --resume DIR` and `sweep --resume DIR`: an interrupted comparison goes on. Entries and
 * options come from DIR/compare.json. Runs that have ended are kept. A run that was under way is
 * resumed if it has a checkpoint; otherwise, and in virtual time, it is made again: there it gives
 * the same numbers, to the last digit, as if nothing had happened.
 *
 * A comparison of programs is resumed with the same command after `--`, in the folder where it
 * began: somebody else may have written compare.json, and nothing in a file is executed. */
#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/run_names.h"
#include "cli/verbs/compare.h"

enum { VERBS = AT_FOR_COMPARE | AT_FOR_SWEEP };

/* ---- what may be given ----------------------------------------------------------------------- */

/* Options of the command that resumes; all others are those of the comparison. */
static const char *const changeable[] = {"resume", "repeats", "jobs", "plots", "json", "quiet"};
enum { CHANGEABLE = sizeof changeable / sizeof *changeable };

static bool is_changeable(const char *name)
{
    for (size_t i = 0; i < CHANGEABLE; i++)
        if (strcmp(name, changeable[i]) == 0) return true;
    return false;
}

static at_err check_given(const at_parsed *parsed, at_fail *fail)
{
    static const char hint[] = "leave it out; only --repeats, --jobs, --plots, --json and --quiet "
                               "can be given";
    if (parsed->words > 0)
        return at_fail_set(fail, AT_ERR_USAGE, "leave them out; they are in its compare.json",
                           "--resume takes no entries (got '%s')", parsed->word[0]);
    for (const at_option *option = at_options; option->name; option++)
        if (at_options_given(parsed, option->name) && !is_changeable(option->name))
            return at_fail_set(fail, AT_ERR_USAGE, hint, "--%s cannot be changed when resuming",
                               option->name);
    return AT_OK;
}

/* More repeats only add runs. The seed of a search comes after those of all repeats, so that with
 * another number of them it would be another search. */
static at_err check_repeats(const at_parsed *parsed, int64_t before, at_fail *fail)
{
    int64_t now = parsed->settings.repeats;
    if (now < before)
        return at_fail_set(fail, AT_ERR_USAGE, "leave --repeats out, or give a larger number",
                           "--repeats %lld is less than before (%lld)", (long long)now,
                           (long long)before);
    if (now > before && parsed->settings.tune)
        return at_fail_set(fail, AT_ERR_USAGE, "leave --repeats out, or start a new comparison",
                           "--repeats cannot be changed after --tune");
    return AT_OK;
}

/* ---- reading compare.json -------------------------------------------------------------------- */

static at_err read_document(const char *folder, json_t **document, at_fail *fail)
{
    at_fail missing = {0};
    at_err  err = at_run_json_read(folder, "compare.json", document, &missing);
    if (err == AT_ERR_MISSING)
        return at_fail_set(fail, err, "give the folder that compare or sweep has written to",
                           "%s is not the folder of a comparison: it has no compare.json", folder);
    if (err) *fail = missing;
    return err;
}

static at_err bad_document(const at_compare *compare, at_fail *fail)
{
    return at_fail_set(
        fail, AT_ERR_FORMAT, "repeat the comparison",
        "%s/compare.json lacks what --resume needs; an earlier version of anytime may "
        "have written it",
        compare->folder);
}

static at_err restore_words(const at_compare *compare, at_parsed *parsed, at_fail *fail)
{
    const json_t *entries = json_object_get(compare->before, "entries"), *entry;
    size_t        i;
    if (json_array_size(entries) < 1 || json_array_size(entries) > AT_WORDS_MAX)
        return bad_document(compare, fail);
    json_array_foreach(entries, i, entry)
    {
        const char *text = json_string_value(json_object_get(entry, "entry"));
        if (!text) return bad_document(compare, fail);
        AT_TRY(at_options_keep(parsed, text, &parsed->word[i], fail));
        parsed->words++;
    }
    return AT_OK;
}

static bool is_same_command(const json_t *program, const char *const *command)
{
    const json_t *word;
    size_t        i;
    json_array_foreach(program, i, word)
    {
        if (!command[i] || !json_is_string(word)) return false;
        if (strcmp(json_string_value(word), command[i]) != 0) return false;
    }
    return !command[i];
}

/* The command after `--`, if the workers are programs. */
static at_err check_program(const at_compare *compare, const at_parsed *parsed, at_fail *fail)
{
    const json_t *program = json_object_get(compare->before, "program");
    if (!json_is_array(program)) {
        if (!parsed->command) return AT_OK;
        return at_fail_set(fail, AT_ERR_USAGE, "leave it out",
                           "%s compares no programs, but a command was given after --",
                           compare->folder);
    }
    if (parsed->command && is_same_command(program, parsed->command)) return AT_OK;
    static const char hint[] = "repeat the command after --; compare.json has it as \"program\"";
    return at_fail_set(fail, AT_ERR_USAGE, hint, "%s compares programs, %s", compare->folder,
                       parsed->command ? "with another command than the one after --"
                                       : "and a program in a file is never started by itself");
}

static at_err restore_options(const at_compare *compare, at_parsed *parsed, at_fail *fail)
{
    static const char *const except[] = {"resume", "json", "quiet"};
    const json_t            *options = json_object_get(compare->before, "options");
    int64_t before = (int64_t)json_integer_value(json_object_get(options, "repeats"));
    if (!json_is_object(options) || before < 1) return bad_document(compare, fail);
    AT_TRY(
        at_options_inherit(parsed, VERBS, options, except, sizeof except / sizeof *except, fail));
    return check_repeats(parsed, before, fail);
}

/* Entries may name files, so the comparison goes on in the folder where it began. With a program
 * only the user goes there: what `./train` is depends on the folder. */
static at_err restore_directory(at_compare *compare, const at_parsed *parsed, at_fail *fail)
{
    char        here[PATH_MAX], whole[PATH_MAX];
    const char *there = json_string_value(json_object_get(compare->before, "directory"));
    if (!there || !getcwd(here, sizeof here) || strcmp(here, there) == 0) return AT_OK;
    if (parsed->command)
        return at_fail_set(fail, AT_ERR_USAGE, "change to that folder first",
                           "%s compares programs, and was started in %s", compare->folder, there);
    if (!realpath(compare->folder, whole) || strlen(whole) >= sizeof compare->folder)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "%s: the folder name is too long",
                           compare->folder);
    if (chdir(there) == 0) memcpy(compare->folder, whole, strlen(whole) + 1);
    return AT_OK;
}

at_err at_compare_resume(at_compare *compare, at_parsed *parsed, at_fail *fail)
{
    const char *folder = parsed->settings.resume;
    AT_TRY(check_given(parsed, fail));
    if (strlen(folder) >= sizeof compare->folder)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "the folder name is too long");
    snprintf(compare->folder, sizeof compare->folder, "%s", folder);
    AT_TRY(read_document(folder, &compare->before, fail));
    at_err err = restore_options(compare, parsed, fail);
    if (!err) err = restore_words(compare, parsed, fail);
    if (!err) err = check_program(compare, parsed, fail);
    if (!err) err = restore_directory(compare, parsed, fail);
    const char *command = json_string_value(json_object_get(compare->before, "command"));
    if (!err && command) err = at_options_keep(parsed, command, &compare->command, fail);
    parsed->settings.resume = NULL; /* the files say what was compared, not how often it stopped */
    if (err) json_decref(compare->before);
    return err;
}

at_err at_compare_restore_entry(at_compare *compare, uint32_t index, at_fail *fail)
{
    at_entry     *entry = &compare->entry[index];
    const json_t *before = json_array_get(json_object_get(compare->before, "entries"), index);
    const char   *measured = json_string_value(json_object_get(before, "sample_time"));
    if (!measured) return AT_OK;
    snprintf(entry->sample_time, sizeof entry->sample_time, "%s", measured);
    return at_options_set(&entry->parsed, AT_FOR_TRAIN, "sample-time", measured, fail);
}

/* ---- the runs of the earlier part ------------------------------------------------------------ */

/* A run that was stopped, or has failed, is not. */
static bool has_ended_well(const json_t *result)
{
    static const at_end well[] = {AT_END_STEPS,   AT_END_SAMPLES, AT_END_EPOCHS,
                                  AT_END_SECONDS, AT_END_TARGET,  AT_END_LEFT};
    const char         *stopped = json_string_value(json_object_get(result, "stopped"));
    for (size_t i = 0; stopped && i < sizeof well / sizeof *well; i++)
        if (strcmp(stopped, at_end_name[well[i]]) == 0) return true;
    return false;
}

bool at_compare_is_made(const at_compare *compare, uint32_t run)
{
    char    folder[AT_COMPARE_PATH_SIZE];
    at_fail ignored;
    json_t *result = NULL;
    if (!compare->before || at_compare_run_folder(compare, run, folder, sizeof folder, &ignored) ||
        at_run_result_read(folder, &result, &ignored))
        return false;
    bool well = has_ended_well(result);
    json_decref(result);
    return well;
}

uint32_t at_compare_count_made(const at_compare *compare)
{
    uint32_t count = 0;
    for (uint32_t run = 0; run < compare->entries * compare->repeats; run++)
        count += at_compare_is_made(compare, run) ? 1u : 0u;
    return count;
}

at_err at_compare_take_up(const char *folder, bool simulated, at_checkpoint *checkpoint,
                          bool *resumes, at_fail *fail)
{
    at_fail none;
    *resumes = !simulated && at_checkpoint_open(folder, checkpoint, &none) == AT_OK;
    if (*resumes || access(folder, F_OK) != 0) return AT_OK;
    return at_run_folder_remove(folder, fail);
}
