#include "record/log/rewind.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/disk.h"
#include "record/sinks/sinks.h"
#include "script.h"

static const char *path_of(const script *run, const char *name)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", run->folder, name);
    return path;
}

static void assert_cut(const char *name, const char *before, const char *after)
{
    script         run;
    unsigned char *bytes;
    size_t         size;
    script_begin(&run, 1);
    assert_int_equal(at_file_write(path_of(&run, name), before, strlen(before), NULL), AT_OK);
    assert_int_equal(at_rewind_tables(run.folder, 2, AT_MS(1500), NULL), AT_OK);
    assert_int_equal(at_file_read(path_of(&run, name), 1 << 20, &bytes, &size, NULL), AT_OK);
    assert_string_equal((char *)bytes, after);
    free(bytes);
    script_end(&run);
}

static void lines_after_the_checkpoint_are_removed(void **state)
{
    (void)state;
    assert_cut("collect_stats.csv", "step,x\n1,a\n2,b\n3,c\n4", "step,x\n1,a\n2,b\n");
    assert_cut("master_stats.csv", "time,step\n0.1,1\n0.3,3\n0.2,2\n", "time,step\n0.1,1\n0.2,2\n");
    assert_cut("worker_stats.csv", "time,master_step\n0.1,1\n0.3,2\n", "time,master_step\n0.1,1\n");
}

static void resource_samples_are_cut_by_their_time(void **state)
{
    (void)state;
    assert_cut("resource_stats.csv", "time,node\n0.500000,hub\n1.500000,1\n1.600000,hub\n2.0,1\n",
               "time,node\n0.500000,hub\n1.500000,1\n");
}

/* No line of ours is as long. */
static void a_table_ends_with_a_line_that_is_too_long(void **state)
{
    (void)state;
    enum { LONG = 200000 };
    static char table[LONG + 100];
    char        line[LONG + 1];
    memset(line, '1', LONG);
    line[LONG] = '\0';
    snprintf(table, sizeof table, "step,x\n1,a\n%s\n2,b\n3,c\n", line);
    assert_cut("collect_stats.csv", table, "step,x\n1,a\n");
}

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
/* In a process that could not hold the table in memory; *left: bytes after that. */
static void rewind_with_little_memory(const script *run, off_t *left)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit little = {16 << 20, 16 << 20};
        setrlimit(RLIMIT_DATA, &little);
        _exit((int)at_rewind_tables(run->folder, 2, AT_SEC(1), NULL));
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    struct stat about;
    assert_int_equal(stat(path_of(run, "collect_stats.csv"), &about), 0);
    *left = about.st_size;
}

static void a_table_may_be_larger_than_memory(void **state)
{
    (void)state;
    enum { LINES = 4000000 };
    script run;
    off_t  left;
    script_begin(&run, 1);
    FILE *file = fopen(path_of(&run, "collect_stats.csv"), "wb");
    assert_non_null(file);
    for (int i = 0; i < LINES; i++) fputs("1,0123456789\n", file);
    fputs("3,x\n", file);
    assert_int_equal(fclose(file), 0);
    rewind_with_little_memory(&run, &left);
    assert_int_equal(left, (off_t)LINES * 13);
    script_end(&run);
}

/* A hole, as a power cut or somebody who means harm leaves it. */
static void a_line_may_be_larger_than_memory(void **state)
{
    (void)state;
    static const char lines[] = "step,x\n1,a\n";
    script            run;
    off_t             left;
    script_begin(&run, 1);
    assert_int_equal(at_file_write(path_of(&run, "collect_stats.csv"), lines, strlen(lines), NULL),
                     AT_OK);
    assert_int_equal(truncate(path_of(&run, "collect_stats.csv"), 100 << 20), 0);
    rewind_with_little_memory(&run, &left);
    assert_int_equal(left, (off_t)strlen(lines));
    script_end(&run);
}
#endif

/* A run that has an event log. */
static void begin_logged(script *run)
{
    at_sink sink;
    at_fail fail;
    script_begin(run, 1);
    run->plan.outer = at_outer_rules;
    assert_int_equal(at_sink_eventlog(&run->info, &sink, &fail), AT_OK);
    at_recorder_add(&run->recorder, sink);
    script_start(run);
}

