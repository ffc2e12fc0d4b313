#include "cli/traces.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "report/trace/trace.h"

enum { PATH_SIZE = 4096 + 300 };

static at_err path_in(char path[PATH_SIZE], const char *folder, const char *name, at_fail *fail)
{
    at_text text = at_text_in(path, PATH_SIZE);
    at_text_add(&text, "%s/%s", folder, name);
    if (!text.full) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, NULL, "%s: the folder's name is too long", folder);
}

/* Has the run certainly more events than a trace that it leaves by itself? Then nobody needs to
 * write a hundred thousand of them to find out. */
static bool is_too_long(const json_t *result)
{
    enum { EVENTS_OF_ROUND = 4 }; /* at least: wait, compute, send and the arrow to its step */
    const json_t *workers = json_object_get(result, "worker");
    json_int_t    rounds = 0;
    for (size_t i = 0; i < json_array_size(workers); i++)
        rounds += json_integer_value(json_object_get(json_array_get(workers, i), "rounds"));
    return rounds > AT_TRACE_EVENTS_SMALL / EVENTS_OF_ROUND;
}

at_err at_traces_leave(const at_settings *settings, const char *folder, const json_t *result,
                       at_fail *fail)
{
    char             path[PATH_SIZE];
    at_trace_options options = {.events_max = AT_TRACE_EVENTS_SMALL, .whole = true};
    assert(folder);
    if (strcmp(settings->record, "full") != 0 || is_too_long(result)) return AT_OK;
    AT_TRY(path_in(path, folder, "trace.json", fail));
    return at_trace_write(folder, path, &options, NULL, fail);
}

static void tell_rest(const char *run, const at_trace_counts *told)
{
    char until[32];
    if (told->omitted == 0) return;
    at_text_show_duration(until, sizeof until, told->cut_at);
    fprintf(stderr,
            "%s: its timeline ends at %s; %llu more events are left out (--trace-events, "
            "--trace-from)\n",
            run, until, (unsigned long long)told->omitted);
}

at_err at_traces_report(const at_settings *settings, const char *run, const char *path,
                        at_fail *fail)
{
    at_fail          here = {0};
    at_trace_counts  told = {0};
    at_trace_options options = {.events_max = (uint64_t)settings->trace_events,
                                .from = settings->trace_from};
    assert(settings->trace_events >= 0);
    if (settings->trace_events == 0) return AT_OK;
    at_err err = at_trace_write(run, path, &options, &told, &here);
    if (err == AT_ERR_MISSING) return AT_OK;
    if (err) return *fail = here, err;
    tell_rest(run, &told);
    return AT_OK;
}
