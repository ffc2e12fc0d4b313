/* Fuzz target: any bytes as an event log, told as a story twice, the second time as a resumed run's
 * log. */
#include "report/story.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/eventlog.h"
#include "record/runinfo.h"

enum { WORKERS_MAX = 4096 }; /* what one more costs is only memory */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_json(at_story *story, uint64_t since)
{
    json_t *json = at_story_json(story, since);
    assert(json);
    char *text = json_dumps(json, AT_STORY_JSON_FLAGS);
    assert(text);
    free(text);
    json_decref(json);
}

static void tell(const char *path, at_story **story)
{
    at_eventlog     *log = NULL;
    const at_record *record;
    at_fail          fail = {0};
    if (at_eventlog_open(path, &log, &fail)) return;
    const char *info = at_eventlog_info(log);
    bool        fits = at_run_info_workers(info) <= WORKERS_MAX;
    if (fits && !*story)
        fits = !at_story_new(info, &(at_story_options){.points = 16}, story, &fail);
    else if (fits)
        fits = at_story_resume(*story, info);
    uint64_t half = 0, count = 0;
    while (fits && !at_eventlog_next(log, &record, &fail) && record) {
        at_story_put(*story, record);
        if (++count != 20) continue;
        check_json(*story, 0);
        half = at_story_serial(*story);
    }
    if (fits) check_json(*story, half);
    at_eventlog_close(log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char      path[64];
    at_story *story = NULL;
    int       fd = memfd_create("input", 0);
    assert(fd >= 0);
    assert(write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    tell(path, &story);
    if (story) tell(path, &story);
    at_story_free(story);
    close(fd);
    return 0;
}
