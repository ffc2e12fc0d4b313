/* Fuzz target: any bytes as an event log, told as a summary twice, the second time as a resumed
 * run's log. */
#include "report/summary/run_summary.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/log/eventlog.h"
#include "record/runinfo.h"

enum { WORKERS_MAX = 4096 }; /* what one more costs is only memory */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_json(at_run_summary *summary, uint64_t since)
{
    json_t *json = at_run_summary_json(summary, since);
    assert(json);
    char *text = json_dumps(json, AT_RUN_SUMMARY_JSON_FLAGS);
    assert(text);
    free(text);
    json_decref(json);
}

static void tell(const char *path, at_run_summary **summary)
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
    uint64_t half = 0, count = 0;
    while (fits && !at_eventlog_next(log, &record, &fail) && record) {
        at_run_summary_put(*summary, record);
        if (++count != 20) continue;
        check_json(*summary, 0);
        half = at_run_summary_serial(*summary);
    }
    if (fits) check_json(*summary, half);
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
    tell(path, &summary);
    if (summary) tell(path, &summary);
    at_run_summary_free(summary);
    close(fd);
    return 0;
}
