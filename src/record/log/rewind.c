#include "record/log/rewind.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "record/log/eventlog.h"

/* Which column of a table holds the step. A report belongs to the step after the hub's version. */
static const struct {
    const char *name;
    int         column;
    uint64_t    ahead;
} tables[] = {
    {"master_stats.csv", 1, 0},
    {"worker_stats.csv", 1, 1},
    {"collect_stats.csv", 0, 0},
};

static const size_t TABLE_SIZE_MAX = (size_t)4 << 30;

/* The step of a line; false when it has none, as in the header. */
static bool step_of(const char *line, const char *end, int column, uint64_t *step)
{
    for (; column > 0 && line < end; line++)
        if (*line == ',') column--;
    char *stop;
    *step = strtoull(line, &stop, 10);
    return column == 0 && stop > line && stop <= end;
}

/* Keeps the lines up to step `last`, in place; returns how many bytes are left. An unfinished line
 * was being written when the run was killed. */
static size_t keep_lines(char *bytes, size_t size, size_t table, uint64_t last)
{
    size_t kept = 0;
    for (size_t at = 0, next; at < size; at = next) {
        const char *end = memchr(bytes + at, '\n', size - at);
        uint64_t    step;
        if (!end) break;
        next = (size_t)(end - bytes) + 1;
        bool numbered = step_of(bytes + at, end, tables[table].column, &step);
        if (numbered && step + tables[table].ahead > last) continue;
        memmove(bytes + kept, bytes + at, next - at);
        kept += next - at;
    }
    assert(kept <= size);
    return kept;
}

static at_err rewind_table(const char *folder, size_t table, uint64_t step, at_fail *fail)
{
    char           path[4096];
    unsigned char *bytes;
    size_t         size;
    at_fail        missing;
    snprintf(path, sizeof path, "%s/%s", folder, tables[table].name);
    at_err err = at_file_read(path, TABLE_SIZE_MAX, &bytes, &size, &missing);
    if (err == AT_ERR_MISSING) return AT_OK;
    if (err) {
        *fail = missing;
        return err;
    }
    size_t kept = keep_lines((char *)bytes, size, table, step);
    err = kept == size ? AT_OK : at_file_write(path, bytes, kept, fail);
    free(bytes);
    return err;
}

at_err at_rewind_tables(const char *folder, uint64_t step, at_fail *fail)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        AT_TRY(rewind_table(folder, i, step, fail));
    return AT_OK;
}

/* ---- event logs ------------------------------------------------------------------------------ */

typedef struct search {
    uint64_t step;
    uint32_t part, found; /* the last part that contains the checkpoint, 0: none */
    uint64_t end;         /* offset in that part after the checkpoint */
} search;

/* A damaged log is valid up to the damage. */
static at_err find_save(void *self, at_eventlog *log, at_fail *fail)
{
    search          *s = self;
    const at_record *record;
    (void)fail;
    s->part++;
    for (at_fail damage; !at_eventlog_next(log, &record, &damage) && record;) {
        if (!at_record_is_save(record) || record->action->as.save.step != s->step) continue;
        s->found = s->part;
        s->end = at_eventlog_offset(log);
    }
    return AT_OK;
}

at_err at_rewind_logs(const char *folder, uint64_t step, at_fail *fail)
{
    char    path[4096];
    search  s = {.step = step};
    at_fail missing;
    at_err  err = at_eventlog_visit(folder, find_save, &s, &missing);
    if (err == AT_ERR_IO || err == AT_ERR_FAILED) {
        *fail = missing;
        return err;
    }
    if (s.found == 0) return AT_OK;
    for (uint32_t part = s.part; part >= s.found; part--) {
        char name[AT_EVENTLOG_NAME_SIZE];
        at_eventlog_name(name, part);
        snprintf(path, sizeof path, "%s/%s", folder, name);
        int failed = part > s.found ? unlink(path) : truncate(path, (off_t)s.end);
        if (failed) return at_file_error("cut", path, errno, fail);
    }
    return AT_OK;
}
