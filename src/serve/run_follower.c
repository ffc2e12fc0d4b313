#include "serve/run_follower.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "record/log/eventlog.h"
#include "record/runinfo.h"

enum {
    PATH_SIZE = 4096,
    RECORDS_PER_POLL = 100000, /* a few tens of milliseconds, during which clients wait */
    RESULT_SIZE_MAX = 64 << 20
};

static const at_ns csv_interval = AT_SEC(5);

const char *const at_run_follower_state_name[AT_RUN_FOLLOWER_STATES] = {
#define X(id, text) [AT_RUN_FOLLOWER_##id] = text,
    AT_RUN_FOLLOWER_MAP(X)
#undef X
};

struct at_run_follower {
    char                 *folder, *label;
    at_run_follower_state state;
    char                  message[sizeof((at_fail *)0)->text];
    uint64_t              revision;
    at_ns                 changed_at;

    uint32_t     part; /* of the log: 1 for events.bin, 2 for events-2.bin, .. */
    at_eventlog *log;
    int64_t      rejected_size; /* of a log that could not be opened; retried when it has grown */
    at_run_summary *summary;
    uint64_t        edition; /* of the summary */
    uint32_t        workers; /* minimum capacity of the summary; 0: workers of the first log */

    int64_t csv_size;    /* of a run without a log, when its CSV files were last read */
    bool    csv_is_last; /* they were read after the end of the run */

    json_t         *result;
    struct timespec result_at; /* modification time of the file */
};

/* ---- helpers -------------------------------------------------------------------------------- */

static char *last_part(const char *folder)
{
    assert(folder);
    size_t end = strlen(folder);
    while (end > 1 && folder[end - 1] == '/') end--;
    size_t begin = end;
    while (begin > 0 && folder[begin - 1] != '/') begin--;
    return strndup(folder + begin, end - begin);
}

at_run_follower *at_run_follower_new(const char *folder)
{
    assert(folder);
    at_run_follower *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->folder = strdup(folder);
    f->label = last_part(folder);
    if (!f->folder || !f->label) {
        at_run_follower_free(f);
        return NULL;
    }
    f->part = 1;
    snprintf(f->message, sizeof f->message, "the run folder does not exist yet");
    return f;
}

void at_run_follower_free(at_run_follower *f)
{
    if (!f) return;
    at_eventlog_close(f->log);
    at_run_summary_free(f->summary);
    json_decref(f->result);
    free(f->label);
    free(f->folder);
    free(f);
}

static void set_state(at_run_follower *f, at_run_follower_state state, const char *message)
{
    assert(state < AT_RUN_FOLLOWER_STATES);
    if (f->state == state && strcmp(f->message, message) == 0) return;
    f->state = state;
    snprintf(f->message, sizeof f->message, "%s", message);
    f->revision++;
}

static bool find(const at_run_follower *f, const char *name, struct stat *about,
                 char path[PATH_SIZE])
{
    assert(name);
    int length = snprintf(path, PATH_SIZE, "%s/%s", f->folder, name);
    return length < PATH_SIZE && stat(path, about) == 0;
}

static bool find_part(const at_run_follower *f, uint32_t part, struct stat *about,
                      char path[PATH_SIZE])
{
    char name[32] = "events.bin";
    assert(part >= 1);
    if (part > 1) snprintf(name, sizeof name, "events-%u.bin", part);
    return find(f, name, about, path) && about->st_size > 0;
}

/* ---- result.json ---------------------------------------------------------------------------- */

/* Rereads the file when it has changed, as it does when a resumed run ends. */
static void read_result(at_run_follower *f)
{
    char           path[PATH_SIZE];
    struct stat    about;
    unsigned char *bytes;
    size_t         size;
    at_fail        ignored;
    if (!find(f, "result.json", &about, path)) return;
    if (memcmp(&about.st_mtim, &f->result_at, sizeof f->result_at) == 0) return;
    f->result_at = about.st_mtim;
    if (at_file_read(path, RESULT_SIZE_MAX, &bytes, &size, &ignored)) return;
    json_t *result = json_loadb((const char *)bytes, size, 0, NULL);
    free(bytes);
    if (!json_is_object(result)) {
        json_decref(result);
        return;
    }
    json_decref(f->result);
    f->result = result;
    f->revision++;
}

/* ---- the log -------------------------------------------------------------------------------- */

/* A new summary is built from the first log. */
static void start_over(at_run_follower *f)
{
    assert(f->log && f->summary);
    at_eventlog_close(f->log);
    at_run_summary_free(f->summary);
    f->log = NULL;
    f->summary = NULL;
    f->part = 1;
}

static at_err begin_summary(at_run_follower *f, at_ns now, at_fail *fail)
{
    at_run_summary_options options = {.workers = f->workers};
    assert(!f->summary);
    f->edition = (uint64_t)now;
    return at_run_summary_new(at_eventlog_info(f->log), &options, &f->summary, fail);
}

/* An incomplete header may be complete a moment later. */
static void open_log(at_run_follower *f, const char *path, int64_t size, at_ns now)
{
    at_fail fail = {0};
    assert(!f->log);
    if (size == f->rejected_size) return;
    at_err err = at_eventlog_open(path, &f->log, &fail);
    if (!err && f->summary && !at_run_summary_resume(f->summary, at_eventlog_info(f->log))) {
        f->workers = at_run_info_workers(at_eventlog_info(f->log)); /* it has room for fewer */
        start_over(f);
        return;
    }
    if (!err && !f->summary) err = begin_summary(f, now, &fail);
    f->rejected_size = err ? size : 0;
    if (!err) {
        set_state(f, AT_RUN_FOLLOWER_RUNNING, "the run is in progress");
        return;
    }
    at_eventlog_close(f->log);
    f->log = NULL;
    set_state(f, AT_RUN_FOLLOWER_BROKEN, fail.text);
}

