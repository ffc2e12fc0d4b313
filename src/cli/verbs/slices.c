/* `anytime slices`: plans the points, measures them, tells and keeps what came out. */
#include "cli/verbs/slices.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/launch.h"
#include "cli/plots.h"
#include "cli/print.h"
#include "cli/verbs/verbs.h"

enum { BATCH_FIRST = 4, BATCH_LAST = 512, NUMBER_MAX = 1 << 20 };

/* ---- the points ------------------------------------------------------------------------------ */

typedef struct list {
    uint32_t number[AT_SLICES_LIST_MAX];
    uint32_t count;
} list;

/* Puts a number into its place; one that is there already changes nothing. */
static bool insert(list *numbers, uint32_t number)
{
    uint32_t at = numbers->count;
    for (uint32_t i = 0; i < numbers->count; i++)
        if (numbers->number[i] == number) return true;
    if (numbers->count == AT_SLICES_LIST_MAX) return false;
    for (; at > 0 && numbers->number[at - 1] > number; at--)
        numbers->number[at] = numbers->number[at - 1];
    numbers->number[at] = number;
    numbers->count++;
    return true;
}

/* Reads "64,128,512". */
static at_err read_list(const char *option, const char *text, list *numbers, at_fail *fail)
{
    char copy[512], *rest = copy, *word;
    *numbers = (list){.count = 0};
    if (strlen(text) >= sizeof copy)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "--%s is too long", option);
    snprintf(copy, sizeof copy, "%s", text);
    while ((word = strsep(&rest, ","))) {
        int64_t number;
        if (!at_text_whole(word, &number) || number < 1 || number > NUMBER_MAX)
            return at_fail_set(fail, AT_ERR_USAGE, "write it as 64,128,512",
                               "--%s: '%s' is not a whole number from 1 to %d", option, word,
                               NUMBER_MAX);
        if (!insert(numbers, (uint32_t)number))
            return at_fail_set(fail, AT_ERR_USAGE, NULL, "--%s: more than %d numbers", option,
                               AT_SLICES_LIST_MAX);
    }
    return AT_OK;
}

static void powers_of_two(list *numbers, uint32_t first, uint32_t last)
{
    assert(first >= 1);
    *numbers = (list){.count = 0};
    for (uint32_t n = first; n <= last; n *= 2) insert(numbers, n);
}

/* The ways to cut this batch into equal parts, among those that are wanted. */
static void add_points(at_slices *s, uint32_t batch, const list *wanted)
{
    for (uint32_t i = 0; i < wanted->count; i++) {
        uint32_t slices = wanted->number[i];
        if (slices <= batch && batch % slices == 0)
            s->point[s->points++] =
                (at_slices_point){.batch = batch, .slices = slices, .micro_batch = batch / slices};
    }
}

static at_err reserve_times(at_slices *s, at_fail *fail)
{
    size_t count;
    bool   fits = at_size_product(s->points, s->repeats, &count);
    s->times = fits ? calloc(count, sizeof *s->times) : NULL;
    if (!s->times) return at_fail_memory(fail);
    for (uint32_t i = 0; i < s->points; i++)
        s->point[i].seconds = s->times + (size_t)i * s->repeats;
    return AT_OK;
}

at_err at_slices_plan(at_slices *s, at_fail *fail)
{
    const at_settings *set = &s->parsed->settings;
    list               batches, wanted;
    powers_of_two(&batches, BATCH_FIRST, BATCH_LAST);
    powers_of_two(&wanted, 1, NUMBER_MAX);
    if (set->batches) AT_TRY(read_list("batches", set->batches, &batches, fail));
    if (set->slices) AT_TRY(read_list("slices", set->slices, &wanted, fail));
    s->repeats = (uint32_t)set->repeats;
    s->point = calloc((size_t)batches.count * wanted.count, sizeof *s->point);
    if (!s->point) return at_fail_memory(fail);
    for (uint32_t i = 0; i < batches.count; i++) add_points(s, batches.number[i], &wanted);
    if (s->points == 0)
        return at_fail_set(fail, AT_ERR_USAGE, "1 is always a number of slices",
                           "no batch can be cut into so many equal slices");
    return reserve_times(s, fail);
}

void at_slices_deinit(at_slices *s)
{
    free(s->point);
    free(s->times);
    s->point = NULL;
    s->times = NULL;
    s->points = 0;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static at_err open_slices(at_slices *s, at_fail *fail)
{
    const at_parsed *parsed = s->parsed;
    if (parsed->words > 0)
        return at_fail_set(fail, AT_ERR_USAGE, "options look like --name value",
                           "slices takes no argument '%s'", parsed->word[0]);
    AT_TRY(at_plots_check(parsed->settings.plots, fail));
    AT_TRY(at_launch_folder(parsed->settings.out, "slices", s->folder, sizeof s->folder, fail));
    return at_slices_plan(s, fail);
}

static at_err write_json(const at_slices *s, at_fail *fail)
{
    char    path[AT_SLICES_PATH_SIZE + 16];
    at_text name = at_text_in(path, sizeof path);
    json_t *document = at_slices_json(s);
    char   *text = document ? json_dumps(document, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(document);
    if (!text) return at_fail_set(fail, AT_ERR_FAILED, NULL, "the result cannot be written");
    at_text_add(&name, "%s/slices.json", s->folder);
    at_err err = at_file_write(path, text, strlen(text), fail);
    free(text);
    return err;
}

/* Plots that cannot be drawn are no failure: the numbers are there. A full disk is one. */
static at_err draw(const at_slices *s, at_fail *fail)
{
    at_fail failed = {0};
    if (strcmp(s->parsed->settings.plots, "none") == 0 || !at_slices_plot(s, &failed)) return AT_OK;
    if (failed.err == AT_ERR_IO) return *fail = failed, failed.err;
    fprintf(stderr, "anytime: warning: plots are missing: %s\n", failed.text);
    if (*failed.hint) fprintf(stderr, "  hint: %s\n", failed.hint);
    return AT_OK;
}

static at_err tell(const at_slices *s, at_fail *fail)
{
    bool json = s->parsed->settings.json;
    AT_TRY(at_file_make_folder(s->folder, fail));
    AT_TRY(write_json(s, fail));
    if (json)
        AT_TRY(at_print_json_take(at_slices_json(s), fail));
    else
        AT_TRY(at_slices_print(s, fail));
    AT_TRY(draw(s, fail));
    if (!json) printf("written to %s\n", s->folder);
    return AT_OK;
}

/* What was stopped shows the repeats that are complete; before the first one there is nothing to
 * show, and nothing was written. */
at_err at_verb_slices(at_parsed *parsed, const char *command, at_fail *fail)
{
    at_fail   telling = {0};
    at_slices s = {.parsed = parsed, .command = command};
    at_err    err = open_slices(&s, fail);
    if (!err) err = at_slices_measure(&s, fail);
    if ((!err || err == AT_ERR_STOPPED) && s.done > 0 && tell(&s, &telling) && !err) {
        *fail = telling;
        err = telling.err;
    }
    at_slices_deinit(&s);
    return err;
}
