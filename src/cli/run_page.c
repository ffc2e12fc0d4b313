#include "cli/run_page.h"

#include <assert.h>
#include <stdio.h>

#include "base/text.h"
#include "cli/loading_progress.h"
#include "cli/output.h"
#include "cli/resource_table.h"
#include "report/page/html.h"
#include "report/summary/json_value.h"
#include "report/summary/run_summary.h"

enum { PATH_SIZE = 4096 + 32 };

/* What the page holds of each run. */
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

/* The summary of a run as JSON; null if it recorded nothing to summarize. */
static at_err summary_of(const at_page_run *run, const at_run_summary_options *options,
                         json_t **json, at_fail *fail)
{
    at_run_summary *summary = NULL;
    at_fail         failed = {0};
    *json = NULL;
    at_err err = at_run_summary_read(run->folder, options, &summary, &failed);
    if (err && err != AT_ERR_MISSING) return *fail = failed, err;
    if (summary && *at_run_summary_note(summary))
        at_say("anytime: note: %s\n", at_run_summary_note(summary));
    else if (!summary && failed.text[0])
        fprintf(stderr, "anytime: note: %s\n", failed.text);
    *json = summary ? at_run_summary_json(summary, 0) : json_null();
    at_run_summary_free(summary);
    if (*json) return AT_OK;
    return at_fail_memory_for(fail, "for the page");
}

static at_err add_run(json_t *runs, const at_page_run *run, const at_run_summary_options *options,
                      at_fail *fail)
{
    json_t *summary;
    AT_TRY(summary_of(run, options, &summary, fail));
    json_t *result = json_copy(run->result);
    if (!json_is_null(summary)) json_object_del(result, "worker"); /* the summary has it */
    json_t *one = json_pack("{s:o, s:o}", "story", summary, "result", result);
    json_object_set_new(one, "label", at_json_text(run->label));
    json_object_set_new(one, "folder", at_json_text(run->folder));
    json_object_set_new(one, "resources", at_resources_of(run->result));
    json_array_append_new(runs, one);
    return AT_OK;
}

static at_err add_runs(json_t *all, const at_page_run *runs, uint32_t count, at_loading_line *line,
                       at_fail *fail)
{
    at_run_summary_options options = share_room(count);
    for (uint32_t i = 0; i < count; i++) {
        line->name = runs[i].folder;
        at_loading_line_follow_logs(line, i, count);
        AT_TRY(add_run(all, &runs[i], &options, fail));
    }
    return AT_OK;
}

at_err at_run_page_write(const char *folder, const char *title, const at_page_run *runs,
                         uint32_t count, bool quiet, at_fail *fail)
{
    char            path[PATH_SIZE];
    at_loading_line line;
    json_t         *all = json_array(), *data = json_pack("{s:o}", "runs", all);
    at_text         text = at_text_in(path, sizeof path);
    at_text_add(&text, "%s/" AT_PAGE_NAME, folder);
    assert(!text.full); /* the folder could be created */
    at_loading_line_init(&line, folder, quiet);
    at_err err = add_runs(all, runs, count, &line, fail);
    at_loading_line_end(&line);
    if (!err) err = at_html_write(path, title, data, fail);
    json_decref(data);
    return err;
}
