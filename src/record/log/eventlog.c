#include "record/log/eventlog.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/crc32c.h"
#include "base/disk.h"
#include "base/file.h"
#include "record/log/append_file.h"
#include "record/log/codec.h"
#include "record/log/record_validate.h"
#include "record/runinfo.h"
#include "record/sinks/sinks.h"

enum {
    HEAD_SIZE = 16,
    CRC_SIZE = 4,
    INFO_SIZE_MAX = 32 << 20,   /* reached by resumed runs with many workers */
    RECORD_SIZE_MAX = 64 << 20, /* of a step with AT_PIECES_MAX gradients, and more */
    RECORD_DIGITS = 5,          /* bytes of the size of a record */
    READ_SIZE = AT_BUFFER(65536, 128),
    PARTS_MAX = 10000 /* LIMIT: how often a run can be resumed */
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

static void put_u32(unsigned char *to, uint32_t value)
{
    for (int i = 0; i < 4; i++) to[i] = (unsigned char)(value >> (8 * i));
}

/* Size, checksum and bytes of the record that the codec holds. */
static void put_record(writer *self)
{
    const at_wire *wire = &self->codec->wire;
    unsigned char  frame[RECORD_DIGITS + CRC_SIZE];
    size_t         size = wire->next, used = 0;
    assert(size > 0 && size <= RECORD_SIZE_MAX);
    for (; size >= 0x80; size >>= 7) frame[used++] = (unsigned char)(size | 0x80);
    frame[used++] = (unsigned char)size;
    assert(used <= RECORD_DIGITS);
    put_u32(frame + used, at_crc32c(wire->bytes, wire->next));
    at_append_file_bytes(self->file, frame, used + CRC_SIZE);
    at_append_file_bytes(self->file, wire->bytes, wire->next);
}

static void put(void *opaque, const at_record *record)
{
    writer *self = opaque;
    if (at_codec_write(self->codec, record))
        put_record(self);
    else if (!self->file->error) /* later records are relative to this one */
        self->file->error = ENOMEM;
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

/* With a single write, before any record: whoever sees the log sees its whole head. */
static at_err put_head(at_append_file *file, const at_run_info *info, at_fail *fail)
{
    assert(file->fresh);
    assert(file->used == 0);
    char          *text = at_run_info_text(info);
    size_t         size = text ? strlen(text) : 0;
    unsigned char *head = text ? malloc(HEAD_SIZE + size) : NULL;
    assert(size <= INFO_SIZE_MAX);
    if (head) {
        memcpy(head, magic, sizeof magic);
        put_u32(head + 4, AT_EVENTLOG_FORMAT);
        put_u32(head + 8, (uint32_t)size);
        put_u32(head + 12, at_crc32c(text, size));
        memcpy(head + HEAD_SIZE, text, size);
        at_append_file_at_once(file, head, HEAD_SIZE + size);
    }
    at_err err = head ? AT_OK : at_fail_memory_for(fail, "for events.bin");
    free(head);
    free(text);
    return err;
}

/* A part whose head is torn has no records; it is written anew. One that cannot be read now may be
 * torn or not: no part may follow a torn one, because readers would stop there. */
static at_err make_fresh(at_append_file *file, at_fail *fail)
{
    at_eventlog *log = NULL;
    if (file->fresh) return AT_OK;
    at_err err = at_eventlog_open(file->path, &log, fail);
    at_eventlog_close(log);
    if (err == AT_ERR_IO) return err;
    if (err != AT_ERR_MISSING) return AT_OK;
    if (at_disk->ftruncate(file->fd, 0)) return at_file_error("cut", file->path, errno, fail);
    file->fresh = true;
    return AT_OK;
}

/* Opens the first of events.bin, events-2.bin, .. that has no records. */
static at_err open_next_part(const char *folder, at_append_file **file, at_fail *fail)
{
    char name[AT_EVENTLOG_NAME_SIZE];
    for (uint32_t part = 1; part < PARTS_MAX; part++) {
        at_eventlog_name(name, part);
        AT_TRY(at_append_file_open(folder, name, false, file, fail));
        AT_TRY(make_fresh(*file, fail));
        if ((*file)->fresh) return AT_OK;
        at_append_file_close(*file, NULL);
        *file = NULL;
    }
    return at_fail_set(fail, AT_ERR_FAILED, NULL, "%s: too many event logs", folder);
}

static at_err open_writer(writer *self, const at_run_info *info, at_fail *fail)
{
    AT_TRY(open_next_part(info->folder, &self->file, fail));
    self->codec = at_codec_new(true);
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
    bool      damaged; /* nothing more can be read */

    unsigned char *buffer; /* of `room` bytes; bytes begin .. end - 1 are unread */
    size_t         begin, end, room;
    uint64_t       offset; /* of buffer[begin] in the file */
    int            error;  /* errno of a failed read or allocation, 0: none */
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

static at_err torn_head(const char *path, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_MISSING,
                       "the tables of the run (*.csv) may have what it recorded",
                       "%s: the event log has no complete head: the run was killed, or its disk "
                       "was full, before it was written",
                       path);
}

/* Makes room for at least one more byte. Memory grows with the bytes that the file has, not with
 * the sizes that it claims. */
static bool make_room(at_eventlog *log)
{
    assert(log->begin <= log->end && log->end <= log->room);
    if (log->begin > 0) {
        memmove(log->buffer, log->buffer + log->begin, log->end - log->begin);
        log->end -= log->begin;
        log->begin = 0;
    }
    if (log->end < log->room) return true;
    size_t         room = log->room ? 2 * log->room : READ_SIZE;
    unsigned char *more = realloc(log->buffer, room);
    if (!more) {
        log->error = ENOMEM;
        return false;
    }
    log->buffer = more;
    log->room = room;
    return true;
}

/* Global, because logs are read by many functions, far below those that show progress. */
static at_eventlog_progress watcher;

void at_eventlog_watch(at_eventlog_progress progress)
{
    watcher = progress;
}

/* Whenever more bytes were read. A log may have grown since it was opened. */
static void report_progress(const at_eventlog *log)
{
    struct stat about;
    if (watcher.report && fstat(log->fd, &about) == 0)
        watcher.report(watcher.self, log->offset, (uint64_t)about.st_size);
}

/* Reads until `size` bytes are unread in the buffer; false when the file has fewer. */
static bool fill(at_eventlog *log, size_t size)
{
    while (log->end - log->begin < size) {
        if (log->end == log->room && !make_room(log)) return false;
        ssize_t got = at_disk->read(log->fd, log->buffer + log->end, log->room - log->end);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) log->error = errno;
        if (got <= 0) return false;
        log->end += (size_t)got;
        report_progress(log);
    }
    return true;
}

static void skip(at_eventlog *log, size_t size)
{
    assert(size <= log->end - log->begin);
    log->begin += size;
    log->offset += size;
}

static uint32_t get_u32(const unsigned char *bytes)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) value |= (uint32_t)bytes[i] << (8 * i);
    return value;
}

