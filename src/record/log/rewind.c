#include "record/log/rewind.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/atomic_file.h"
#include "base/buffer.h"
#include "base/disk.h"
#include "base/file.h"
#include "base/folder_guard.h"
#include "record/log/eventlog.h"

/* Which column of a table holds the step, or the time in seconds. A report belongs to the step
 * after the hub's version. */
static const struct {
    const char *name;
    int         column;
    uint64_t    ahead;
    bool        is_time;
} tables[] = {
    {"master_stats.csv", 1, 0, false},  {"worker_stats.csv", 1, 1, false},
    {"collect_stats.csv", 0, 0, false}, {"resource_stats.csv", 0, 0, true},
    {"link_stats.csv", 0, 0, true},
};

enum { BLOCK_SIZE = AT_BUFFER(1 << 16, 256) };

/* The last step, and the time, that are kept. */
typedef struct moment {
    uint64_t step;
    at_ns    clock;
} moment;

/* A table, line by line; a line is zero-terminated only at the end of the block. */
typedef struct reader {
    FILE  *file;
    size_t next, used;
    char   block[BLOCK_SIZE + 1];
} reader;

/* The next line with its end; 0: there is none. No line of ours is longer than a block: the first
 * part of one that is has no end. */
static size_t next_line(reader *in, const char **line)
{
    const char *end = memchr(in->block + in->next, '\n', in->used - in->next);
    if (!end) {
        in->used -= in->next;
        memmove(in->block, in->block + in->next, in->used);
        in->next = 0;
        in->used += fread(in->block + in->used, 1, BLOCK_SIZE - in->used, in->file);
        in->block[in->used] = '\0';
        end = memchr(in->block, '\n', in->used);
    }
    *line = in->block + in->next;
    size_t size = end ? (size_t)(end + 1 - *line) : in->used - in->next;
    in->next += size;
    return size;
}

/* True for a line of a later step or time. Lines without a number, as the header, are kept; an
 * unfinished one was being written when the run was killed. */
static bool is_later(const char *line, size_t size, size_t table, const moment *last)
{
    const char *end = line + size;
    assert(size > 0);
    if (end[-1] != '\n') return true;
    for (int column = tables[table].column; column > 0 && line < end; line++)
        if (*line == ',') column--;
    char    *stop;
    uint64_t whole = strtoull(line, &stop, 10);
    if (stop == line || stop > end) return false;
    if (!tables[table].is_time) return whole + tables[table].ahead > last->step;
    uint64_t micro = 0, unit = 100000; /* six decimals, whatever the locale */
    if (*stop == '.')
        for (stop++; *stop >= '0' && *stop <= '9'; stop++, unit /= 10)
            micro += unit * (uint64_t)(*stop - '0');
    return (double)whole * 1e9 + (double)micro * 1e3 > (double)last->clock + 1e3;
}

/* Reads the table line by line, which may be larger than memory, and passes the lines to keep to
 * `copy` (NULL: only looks). It ends with a line that has no end, which may be a hole of any size.
 */
static at_err scan_table(FILE *file, const char *path, size_t table, const moment *last,
                         at_atomic_file *copy, bool *cuts, at_fail *fail)
{
    const char *line;
    size_t      size;
    bool        ends = false;
    reader     *in = malloc(sizeof *in);
    if (!in) return at_fail_memory_for(fail, "to read %s", path);
    *in = (reader){.file = file};
    rewind(file);
    while (!ends && (size = next_line(in, &line)) > 0 && (copy || !*cuts)) {
        bool later = is_later(line, size, table, last);
        *cuts = *cuts || later;
        if (copy && !later) at_atomic_file_put(copy, line, size);
        ends = line[size - 1] != '\n';
    }
    free(in);
    return ferror(file) ? at_file_error("read", path, errno, fail) : AT_OK;
}

static at_err cut_table(FILE *file, const char *path, size_t table, const moment *last,
                        at_fail *fail)
{
    at_atomic_file copy;
    at_fail        ignored;
    bool           cuts = false;
    AT_TRY(scan_table(file, path, table, last, NULL, &cuts, fail));
    if (!cuts) return AT_OK;
    AT_TRY(at_atomic_file_begin(&copy, path, false, fail));
    at_err err = scan_table(file, path, table, last, &copy, &cuts, fail);
    if (err && !copy.error)
        copy.error = EIO; /* or commit would replace the table by a part of it */
    at_err written = at_atomic_file_commit(&copy, err ? &ignored : fail);
    return err ? err : written;
}

