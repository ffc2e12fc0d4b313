#include "cli/verbs/whatif.h"

#include <assert.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/options/inherit_options.h"
#include "report/summary/pace_from_run.h"

enum { LAW_SIZE = 1 << 17 };

/* Slowness is measured, not taken over; the rest is about this run, not that one. */
static const char *const not_taken[] = {
    "straggler", "straggler-scale", "sample-time", "latency",   "world",      "run",
    "json",      "quiet",           "record",      "bandwidth", "comm-delay", "faults"};

static at_err set(at_parsed *parsed, const char *name, const char *value, at_fail *fail)
{
    return at_options_set(parsed, AT_FOR_TRAIN, name, value, fail);
}

static double fastest_of(const at_run_pace *m)
{
    double fastest = m->sample_ns[0];
    for (uint32_t i = 1; i < m->workers; i++)
        if (m->sample_ns[i] < fastest) fastest = m->sample_ns[i];
    assert(fastest > 0);
    return fastest;
}

/* The fastest worker's time per sample, everybody's factor to it, and the sleeps as they were. */
static at_err set_slowness(at_parsed *parsed, const at_run_pace *m, const char *trace,
                           at_fail *fail)
{
    char   sample_time[32], latency[32];
    char  *law = malloc(LAW_SIZE);
    double fastest = fastest_of(m);
    if (!law) return at_fail_memory(fail);
    at_text text = at_text_in(law, LAW_SIZE);
    at_text_add(&text, "trace:%s+speed:", trace);
    for (uint32_t i = 0; i < m->workers; i++)
        at_text_add(&text, "%s%.6g", i ? "," : "", m->sample_ns[i] / fastest);
    snprintf(sample_time, sizeof sample_time, "%.0fns", fastest < 1 ? 1 : fastest);
    snprintf(latency, sizeof latency, "%lldns", (long long)(m->message / 2));
    at_err err = text.full ? at_fail_set(fail, AT_ERR_USAGE, NULL, "too many workers")
                           : set(parsed, "straggler", law, fail);
    if (!err) err = set(parsed, "sample-time", sample_time, fail);
    if (!err && m->message >= 2) err = set(parsed, "latency", latency, fail);
    free(law);
    return err;
}

at_err at_whatif_apply(at_parsed *parsed, const char *folder, at_fail *fail)
{
    const char *from = parsed->settings.from;
    char        trace[4096], workers[16];
    at_run_pace measured;
    assert(from);
    AT_TRY(at_inherit_run_options(parsed, from, not_taken, sizeof not_taken / sizeof *not_taken,
                                  fail));
    AT_TRY(at_run_pace_read(from, &measured, fail));
    snprintf(trace, sizeof trace, "%s/pace.trace", folder);
    snprintf(workers, sizeof workers, "%u", measured.workers);
    at_err err = set(parsed, "workers", workers, fail);
    if (!err) err = at_file_make_folder(folder, fail);
    if (!err) err = at_run_pace_write_trace(&measured, trace, fail);
    if (!err) err = set_slowness(parsed, &measured, trace, fail);
    at_run_pace_deinit(&measured);
    return err;
}
