#include "record/tally.h"

#include <math.h>

#include "base/rng.h"
#include "record/histogram.h"
#include "script.h"
#include "step/snapshot.h"

static at_tally *begin(script *run, uint32_t workers)
{
    script_begin(run, workers);
    at_sink   sink;
    at_tally *tally = at_tally_new(&run->info, &sink);
    assert_non_null(tally);
    at_recorder_add(&run->recorder, sink);
    script_start(run);
    for (at_node worker = 1; worker <= workers; worker++)
        script_join(run, worker, 100 + (int64_t)worker, 1);
    return tally;
}

static void end(script *run, at_tally *tally)
{
    script_close(run);
    at_tally_free(tally);
    script_end(run);
}

static at_piece piece(at_node worker, uint64_t sequence, uint32_t samples, uint64_t version)
{
    return (at_piece){.worker = worker,
                      .sequence = sequence,
                      .samples = samples,
                      .version = version,
                      .incarnation = 1,
                      .weight = 1};
}

static void an_empty_run_has_no_values(void **state)
{
    (void)state;
    script    run;
    at_tally *tally = begin(&run, 2);
    assert_true(isnan(tally->loss_recent));
    assert_true(isnan(tally->test[AT_METRIC_ACCURACY]));
    assert_true(at_tally_seconds(tally) == 0);
    assert_true(at_tally_useful(tally) == 0);
    assert_int_equal(at_tally_steps(tally).count, 0);
    assert_true(at_tally_steps(tally).max == 0);
    assert_int_equal(tally->end, AT_END_RUNNING);
    end(&run, tally);
}

static void reports_count_once_and_only_from_live_processes(void **state)
{
    (void)state;
    script    run;
    at_tally *tally = begin(&run, 1);
    at_work   work = {.samples = 10,
                      .compute_ns = AT_MS(8),
                      .sleep_ns = AT_MS(2),
                      .idle_ns = AT_MS(1),
                      .send_ns = AT_US(5)};
    script_order(&run, 1, AT_NEVER);
    script_report(&run, 1, 1, 1, work);
    script_report(&run, 1, 1, 1, work); /* twice */
    script_lost(&run, 1, "killed by signal 9", true);
    script_report(&run, 1, 1, 2, work); /* after its death */
    script_join(&run, 1, 4711, 2);
    script_report(&run, 1, 1, 3, work); /* from the dead incarnation */
    script_report(&run, 1, 2, 1, work);
    const at_worker_tally *worker = &tally->worker[0];
    assert_int_equal(worker->rounds, 2);
    assert_int_equal(worker->samples, 20);
    assert_int_equal(worker->compute_ns, AT_MS(16));
    assert_int_equal(worker->sleep_ns, AT_MS(4));
    assert_int_equal(worker->idle_ns, AT_MS(2));
    assert_int_equal(worker->send_ns, AT_US(10));
    assert_int_equal(worker->pid, 4711);
    assert_int_equal(worker->incarnations, 2);
    assert_int_equal(tally->respawns, 1);
    end(&run, tally);
}

static void useful_time_is_the_compute_time_of_used_reports(void **state)
{
    (void)state;
    script    run;
    at_tally *tally = begin(&run, 2);
    run.at = AT_MS(1);
    script_order(&run, 1, AT_NEVER);
    run.at = AT_MS(101);
    script_report(&run, 1, 1, 1, (at_work){.samples = 8, .compute_ns = AT_MS(80)});
    script_report(&run, 2, 1, 1, (at_work){.samples = 4, .compute_ns = AT_MS(90)});
    script_report(&run, 2, 1, 2, (at_work){.samples = 4, .compute_ns = AT_MS(20)});
    at_piece pieces[] = {piece(1, 1, 8, 0), piece(2, 2, 4, 0)};
    script_apply(&run, pieces, 2, 24, 0.1);
    script_drop(&run, 2, 4, AT_DROP_STALE);
    assert_int_equal(tally->worker[0].useful_ns, AT_MS(80));
    assert_int_equal(tally->worker[1].useful_ns, AT_MS(20));
    assert_true(fabs(at_tally_seconds(tally) - 0.1) < 1e-12);
    assert_true(fabs(at_tally_useful(tally) - 0.5) < 1e-12);
    assert_int_equal(tally->samples_used, 12);
    assert_int_equal(tally->samples_dropped, 4);
    assert_int_equal(tally->dropped_why[AT_DROP_STALE], 4);
    assert_int_equal(tally->worker[1].samples_used, 4);
    assert_int_equal(tally->worker[1].samples_dropped, 4);
    end(&run, tally);
}

