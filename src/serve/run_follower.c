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
    RECORDS_PER_POLL = 100000, /* a few hundredths of a second: clients wait meanwhile */
    RESULT_SIZE_MAX = 64 << 20
};

static const at_ns tables_every = AT_SEC(5);

const char *const at_run_follower_state_name[AT_RUN_FOLLOWER_STATES] = {
#define X(id, text) [AT_RUN_FOLLOWER_##id] = text,
    AT_RUN_FOLLOWER_MAP(X)
#undef X
};

struct at_run_follower {
    char                 *folder, *label;
    at_run_follower_state state;
    char                  word[sizeof((at_fail *)0)->text];
    uint64_t              number;
    at_ns                 heard;

    uint32_t     part; /* of the log: 1 for events.bin, 2 for events-2.bin, .. */
    at_eventlog *log;
    int64_t refused; /* size of a log that could not be opened; it is tried again when larger */
    at_run_summary *summary;
    uint64_t        edition; /* of the summary */
    uint32_t        workers; /* there is room for at least so many; 0: for those it began with */

    int64_t tables_size; /* of a run without a log, when they were last read */
    bool    tables_last; /* ... after its end */

    json_t         *result;
    struct timespec result_at; /* when the file was written that `result` is of */
};

/* ---- small things --------------------------------------------------------------------------- */

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
    at_run_follower *tail = calloc(1, sizeof *tail);
    if (!tail) return NULL;
    tail->folder = strdup(folder);
    tail->label = last_part(folder);
    if (!tail->folder || !tail->label) {
        at_run_follower_free(tail);
        return NULL;
    }
    tail->part = 1;
    snprintf(tail->word, sizeof tail->word, "the folder is not there yet");
    return tail;
}

void at_run_follower_free(at_run_follower *tail)
{
    if (!tail) return;
    at_eventlog_close(tail->log);
    at_run_summary_free(tail->summary);
    json_decref(tail->result);
    free(tail->label);
    free(tail->folder);
    free(tail);
}

static void move(at_run_follower *tail, at_run_follower_state state, const char *word)
{
    assert(state < AT_RUN_FOLLOWER_STATES);
    if (tail->state == state && strcmp(tail->word, word) == 0) return;
    tail->state = state;
    snprintf(tail->word, sizeof tail->word, "%s", word);
    tail->number++;
}

static bool find(const at_run_follower *tail, const char *name, struct stat *about,
                 char path[PATH_SIZE])
{
    assert(name);
    int length = snprintf(path, PATH_SIZE, "%s/%s", tail->folder, name);
    return length < PATH_SIZE && stat(path, about) == 0;
}

static bool find_part(const at_run_follower *tail, uint32_t part, struct stat *about,
                      char path[PATH_SIZE])
{
    char name[32] = "events.bin";
    assert(part >= 1);
    if (part > 1) snprintf(name, sizeof name, "events-%u.bin", part);
    return find(tail, name, about, path) && about->st_size > 0;
}

/* ---- result.json ---------------------------------------------------------------------------- */

/* Reads it again when it was written again, as it is when a resumed run ends. */
static void read_result(at_run_follower *tail)
{
    char           path[PATH_SIZE];
    struct stat    about;
    unsigned char *bytes;
    size_t         size;
    at_fail        ignored;
    if (!find(tail, "result.json", &about, path)) return;
    if (memcmp(&about.st_mtim, &tail->result_at, sizeof tail->result_at) == 0) return;
    tail->result_at = about.st_mtim;
    if (at_file_read(path, RESULT_SIZE_MAX, &bytes, &size, &ignored)) return;
    json_t *result = json_loadb((const char *)bytes, size, 0, NULL);
    free(bytes);
    if (!json_is_object(result)) {
        json_decref(result);
        return;
    }
    json_decref(tail->result);
    tail->result = result;
    tail->number++;
}

/* ---- the log -------------------------------------------------------------------------------- */

/* A summary has room for the workers it was begun with. When a run goes on with more, it is told
 * again from its first log. */
static void start_over(at_run_follower *tail)
{
    assert(tail->summary);
    assert(tail->part > 1);
    tail->workers = at_run_info_workers(at_eventlog_info(tail->log));
    at_eventlog_close(tail->log);
    at_run_summary_free(tail->summary);
    tail->log = NULL;
    tail->summary = NULL;
    tail->part = 1;
}

static at_err begin_story(at_run_follower *tail, at_ns now, at_fail *fail)
{
    at_run_summary_options options = {.workers = tail->workers};
    assert(!tail->summary);
    tail->edition = (uint64_t)now;
    return at_run_summary_new(at_eventlog_info(tail->log), &options, &tail->summary, fail);
}

/* A head that is cut may be whole a moment later. */
static void open_log(at_run_follower *tail, const char *path, int64_t size, at_ns now)
{
    at_fail fail = {0};
    assert(!tail->log);
    if (size == tail->refused) return;
    at_err err = at_eventlog_open(path, &tail->log, &fail);
    if (!err) at_eventlog_follow(tail->log);
    if (!err && tail->summary &&
        !at_run_summary_resume(tail->summary, at_eventlog_info(tail->log))) {
        start_over(tail);
        return;
    }
    if (!err && !tail->summary) err = begin_story(tail, now, &fail);
    tail->refused = err ? size : 0;
    if (!err) {
        move(tail, AT_RUN_FOLLOWER_RUNNING, "the run goes on");
        return;
    }
    at_eventlog_close(tail->log);
    tail->log = NULL;
    move(tail, AT_RUN_FOLLOWER_BROKEN, fail.text);
}

