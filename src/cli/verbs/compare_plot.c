/* The pictures of a comparison: one series an entry. */
#include <assert.h>
#include <stdlib.h>

#include "base/text.h"
#include "cli/plots.h"
#include "cli/verbs/compare.h"

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
    at_panel_options options = {
        .title = title, .folder = compare->folder, .runs = runs, .run_count = compare->entries};
    return at_plots_write(s->plots, options, names, size, fail);
}

at_err at_compare_plot(const at_compare *compare, char *names, size_t size, at_fail *fail)
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
