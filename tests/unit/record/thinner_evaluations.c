/* Which evaluations a long run leaves out of its files (e2e.long_runs looks at whole runs). */
#include "record/log/thinner.h"

#include "record/sinks/sinks.h"
#include "script.h"

enum { LIMIT = 1 << 20, EVALUATIONS_MAX = 8 };

typedef struct seen {
    uint32_t evaluations, totals;
} seen;

static void take(void *self, const at_record *record, bool kept)
{
    seen *s = self;
    s->evaluations += kept && record->kind == AT_REC_EVENT;
    s->totals += record->kind == AT_REC_TOTALS;
}

static void put_apply(at_thinner *thinner, at_ns at, uint64_t step, seen *s)
{
    at_action apply = {.kind = AT_ACT_APPLY, .as.apply.step = step};
    at_thinner_put(thinner, &(at_record){.kind = AT_REC_ACTION, .at = at, .action = &apply}, take,
                   s);
}

static void put_evaluated(at_thinner *thinner, at_ns at, seen *s)
{
    at_event evaluated = {.kind = AT_EV_EVALUATED};
    at_thinner_put(thinner, &(at_record){.kind = AT_REC_EVENT, .at = at, .event = &evaluated}, take,
                   s);
}

/* Half of the limit is used when the run goes on. */
static at_thinner *begin(script *run, at_tally **tally)
{
    at_sink sink;
    at_fail fail;
    char    path[64], *text = malloc(LIMIT / 2);
    script_begin(run, 1);
    assert_non_null(text);
    memset(text, 'x', LIMIT / 2);
    snprintf(path, sizeof path, "%s/master_stats.csv", run->folder);
    assert_int_equal(at_file_write(path, text, LIMIT / 2, &fail), AT_OK);
    free(text);
    *tally = at_tally_new(&run->info, &sink);
    assert_non_null(*tally);
    at_recorder_add(&run->recorder, sink);
    at_thinner *thinner = at_thinner_new(
        &(at_thinner_options){.folder = run->folder, .limit = LIMIT, .tally = *tally});
    assert_non_null(thinner);
    return thinner;
}

static void no_evaluation_is_left_out_before_the_first_gap(void **state)
{
    (void)state;
    script      run;
    at_tally   *tally;
    seen        s = {0};
    at_ns       at = AT_SEC(1000);
    uint64_t    step = 1;
    at_thinner *thinner = begin(&run, &tally);
    put_apply(thinner, at, step, &s);
    for (uint32_t i = 1; s.totals == 0; i++) {
        put_evaluated(thinner, at, &s);
        assert_int_equal(s.evaluations, i);
        put_apply(thinner, ++at, ++step, &s);
    }
    uint32_t before = s.evaluations;
    assert_true(before > 0);
    put_evaluated(thinner, at, &s);
    assert_int_equal(s.evaluations, before); /* it is too soon after the last one */
    at_thinner_free(thinner);
    script_close(&run);
    at_tally_free(tally);
    script_end(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_evaluation_is_left_out_before_the_first_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