/* Two starts failed after the checkpoint; of the first one's log not even the head is whole. */
static void parts_behind_a_torn_one_are_removed(void **state)
{
    (void)state;
    script         run;
    at_fail        fail;
    struct stat    about;
    unsigned char *bytes;
    size_t         size;
    bool           gap;
    begin_logged(&run);
    script_action(&run, (at_action){.kind = AT_ACT_SAVE}, (at_record){0});
    script_close(&run);
    assert_int_equal(at_file_read(path_of(&run, "events.bin"), 1 << 20, &bytes, &size, &fail),
                     AT_OK);
    assert_int_equal(at_file_write(path_of(&run, "events-2.bin"), "", 0, &fail), AT_OK);
    assert_int_equal(at_file_write(path_of(&run, "events-3.bin"), bytes, size, &fail), AT_OK);
    assert_int_equal(at_rewind_logs(run.folder, 0, run.at, &gap, &fail), AT_OK);
    assert_false(gap);
    assert_int_equal(stat(path_of(&run, "events.bin"), &about), 0);
    assert_int_equal(about.st_size, (off_t)size);
    assert_int_not_equal(stat(path_of(&run, "events-2.bin"), &about), 0);
    assert_int_not_equal(stat(path_of(&run, "events-3.bin"), &about), 0);
    assert_int_equal(at_rewind_logs(run.folder, 7, run.at, &gap, &fail), AT_OK);
    assert_true(gap); /* the disk was full before step 7 */
    free(bytes);
    script_end(&run);
}

/* After samples that were dropped, and no step. */
static void the_same_step_may_have_been_saved_again(void **state)
{
    (void)state;
    script      run;
    at_fail     fail;
    struct stat about;
    off_t       size[2];
    bool        gap;
    begin_logged(&run);
    for (int i = 0; i < 3; i++) {
        run.at = AT_SEC(1 + i);
        script_action(&run, (at_action){.kind = AT_ACT_SAVE}, (at_record){0});
        assert_int_equal(stat(path_of(&run, "events.bin"), &about), 0);
        if (i < 2) size[i] = about.st_size;
    }
    script_close(&run);
    assert_int_equal(at_rewind_logs(run.folder, 0, AT_SEC(2), &gap, &fail), AT_OK);
    assert_false(gap);
    assert_int_equal(stat(path_of(&run, "events.bin"), &about), 0);
    assert_int_equal(about.st_size, size[1]);
    assert_int_equal(at_rewind_logs(run.folder, 0, AT_MS(1500), &gap, &fail), AT_OK);
    assert_true(gap); /* what was saved half a second after it was asked for */
    assert_int_equal(stat(path_of(&run, "events.bin"), &about), 0);
    assert_int_equal(about.st_size, size[0]);
    script_end(&run);
}

/* Of the whole log only the first block can be read. */
static ssize_t read_first_block(int fd, void *bytes, size_t size)
{
    if (lseek(fd, 0, SEEK_CUR) == 0) return read(fd, bytes, size);
    errno = EIO;
    return -1;
}

/* The checkpoint may be in the rest: a log that is not cut would have its steps twice. */
static void a_log_that_cannot_be_read_is_an_error(void **state)
{
    (void)state;
    script      run;
    at_fail     fail = {0};
    struct stat before, after;
    bool        gap;
    char        text[1000] = "";
    at_disk_ops ops = at_disk_posix;
    ops.read = read_first_block;
    memset(text, 'x', sizeof text - 1);
    begin_logged(&run);
    for (int i = 0; i < 200; i++)
        at_recorder_put(&run.recorder, &(at_record){.kind = AT_REC_TEXT, .text = text});
    script_action(&run, (at_action){.kind = AT_ACT_SAVE}, (at_record){0});
    for (int i = 0; i < 200; i++)
        at_recorder_put(&run.recorder, &(at_record){.kind = AT_REC_TEXT, .text = text});
    script_close(&run);
    assert_int_equal(stat(path_of(&run, "events.bin"), &before), 0);
    at_disk = &ops;
    at_err err = at_rewind_logs(run.folder, 0, run.at, &gap, &fail);
    at_disk = &at_disk_posix;
    assert_int_equal(err, AT_ERR_IO);
    assert_non_null(strstr(fail.text, "events.bin: cannot read"));
    assert_int_equal(at_rewind_logs(run.folder, 0, run.at, &gap, &fail), AT_OK);
    assert_int_equal(stat(path_of(&run, "events.bin"), &after), 0);
    assert_true(after.st_size < before.st_size);
    script_end(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_after_the_checkpoint_are_removed),
        cmocka_unit_test(resource_samples_are_cut_by_their_time),
        cmocka_unit_test(a_table_ends_with_a_line_that_is_too_long),
        cmocka_unit_test(parts_behind_a_torn_one_are_removed),
        cmocka_unit_test(the_same_step_may_have_been_saved_again),
        cmocka_unit_test(a_log_that_cannot_be_read_is_an_error),
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
        cmocka_unit_test(a_table_may_be_larger_than_memory),
        cmocka_unit_test(a_line_may_be_larger_than_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