static bool matches(const unsigned char *bytes, size_t size, uint32_t crc)
{
    return at_crc32c(bytes, size) == crc;
}

static at_err check_format(const char *path, uint32_t format, at_fail *fail)
{
    if (format == AT_EVENTLOG_FORMAT) return AT_OK;
    bool is_old = format < AT_EVENTLOG_FORMAT;
    return at_fail_set(fail, AT_ERR_FORMAT,
                       is_old ? "use that version, or repeat the run: `command` in its result.json"
                              : "use the version of anytime that wrote it",
                       "%s: written by %s; its event log has format %u, this version reads format "
                       "%d",
                       path, is_old ? "anytime 0.1" : "a newer version of anytime", format,
                       AT_EVENTLOG_FORMAT);
}

static at_err read_head(at_eventlog *log, at_fail *fail)
{
    static const unsigned char zeros[sizeof magic]; /* what a power cut leaves */
    assert(!log->info);
    bool has_magic = fill(log, sizeof magic);
    if (has_magic && memcmp(log->buffer, magic, sizeof magic) != 0 &&
        memcmp(log->buffer, zeros, sizeof zeros) != 0)
        return not_a_log(log->path, "not an event log", fail);
    bool whole = fill(log, HEAD_SIZE) && memcmp(log->buffer, magic, sizeof magic) == 0;
    if (log->error) return at_file_error("read", log->path, log->error, fail);
    if (!whole) return torn_head(log->path, fail);
    uint32_t size = get_u32(log->buffer + 8), crc = get_u32(log->buffer + 12);
    AT_TRY(check_format(log->path, get_u32(log->buffer + 4), fail));
    bool complete = size <= INFO_SIZE_MAX && fill(log, HEAD_SIZE + (size_t)size);
    if (log->error) return at_file_error("read", log->path, log->error, fail);
    if (!complete) return torn_head(log->path, fail);
    const unsigned char *text = log->buffer + log->begin + HEAD_SIZE;
    if (!matches(text, size, crc)) return torn_head(log->path, fail);
    log->info = strndup((const char *)text, size);
    if (!log->info) return no_memory(log->path, fail);
    skip(log, HEAD_SIZE + (size_t)size);
    log->workers = at_run_info_workers(log->info);
    if (log->workers == 0)
        return not_a_log(log->path, "the header of the event log has no number of workers", fail);
    return AT_OK;
}

