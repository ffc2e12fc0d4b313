/* Whole runs on a fake disk that is cut off at each of its operations, or full from it on: what is
 * left can be resumed, ends with the bits of an undisturbed run, and a good checkpoint is never the
 * victim. */
#include "fake_disk.h"

#include "count_logs.h"

#include "base/file.h"
#include "model_io/checkpoint.h"
#include "record/log/eventlog.h"
#include "record/replay/replay.h"
#include "world/core/run.h"
#include "world/tasks/tasks.h"

enum { PARAMS = 3, SAMPLES = 64, STEPS = 6 };

static const char FOLDER[] = "run";

/* What was tried, for the reader of the output. */
static struct {
    uint64_t points, states, resumed, ended, anew, replayed, cut_logs;
} counts;

/* ---- a small run ----------------------------------------------------------------------------- */

static double loss(void *user, const float *params, float *gradient, uint64_t first, uint64_t end)
{
    double sum = 0;
    (void)user;
    for (uint64_t i = first; i < end; i++)
        for (uint64_t p = 0; p < PARAMS; p++) {
            float away = params[p] - (float)((i * 7 + p * 3) % 11) * 0.1f;
            gradient[p] += away;
            sum += 0.5 * (double)(away * away);
        }
    return sum;
}

static double test_loss(void *user, const float *params, uint64_t *correct, uint64_t first,
                        uint64_t end)
{
    float ignored[PARAMS] = {0};
    *correct += end - first;
    return loss(user, params, ignored, first, end);
}

typedef struct job {
    const char *strategy, *optimizer;
} job;

typedef struct ended {
    at_err   err;
    at_fail  fail;
    float    params[PARAMS];
    uint64_t steps, used, dropped;
    char     trace[20];
} ended;

static uint64_t number_of(const json_t *object, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(object, name));
}

static ended train(const job *j, const at_checkpoint *resume)
{
    static const float  start[PARAMS];
    ended               e = {0};
    json_t             *result = NULL;
    at_task             task;
    FILE               *null = fopen("/dev/null", "w");
    at_task_own_options own = {.model = {.parameters = PARAMS,
                                         .samples = SAMPLES,
                                         .test_samples = 8,
                                         .loss = loss,
                                         .test = test_loss},
                               .start = start,
                               .workers = 3,
                               .seed = 1};
    at_plan_options     plan = {.strategy = j->strategy,
                                .workers = 3,
                                .batch = 8,
                                .micro_batch = 4,
                                .limits = {.steps = STEPS}};
    at_run_options      o = {.task = &task,
                             .world = &at_world_sim,
                             .optimizer = j->optimizer,
                             .lr = 0.1,
                             .seed = 1,
                             .eval_every = 2,
                             .sample_time = AT_MS(1),
                             .folder = FOLDER,
                             .checkpoint_every = "2",
                             .recording = AT_RECORDING_FULL,
                             .console = {.file = null, .quiet = true, .ascii = true, .width = 80},
                             .skips_hints = true,
                             .resume = resume,
                             .params_final = e.params};
    assert_non_null(null);
    assert_int_equal(at_task_own(&own, &task, &e.fail), AT_OK);
    if (at_plan_resolve(&plan, &o.plan, &e.fail)) fail_msg("%s", e.fail.text);
    e.err = at_run(&o, &result, &e.fail);
    e.steps = number_of(result, "steps");
    e.used = number_of(json_object_get(result, "samples"), "used");
    e.dropped = number_of(json_object_get(result, "samples"), "dropped");
    const char *trace = json_string_value(json_object_get(result, "trace_hash"));
    snprintf(e.trace, sizeof e.trace, "%s", trace ? trace : "");
    json_decref(result);
    task.free(task.self);
    fclose(null);
    return e;
}

static void assert_same(const ended *e, const ended *whole)
{
    if (e->err) fail_msg("%s", e->fail.text);
    assert_memory_equal(e->params, whole->params, sizeof whole->params);
    assert_int_equal(e->steps, whole->steps);
    assert_int_equal(e->used, whole->used);
    assert_int_equal(e->dropped, whole->dropped);
    assert_string_equal(e->trace, whole->trace);
}

/* ---- what is left ---------------------------------------------------------------------------- */

