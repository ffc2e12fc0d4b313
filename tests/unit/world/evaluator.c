#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "world/process/child.h"
#include "world/process/evaluator.h"

/* A task whose score takes as long as the test wants, and may kill its process. */
typedef struct stage {
    at_bell      bell;
    _Atomic bool held, deadly, refuses;
    _Atomic int  scoring; /* evaluations begun */
} stage;

static stage *now_on; /* shared */

static at_err open_task(void *self, at_node worker, at_fail *fail)
{
    (void)self;
    (void)worker;
    if (!atomic_load(&now_on->refuses)) return AT_OK;
    return at_fail_set(fail, AT_ERR_FAILED, NULL, "no engine here");
}

static void score(void *self, at_score *sum, const float *params, uint64_t first, uint64_t count)
{
    (void)self;
    (void)params;
    (void)first;
    if (atomic_load(&now_on->deadly)) raise(SIGKILL);
    atomic_fetch_add(&now_on->scoring, 1);
    while (atomic_load(&now_on->held)) at_clock_sleep_until(at_clock_now() + AT_MS(1));
    sum->count += count;
}

static const at_task task = {.params = 4, .test_samples = 10, .open = open_task, .score = score};
static const float   params[4] = {1, 2, 3, 4};

static at_evaluator *open_evaluator(void)
{
    at_fail       fail;
    at_evaluator *e;
    *now_on = (stage){0};
    assert_int_equal(at_evaluator_open(&task, &now_on->bell, &e, &fail), AT_OK);
    return e;
}

static void await_scoring(int count)
{
    while (atomic_load(&now_on->scoring) < count) at_clock_sleep_until(at_clock_now() + AT_MS(1));
}

static void await_policy(pid_t pid, int policy)
{
    while (sched_getscheduler(pid) != policy) at_clock_sleep_until(at_clock_now() + AT_MS(1));
}

static const char *await_death(at_evaluator *e)
{
    const char *text;
    while (!(text = at_evaluator_reap(e))) at_clock_sleep_until(at_clock_now() + AT_MS(1));
    return text;
}

static void finish_it(at_evaluator *e)
{
    at_evaluation done;
    atomic_store(&now_on->held, false);
    while (!at_evaluator_take(e, &done)) at_clock_sleep_until(at_clock_now() + AT_MS(1));
    assert_int_equal(done.step, 7);
    assert_int_equal(done.score.count, 10);
}

static void one_that_waited_too_long_gets_normal_priority(void **state)
{
    (void)state;
    at_evaluator *e = open_evaluator();
    atomic_store(&now_on->held, true);
    at_evaluator_begin(e, params, 7, 0);
    await_scoring(1);
    await_policy(at_evaluator_pid(e), SCHED_IDLE);
    at_ns due = at_evaluator_due(e);
    assert_true(due < AT_NEVER);
    pid_t pid = at_evaluator_pid(e);
    assert_null(at_evaluator_poll(e, due - 1));
    assert_int_equal(sched_getscheduler(pid), SCHED_IDLE);
    assert_null(at_evaluator_poll(e, due));
    await_policy(at_evaluator_pid(e), SCHED_OTHER);
    assert_int_equal(at_evaluator_due(e), AT_NEVER);
    bool raised = at_evaluator_pid(e) == pid; /* otherwise another one replaced it, and stays */
    finish_it(e);
    await_policy(at_evaluator_pid(e), raised ? SCHED_IDLE : SCHED_OTHER);
    at_evaluator_begin(e, params, 7, 0);
    assert_int_equal(at_evaluator_due(e) < AT_NEVER, raised);
    finish_it(e);
    at_evaluator_close(e);
}

static void the_first_death_is_made_good_at_once(void **state)
{
    (void)state;
    at_evaluation done;
    at_evaluator *e = open_evaluator();
    atomic_store(&now_on->held, true);
    at_evaluator_begin(e, params, 3, 0);
    await_scoring(1);
    kill(at_evaluator_pid(e), SIGKILL);
    assert_string_equal(await_death(e), "the evaluator died and was started again");
    atomic_store(&now_on->held, false);
    assert_true(at_evaluator_wait(e, &done));
    assert_int_equal(done.step, 3);
    at_evaluator_close(e);
}

static void the_third_death_is_not_announced_as_a_start(void **state)
{
    (void)state;
    at_evaluation done;
    at_evaluator *e = open_evaluator();
    atomic_store(&now_on->deadly, true);
    at_evaluator_begin(e, params, 3, 0);
    assert_non_null(strstr(await_death(e), "was started again"));
    assert_non_null(strstr(await_death(e), "will be started again"));
    assert_int_equal(at_evaluator_pid(e), 0);
    while (at_evaluator_pid(e) == 0) { /* until its pause is over */
        at_clock_sleep_until(at_evaluator_due(e));
        at_evaluator_poll(e, at_clock_now());
    }
    assert_non_null(strstr(await_death(e), "three times in a row and is not started again"));
    assert_false(at_evaluator_wait(e, &done));
    /* The final evaluation gets another chance. */
    at_evaluator_drop(e);
    assert_false(at_evaluator_busy(e));
    atomic_store(&now_on->deadly, false);
    at_evaluator_begin(e, params, 9, 0);
    assert_true(at_evaluator_wait(e, &done));
    assert_int_equal(done.step, 9);
    at_evaluator_close(e);
}

static void what_keeps_it_from_starting_is_said(void **state)
{
    (void)state;
    at_fail       fail;
    at_evaluator *e;
    *now_on = (stage){.refuses = true};
    assert_int_equal(at_evaluator_open(&task, &now_on->bell, &e, &fail), AT_OK);
    assert_non_null(strstr(await_death(e), "no engine here"));
    at_evaluator_close(e);
}

static void without_a_test_set_there_is_none(void **state)
{
    (void)state;
    at_fail       fail;
    at_evaluation done;
    at_evaluator *e;
    at_task       none = task;
    none.test_samples = 0;
    assert_int_equal(at_evaluator_open(&none, &now_on->bell, &e, &fail), AT_OK);
    assert_null(e);
    assert_null(at_evaluator_reap(e));
    assert_null(at_evaluator_poll(e, 0));
    assert_int_equal(at_evaluator_due(e), AT_NEVER);
    assert_false(at_evaluator_take(e, &done));
    at_evaluator_close(e);
}

static int set_stage(void **state)
{
    at_fail fail;
    (void)state;
    now_on = at_child_share(sizeof *now_on, &fail);
    return now_on ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_waited_too_long_gets_normal_priority),
        cmocka_unit_test(the_first_death_is_made_good_at_once),
        cmocka_unit_test(the_third_death_is_not_announced_as_a_start),
        cmocka_unit_test(what_keeps_it_from_starting_is_said),
        cmocka_unit_test(without_a_test_set_there_is_none),
    };
    return cmocka_run_group_tests(tests, set_stage, NULL);
}
