/* What the kernel lets us do, and how well: processes, shared memory, doorbells, sleeping. All of
 * it is tried in a child made like a worker, for a few hundredths of a second. */
#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/verbs/doctor.h"
#include "world/process/bell.h"
#include "world/process/child.h"

enum { TRIPS = 200, SLEEPS = 25, READINGS = 1000 };
static const at_ns PATIENCE = AT_MS(400), SLEEP = AT_MS(1);

/* ---- a child that shares memory with us ------------------------------------------------------ */

typedef struct stage {
    at_bell          to_child, to_parent;
    _Atomic uint32_t sent, answered;
    at_ns            overshoot[SLEEPS];
    int              idle_error; /* errno of asking for idle priority, 0: granted */
} stage;

static int compare_ns(const void *a, const void *b)
{
    at_ns x = *(const at_ns *)a, y = *(const at_ns *)b;
    return (x > y) - (x < y);
}

/* Runs `main` in a child and waits for its end, and meanwhile `meet`, unless that is NULL. */
static at_err with_child(int (*main)(void *), at_err (*meet)(stage *, at_fail *), stage *s,
                         at_fail *fail)
{
    pid_t pid;
    int   status = 0;
    char  end[64];
    AT_TRY(at_child_fork(main, s, &pid, fail));
    at_err err = meet ? meet(s, fail) : AT_OK;
    if (err) {
        at_child_end(pid);
        return err;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    if (status == 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_FAILED, NULL, "a child process was %s",
                       at_child_status(status, end, sizeof end));
}

/* The same on a stage of its own, which the caller releases with munmap. */
static stage *play(int (*main)(void *), at_err (*meet)(stage *, at_fail *), at_finding *f)
{
    at_fail fail = {0};
    stage  *s = at_child_share(sizeof *s, &fail);
    at_err  err = s ? with_child(main, meet, s, &fail) : fail.err;
    if (!err) return s;
    at_finding_add(f, "%s", fail.text);
    at_finding_judge(f, AT_DIAGNOSIS_PROBLEM, "workers are processes that share memory: %s",
                     fail.hint[0] ? fail.hint : "they cannot work here");
    if (s) munmap(s, sizeof *s);
    return NULL;
}

/* ---- processes and doorbells ----------------------------------------------------------------- */

/* Waits for the n-th message; false when patience ends. */
static bool await(at_bell *bell, _Atomic uint32_t *count, uint32_t n)
{
    at_ns until = at_clock_now() + PATIENCE;
    for (;;) {
        uint32_t heard = at_bell_heard(bell);
        if (atomic_load(count) >= n) return true;
        if (at_clock_now() >= until) return false;
        at_bell_wait(bell, heard, 1, AT_BELL_ALL, until, 0);
    }
}

static int answer(void *self)
{
    stage *s = self;
    for (uint32_t n = 1; n <= TRIPS; n++) {
        if (!await(&s->to_child, &s->sent, n)) return AT_ERR_FAILED;
        atomic_store(&s->answered, n);
        at_bell_ring(&s->to_parent);
    }
    return 0;
}

static at_err ask(stage *s, at_fail *fail)
{
    for (uint32_t n = 1; n <= TRIPS; n++) {
        atomic_store(&s->sent, n);
        at_bell_ring(&s->to_child);
        if (!await(&s->to_parent, &s->answered, n))
            return at_fail_set(fail, AT_ERR_FAILED, "is futex() forbidden here?",
                               "a child process did not wake up when it was called");
    }
    return AT_OK;
}

static void probe_processes(at_finding *f)
{
    at_ns  begin = at_clock_now();
    stage *s = play(answer, ask, f);
    if (!s) return;
    double us = 1e6 * at_seconds(at_clock_now() - begin) / TRIPS;
    at_finding_add(f, "fork, shared memory and futex work; a question and its answer take %.3g us",
                   us);
    f->facts = json_pack("{s:f}", "round_trip_seconds", us / 1e6);
    munmap(s, sizeof *s);
}

/* ---- idle priority --------------------------------------------------------------------------- */

static int become_idle(void *self)
{
    stage             *s = self;
    struct sched_param none = {0};
    s->idle_error = sched_setscheduler(0, SCHED_IDLE, &none) == 0 ? 0 : errno;
    return 0;
}

static void probe_idle(at_finding *f)
{
    stage *s = play(become_idle, NULL, f);
    if (!s) return;
    at_finding_add(f, "%s", s->idle_error ? strerror(s->idle_error) : "SCHED_IDLE is allowed");
    if (s->idle_error)
        at_finding_judge(f, AT_DIAGNOSIS_NOTE,
                         "evaluation cannot step aside for the training: use a large --eval-every");
    munmap(s, sizeof *s);
}

/* ---- time ------------------------------------------------------------------------------------ */

static void probe_clock(at_finding *f)
{
    at_ns begin = at_clock_now(), last = begin, step = AT_NEVER;
    for (int i = 0; i < READINGS; i++) {
        at_ns now = at_clock_now();
        assert(now >= last);
        if (now > last && now - last < step) step = now - last;
        last = now;
    }
    double cost = 1e9 * at_seconds(last - begin) / READINGS;
    if (step == AT_NEVER)
        at_finding_add(f, "stands still for %d readings", READINGS);
    else
        at_finding_add(f, "smallest step %lld ns, a reading takes %.3g ns", (long long)step, cost);
    f->facts =
        json_pack("{s:f, s:f}", "step_seconds", at_seconds(step), "reading_seconds", cost / 1e9);
    if (step > AT_US(10) || cost > 2000)
        at_finding_judge(f, AT_DIAGNOSIS_NOTE,
                         "a slow or coarse clock: micro-batches should take 1 ms or more");
}

static int oversleep(void *self)
{
    stage *s = self;
    for (int i = 0; i < SLEEPS; i++) {
        at_ns until = at_clock_now() + SLEEP;
        at_clock_sleep_until(until);
        s->overshoot[i] = at_clock_now() - until;
    }
    return 0;
}

static void probe_sleep(at_finding *f)
{
    stage *s = play(oversleep, NULL, f);
    char   median[32], most[32];
    if (!s) return;
    qsort(s->overshoot, SLEEPS, sizeof *s->overshoot, compare_ns);
    at_ns middle = s->overshoot[SLEEPS / 2], worst = s->overshoot[SLEEPS - 1];
    at_finding_add(f, "a sleep of 1 ms lasts %s longer, at worst %s",
                   at_text_show_duration(median, sizeof median, middle),
                   at_text_show_duration(most, sizeof most, worst));
    f->facts = json_pack("{s:f, s:f}", "overshoot_seconds_median", at_seconds(middle),
                         "overshoot_seconds_max", at_seconds(worst));
    if (middle > SLEEP / 5)
        at_finding_judge(f, AT_DIAGNOSIS_NOTE,
                         "induced slowness and --sample-time are inexact below about %s a round",
                         at_text_show_duration(most, sizeof most, 20 * middle));
    munmap(s, sizeof *s);
}

const at_probe at_probes_system[] = {
    {"processes", probe_processes},
    {"idle priority", probe_idle},
    {"clock", probe_clock},
    {"sleep", probe_sleep},
    {0},
};
