#include "serve/feed.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "record/eventlog.h"
#include "record/runinfo.h"

enum {
    PATH_SIZE = 4096,
    RECORDS_PER_POLL = 100000, /* a few hundredths of a second: clients wait meanwhile */
    RESULT_SIZE_MAX = 64 << 20
};

static const at_ns tables_every = AT_SEC(5);

const char *const at_tail_state_name[AT_FEED_STATES] = {
#define X(id, text) [AT_FEED_##id] = text,
    AT_FEED_MAP(X)
#undef X
};

struct at_tail {
    char         *folder, *label;
    at_tail_state state;
    char          word[sizeof((at_fail *)0)->text];
    uint64_t      number;
    at_ns         heard;

    uint32_t     part; /* of the log: 1 for events.bin, 2 for events-2.bin, .. */
    at_eventlog *log;
    int64_t   refused; /* size of a log that could not be opened; it is tried again when larger */
    at_story *story;
    uint64_t  edition; /* of the story */
    uint32_t  workers; /* there is room for at least so many; 0: for those it began with */

    int64_t tables_size; /* of a run without a log, when they were last read */
    bool    tables_last; /* ... after its end */

    json_t         *result;
    struct timespec result_at; /* when the file was written that `result` is of */
};

/* ---- small things --------------------------------------------------------------------------- */

static char *last_part(const char *folder)
{
    size_t end = strlen(folder);
    while (end > 1 && folder[end - 1] == '/') end--;
    size_t begin = end;
    while (begin > 0 && folder[begin - 1] != '/') begin--;
    return strndup(folder + begin, end - begin);
}

at_tail *at_tail_new(const char *folder)
{
    assert(folder);
    at_tail *feed = calloc(1, sizeof *feed);
    if (!feed) return NULL;
    feed->folder = strdup(folder);
    feed->label = last_part(folder);
    if (!feed->folder || !feed->label) {
        at_tail_free(feed);
        return NULL;
    }
    feed->part = 1;
    snprintf(feed->word, sizeof feed->word, "the folder is not there yet");
    return feed;
}

void at_tail_free(at_tail *feed)
{
    if (!feed) return;
    at_eventlog_close(feed->log);
    at_story_free(feed->story);
    json_decref(feed->result);
    free(feed->label);
    free(feed->folder);
    free(feed);
}

static void move(at_tail *feed, at_tail_state state, const char *word)
{
    if (feed->state == state && strcmp(feed->word, word) == 0) return;
    feed->state = state;
    snprintf(feed->word, sizeof feed->word, "%s", word);
    feed->number++;
}

static bool find(const at_tail *feed, const char *name, struct stat *about, char path[PATH_SIZE])
{
    int length = snprintf(path, PATH_SIZE, "%s/%s", feed->folder, name);
    return length < PATH_SIZE && stat(path, about) == 0;
}

static bool find_part(const at_tail *feed, uint32_t part, struct stat *about, char path[PATH_SIZE])
{
    char name[32] = "events.bin";
    assert(part >= 1);
    if (part > 1) snprintf(name, sizeof name, "events-%u.bin", part);
    return find(feed, name, about, path) && about->st_size > 0;
}

/* ---- result.json ---------------------------------------------------------------------------- */

/* Reads it again when it was written again, as it is when a resumed run ends. */
static void read_result(at_tail *feed)
{
    char           path[PATH_SIZE];
    struct stat    about;
    unsigned char *bytes;
    size_t         size;
    at_fail        ignored;
    if (!find(feed, "result.json", &about, path)) return;
    if (memcmp(&about.st_mtim, &feed->result_at, sizeof feed->result_at) == 0) return;
    feed->result_at = about.st_mtim;
    if (at_file_read(path, RESULT_SIZE_MAX, &bytes, &size, &ignored)) return;
    json_t *result = json_loadb((const char *)bytes, size, 0, NULL);
    free(bytes);
    if (!json_is_object(result)) {
        json_decref(result);
        return;
    }
    json_decref(feed->result);
    feed->result = result;
    feed->number++;
}

/* ---- the log -------------------------------------------------------------------------------- */

/* A story has room for the workers it was begun with. When a run goes on with more, it is told
 * again from its first log. */
static void start_over(at_tail *feed)
{
    feed->workers = at_run_info_workers(at_eventlog_info(feed->log));
    at_eventlog_close(feed->log);
    at_story_free(feed->story);
    feed->log = NULL;
    feed->story = NULL;
    feed->part = 1;
}

static at_err begin_story(at_tail *feed, at_ns now, at_fail *fail)
{
    at_story_options options = {.workers = feed->workers};
    assert(!feed->story);
    feed->edition = (uint64_t)now;
    return at_story_new(at_eventlog_info(feed->log), &options, &feed->story, fail);
}