static at_err open_file(at_eventlog *log, const char *path, at_fail *fail)
{
    log->path = strdup(path);
    if (!log->path) return no_memory(path, fail);
    log->fd = at_disk->open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0); /* no wait for a pipe */
    if (log->fd < 0)
        return at_fail_set(fail, errno == ENOENT ? AT_ERR_MISSING : AT_ERR_IO,
                           "event logs are written with --record full, the default",
                           "%s: cannot open: %s", path, strerror(errno));
    log->codec = at_codec_new(false);
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

/* Finds the next record in the buffer: how many bytes are before it, and its size. False when there
 * is none (yet). */
static bool find_record(at_eventlog *log, size_t *before, size_t *size)
{
    size_t used = 0, value = 0;
    for (unsigned char byte = 0x80; byte >= 0x80;) {
        if (used == RECORD_DIGITS) {
            log->damaged = true;
            return false;
        }
        if (!fill(log, used + 1)) return false;
        byte = log->buffer[log->begin + used];
        value |= (size_t)(byte & 0x7f) << (7 * used++);
    }
    log->damaged = value == 0 || value > RECORD_SIZE_MAX;
    if (log->damaged || !fill(log, used + CRC_SIZE + value)) return false;
    const unsigned char *frame = log->buffer + log->begin + used;
    log->damaged = !matches(frame + CRC_SIZE, value, get_u32(frame));
    *before = used + CRC_SIZE;
    *size = value;
    return !log->damaged;
}

static at_err invalid(const at_eventlog *log, const char *what, at_fail *fail)
{
    assert(what);
    return at_fail_set(
        fail, AT_ERR_FORMAT, "the file is damaged; the records before this one are intact",
        "%s: invalid record at byte %llu: %s", log->path, (unsigned long long)log->offset, what);
}

at_err at_eventlog_next(at_eventlog *log, const at_record **record, at_fail *fail)
{
    size_t before, size;
    *record = NULL;
    if (log->damaged) return AT_OK;
    if (!find_record(log, &before, &size)) {
        log->truncated = log->damaged || log->end > log->begin;
        if (!log->error) return AT_OK;
        return at_fail_set(fail, AT_ERR_IO, NULL, "%s: cannot read: %s", log->path,
                           strerror(log->error));
    }
    const unsigned char *bytes = log->buffer + log->begin + before;
    log->truncated = false;
    if (!at_codec_read(log->codec, bytes, size, &log->record))
        return invalid(log, log->codec->wire.bad, fail);
    const char *bad = at_record_validate(&log->record, log->at, log->workers);
    if (bad) return invalid(log, bad, fail);
    if (log->record.kind != AT_REC_TEXT) log->at = log->record.at;
    skip(log, before + size);
    *record = &log->record;
    return AT_OK;
}

uint64_t at_eventlog_offset(const at_eventlog *log)
{
    return log->offset;
}

bool at_eventlog_truncated(const at_eventlog *log)
{
    assert(log);
    return log->truncated;
}

bool at_eventlog_damaged(const at_eventlog *log)
{
    assert(!log->damaged || log->truncated);
    return log->damaged;
}

bool at_eventlog_is_removed(const at_eventlog *log)
{
    struct stat about;
    assert(log->fd >= 0);
    return at_disk->fstat(log->fd, &about) == 0 && about.st_nlink == 0;
}

void at_eventlog_torn(const at_eventlog *log, char *text, size_t size)
{
    assert(log->truncated);
    snprintf(text, size,
             "%.3000s: the log is torn at byte %llu; what was recorded after it is "
             "left out",
             log->path, (unsigned long long)log->offset);
}

void at_eventlog_close(at_eventlog *log)
{
    if (!log) return;
    if (log->fd >= 0) at_disk->close(log->fd);
    at_codec_free(log->codec);
    free(log->buffer);
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
