/* Fuzz target: any bytes as a file of a run that is resumed, after its last step, the seconds that
 * it had run, and which file it is. What is left is not longer, and rewinding it again changes
 * nothing. */
#include "record/log/rewind.h"

#include <string.h>

#include "../event_log.h"

static const char *const tables[] = {"master_stats.csv", "worker_stats.csv", "collect_stats.csv",
                                     "resource_stats.csv", "link_stats.csv"};
enum { TABLES = sizeof tables / sizeof *tables, HEAD = 3 };

/* Bytes of FOLDER/NAME; -1: there is none. */
static off_t size_of(const char *name)
{
    char        path[256];
    struct stat about;
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    return stat(path, &about) == 0 ? about.st_size : -1;
}

static void rewind_table(const char *name, const uint8_t *data, size_t size, uint64_t step,
                         at_ns clock)
{
    at_fail fail = {0};
    off_t   left = (off_t)size;
    fuzz_file(name, data, size, NULL, 0);
    for (int i = 0; i < 2; i++) {
        off_t  before = left;
        at_err err = at_rewind_tables(fuzz_folder(), step, clock, &fail);
        assert(!err);
        left = size_of(name);
        assert(left >= 0 && (i == 0 ? left <= before : left == before));
    }
    remove(fuzz_file(name, data, 0, NULL, 0));
}

/* The log is also the second part of the same run, which goes if the checkpoint is not in it. */
static void rewind_logs(const uint8_t *data, size_t size, uint64_t step, at_ns clock)
{
    char    second[AT_EVENTLOG_NAME_SIZE];
    at_fail fail = {0};
    off_t   left[2] = {-1, -1};
    at_eventlog_name(second, 2);
    if (!fuzz_log_is_small(fuzz_log(data, size))) return;
    fuzz_file(second, data, size, NULL, 0); /* as it came: its checksums may be wrong */
    for (int i = 0; i < 2; i++) {
        bool   gap = false;
        at_err err = at_rewind_logs(fuzz_folder(), step, clock, &gap, &fail);
        assert(!err == !fail.text[0]);
        off_t now[2] = {size_of("events.bin"), size_of(second)};
        assert(now[0] >= 0);
        for (int part = 0; i > 0 && part < 2; part++) assert(now[part] == left[part]);
        memcpy(left, now, sizeof left);
    }
    remove(fuzz_file(second, data, 0, NULL, 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEAD) return 0;
    uint64_t step = data[0];
    size_t   which = data[2] % (TABLES + 1);
    if (which < TABLES)
        rewind_table(tables[which], data + HEAD, size - HEAD, step, AT_MS(1000) * data[1]);
    else
        rewind_logs(data + HEAD, size - HEAD, step, AT_MS(1000) * data[1]);
    return 0;
}