/* A head that is cut may be whole a moment later. */
static void open_log(at_tail *feed, const char *path, int64_t size, at_ns now)
{
    at_fail fail = {0};
    assert(!feed->log);
    if (size == feed->refused) return;
    at_err err = at_eventlog_open(path, &feed->log, &fail);
    if (!err) at_eventlog_follow(feed->log);
    if (!err && feed->story && !at_story_resume(feed->story, at_eventlog_info(feed->log))) {
        start_over(feed);
        return;
    }
    if (!err && !feed->story) err = begin_story(feed, now, &fail);
    feed->refused = err ? size : 0;
    if (!err) {
        move(feed, AT_FEED_RUNNING, "the run goes on");
        return;
    }
    at_eventlog_close(feed->log);
    feed->log = NULL;
    move(feed, AT_FEED_BROKEN, fail.text);
}

/* Tables are read from the start each time, so not too often. */
static void read_tables(at_tail *feed, at_ns now)
{
    char        path[PATH_SIZE];
    struct stat about;
    at_story   *story;
    at_fail     ignored;
    bool        is_over = feed->result && !feed->tables_last;
    if (!find(feed, "collect_stats.csv", &about, path) || about.st_size == feed->tables_size)
        return;
    if (!is_over && feed->heard && now - feed->heard < tables_every) return;
    if (at_story_read(feed->folder, NULL, &story, &ignored)) return;
    at_story_free(feed->story);
    feed->story = story;
    feed->edition = (uint64_t)now;
    feed->tables_size = about.st_size;
    feed->tables_last = feed->result != NULL;
    feed->heard = now;
    feed->number++;
}

static void without_log(at_tail *feed, at_ns now)
{
    read_tables(feed, now);
    move(feed, AT_FEED_UNRECORDED,
         feed->story    ? "this run keeps no event log: shown is what its tables tell"
         : feed->result ? "this run kept no event log and no tables: only its result is known"
                        : "this run keeps no event log; its result is shown when it has ended "
                          "(--record full shows it live)");
}

static void look_for_log(at_tail *feed, at_ns now)
{
    char        path[PATH_SIZE];
    struct stat about;
    if (find_part(feed, feed->part, &about, path))
        open_log(feed, path, about.st_size, now);
    else if (find(feed, "workers.json", &about, path) && !find(feed, "events.bin", &about, path))
        without_log(feed, now);
    else if (stat(feed->folder, &about) == 0)
        move(feed, AT_FEED_STARTING, "the run starts");
}

static void follow_end(at_tail *feed, const at_record *record)
{
    if (record->kind == AT_REC_ACTION && record->action->kind == AT_ACT_FINISH)
        move(feed, AT_FEED_ENDED, "the run has ended");
}

/* Shows records to the story; true when there may be more. */
static bool read_log(at_tail *feed, at_ns now)
{
    at_fail          fail = {0};
    const at_record *record = NULL;
    at_err           err = AT_OK;
    int              count = 0;
    for (; count < RECORDS_PER_POLL; count++) {
        err = at_eventlog_next(feed->log, &record, &fail);
        if (err || !record) break;
        at_story_put(feed->story, record);
        follow_end(feed, record);
    }
    if (count > 0) {
        feed->number++;
        feed->heard = now;
    }
    if (err) {
        at_eventlog_close(feed->log);
        feed->log = NULL;
        feed->part = UINT32_MAX; /* nothing behind the damage can be trusted */
        move(feed, AT_FEED_BROKEN, fail.text);
    }
    return count == RECORDS_PER_POLL;
}

/* At the end of one log the next may have begun; true when there is something to read. */
static bool look_for_next(at_tail *feed, at_ns now)
{
    char        path[PATH_SIZE];
    struct stat about;
    assert(feed->log);
    if (!find_part(feed, feed->part + 1, &about, path)) return false;
    at_eventlog_close(feed->log);
    feed->log = NULL;
    feed->part++;
    open_log(feed, path, about.st_size, now);
    return feed->log || !feed->story;
}

bool at_tail_poll(at_tail *feed, at_ns now)
{
    assert(feed);
    if (feed->part == UINT32_MAX) return false;
    if (!feed->log) look_for_log(feed, now);
    bool more = feed->log && read_log(feed, now);
    if (feed->log && !more) more = look_for_next(feed, now);
    read_result(feed);
    return more;
}

/* ---- looking -------------------------------------------------------------------------------- */

at_tail_state at_tail_state_of(const at_tail *feed)
{
    assert(feed->state < AT_FEED_STATES);
    return feed->state;
}

const char *at_tail_word(const at_tail *feed)
{
    return feed->word;
}

const char *at_tail_label(const at_tail *feed)
{
    return feed->label;
}

const char *at_tail_folder(const at_tail *feed)
{
    return feed->folder;
}

uint64_t at_tail_number(const at_tail *feed)
{
    return feed->number;
}

at_ns at_tail_heard(const at_tail *feed)
{
    return feed->heard;
}

at_story *at_tail_story(const at_tail *feed)
{
    return feed->story;
}

uint64_t at_tail_edition(const at_tail *feed)
{
    return feed->edition;
}

const json_t *at_tail_result(const at_tail *feed)
{
    return feed->result;
}
