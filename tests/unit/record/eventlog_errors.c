/* Event logs on a disk with read errors. */
#include "record/log/eventlog.h"

#include <errno.h>

#include "base/disk.h"
#include "record/sinks/sinks.h"
#include "script.h"

static int reads_left; /* until one fails */

static ssize_t read_until_error(int fd, void *bytes, size_t size)
{
    errno = EIO;
    return reads_left-- > 0 ? at_disk_posix.read(fd, bytes, size < 8 ? size : 8) : -1;
}

static bool has_step(const char *path)
{
    at_eventlog     *log;
    const at_record *record;
    at_fail          fail;
    bool             found = false;
    assert_int_equal(at_eventlog_open(path, &log, &fail), AT_OK);
    while (!at_eventlog_next(log, &record, &fail) && record)
        found = found || (record->kind == AT_REC_ACTION && record->action->kind == AT_ACT_APPLY);
    at_eventlog_close(log);
    return found;
}

static void write_log(script *run)
{
    at_sink sink;
    assert_int_equal(at_sink_eventlog(&run->info, &sink, NULL), AT_OK);
    at_recorder_add(&run->recorder, sink);
    script_start(run);
    script_apply(run, NULL, 0, 0, 0.1);
    script_close(run);
}

/* Readers would stop at a torn log in front of the new one, and a good one must not be emptied. */
static void no_log_is_written_behind_one_that_cannot_be_read(void **state)
{
    (void)state;
    at_disk_ops disk = at_disk_posix;
    disk.read = read_until_error;
    for (int reads = 0; reads < 10; reads++) {
        script  run;
        at_sink sink;
        at_fail fail = {0};
        char    path[400];
        script_begin(&run, 1);
        write_log(&run);
        reads_left = reads;
        at_disk = &disk;
        assert_int_equal(at_sink_eventlog(&run.info, &sink, &fail), AT_ERR_IO);
        at_disk = &at_disk_posix;
        assert_non_null(strstr(fail.text, "events.bin: cannot read"));
        snprintf(path, sizeof path, "%s/events.bin", run.folder);
        assert_true(has_step(path));
        snprintf(path, sizeof path, "%s/events-2.bin", run.folder);
        assert_int_not_equal(access(path, F_OK), 0);
        script_end(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_log_is_written_behind_one_that_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