/* Tables are read from the start each time, so not too often. */
static void read_tables(at_run_follower *tail, at_ns now)
{
    assert(!tail->log);
    char            path[PATH_SIZE];
    struct stat     about;
    at_run_summary *summary;
    at_fail         ignored;
    bool            is_over = tail->result && !tail->tables_last;
    if (!find(tail, "collect_stats.csv", &about, path) || about.st_size == tail->tables_size)
        return;
    if (!is_over && tail->heard && now - tail->heard < tables_every) return;
    if (at_run_summary_read(tail->folder, NULL, &summary, &ignored)) return;
    at_run_summary_free(tail->summary);
    tail->summary = summary;
    tail->edition = (uint64_t)now;
    tail->tables_size = about.st_size;
    tail->tables_last = tail->result != NULL;
    tail->heard = now;
    tail->number++;
}

static void without_log(at_run_follower *tail, at_ns now)
{
    read_tables(tail, now);
    move(tail, AT_RUN_FOLLOWER_UNRECORDED,
         tail->summary  ? "this run keeps no event log: shown is what its tables tell"
         : tail->result ? "this run kept no event log and no tables: only its result is known"
                        : "this run keeps no event log; its result is shown when it has ended "
                          "(--record full shows it live)");
}

static void look_for_log(at_run_follower *tail, at_ns now)
{
    assert(!tail->log);
    char        path[PATH_SIZE];
    struct stat about;
    if (find_part(tail, tail->part, &about, path))
        open_log(tail, path, about.st_size, now);
    else if (find(tail, "workers.json", &about, path) && !find(tail, "events.bin", &about, path))
        without_log(tail, now);
    else if (stat(tail->folder, &about) == 0)
        move(tail, AT_RUN_FOLLOWER_STARTING, "the run starts");
}

static void follow_end(at_run_follower *tail, const at_record *record)
{
    assert(record);
    if (record->kind == AT_REC_ACTION && record->action->kind == AT_ACT_FINISH)
        move(tail, AT_RUN_FOLLOWER_ENDED, "the run has ended");
}

/* Shows records to the summary; true when there may be more. */
static bool read_log(at_run_follower *tail, at_ns now)
{
    assert(tail->log);
    assert(tail->summary);
    at_fail          fail = {0};
    const at_record *record = NULL;
    at_err           err = AT_OK;
    int              count = 0;
    for (; count < RECORDS_PER_POLL; count++) {
        err = at_eventlog_next(tail->log, &record, &fail);
        if (err || !record) break;
        at_run_summary_put(tail->summary, record);
        follow_end(tail, record);
    }
    if (count > 0) {
        tail->number++;
        tail->heard = now;
    }
    if (err) {
        at_eventlog_close(tail->log);
        tail->log = NULL;
        tail->part = UINT32_MAX; /* nothing behind the damage can be trusted */
        move(tail, AT_RUN_FOLLOWER_BROKEN, fail.text);
    }
    return count == RECORDS_PER_POLL;
}

/* At the end of one log the next may have begun; true when there is something to read. */
static bool look_for_next(at_run_follower *tail, at_ns now)
{
    char        path[PATH_SIZE];
    struct stat about;
    assert(tail->log);
    if (!find_part(tail, tail->part + 1, &about, path)) return false;
    at_eventlog_close(tail->log);
    tail->log = NULL;
    tail->part++;
    open_log(tail, path, about.st_size, now);
    return tail->log || !tail->summary;
}

bool at_run_follower_poll(at_run_follower *tail, at_ns now)
{
    assert(tail);
    if (tail->part == UINT32_MAX) return false;
    if (!tail->log) look_for_log(tail, now);
    bool more = tail->log && read_log(tail, now);
    if (tail->log && !more) more = look_for_next(tail, now);
    read_result(tail);
    return more;
}

/* ---- looking -------------------------------------------------------------------------------- */

at_run_follower_state at_run_follower_state_of(const at_run_follower *tail)
{
    assert(tail->state < AT_RUN_FOLLOWER_STATES);
    return tail->state;
}

const char *at_run_follower_message(const at_run_follower *tail)
{
    return tail->word;
}

const char *at_run_follower_label(const at_run_follower *tail)
{
    return tail->label;
}

const char *at_run_follower_folder(const at_run_follower *tail)
{
    return tail->folder;
}

uint64_t at_run_follower_revision(const at_run_follower *tail)
{
    return tail->number;
}

at_ns at_run_follower_changed_at(const at_run_follower *tail)
{
    return tail->heard;
}

at_run_summary *at_run_follower_summary(const at_run_follower *tail)
{
    return tail->summary;
}

uint64_t at_run_follower_edition(const at_run_follower *tail)
{
    return tail->edition;
}

const json_t *at_run_follower_result(const at_run_follower *tail)
{
    return tail->result;
}