static void gradients_added_on_arrival_count_when_their_step_closes(void **state)
{
    (void)state;
    script    run;
    at_tally *tally = begin(&run, 1);
    at_piece  pieces[20];
    script_order(&run, 1, AT_NEVER);
    for (uint32_t i = 0; i < 20; i++) { /* more than the ring holds */
        run.at += AT_MS(1);
        pieces[i] = piece(1, i + 1, 1, 0);
        script_report(&run, 1, 1, i + 1, (at_work){.samples = 1, .compute_ns = AT_MS(1)});
        script_action(&run, (at_action){.kind = AT_ACT_ADD, .as.add = pieces[i]}, (at_record){0});
    }
    assert_int_equal(tally->worker[0].useful_ns, 0);
    at_action apply = {.kind = AT_ACT_APPLY};
    apply.as.apply.step = 1;
    apply.as.apply.samples = 20;
    apply.as.apply.pieces = pieces;
    apply.as.apply.count = 20;
    apply.as.apply.folded = true;
    script_action(&run, apply, (at_record){0});
    assert_int_equal(tally->worker[0].useful_ns, AT_MS(20));
    assert_int_equal(tally->worker[0].samples_used, 20);
    end(&run, tally);
}

static void a_step_lasts_from_close_to_close_and_the_first_from_its_order(void **state)
{
    (void)state;
    script    run;
    at_tally *tally = begin(&run, 1);
    run.at = AT_MS(30);
    script_order(&run, 1, AT_NEVER);
    static const at_ns closes[] = {AT_MS(40), AT_MS(60), AT_MS(61)};
    for (size_t i = 0; i < 3; i++) {
        run.at = closes[i];
        script_apply(&run, NULL, 0, 0, 0.1);
    }
    at_duration_stats steps = at_tally_steps(tally);
    assert_int_equal(steps.count, 3);
    assert_true(fabs(steps.mean - 0.031 / 3) < 1e-9);
    assert_true(fabs(steps.p50 - 0.010) < 0.0001);
    assert_true(fabs(steps.p95 - 0.020) < 0.0002);
    assert_true(steps.max == 0.020);
    assert_true(fabs(at_tally_seconds(tally) - 0.031) < 1e-12);
    assert_true(isnan(tally->loss_recent)); /* empty steps have no loss */
    end(&run, tally);
}

static void staleness_is_counted_in_versions_at_the_close(void **state)
{
    (void)state;
    script    run;
    at_tally *tally = begin(&run, 2);
    script_order(&run, 1, AT_NEVER);
    run.version = 5;
    at_piece pieces[] = {piece(1, 1, 1, 5), piece(2, 1, 1, 2)};
    script_apply(&run, pieces, 2, 1, 0.1);
    assert_true(tally->staleness_sum == 3);
    assert_int_equal(tally->staleness_max, 3);
    assert_int_equal(tally->staleness_count, 2);
    end(&run, tally);
}

