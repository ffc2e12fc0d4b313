/* The files of a report beside its pictures: the page, the table for papers, the traces. */
#include <assert.h>
#include <stdio.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/traces.h"
#include "cli/verbs/report.h"
#include "report/page/html.h"
#include "report/summary/json_value.h"
#include "report/summary/run_summary.h"
#include "report/summary/table.h"

static at_err path_in(const at_report_set *set, const char *name, char *path, size_t size,
                      at_fail *fail)
{
    at_text text = at_text_in(path, size);
    at_text_add(&text, "%s/%s", set->folder, name);
    if (!text.full) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, NULL, "%s: the folder's name is too long", set->folder);
}

/* ---- the page ------------------------------------------------------------------------------ */

/* A page of many runs has room for less of each. */
static at_run_summary_options share_room(uint32_t runs)
{
    assert(runs >= 1);
    uint32_t points = 2000 / runs;
    return (at_run_summary_options){.points = points > 1000  ? 1000
                                              : points < 200 ? 200
                                                             : points,
                                    .cells = (1u << 18) / runs,
                                    .lines = 500};
}

/* The summary of a run; null when it recorded nothing that could be told. */
static at_err story_of(const at_reported *run, const at_run_summary_options *options, json_t **json,
                       at_fail *fail)
{
    at_run_summary *summary = NULL;
    at_fail         here = {0};
    *json = NULL;
    at_err err = at_run_summary_read(run->folder, options, &summary, &here);
    if (err && err != AT_ERR_MISSING) return *fail = here, err;
    *json = summary ? at_run_summary_json(summary, 0) : json_null();
    at_run_summary_free(summary);
    if (*json) return AT_OK;
    return at_fail_memory_for(fail, "for the page");
}

static at_err add_run(json_t *runs, const at_reported *run, const at_run_summary_options *options,
                      at_fail *fail)
{
    json_t *summary;
    AT_TRY(story_of(run, options, &summary, fail));
    json_t *result = json_copy(run->result);
    if (!json_is_null(summary)) json_object_del(result, "worker"); /* the summary has it */
    json_t *one = json_pack("{s:o, s:o}", "story", summary, "result", result);
    json_object_set_new(one, "label", at_json_text(run->label));
    json_object_set_new(one, "folder", at_json_text(run->folder));
    json_array_append_new(runs, one);
    return AT_OK;
}

static at_err write_html(const at_report_set *set, at_fail *fail)
{
    char                   path[AT_COMPARE_PATH_SIZE + 16], title[AT_REPORT_TITLE_SIZE];
    at_run_summary_options options = share_room(set->count);
    json_t                *runs = json_array(), *data = json_pack("{s:o}", "runs", runs);
    at_err                 err = path_in(set, "report.html", path, sizeof path, fail);
    for (uint32_t i = 0; i < set->count && !err; i++)
        err = add_run(runs, &set->runs[i], &options, fail);
    at_report_title(set, title, sizeof title);
    if (!err) err = at_html_write(path, title, data, fail);
    json_decref(data);
    return err;
}

/* ---- the table and the traces -------------------------------------------------------------- */

static at_err write_markdown(const at_report_set *set, at_fail *fail)
{
    char path[AT_COMPARE_PATH_SIZE + 16], title[AT_REPORT_TITLE_SIZE];
    AT_TRY(path_in(set, "report.md", path, sizeof path, fail));
    at_table *table = at_report_table(set);
    FILE     *file = table ? fopen(path, "we") : NULL;
    if (!file) {
        at_table_free(table);
        return at_fail_set(fail, AT_ERR_IO, NULL, "cannot write %s", path);
    }
    at_report_title(set, title, sizeof title);
    fprintf(file, "**%s**\n\n", title);
    at_err err = at_table_print_markdown(table, file, fail);
    at_table_free(table);
    at_err closed = at_file_close(file, path, err ? NULL : fail);
    return err ? err : closed;
}

static at_err write_trace(const at_report_set *set, uint32_t index, at_fail *fail)
{
    char path[AT_COMPARE_PATH_SIZE + 32], name[32] = "trace.json";
    if (set->count > 1) snprintf(name, sizeof name, "trace-%u.json", index + 1);
    AT_TRY(path_in(set, name, path, sizeof path, fail));
    return at_traces_report(&set->parsed->settings, set->runs[index].folder, path, fail);
}

at_err at_report_write_page(const at_report_set *set, at_fail *fail)
{
    assert(set->count >= 1);
    AT_TRY(write_html(set, fail));
    AT_TRY(write_markdown(set, fail));
    for (uint32_t i = 0; i < set->count; i++) AT_TRY(write_trace(set, i, fail));
    return AT_OK;
}