static bool has_checkpoint(void)
{
    at_fail       ignored;
    at_checkpoint found;
    bool          is_there = at_checkpoint_open(FOLDER, &found, &ignored) == AT_OK;
    at_checkpoint_close(&found);
    return is_there;
}

/* It is complete: not half of it, nor that of a part of the run. */
static void assert_result(const ended *whole)
{
    unsigned char *bytes;
    size_t         size;
    at_fail        fail = {0};
    json_error_t   error;
    if (at_file_read("run/result.json", 1 << 20, &bytes, &size, &fail)) fail_msg("%s", fail.text);
    json_t *result = json_loadb((char *)bytes, size, 0, &error);
    assert_non_null(result);
    assert_int_equal(number_of(result, "steps"), whole->steps);
    assert_string_equal(json_string_value(json_object_get(result, "trace_hash")), whole->trace);
    json_decref(result);
    free(bytes);
}

/* Drafts that a reader would stumble over after the run. */
static void assert_no_drafts(void)
{
    for (int i = 0; i < disk.names; i++)
        if (strstr(disk.name[i].path, "/.anytime-")) fail_msg("%s", disk.name[i].path);
}

static at_err note_steps(void *self, at_eventlog *log, at_fail *fail)
{
    uint32_t        *seen = self;
    const at_record *record;
    while (!at_eventlog_next(log, &record, fail) && record)
        if (record->kind == AT_REC_ACTION && record->action->kind == AT_ACT_APPLY)
            seen[record->action->as.apply.step]++;
    return AT_OK;
}

/* What a resumed run has cut off the logs does not come back: no step is recorded twice. */
static void assert_no_step_twice(const char *where)
{
    uint32_t seen[STEPS + 1] = {0};
    at_fail  fail = {0};
    (void)at_eventlog_visit(FOLDER, note_steps, seen, &fail);
    for (int step = 1; step <= STEPS; step++)
        if (seen[step] > 1) fail_msg("%s: step %d is recorded %u times", where, step, seen[step]);
}

/* The logs tell the same story as the result, or say that they do not. A log that was not synced
 * may lack its end; then it is not complete, or the next one does not continue it. */
static void check_logs(void)
{
    at_replay replay;
    at_fail   fail = {0};
    at_err    err = at_replay_run(FOLDER, &replay, &fail);
    if (err) {
        assert_true(fail.text[0]);
        counts.cut_logs++;
        return;
    }
    if (replay.difference.found)
        fail_msg("%s, event %llu: %s; recorded %s, replayed %s", replay.difference.log,
                 (unsigned long long)replay.difference.event, replay.difference.line,
                 replay.difference.recorded, replay.difference.replayed);
    counts.replayed++;
}

/* Whatever the logs have lost, their totals are those of the run. */
static void check_log_totals(const ended *whole, const char *where)
{
    log_totals totals;
    at_fail    fail = {0};
    if (count_logs(FOLDER, &totals, &fail)) fail_msg("%s: %s", where, fail.text);
    if (totals.used != whole->used)
        fail_msg("%s: the logs have %llu samples", where, (unsigned long long)totals.used);
    assert_int_equal(totals.dropped, whole->dropped);
}

/* Resumes what is there, or starts anew where there was no checkpoint yet. */
static void finish_run(const job *j, const ended *whole, bool was_safe, const char *where)
{
    at_fail       fail = {0};
    at_checkpoint found;
    at_err        err = at_checkpoint_open(FOLDER, &found, &fail);
    if (err) {
        assert_true(fail.text[0]); /* refused with a sentence */
        if (was_safe) fail_msg("%s: the checkpoint is gone: %s", where, fail.text);
        counts.anew++;
        return;
    }
    ended again = train(j, &found);
    at_checkpoint_close(&found);
    if (again.err == AT_ERR_USAGE) { /* it had ended: nothing is left to do */
        assert_result(whole);
        counts.ended++;
        return;
    }
    if (again.err) fail_msg("%s: %s", where, again.fail.text);
    assert_same(&again, whole);
    assert_result(whole);
    assert_no_drafts();
    assert_no_step_twice(where);
    check_logs();
    check_log_totals(whole, where);
    counts.resumed++;
}

/* ---- each crash point ------------------------------------------------------------------------ */

static at_rng rng;

static void open_disk(uint64_t seed)
{
    rng = at_rng_stream(seed, 0, AT_RNG_PURPOSE_TEST, 1);
    disk_open(&rng);
}