static void overshoot_counts_rounds_ended_by_their_time_limit(void **state)
{
    (void)state;
    script    run;
    at_tally *tally = begin(&run, 1);
    at_work   late = {.samples = 1, .compute_ns = AT_MS(50), .overshoot_ns = AT_MS(2)};
    at_work   early = late, capped = late, abandoned = late, overslept = late;
    early.overshoot_ns = -AT_MS(1);
    capped.capped = abandoned.abandoned = overslept.overslept = true;
    script_order(&run, 1, AT_NEVER);
    script_report(&run, 1, 1, 1, late); /* without a time limit */
    script_order(&run, 1, AT_MS(50));
    script_report(&run, 1, 1, 2, late);
    script_report(&run, 1, 1, 3, early);
    script_report(&run, 1, 1, 4, capped);
    script_report(&run, 1, 1, 5, abandoned);
    script_report(&run, 1, 1, 6, overslept);
    assert_int_equal(tally->overshoot_count, 2);
    assert_true(fabs(tally->overshoot_sum - 0.003) < 1e-12);
    assert_true(fabs(tally->overshoot_max - 0.002) < 1e-12);
    end(&run, tally);
}

static void recent_loss_starts_unbiased_and_decays(void **state)
{
    (void)state;
    script    run;
    at_tally *tally = begin(&run, 1);
    at_piece  two = piece(1, 1, 2, 0);
    script_order(&run, 1, AT_NEVER);
    script_apply(&run, &two, 1, 8, 0.1);
    assert_true(fabs(tally->loss_recent - 4) < 1e-12);
    for (int i = 0; i < 50; i++) script_apply(&run, &two, 1, 4, 0.1);
    double first = (pow(0.5, 1) * 4 * (1 - exp2(-0.02))) / (1 - exp2(-51 / 50.0));
    double others = 2 * (1 - exp2(-1)) / (1 - exp2(-51 / 50.0));
    assert_true(fabs(tally->loss_recent - (first + others)) < 1e-9);
    end(&run, tally);
}

static void worker_states_follow_the_records(void **state)
{
    (void)state;
    script    run;
    at_tally *tally = begin(&run, 5);
    script_leave(&run, 1);
    script_lost(&run, 1, "ended", false); /* as ordered */
    script_lost(&run, 2, "killed by signal 9", false);
    script_action(&run, (at_action){.kind = AT_ACT_EVICT, .worker = 3}, (at_record){0});
    script_lost(&run, 3, "killed by signal 9", true);
    script_lost(&run, 4, "killed by signal 9", true);
    script_join(&run, 4, 9, 2);
    assert_string_equal(tally->worker[4].state, "working");
    script_finish(&run, AT_END_STEPS);
    static const char *const expected[] = {"finished", "lost", "evicted", "finished", "finished"};
    for (int i = 0; i < 5; i++) assert_string_equal(tally->worker[i].state, expected[i]);
    assert_int_equal(tally->evictions, 1);
    assert_int_equal(tally->end, AT_END_STEPS);
    end(&run, tally);
}

static void the_newest_evaluation_is_kept(void **state)
{
    (void)state;
    script    run;
    at_tally *tally = begin(&run, 1);
    script_evaluated(&run, 3, 0, 0.5, 1.5);
    script_evaluated(&run, 7, 0, 0.75, 0.5);
    assert_true(tally->test[AT_METRIC_ACCURACY] == 0.75);
    assert_true(tally->test[AT_METRIC_LOSS] == 0.5);
    assert_int_equal(tally->test_count, 10000);
    assert_int_equal(tally->test_step, 7);
    assert_int_equal(tally->evaluations, 2);
    end(&run, tally);
}

static int compare_ns(const void *a, const void *b)
{
    at_ns x = *(const at_ns *)a, y = *(const at_ns *)b;
    return (x > y) - (x < y);
}

/* Compared with the sorted values; histogram.h promises 1 %. */
static void histogram_quantiles_are_within_one_percent(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static at_ns values[COUNT];
    for (uint64_t seed = 1; seed <= 20; seed++) {
        at_rng       rng = at_rng_stream(seed, 0, AT_RNG_PURPOSE_TEST, 0);
        at_histogram histogram = {0};
        for (int i = 0; i < COUNT; i++) {
            values[i] = (at_ns)(at_rng_next(&rng) >> (1 + at_rng_below(&rng, 63)));
            at_histogram_add(&histogram, values[i]);
        }
        qsort(values, COUNT, sizeof *values, compare_ns);
        for (int part = 0; part <= 64; part++) { /* 64ths are exact in binary */
            int    rank = (part * COUNT + 63) / 64;
            double exact = (double)values[rank > 0 ? rank - 1 : 0];
            double got = (double)at_histogram_quantile(&histogram, part / 64.0);
            if (fabs(got - exact) > 0.01 * exact) fail_msg("seed %d, %d/64", (int)seed, part);
        }
        assert_true(at_histogram_stats(&histogram).max == at_seconds(values[COUNT - 1]));
    }
}

