#include "record/log/eventlog.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/log/codec.h"
#include "record/log/record_validate.h"
#include "record/runinfo.h"
#include "record/sinks/sinks.h"

enum {
    HEAD_SIZE = 12,
    INFO_SIZE_MAX = 32 << 20, /* reached by resumed runs with many workers */
    PARTS_MAX = 10000         /* LIMIT: how often a run can be resumed */
};

static const char magic[4] = {'A', 'T', 'E', 'V'};

void at_eventlog_name(char name[AT_EVENTLOG_NAME_SIZE], uint32_t part)
{
    assert(part >= 1);
    if (part == 1)
        snprintf(name, AT_EVENTLOG_NAME_SIZE, "events.bin");
    else
        snprintf(name, AT_EVENTLOG_NAME_SIZE, "events-%u.bin", part);
}

/* ---- writing ------------------------------------------------------------------------------- */

typedef struct writer {
    at_append_file *file;
    at_codec       *codec;
} writer;

static void put(void *opaque, const at_record *record)
{
    writer *self = opaque;
    at_codec_write(self->codec, record);
    at_append_file_tick(self->file, record->at, at_record_is_save(record));
}

static at_err close_sink(void *opaque, at_fail *fail)
{
    writer *self = opaque;
    at_err  err = at_append_file_close(self->file, fail);
    at_codec_free(self->codec);
    free(self);
    return err;
}

static void put_u32(at_append_file *file, uint32_t value)
{
    for (int i = 0; i < 32; i += 8) at_append_file_byte(file, (char)(value >> i));
}

static at_err put_head(at_append_file *file, const at_run_info *info, at_fail *fail)
{
    assert(file->fresh);
    assert(file->used == 0);
    char *text = at_run_info_text(info);
    if (!text) return at_fail_memory_for(fail, "for events.bin");
    size_t size = strlen(text);
    assert(size <= INFO_SIZE_MAX);
    at_append_file_bytes(file, magic, sizeof magic);
    put_u32(file, AT_EVENTLOG_FORMAT);
    put_u32(file, (uint32_t)size);
    at_append_file_bytes(file, text, size);
    free(text);
    return AT_OK;
}

/* Opens the first of events.bin, events-2.bin, .. that is empty. */
static at_err open_next_part(const char *folder, at_append_file **file, at_fail *fail)
{
    char name[AT_EVENTLOG_NAME_SIZE];
    for (uint32_t part = 1; part < PARTS_MAX; part++) {
        at_eventlog_name(name, part);
        AT_TRY(at_append_file_open(folder, name, false, file, fail));
        if ((*file)->fresh) return AT_OK;
        at_append_file_close(*file, NULL);
        *file = NULL;
    }
    return at_fail_set(fail, AT_ERR_FAILED, NULL, "%s: too many event logs", folder);
}

static at_err open_writer(writer *self, const at_run_info *info, at_fail *fail)
{
    AT_TRY(open_next_part(info->folder, &self->file, fail));
    self->codec = at_codec_new(self->file, -1);
    if (!self->codec) return at_fail_memory_for(fail, "for events.bin");
    return put_head(self->file, info, fail);
}

at_err at_sink_eventlog(const at_run_info *info, at_sink *sink, at_fail *fail)
{
    assert(info->folder);
    writer *self = calloc(1, sizeof *self);
    if (!self) return at_fail_memory_for(fail, "for events.bin");
    at_err err = open_writer(self, info, fail);
    if (err) {
        close_sink(self, NULL);
        return err;
    }
    *sink = (at_sink){.name = "eventlog", .self = self, .put = put, .close = close_sink};
    return AT_OK;
}

/* ---- reading ------------------------------------------------------------------------------- */

struct at_eventlog {
    int       fd;
    char     *path, *info;
    at_codec *codec;
    at_record record;
    uint32_t  workers;
    at_ns     at; /* of the last record */
    bool      truncated;
};

static at_err no_memory(const char *path, at_fail *fail)
{
    return at_fail_memory_for(fail, "for %s", path);
}

static at_err not_a_log(const char *path, const char *what, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_FORMAT, "expected the events.bin of a run folder", "%s: %s",
                       path, what);
}

static uint32_t get_u32(const unsigned char *bytes)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) value |= (uint32_t)bytes[i] << (8 * i);
    return value;
}