static at_err rewind_table(const char *folder, size_t table, const moment *last, at_fail *fail)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, tables[table].name);
    int error = at_folder_guard_check(path);
    if (error) return at_file_error("read", path, error, fail);
    FILE *file = at_disk->stream(path);
    if (!file) return errno == ENOENT ? AT_OK : at_file_error("read", path, errno, fail);
    at_err err = cut_table(file, path, table, last, fail);
    fclose(file);
    return err;
}

at_err at_rewind_tables(const char *folder, uint64_t step, at_ns clock, at_fail *fail)
{
    assert(folder && clock >= 0);
    moment last = {.step = step, .clock = clock};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        AT_TRY(rewind_table(folder, i, &last, fail));
    return AT_OK;
}

/* ---- event logs ------------------------------------------------------------------------------ */

typedef struct search {
    moment   last;
    uint32_t part, found; /* the last part that contains the checkpoint, 0: none */
    at_ns    at;          /* when it was asked for there */
    uint64_t end;         /* offset in that part after the checkpoint */
    bool     thinned;     /* some part leaves out records */
} search;

/* A run that makes no steps may have saved the same one again, after samples that were dropped. */
static bool is_checkpoint(const search *s, const at_record *record)
{
    return at_record_is_save(record) && record->action->as.save.step == s->last.step &&
           record->at <= s->last.clock;
}

/* A damaged log is valid up to the damage. One that cannot be read now may go on behind it. */
static at_err find_save(void *self, at_eventlog *log, at_fail *fail)
{
    search          *s = self;
    const at_record *record;
    at_err           err;
    s->part++;
    while (!(err = at_eventlog_next(log, &record, fail)) && record) {
        s->thinned = s->thinned || record->kind == AT_REC_TOTALS;
        if (!is_checkpoint(s, record)) continue;
        s->found = s->part;
        s->at = record->at;
        s->end = at_eventlog_offset(log);
    }
    return err == AT_ERR_IO ? err : AT_OK;
}

/* Synced, because the next part follows what is left: after a power cut, records that were cut off
 * must not come back between the two. */
static bool cut_log(const char *path, uint64_t size)
{
    int fd = at_disk->open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0) return true;
    bool failed = at_disk->ftruncate(fd, (off_t)size) || at_disk->fsync(fd);
    int  error = errno;
    at_disk->close(fd);
    errno = error;
    return failed;
}

static void path_of(char path[4096], const char *folder, uint32_t part)
{
    char name[AT_EVENTLOG_NAME_SIZE];
    at_eventlog_name(name, part);
    snprintf(path, 4096, "%s/%s", folder, name);
}

/* Behind a part whose head is torn there may be others, of starts that failed. */
static uint32_t last_part(const char *folder, uint32_t part)
{
    char        path[4096];
    struct stat info;
    path_of(path, folder, part + 1);
    for (; at_disk->stat(path, &info) == 0; path_of(path, folder, part + 1)) part++;
    return part;
}

at_err at_rewind_logs(const char *folder, uint64_t step, at_ns clock, bool *gap, at_fail *fail)
{
    char    path[4096];
    search  s = {.last = {.step = step, .clock = clock}};
    at_fail missing;
    at_err  err = at_eventlog_visit(folder, find_save, &s, &missing);
    if (err == AT_ERR_IO || err == AT_ERR_FAILED) {
        *fail = missing;
        return err;
    }
    *gap = s.thinned || s.found == 0 || s.at < clock;
    if (s.found == 0) return AT_OK;
    for (uint32_t part = err ? s.part : last_part(folder, s.part); part >= s.found; part--) {
        path_of(path, folder, part);
        int  error = at_folder_guard_check(path);
        bool failed = !error && (part > s.found ? at_disk->unlink(path) : cut_log(path, s.end));
        if (error || failed) return at_file_error("cut", path, error ? error : errno, fail);
    }
    return AT_OK;
}
