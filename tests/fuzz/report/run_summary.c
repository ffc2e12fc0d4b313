/* Fuzz target: any bytes as an event log, added to a summary twice, the second time as the log of
 * a resumed run. */
#include "report/summary/run_summary.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/log/eventlog.h"
#include "record/runinfo.h"

enum { WORKERS_MAX = 64 }; /* more workers only cost memory */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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

static void add_log(const char *path, at_run_summary **summary)
{
    at_eventlog     *log = NULL;
    const at_record *record;
    at_fail          fail = {0};
    if (at_eventlog_open(path, &log, &fail)) return;
    const char *info = at_eventlog_info(log);
    bool        fits = at_run_info_workers(info) <= WORKERS_MAX;
    if (fits && !*summary)
        fits = !at_run_summary_new(info, &(at_run_summary_options){.points = 16}, summary, &fail);
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
    char            path[64];
    at_run_summary *summary = NULL;
    int             fd = memfd_create("input", 0);
    assert(fd >= 0);
    assert(write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    add_log(path, &summary);
    if (summary) add_log(path, &summary);
    at_run_summary_free(summary);
    close(fd);
    return 0;
}
