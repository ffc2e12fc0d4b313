/* Simulated runs of a comparison at the same time, each in a process of its own. Their results are
 * read from their folders and added in the order in which they would have run one by one, so the
 * comparison is the same for every number of jobs. */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/verbs/compare.h"
#include "world/process/child.h"
#include "world/process/signals.h"
#include "world/process/supervisor.h"

/* Each job, a child of the supervisor, has one run at a time. */
typedef struct jobs {
    at_compare    *compare;
    at_supervisor *supervisor;
    at_bell        bell;
    uint32_t       count, runs;
    uint32_t       started, finished, added; /* runs so far */
    uint32_t       kept, made;               /* finished before the comparison was resumed, since */
    uint32_t      *run_of;                   /* by job */
    bool          *done;                     /* by run */
    at_ns          began;
} jobs;

typedef struct job {
    at_compare *compare;
    uint32_t    run;
} job;

static int run_child(void *self, at_fail *fail)
{
    const job *it = self;
    assert(it->compare);
    at_signals_close(); /* the parent's; the run opens its own */
    at_signals_release();
    at_signals_notice(NULL); /* the parent says it */
    return at_compare_run(it->compare, it->run, true, fail) ? 1 : 0;
}

/* Passes over runs that are there already. */
static void skip_made(jobs *j)
{
    while (j->started < j->runs && at_compare_is_made(j->compare, j->started)) {
        j->done[j->started++] = true;
        j->finished++;
    }
}

static void show_progress(const jobs *j)
{
    assert(j->kept <= j->runs);
    at_compare_progress(j->compare, j->started, j->made, j->runs - j->kept - j->made,
                        at_clock_now() - j->began);
}

static at_err start_jobs(jobs *j, at_fail *fail)
{
    skip_made(j);
    for (uint32_t i = 0; i < j->count && j->started < j->runs; i++) {
        if (at_supervisor_pid(j->supervisor, i) > 0) continue;
        job it = {.compare = j->compare, .run = j->started};
        show_progress(j);
        AT_TRY(at_supervisor_start(j->supervisor, i, run_child, &it, fail));
        j->run_of[i] = j->started++;
        skip_made(j);
    }
    assert(j->started >= j->finished);
    return AT_OK;
}

/* Adds what can be added: runs before which none is missing. */
static at_err add_finished(jobs *j, at_fail *fail)
{
    uint32_t before = j->added;
    assert(j->added <= j->finished);
    while (j->added < j->runs && j->done[j->added]) {
        AT_TRY(at_compare_add_run(j->compare, j->added, fail));
        j->added++;
    }
    return j->added > before ? at_compare_write(j->compare, fail) : AT_OK;
}

static at_err on_death(jobs *j, const at_death *death, at_fail *fail)
{
    uint32_t run = j->run_of[death->child];
    char     how[64];
    assert(!j->done[run]);
    at_supervisor_well(j->supervisor, death->child); /* the next run of this job is another one */
    j->done[run] = true;
    j->finished++;
    j->made++;
    if (death->status == 0) return AT_OK;
    if (death->fail.err)
        *fail = death->fail;
    else
        at_fail_set(fail, AT_ERR_FAILED, NULL, "the process of this run ended: %s",
                    at_child_status(death->status, how, sizeof how));
    return at_compare_wrap_run(j->compare, run, fail);
}

static at_err reap(jobs *j, at_fail *fail)
{
    at_death death;
    assert(j->supervisor);
    while (at_supervisor_reap(j->supervisor, &death)) AT_TRY(on_death(j, &death, fail));
    return AT_OK;
}

static at_err run_jobs(jobs *j, at_fail *fail)
{
    static const at_ns LOOK = AT_SEC(1); /* in case a signal was missed */
    while (j->added < j->runs) {
        uint32_t heard = at_bell_heard(&j->bell);
        if (at_signals_stop()) return at_compare_stopped(fail);
        uint32_t finished = j->finished;
        AT_TRY(reap(j, fail));
        AT_TRY(add_finished(j, fail));
        AT_TRY(start_jobs(j, fail));
        if (j->added < j->runs && j->finished == finished)
            at_bell_wait(&j->bell, heard, 1, AT_BELL_ALL, at_clock_now() + LOOK, 0);
        assert(j->started - j->finished <= j->count);
    }
    return AT_OK;
}

at_err at_compare_run_jobs(at_compare *compare, uint32_t count, at_fail *fail)
{
    uint32_t runs = compare->entries * compare->repeats;
    jobs     j = {.compare = compare,
                  .count = count < runs ? count : runs,
                  .runs = runs,
                  .kept = at_compare_count_made(compare),
                  .began = at_clock_now()};
    assert(count >= 1);
    j.run_of = calloc(j.count, sizeof *j.run_of);
    j.done = calloc(runs, sizeof *j.done);
    at_err err = j.run_of && j.done ? AT_OK : at_fail_memory(fail);
    if (!err) err = at_supervisor_open(j.count, &j.supervisor, fail);
    if (!err) {
        at_signals_open(&j.bell);
        err = run_jobs(&j, fail);
        at_supervisor_close(j.supervisor); /* ends what still runs */
        at_signals_close();
    }
    free(j.run_of);
    free(j.done);
    return err;
}
