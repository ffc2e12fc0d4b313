#include "record/log/thinner.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "record/log/append_file.h"
#include "record/log/eventlog.h"

enum {
    STEPS = 16,      /* complete steps in a sample */
    PARTS = 64,      /* no sample is larger than the limit / PARTS */
    SHARE = 24,      /* samples get limit / SHARE each time the age of the run grows e-fold */
    RARE_SHARE = 64, /* evaluations and usage the same for this share */

    /* Bytes in log and tables, generously. */
    USAGE_SIZE = 200,
    EVALUATION_SIZE = 256,

    RECORD_SIZE = 64,     /* before enough of them were written, */
    RECORDS_FIRST = 1024, /* which is this many */
    NOTE_SIZE = 320
};

struct at_thinner {
    at_thinner_options options;
    uint64_t           before;  /* bytes in the files when it was opened */
    uint64_t           kept;    /* records passed on to be written */
    uint64_t           skipped; /* records left out since the last TOTALS */
    bool               gap;     /* TOTALS are due after START */

    bool     thins;  /* half of the limit is used */
    bool     keeps;  /* the open step is written */
    bool     marked; /* totals tell where the first records are missing */
    uint32_t left;   /* steps of the sample that are still to come */
    at_ns    sample_at;
    uint64_t sample_kept; /* `kept` when it began */
    size_t   totals_size; /* of its TOTALS */

    at_ns evaluated_at, measured_at; /* of the last ones that were written */
    bool  keeps_measured;            /* of this round through all processes and connections */
    bool  ended;                     /* little follows */

    char note[NOTE_SIZE]; /* "": nothing to say */
    bool noted;
};

/* ---- size of the files ----------------------------------------------------------------------- */

static uint64_t size_of(const char *folder, const char *name)
{
    char        path[4096];
    struct stat info;
    int         size = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (size < 0 || (size_t)size >= sizeof path || lstat(path, &info)) return 0;
    return S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
}

/* Files of TensorBoard are left out: their size is bounded without us. */
static uint64_t size_before(const char *folder)
{
    static const char *const tables[] = {"master_stats.csv", "collect_stats.csv",
                                         "worker_stats.csv", "resource_stats.csv",
                                         "link_stats.csv"};
    uint64_t                 sum = 0, part = 1;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) sum += size_of(folder, tables[i]);
    for (uint32_t number = 1; part > 0; number++) {
        char name[AT_EVENTLOG_NAME_SIZE];
        at_eventlog_name(name, number);
        part = size_of(folder, name);
        sum += part;
    }
    return sum;
}

static uint64_t bytes_used(const at_thinner *t)
{
    return t->before + at_append_file_written();
}

/* What a record takes on average. Files have buffers, so what was written lags behind a little. */
static double record_size(const at_thinner *t)
{
    double written = (double)at_append_file_written();
    return (written + RECORD_SIZE * RECORDS_FIRST) / (double)(t->kept + RECORDS_FIRST);
}

/* ---- what is kept ---------------------------------------------------------------------------- */

/* How long to wait at this age of the run after something of `size` bytes, so that the share
 * suffices for one e-folding of the age. */
static at_ns spacing(const at_thinner *t, at_ns at, double size, int share)
{
    assert(t->options.limit > 0);
    double wait = (double)at * size * share / (double)t->options.limit;
    return wait < (double)AT_NEVER / 2 ? (at_ns)wait : AT_NEVER / 2;
}

static bool is_full(const at_thinner *t)
{
    return bytes_used(t) >= t->options.limit;
}

/* Bytes of a round through all processes and connections. */
static double round_size(const at_thinner *t)
{
    const at_run_info *info = t->options.tally->info;
    double             workers = info->plan->workers_max;
    assert(workers >= 1);
    return USAGE_SIZE * (2 + workers + (info->links ? workers : 0));
}

/* Usage and connections. They are measured while no step ends, too: a hub may wait for workers for
 * days. The hub is measured first in every round, and what holds for it holds for the others. Where
 * nothing is sampled, connections are only recorded when a worker joins or goes. */
static bool keeps_measured(at_thinner *t, const at_record *record)
{
    bool is_first = record->kind == AT_REC_USAGE && record->node == 0;
    if (t->ended || !t->options.tally->info->usage) return true;
    if (!is_first) return t->keeps_measured;
    at_ns wait = spacing(t, record->at, round_size(t), RARE_SHARE);
    bool  is_due = !is_full(t) && record->at - t->measured_at >= wait;
    t->keeps_measured = is_due || bytes_used(t) < t->options.limit / 2;
    if (t->keeps_measured) t->measured_at = record->at;
    return t->keeps_measured;
}

/* Before the first gap all of them: what the hub does next may depend on them, and a replay follows
 * the log up to the gap. */
static bool keeps_evaluation(at_thinner *t, const at_record *record)
{
    at_ns wait = spacing(t, record->at, EVALUATION_SIZE, RARE_SHARE);
    bool  rare = is_full(t) || record->at - t->evaluated_at < wait;
    if (t->marked && rare && !record->final) return false;
    t->evaluated_at = record->at;
    return true;
}

static bool keeps_event(at_thinner *t, const at_record *record)
{
    switch (record->event->kind) {
    case AT_EV_START:
    case AT_EV_JOINED:
    case AT_EV_LOST:
    case AT_EV_STOP: return true;
    case AT_EV_EVALUATED: return keeps_evaluation(t, record);
    case AT_EV_MESSAGE:
    case AT_EV_APPLIED:
    case AT_EV_TIMER: return t->keeps;
    }
    assert(!"unreachable");
    return true;
}