static void histogram_accepts_every_duration(void **state)
{
    (void)state;
    at_histogram histogram = {0};
    at_histogram_add(&histogram, 0);
    assert_int_equal(at_histogram_quantile(&histogram, 1), 0);
    for (int bit = 0; bit < 63; bit++) at_histogram_add(&histogram, (at_ns)1 << bit);
    at_histogram_add(&histogram, INT64_MAX);
    assert_int_equal(at_histogram_quantile(&histogram, 1), INT64_MAX);
    assert_int_equal(at_histogram_quantile(&histogram, 0), 0);
}

typedef struct probe {
    int     *order, place;
    at_err   err;
    uint64_t seen;
} probe;

static void probe_put(void *self, const at_record *record)
{
    (void)record;
    ((probe *)self)->seen++;
}

static at_err probe_close(void *self, at_fail *fail)
{
    probe *this = self;
    *this->order = *this->order * 10 + this->place;
    return this->err ? at_fail_set(fail, this->err, NULL, "sink %d", this->place) : AT_OK;
}

static void a_recorder_closes_in_reverse_order_and_returns_the_first_failure(void **state)
{
    (void)state;
    int   order = 0;
    probe probes[3] = {
        {&order, 1, AT_ERR_FAILED, 0}, {&order, 2, AT_ERR_IO, 0}, {&order, 3, AT_OK, 0}};
    at_recorder recorder = {0};
    at_fail     fail = {0};
    for (int i = 0; i < 3; i++)
        at_recorder_add(
            &recorder,
            (at_sink){.name = "probe", .self = &probes[i], .put = probe_put, .close = probe_close});
    at_recorder_put(&recorder, &(at_record){.kind = AT_REC_TEXT, .text = "hello"});
    for (int i = 0; i < 3; i++) assert_int_equal(probes[i].seen, 1);
    assert_int_equal(at_recorder_close(&recorder, &fail), AT_ERR_IO);
    assert_string_equal(fail.text, "sink 2");
    assert_int_equal(order, 321);
}

/* The totals of a run of 300 ms, with one of them changed, in a run resumed at 300 ms. */
static at_err resume_with(const char *key, json_t *value)
{
    script    run;
    at_tally *tally = begin(&run, 1);
    script_order(&run, 1, AT_NEVER);
    json_t *saved = at_tally_json(tally, AT_MS(300));
    end(&run, tally);
    at_snapshot snapshot = {.clock = AT_MS(300)};
    at_sink     sink;
    at_fail     fail = {0};
    script_begin(&run, 1);
    run.info.resume = &snapshot;
    at_tally *resumed = at_tally_new(&run.info, &sink);
    assert_non_null(resumed);
    json_object_set_new(saved, key, value);
    at_err err = at_tally_resume(resumed, saved, &fail);
    assert_int_equal(err != AT_OK, fail.text[0] != '\0');
    json_decref(saved);
    at_tally_free(resumed);
    script_end(&run);
    return err;
}

/* A run that was resumed and stopped before its first order, and resumed again. */
static void totals_of_a_run_that_has_not_trained_since_are_valid(void **state)
{
    (void)state;
    script    run;
    at_tally *tally = begin(&run, 2);
    json_t   *totals = at_tally_json(tally, AT_MS(17));
    json_object_set_new(totals, "skipped", json_integer(0));
    char *text = json_dumps(totals, JSON_COMPACT);
    assert_int_equal(json_integer_value(json_object_get(totals, "before_end")), 0);
    assert_true(at_tally_totals_valid(text, 2, AT_MS(17)));
    json_object_set_new(totals, "before_end", json_integer(AT_MS(18)));
    free(text);
    text = json_dumps(totals, JSON_COMPACT);
    assert_false(at_tally_totals_valid(text, 2, AT_MS(17)));
    free(text);
    json_decref(totals);
    end(&run, tally);
}