/* CSV files are read from the start each time, so not too often. */
static void read_csv_files(at_run_follower *f, at_ns now)
{
    assert(!f->log);
    char            path[PATH_SIZE];
    struct stat     about;
    at_run_summary *summary;
    at_fail         ignored;
    bool            has_ended = f->result && !f->csv_is_last;
    if (!find(f, "collect_stats.csv", &about, path) || about.st_size == f->csv_size) return;
    if (!has_ended && f->changed_at && now - f->changed_at < csv_interval) return;
    if (at_run_summary_read(f->folder, NULL, &summary, &ignored)) return;
    at_run_summary_free(f->summary);
    f->summary = summary;
    f->edition = (uint64_t)now;
    f->csv_size = about.st_size;
    f->csv_is_last = f->result != NULL;
    f->changed_at = now;
    f->revision++;
}

static void without_log(at_run_follower *f, at_ns now)
{
    read_csv_files(f, now);
    set_state(f, AT_RUN_FOLLOWER_UNRECORDED,
              f->summary  ? "this run has no event log; only the data of its CSV files are shown"
              : f->result ? "this run has no event log and no CSV files; only its result is shown"
                          : "this run has no event log; its result is shown when it has ended "
                            "(use --record full to see it live)");
}

static void look_for_log(at_run_follower *f, at_ns now)
{
    assert(!f->log);
    char        path[PATH_SIZE];
    struct stat about;
    if (find_part(f, f->part, &about, path))
        open_log(f, path, about.st_size, now);
    else if (find(f, "workers.json", &about, path) && !find(f, "events.bin", &about, path))
        without_log(f, now);
    else if (stat(f->folder, &about) == 0)
        set_state(f, AT_RUN_FOLLOWER_STARTING, "the run is starting");
}

static void follow_end(at_run_follower *f, const at_record *record)
{
    assert(record);
    if (record->kind == AT_REC_ACTION && record->action->kind == AT_ACT_FINISH)
        set_state(f, AT_RUN_FOLLOWER_ENDED, "the run has ended");
}

/* Adds new records to the summary; true when there may be more. */
static bool read_log(at_run_follower *f, at_ns now)
{
    assert(f->log);
    assert(f->summary);
    at_fail          fail = {0};
    const at_record *record = NULL;
    at_err           err = AT_OK;
    int              count = 0;
    for (; count < RECORDS_PER_POLL; count++) {
        err = at_eventlog_next(f->log, &record, &fail);
        if (err || !record) break;
        at_run_summary_put(f->summary, record);
        follow_end(f, record);
    }
    if (count > 0) {
        f->revision++;
        f->changed_at = now;
    }
    if (!err && !record && at_eventlog_damaged(f->log)) {
        at_eventlog_torn(f->log, fail.text, sizeof fail.text);
        err = AT_ERR_FORMAT;
    }
    if (err) {
        at_eventlog_close(f->log);
        f->log = NULL;
        f->part = UINT32_MAX; /* nothing after the damage can be trusted */
        set_state(f, AT_RUN_FOLLOWER_BROKEN, fail.text);
    }
    return count == RECORDS_PER_POLL;
}

/* Switches to the next log if there is one; true when there is something to read. */
static bool look_for_next(at_run_follower *f, at_ns now)
{
    char        path[PATH_SIZE];
    struct stat about;
    assert(f->log);
    if (!find_part(f, f->part + 1, &about, path)) return false;
    at_eventlog_close(f->log);
    f->log = NULL;
    f->part++;
    open_log(f, path, about.st_size, now);
    return f->log || !f->summary;
}

/* The run was resumed from before this log, or another run has its name. A run whose folder is gone
 * stays as it was. */
static bool is_replaced(const at_run_follower *f)
{
    char        path[PATH_SIZE];
    struct stat about;
    return at_eventlog_is_removed(f->log) && find_part(f, 1, &about, path);
}

bool at_run_follower_poll(at_run_follower *f, at_ns now)
{
    assert(f);
    if (f->part == UINT32_MAX) return false;
    if (!f->log) look_for_log(f, now);
    bool more = f->log && read_log(f, now);
    if (f->log && !more && is_replaced(f)) {
        start_over(f);
        more = true;
    }
    if (f->log && !more) more = look_for_next(f, now);
    read_result(f);
    return more;
}

/* ---- accessors ------------------------------------------------------------------------------ */

at_run_follower_state at_run_follower_state_of(const at_run_follower *f)
{
    assert(f->state < AT_RUN_FOLLOWER_STATES);
    return f->state;
}

const char *at_run_follower_message(const at_run_follower *f)
{
    return f->message;
}

const char *at_run_follower_label(const at_run_follower *f)
{
    return f->label;
}

const char *at_run_follower_folder(const at_run_follower *f)
{
    return f->folder;
}

uint64_t at_run_follower_revision(const at_run_follower *f)
{
    return f->revision;
}

at_ns at_run_follower_changed_at(const at_run_follower *f)
{
    return f->changed_at;
}

at_run_summary *at_run_follower_summary(const at_run_follower *f)
{
    return f->summary;
}

uint64_t at_run_follower_edition(const at_run_follower *f)
{
    return f->edition;
}

const json_t *at_run_follower_result(const at_run_follower *f)
{
    return f->result;
}
