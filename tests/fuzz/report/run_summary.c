/* Fuzz target: any bytes as an event log, added to a summary twice, the second time as the log of
 * a resumed run. */
#include "report/summary/run_summary.h"

#include "../event_log.h"
#include "record/log/eventlog.h"
#include "record/runinfo.h"

enum { WORKERS_MAX = 64 }; /* more workers only cost memory */

static uint64_t check_json(at_run_summary *summary, uint64_t since)
{
    json_t *json = at_run_summary_json(summary, since);
    assert(json);
    char *text = json_dumps(json, AT_RUN_SUMMARY_JSON_FLAGS);
    assert(text);
    uint64_t serial = (uint64_t)json_integer_value(json_object_get(json, "serial"));
    free(text);
    json_decref(json);
    return serial;
}

/* Large summaries only take time. */
static const at_run_summary_options small = {.points = 16, .cells = 1024, .lines = 16};

static void add_log(const char *path, at_run_summary **summary)
{
    at_eventlog     *log = NULL;
    const at_record *record;
    at_fail          fail = {0};
    if (at_eventlog_open(path, &log, &fail)) return;
    const char *info = at_eventlog_info(log);
    bool        fits = at_run_info_workers(info) <= WORKERS_MAX;
    if (fits && !*summary)
        fits = !at_run_summary_new(info, &small, summary, &fail);
    else if (fits)
        fits = at_run_summary_resume(*summary, info);
    uint64_t serial = 0, count = 0;
    while (fits && !at_eventlog_next(log, &record, &fail) && record) {
        at_run_summary_put(*summary, record);
        if (++count != 20) continue;
        serial = check_json(*summary, 0);
    }
    if (fits) check_json(*summary, serial);
    at_eventlog_close(log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    at_run_summary *summary = NULL;
    const char     *path = fuzz_log(data, size);
    add_log(path, &summary);
    if (summary) add_log(path, &summary);
    at_run_summary_free(summary);
    return 0;
}