static void totals_that_cannot_be_continued_are_refused(void **state)
{
    (void)state;
    assert_int_equal(resume_with("before_end", json_integer(AT_MS(300))), AT_OK);
    assert_int_equal(resume_with("before_end", json_integer(AT_MS(301))), AT_ERR_FORMAT);
    assert_int_equal(resume_with("before_end", json_integer(-1)), AT_ERR_FORMAT);
    assert_int_equal(resume_with("before_end", json_integer(INT64_MAX)), AT_ERR_FORMAT);
    assert_int_equal(resume_with("before", json_integer(AT_MS(301))), AT_ERR_FORMAT);
    assert_int_equal(resume_with("before", json_integer(-1)), AT_ERR_FORMAT);
    assert_int_equal(resume_with("applied_at", json_integer(AT_MS(301))), AT_ERR_FORMAT);
    assert_int_equal(resume_with("loss_weight", json_real(1)), AT_ERR_FORMAT);
    assert_int_equal(resume_with("loss_weight", json_null()), AT_ERR_FORMAT);
}

/* Resumes from `saved` at `clock`, and saves again at `until`, before anybody has trained. */
static json_t *resume_and_wait(json_t *saved, at_ns clock, at_ns until)
{
    script      run;
    at_sink     sink;
    at_fail     fail = {0};
    at_snapshot snapshot = {.clock = clock};
    script_begin(&run, 1);
    run.info.resume = &snapshot;
    at_tally *tally = at_tally_new(&run.info, &sink);
    assert_non_null(tally);
    if (at_tally_resume(tally, saved, &fail)) fail_msg("%s", fail.text);
    assert_true(fabs(at_tally_seconds(tally) - 0.3) < 1e-12);
    json_decref(saved);
    json_t *again = at_tally_json(tally, until);
    at_tally_free(tally);
    script_end(&run);
    return again;
}

static void a_resumed_run_may_be_stopped_again_before_it_trains(void **state)
{
    (void)state;
    script    run;
    at_tally *tally = begin(&run, 1);
    script_order(&run, 1, AT_NEVER);
    run.at = AT_MS(100);
    script_apply(&run, NULL, 0, 0, 0.1);
    json_t *saved = at_tally_json(tally, AT_MS(300));
    end(&run, tally);
    saved = resume_and_wait(saved, AT_MS(300), AT_MS(900));
    saved = resume_and_wait(saved, AT_MS(900), AT_MS(5000));
    json_decref(resume_and_wait(saved, AT_MS(5000), AT_MS(5000)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_of_a_run_that_has_not_trained_since_are_valid),
        cmocka_unit_test(totals_that_cannot_be_continued_are_refused),
        cmocka_unit_test(a_resumed_run_may_be_stopped_again_before_it_trains),
        cmocka_unit_test(an_empty_run_has_no_values),
        cmocka_unit_test(reports_count_once_and_only_from_live_processes),
        cmocka_unit_test(useful_time_is_the_compute_time_of_used_reports),
        cmocka_unit_test(gradients_added_on_arrival_count_when_their_step_closes),
        cmocka_unit_test(a_step_lasts_from_close_to_close_and_the_first_from_its_order),
        cmocka_unit_test(staleness_is_counted_in_versions_at_the_close),
        cmocka_unit_test(overshoot_counts_rounds_ended_by_their_time_limit),
        cmocka_unit_test(recent_loss_starts_unbiased_and_decays),
        cmocka_unit_test(worker_states_follow_the_records),
        cmocka_unit_test(the_newest_evaluation_is_kept),
        cmocka_unit_test(histogram_quantiles_are_within_one_percent),
        cmocka_unit_test(histogram_accepts_every_duration),
        cmocka_unit_test(a_recorder_closes_in_reverse_order_and_returns_the_first_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