/* An undisturbed run, its operations, and after how many of them the first checkpoint is safe. */
static ended whole_run(const job *j, uint64_t *ops)
{
    open_disk(1);
    ended whole = train(j, NULL);
    if (whole.err) fail_msg("%s", whole.fail.text);
    assert_int_equal(whole.steps, STEPS);
    check_logs();
    *ops = disk.ops;
    disk_close();
    return whole;
}

static void crash_at(const job *j, const ended *whole, uint64_t op, disk_loss loss_kind,
                     bool was_safe)
{
    char where[100];
    snprintf(where, sizeof where, "%s, operation %llu, loss %d", j->strategy,
             (unsigned long long)op, (int)loss_kind);
    open_disk(op);
    disk_kill_at(op);
    (void)train(j, NULL);
    assert_true(disk.dead);
    disk_cut(loss_kind);
    disk_revive();
    finish_run(j, whole, was_safe, where);
    disk_close();
    counts.states++;
}

/* Whether the first checkpoint is there whatever the power cut loses, after `op` operations. */
static bool is_safe_after(const job *j, uint64_t op)
{
    open_disk(op);
    disk_kill_at(op);
    (void)train(j, NULL);
    disk_cut(DISK_LOSES);
    disk_revive();
    bool safe = has_checkpoint();
    disk_close();
    return safe;
}

static const job jobs[] = {{"fmb", "momentum"}, {"async", "sgd"}, {"fmb-gossip:ring,1", "sgd"}};
enum { JOBS = sizeof jobs / sizeof *jobs };

static void a_run_can_be_resumed_after_a_power_cut_at_each_operation(void **state)
{
    (void)state;
    for (size_t i = 0; i < JOBS; i++) {
        uint64_t ops, first = 1;
        ended    whole = whole_run(&jobs[i], &ops);
        while (first < ops && !is_safe_after(&jobs[i], first)) first++;
        assert_true(first < ops / 2); /* from here on there is a checkpoint, always */
        for (uint64_t op = 1; op <= ops; op++, counts.points++)
            for (int loss_kind = 0; loss_kind < DISK_LOSS_COUNT; loss_kind++)
                crash_at(&jobs[i], &whole, op, (disk_loss)loss_kind, op >= first);
    }
}

/* An operation in the middle after which the log is ahead of the checkpoint: whoever resumes cuts
 * it. */
static uint64_t op_with_log_ahead(const job *j, uint64_t ops)
{
    for (uint64_t op = ops * 2 / 3; op > 0; op--) {
        uint32_t      seen[STEPS + 2] = {0};
        at_fail       fail = {0};
        at_checkpoint found;
        open_disk(op);
        disk_kill_at(op);
        (void)train(j, NULL);
        disk_revive();
        (void)at_eventlog_visit(FOLDER, note_steps, seen, &fail);
        bool ahead =
            !at_checkpoint_open(FOLDER, &found, &fail) && seen[found.snapshot->version + 1] > 0;
        at_checkpoint_close(&found);
        disk_close();
        if (ahead) return op;
    }
    fail_msg("the log is never ahead of the checkpoint");
    return 0;
}

/* Two power cuts, the second one at this operation of the resumed run; false: it ended before. */
static bool crash_again_at(const ended *whole, uint64_t first_op, uint64_t op, disk_loss first,
                           disk_loss second)
{
    at_fail       fail = {0};
    at_checkpoint found;
    open_disk(op);
    disk_kill_at(first_op);
    (void)train(&jobs[0], NULL);
    disk_cut(first);
    disk_revive();
    disk_kill_at(op);
    if (at_checkpoint_open(FOLDER, &found, &fail)) fail_msg("%s", fail.text);
    (void)train(&jobs[0], &found);
    at_checkpoint_close(&found);
    bool died = disk.dead;
    disk_cut(second);
    disk_revive();
    finish_run(&jobs[0], whole, true, "resumed");
    disk_close();
    counts.points++;
    counts.states++;
    return died;
}