static at_err read_head(at_eventlog *log, at_fail *fail)
{
    assert(!log->info);
    unsigned char head[HEAD_SIZE];
    at_wire      *wire = &log->codec->wire;
    if (!at_wire_raw(wire, head, sizeof head) || memcmp(head, magic, sizeof magic))
        return not_a_log(log->path, "not an event log", fail);
    uint32_t format = get_u32(head + 4), size = get_u32(head + 8);
    if (format != AT_EVENTLOG_FORMAT)
        return at_fail_set(fail, AT_ERR_FORMAT, "it was written by another version of anytime",
                           "%s: event log has format %u, this version reads format %d", log->path,
                           format, AT_EVENTLOG_FORMAT);
    if (size > INFO_SIZE_MAX)
        return not_a_log(log->path, "the header of the event log is too large", fail);
    log->info = calloc(1, (size_t)size + 1);
    if (!log->info) return no_memory(log->path, fail);
    if (!at_wire_raw(wire, log->info, size))
        return not_a_log(log->path, "the event log ends within its header", fail);
    log->workers = at_run_info_workers(log->info);
    if (log->workers == 0)
        return not_a_log(log->path, "the header of the event log has no number of workers", fail);
    return AT_OK;
}

static at_err open_file(at_eventlog *log, const char *path, at_fail *fail)
{
    log->path = strdup(path);
    if (!log->path) return no_memory(path, fail);
    log->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (log->fd < 0)
        return at_fail_set(fail, errno == ENOENT ? AT_ERR_MISSING : AT_ERR_IO,
                           "event logs are written with --record full, the default",
                           "%s: cannot open: %s", path, strerror(errno));
    log->codec = at_codec_new(NULL, log->fd);
    if (!log->codec) return no_memory(path, fail);
    return read_head(log, fail);
}

at_err at_eventlog_open(const char *path, at_eventlog **log, at_fail *fail)
{
    assert(path);
    *log = NULL;
    at_eventlog *self = calloc(1, sizeof *self);
    if (!self) return no_memory(path, fail);
    self->fd = -1;
    at_err err = open_file(self, path, fail);
    if (err)
        at_eventlog_close(self);
    else
        *log = self;
    return err;
}

const char *at_eventlog_info(const at_eventlog *log)
{
    assert(log->info);
    return log->info;
}

static at_err damaged(const at_eventlog *log, const char *what, uint64_t start, at_fail *fail)
{
    assert(what);
    return at_fail_set(
        fail, AT_ERR_FORMAT, "the file is damaged; the records before this one are intact",
        "%s: invalid record at byte %llu: %s", log->path, (unsigned long long)start, what);
}

at_err at_eventlog_next(at_eventlog *log, const at_record **record, at_fail *fail)
{
    at_wire *wire = &log->codec->wire;
    uint64_t start = at_wire_offset(wire);
    *record = NULL;
    if (at_codec_read(log->codec, &log->record)) {
        wire->bad = at_record_validate(&log->record, log->at, log->workers);
        if (wire->bad) return damaged(log, wire->bad, start, fail);
        if (log->record.kind != AT_REC_TEXT) log->at = log->record.at;
        *record = &log->record;
        return AT_OK;
    }
    if (wire->error)
        return at_fail_set(fail, AT_ERR_IO, NULL, "%s: cannot read: %s", log->path,
                           strerror(wire->error));
    if (!wire->ended) return damaged(log, wire->bad, start, fail);
    log->truncated = at_wire_offset(wire) > start;
    if (log->codec->follows) at_codec_undo(log->codec);
    return AT_OK;
}

void at_eventlog_follow(at_eventlog *log)
{
    assert(log->at == 0);
    log->codec->follows = true;
}

uint64_t at_eventlog_offset(const at_eventlog *log)
{
    return at_wire_offset(&log->codec->wire);
}

bool at_eventlog_truncated(const at_eventlog *log)
{
    assert(log);
    return log->truncated;
}

void at_eventlog_close(at_eventlog *log)
{
    if (!log) return;
    if (log->fd >= 0) close(log->fd);
    at_codec_free(log->codec);
    free(log->info);
    free(log->path);
    free(log);
}

/* ---- all logs of a run ---------------------------------------------------------------------- */

static at_err visit_part(const char *folder, const char *name, at_eventlog_visitor *visit,
                         void *self, at_fail *fail)
{
    char        *path = NULL;
    at_eventlog *log = NULL;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return at_fail_memory_for(fail, "for %s", folder);
    at_err err = at_eventlog_open(path, &log, fail);
    if (!err) err = visit(self, log, fail);
    at_eventlog_close(log);
    free(path);
    return err;
}

at_err at_eventlog_visit(const char *folder, at_eventlog_visitor *visit, void *self, at_fail *fail)
{
    assert(folder);
    char name[AT_EVENTLOG_NAME_SIZE];
    for (uint32_t part = 1;; part++) {
        at_fail here = {0};
        at_eventlog_name(name, part);
        at_err err = visit_part(folder, name, visit, self, &here);
        if (err == AT_ERR_MISSING && part > 1) return AT_OK;
        if (err && fail) *fail = here;
        if (err) return err;
    }
}
