/* What a comparison shows at its end: the numbers, plots, and a page of its runs. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/output.h"
#include "cli/run_names.h"
#include "cli/run_page.h"
#include "cli/verbs/compare.h"

enum { TITLE_SIZE = 200, PAGE_RUNS_MAX = 64 };

/* ---- plots --------------------------------------------------------------------------------- */

static char *folder_of(const at_compare *compare, const at_entry *entry, uint32_t i)
{
    char *path;
    assert(i < entry->run_count);
    int size =
        asprintf(&path, "%s/%s", compare->folder,
                 json_string_value(json_object_get(json_array_get(entry->runs, i), "folder")));
    return size < 0 ? NULL : path;
}

/* Lists the folders of all runs, `repeats` places per entry. False when out of memory. */
static bool list_folders(at_compare *compare, char **folders, at_panel_runs *runs)
{
    bool complete = true;
    for (uint32_t i = 0; i < compare->entries; i++) {
        at_entry *entry = &compare->entry[i];
        char    **first = folders + (size_t)i * compare->repeats;
        assert(entry->run_count <= compare->repeats);
        for (uint32_t run = 0; run < entry->run_count; run++)
            complete = (first[run] = folder_of(compare, entry, run)) && complete;
        runs[i] = (at_panel_runs){.label = at_entry_title(entry, entry->title, sizeof entry->title),
                                  .folders = (const char *const *)first,
                                  .count = entry->run_count};
    }
    return complete;
}

static void write_title(const at_compare *compare, char *title, size_t size)
{
    const at_settings *s = &compare->parsed->settings;
    at_text            text = at_text_in(title, size);
    if (compare->parsed->command)
        at_text_add(&text, "%s", compare->parsed->command[0]);
    else
        at_text_add(&text, "%s on %s", s->model, s->data);
}

static at_err draw(const at_compare *compare, const at_panel_runs *runs, char *names, size_t size,
                   at_fail *fail)
{
    char             title[TITLE_SIZE];
    at_panel_options options = {
        .title = title, .folder = compare->folder, .runs = runs, .run_count = compare->entries};
    write_title(compare, title, sizeof title);
    return at_plots_write(compare->parsed->settings.plots, options, names, size, fail);
}

/* Draws the panels into the comparison's folder; see at_plots_write. */
static at_err plot(at_compare *compare, char *names, size_t size, at_fail *fail)
{
    size_t         count = (size_t)compare->entries * compare->repeats;
    char         **folders = calloc(count, sizeof *folders);
    at_panel_runs *runs = calloc(compare->entries, sizeof *runs);
    at_err         err;
    *names = '\0';
    if (!folders || !runs || !list_folders(compare, folders, runs))
        err = at_fail_memory_for(fail, "for the plots");
    else
        err = draw(compare, runs, names, size, fail);
    for (size_t i = 0; folders && i < count; i++) free(folders[i]);
    free(folders);
    free(runs);
    return err;
}

/* ---- page ---------------------------------------------------------------------------------- */

/* Runs of each entry on the page: all, unless there are very many. */
static uint32_t page_repeats(const at_compare *compare)
{
    uint32_t most = PAGE_RUNS_MAX / compare->entries;
    assert(compare->entries >= 1 && compare->entries <= PAGE_RUNS_MAX);
    return compare->repeats < most ? compare->repeats : most;
}

static at_err open_page_run(const char *folder, at_page_run *run, at_fail *fail)
{
    if (!folder) return at_fail_memory_for(fail, "for the page");
    *run = (at_page_run){.folder = folder, .label = strrchr(folder, '/') + 1};
    return at_run_result_read(folder, &run->result, fail);
}

static at_err write_page(const at_compare *compare, at_fail *fail)
{
    char        title[TITLE_SIZE];
    at_page_run runs[PAGE_RUNS_MAX] = {0};
    char       *folders[PAGE_RUNS_MAX] = {0};
    uint32_t    count = 0;
    at_err      err = AT_OK;
    for (uint32_t e = 0; e < compare->entries; e++) {
        const at_entry *entry = &compare->entry[e];
        for (uint32_t i = 0; i < page_repeats(compare) && i < entry->run_count && !err; i++) {
            folders[count] = folder_of(compare, entry, i);
            err = open_page_run(folders[count], &runs[count], fail);
            count++;
        }
    }
    write_title(compare, title, sizeof title);
    if (!err)
        err = at_run_page_write(compare->folder, title, runs, count,
                                compare->parsed->settings.quiet, fail);
    for (uint32_t i = 0; i < count; i++) {
        free(folders[i]);
        json_decref(runs[i].result);
    }
    return err;
}

static void print_files(const at_compare *compare, const char *plots, bool page)
{
    uint32_t shown = page_repeats(compare);
    if (*plots) printf("plots: %s, each also as .svg\n", plots);
    if (page && shown < compare->repeats)
        at_print("page: %s/" AT_PAGE_NAME " (%u of %u repeats)\n", compare->folder, shown,
                 compare->repeats);
    else if (page)
        at_print("page: %s/" AT_PAGE_NAME "\n", compare->folder);
    at_print("written to %s\n", compare->folder);
}

/* Prints the numbers before drawing, so that they are shown even if plots fail. */
at_err at_compare_show(at_compare *compare, at_fail *fail)
{
    char               plots[AT_PLOTS_NAMES_SIZE];
    const at_settings *s = &compare->parsed->settings;
    bool               any = compare->entry->run_count > 0;
    bool               page = any && strcmp(s->plots, "none") != 0;
    if (s->json) AT_TRY(at_print_json_take(at_compare_json(compare), fail));
    if (!s->json && any) AT_TRY(at_compare_print(compare, fail));
    AT_TRY(plot(compare, plots, sizeof plots, fail));
    if (page) AT_TRY(write_page(compare, fail));
    if (!s->json) print_files(compare, plots, page);
    return AT_OK;
}