/* Only what the first power cut has kept can come back after the second. */
static void a_resumed_run_can_be_resumed_again_after_a_power_cut_at_each_operation(void **state)
{
    (void)state;
    uint64_t ops, op;
    ended    whole = whole_run(&jobs[0], &ops);
    for (int kind = 0; kind < DISK_LOSS_COUNT; kind++) {
        disk_loss loss_kind = (disk_loss)kind;
        for (op = 1; crash_again_at(&whole, ops * 2 / 3, op, loss_kind, loss_kind);) op++;
    }
    ops = op_with_log_ahead(&jobs[0], ops);
    for (op = 1; crash_again_at(&whole, ops, op, DISK_KEEPS, DISK_MIXES);) op++;
}

static void a_disk_that_is_full_from_any_operation_on_costs_no_checkpoint(void **state)
{
    (void)state;
    for (size_t i = 0; i < JOBS; i++) {
        uint64_t ops;
        ended    whole = whole_run(&jobs[i], &ops);
        for (uint64_t op = 1; op <= ops; op++, counts.points++, counts.states++) {
            open_disk(op);
            disk.full_from = op;
            ended full = train(&jobs[i], NULL);
            if (full.err) assert_true(full.fail.text[0]);
            bool safe = has_checkpoint();
            disk_cut(DISK_LOSES);
            disk.full_from = 0; /* there is room again */
            disk_revive();
            finish_run(&jobs[i], &whole, safe, "full");
            disk_close();
        }
    }
}

/* ---- single files ---------------------------------------------------------------------------- */

static void a_file_that_is_replaced_has_its_old_or_its_new_bytes(void **state)
{
    (void)state;
    static const char *const texts[] = {"the first one", "the second one, which is longer", "3"};
    bool                     ended_by_itself = false;
    for (uint64_t op = 1; !ended_by_itself; op++)
        for (int loss_kind = 0; loss_kind < DISK_LOSS_COUNT; loss_kind++, counts.states++) {
            at_fail fail = {0};
            int     acknowledged = -1, found = -1;
            open_disk(op);
            assert_int_equal(at_file_make_folder("a/b", &fail), AT_OK);
            disk_kill_at(op);
            for (int i = 0; i < 3 && !disk.dead; i++)
                if (at_file_write("a/b/file", texts[i], strlen(texts[i]), &fail) == AT_OK)
                    acknowledged = i;
            ended_by_itself = !disk.dead;
            disk_cut((disk_loss)loss_kind);
            disk_revive();
            unsigned char *bytes = NULL;
            size_t         size = 0;
            at_err         err = at_file_read("a/b/file", 100, &bytes, &size, &fail);
            for (int i = 0; !err && i < 3; i++)
                if (strcmp((char *)bytes, texts[i]) == 0) found = i;
            assert_true(err ? err == AT_ERR_MISSING : found >= 0);
            assert_true(found >= acknowledged);
            free(bytes);
            disk_close();
        }
}

static void a_folder_that_cannot_be_synced_is_an_error(void **state)
{
    (void)state;
    at_fail fail = {0};
    open_disk(1);
    disk.read_errors = 1; /* it cannot be opened */
    assert_int_equal(at_file_make_folder("a/b/", &fail), AT_ERR_IO);
    disk.read_errors = 0;
    assert_int_equal(at_file_make_folder("a/b/", &fail), AT_OK);
    disk.write_errors = 1;
    assert_int_equal(at_file_write("a/b/file", "x", 1, &fail), AT_ERR_IO);
    disk_close();
}

static int print_counts(void **state)
{
    (void)state;
    print_message(
        "%llu crash points, %llu states of the disk: %llu runs resumed with the same "
        "bits, %llu had ended, %llu refused before the first checkpoint; %llu logs replayed, "
        "%llu torn\n",
        (unsigned long long)counts.points, (unsigned long long)counts.states,
        (unsigned long long)counts.resumed, (unsigned long long)counts.ended,
        (unsigned long long)counts.anew, (unsigned long long)counts.replayed,
        (unsigned long long)counts.cut_logs);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_is_replaced_has_its_old_or_its_new_bytes),
        cmocka_unit_test(a_folder_that_cannot_be_synced_is_an_error),
        cmocka_unit_test(a_run_can_be_resumed_after_a_power_cut_at_each_operation),
        cmocka_unit_test(a_resumed_run_can_be_resumed_again_after_a_power_cut_at_each_operation),
        cmocka_unit_test(a_disk_that_is_full_from_any_operation_on_costs_no_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, print_counts);
}
