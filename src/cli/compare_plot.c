/* The pictures of a comparison: one series an entry. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/compare.h"
#include "report/panels.h"

static char *folder_of(const at_compare *compare, const at_entry *entry, uint32_t i)
{
    char *path;
    assert(i < entry->run_count);
    int size =
        asprintf(&path, "%s/%s", compare->folder,
                 json_string_value(json_object_get(json_array_get(entry->runs, i), "folder")));
    return size < 0 ? NULL : path;
}

/* The folders of all runs, entry by entry: `repeats` places each. False when there is no memory. */
static bool list_folders(const at_compare *compare, char **folders, at_panel_runs *runs)
{
    bool full = true;
    for (uint32_t i = 0; i < compare->entries; i++) {
        const at_entry *entry = &compare->entry[i];
        char          **first = folders + (size_t)i * compare->repeats;
        assert(entry->run_count <= compare->repeats);
        for (uint32_t run = 0; run < entry->run_count; run++)
            full = (first[run] = folder_of(compare, entry, run)) && full;
        runs[i] = (at_panel_runs){.label = entry->label,
                                  .folders = (const char *const *)first,
                                  .count = entry->run_count};
    }
    return full;
}

static at_err draw(const at_compare *compare, const at_panel_runs *runs, char *names, size_t size,
                   at_fail *fail)
{
    char               title[200];
    const at_settings *s = &compare->parsed->settings;
    at_text            text = at_text_in(title, sizeof title);
    at_text_add(&text, "%s on %s", s->model, s->data);
    at_panel_options options = {.title = title,
                                .folder = compare->folder,
                                .runs = runs,
                                .run_count = compare->entries,
                                .all = strcmp(s->plots, "all") == 0};
    return at_panels_write(&options, names, size, fail);
}

/* Without gnuplot the data and the scripts are written nevertheless. */
static at_err warn_unless_full(const at_fail *failed, at_fail *fail)
{
    if (failed->err == AT_ERR_IO) return *fail = *failed, AT_ERR_IO;
    fprintf(stderr, "anytime: warning: plots are missing: %s\n", failed->text);
    if (*failed->hint) fprintf(stderr, "  hint: %s\n", failed->hint);
    return AT_OK;
}

at_err at_compare_plot(const at_compare *compare, char *names, size_t size, at_fail *fail)
{
    size_t         count = (size_t)compare->entries * compare->repeats;
    char         **folders = calloc(count, sizeof *folders);
    at_panel_runs *runs = calloc(compare->entries, sizeof *runs);
    at_fail        failed = {0};
    at_err         err;
    *names = '\0';
    if (!folders || !runs || !list_folders(compare, folders, runs))
        err = at_fail_set(&failed, AT_ERR_FAILED, NULL, "not enough memory for the plots");
    else
        err = draw(compare, runs, names, size, &failed);
    for (size_t i = 0; folders && i < count; i++) free(folders[i]);
    free(folders);
    free(runs);
    return err ? warn_unless_full(&failed, fail) : AT_OK;
}
