#include "world/sim/fault_trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static char path[] = "/tmp/anytime-faults-XXXXXX";

static int make_file(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 || close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static at_err read_text(const char *text, const at_fault_options *options, at_fault **faults,
                        size_t *count, at_fail *fail)
{
    char model[64];
    assert_int_equal(at_file_write(path, text, strlen(text), NULL), AT_OK);
    snprintf(model, sizeof model, "trace:%s", path);
    return at_faults_read(model, options, faults, count, fail);
}

static void check(const char *text, const at_fault_options *options, const at_fault *expected,
                  size_t expected_count)
{
    at_fault *faults;
    size_t    count;
    at_fail   fail = {0};
    if (read_text(text, options, &faults, &count, &fail)) fail_msg("%s", fail.text);
    assert_int_equal(count, expected_count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(faults[i].at, expected[i].at);
        assert_int_equal(faults[i].worker, expected[i].worker);
        assert_int_equal(faults[i].kind, expected[i].kind);
        assert_int_equal(faults[i].lasts, expected[i].lasts);
    }
    free(faults);
}

static const char events[] = "seconds,node,event,class\n"
                             "10,2,start,GPU\n12,2,start,NIC\n15,99,start,GPU\n20,2,end,GPU\n"
                             "21,2,end,NIC\n30,1,start,GPU\n";

static void a_fault_is_a_death_until_its_end(void **state)
{
    (void)state;
    const at_fault   expected[] = {{AT_SEC(1), 2, AT_FAULT_DIE, AT_SEC(1)},
                                   {AT_SEC(3), 1, AT_FAULT_DIE, AT_SEC(50 * 365.25 * 86400)}};
    at_fault_options options = {3, 3, .respawn = true, .trace_scale = 0.1};
    check(events, &options, expected, COUNT(expected));
}

static void without_respawn_the_worker_joins_at_its_end(void **state)
{
    (void)state;
    const at_fault   expected[] = {{AT_SEC(10), 2, AT_FAULT_DIE, AT_SEC(10)},
                                   {AT_SEC(20), 2, AT_FAULT_JOIN, 0}};
    at_fault_options options = {2, 2, .respawn = false, .trace_scale = 1};
    check("seconds,worker,event\n10,2,start\n20,2,end\n", &options, expected, COUNT(expected));
}

/* The run begins with the second count, the first that is enough for two workers. */
static void instances_join_and_die_with_their_number(void **state)
{
    (void)state;
    const at_fault   expected[] = {{1, 3, AT_FAULT_JOIN, 0},
                                   {AT_SEC(60), 2, AT_FAULT_DIE, AT_SEC(60)},
                                   {AT_SEC(60), 3, AT_FAULT_DIE, AT_SEC(60)},
                                   {AT_SEC(120), 4, AT_FAULT_JOIN, 0}};
    at_fault_options options = {2, 4, .respawn = true, .trace_scale = 1};
    check("{\"metadata\": {\"gap_seconds\": 60}, \"data\": [1, 3, 1, 16]}", &options, expected,
          COUNT(expected));
}

typedef struct wrong {
    const char *text, *complaint;
} wrong;

static void every_bad_trace_is_refused_with_a_sentence(void **state)
{
    (void)state;
    static const wrong traces[] = {
        {"", "a column is missing"},
        {"days,node\n1,1\n", "a column is missing"},
        {"days,node,event\n1,1\n", "line 2: fewer fields"},
        {"days,node,event\nx,1,start\n", "line 2: the time is not a number"},
        {"days,node,event\n-1,1,start\n", "line 2: the time is not a number of 0"},
        {"days,node,event\n1,0,start\n", "line 2: the node is not a whole number"},
        {"days,node,event\n1,1,begin\n", "line 2: the event is neither start nor end"},
        {"days,node,event\n2,1,start\n1,1,end\n", "line 3: the times go backwards"},
        {"{", "line 1:"},
        {"{\"data\": []}", "data is not a list"},
        {"{\"data\": [1]}", "gap_seconds is not a number above 0"},
        {"{\"metadata\": {\"gap_seconds\": 1}, \"data\": [4, -1]}", "a count is not a whole"},
        {"{\"metadata\": {\"gap_seconds\": 1}, \"data\": [1, 0]}", "at most 1 instances"},
    };
    at_fault_options options = {2, 4, .respawn = true};
    for (size_t i = 0; i < COUNT(traces); i++) {
        at_fault *faults;
        size_t    count;
        at_fail   fail = {0};
        assert_int_equal(read_text(traces[i].text, &options, &faults, &count, &fail),
                         AT_ERR_FORMAT);
        assert_null(faults);
        assert_int_equal(count, 0);
        if (!strstr(fail.text, traces[i].complaint)) fail_msg("trace %zu: %s", i, fail.text);
    }
}

static void a_missing_file_is_refused(void **state)
{
    (void)state;
    at_fault        *faults;
    size_t           count;
    at_fault_options options = {1, 1, .respawn = true};
    assert_int_equal(at_faults_read("trace:/no/such/file", &options, &faults, &count, NULL),
                     AT_ERR_MISSING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fault_is_a_death_until_its_end),
        cmocka_unit_test(without_respawn_the_worker_joins_at_its_end),
        cmocka_unit_test(instances_join_and_die_with_their_number),
        cmocka_unit_test(every_bad_trace_is_refused_with_a_sentence),
        cmocka_unit_test(a_missing_file_is_refused),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