static bool keeps_action(const at_thinner *t, const at_action *action)
{
    switch (action->kind) {
    case AT_ACT_SAVE:
    case AT_ACT_EVICT:
    case AT_ACT_NOTICE:
    case AT_ACT_FINISH: return true;
    case AT_ACT_SEND: return t->keeps || action->as.order.leave;
    case AT_ACT_TIMER:
    case AT_ACT_ADD:
    case AT_ACT_APPLY:
    case AT_ACT_DROP:
    case AT_ACT_EVALUATE: return t->keeps;
    }
    assert(!"unreachable");
    return true;
}

static bool keeps(at_thinner *t, const at_record *record)
{
    bool is_measured = record->kind == AT_REC_USAGE || record->kind == AT_REC_LINK;
    if (is_measured) return keeps_measured(t, record);
    if (!t->thins || record->kind == AT_REC_TEXT) return true;
    if (record->kind == AT_REC_EVENT) return keeps_event(t, record);
    return keeps_action(t, record->action);
}

/* ---- totals ---------------------------------------------------------------------------------- */

static char *totals_text(const at_thinner *t, at_ns at, bool skips)
{
    json_t *totals = at_tally_json(t->options.tally, at);
    json_object_set_new(totals, "skipped", json_integer((json_int_t)t->skipped));
    json_object_set_new(totals, "skips", json_boolean(skips));
    if (t->options.tally->info->plan->workers_max > AT_WORKERS_LISTED)
        json_object_del(totals, "workers");
    char *text = json_dumps(totals, JSON_COMPACT);
    json_decref(totals);
    return text;
}

/* Without memory for them, they come before the next sample. */
static bool put_totals(at_thinner *t, at_record record, bool skips, at_thinner_out *out, void *self)
{
    char *text = totals_text(t, record.at, skips);
    if (!text) return false;
    record.kind = AT_REC_TOTALS;
    record.text = text;
    out(self, &record, true);
    t->totals_size = strlen(text);
    t->skipped = 0;
    t->gap = false;
    free(text);
    return true;
}

/* ---- samples of steps ------------------------------------------------------------------------ */

static void start_thinning(at_thinner *t, at_ns at, uint64_t step)
{
    assert(!t->thins && !t->noted);
    t->thins = true;
    t->keeps = false;
    t->evaluated_at = t->sample_at = at;
    t->sample_kept = t->kept;
    snprintf(t->note, sizeof t->note,
             "tables and event log have %.3g MB: after step %llu only samples of the steps are "
             "recorded, and exact totals (--record-limit)",
             (double)bytes_used(t) / 1e6, (unsigned long long)step);
}

static double sample_size(const at_thinner *t)
{
    return record_size(t) * (double)(t->kept - t->sample_kept) + (double)t->totals_size;
}

static bool is_sample_over(at_thinner *t)
{
    assert(t->keeps && t->left > 0);
    return --t->left == 0 || sample_size(t) * PARTS >= (double)t->options.limit;
}

/* After an APPLY: is the next step kept? */
static void begin_step(at_thinner *t, const at_record *record, at_thinner_out *out, void *self)
{
    uint64_t step = record->action->as.apply.step;
    if (!t->thins && bytes_used(t) < t->options.limit / 2) return;
    if (!t->thins) start_thinning(t, record->at, step);
    if (t->keeps && !is_sample_over(t)) return;
    at_ns wait = spacing(t, record->at, sample_size(t), SHARE);
    bool  starts = !is_full(t) && record->at - t->sample_at >= wait;
    bool  is_due = starts ? t->skipped > 0 : !t->marked;
    t->keeps = false;
    t->marked = t->marked || !starts;
    at_record here = {.at = record->at, .version = step};
    if (is_due && !put_totals(t, here, !starts, out, self)) return;
    if (!starts) return;
    t->keeps = true;
    t->left = STEPS;
    t->sample_at = record->at;
    t->sample_kept = t->kept;
}

/* ---- the stream ------------------------------------------------------------------------------ */

at_thinner *at_thinner_new(const at_thinner_options *options)
{
    assert(options->folder && options->tally);
    assert(options->limit > 0);
    at_thinner *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->options = *options;
    t->before = size_before(options->folder);
    t->gap = options->gap || t->before >= options->limit / 2;
    t->keeps_measured = true;
    return t;
}

void at_thinner_free(at_thinner *thinner)
{
    free(thinner);
}

static bool is_action(const at_record *record, at_action_kind kind)
{
    return record->kind == AT_REC_ACTION && record->action->kind == kind;
}

void at_thinner_put(at_thinner *t, const at_record *record, at_thinner_out *out, void *self)
{
    assert(record->kind != AT_REC_TOTALS);
    bool      kept = keeps(t, record);
    bool      is_start = record->kind == AT_REC_EVENT && record->event->kind == AT_EV_START;
    at_record here = {.at = record->at, .version = record->version};
    if (t->skipped > 0 && is_action(record, AT_ACT_FINISH)) put_totals(t, here, false, out, self);
    if (kept)
        t->kept++;
    else
        t->skipped++;
    out(self, record, kept);
    if (is_action(record, AT_ACT_FINISH)) t->thins = false, t->ended = true;
    if (is_start && t->gap) put_totals(t, here, false, out, self);
    if (is_action(record, AT_ACT_APPLY)) begin_step(t, record, out, self);
}

const char *at_thinner_note(at_thinner *thinner)
{
    if (thinner->noted || !thinner->note[0]) return NULL;
    thinner->noted = true;
    return thinner->note;
}
