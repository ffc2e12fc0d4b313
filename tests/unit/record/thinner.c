/* What a long run leaves out of its files once half of their limit is used. */
#include "record/log/thinner.h"

#include "base/link_stats.h"
#include "base/usage.h"
#include "record/sinks/sinks.h"
#include "script.h"

enum { WORKERS = 2, LIMIT = 1000000, ROUNDS = 10000 };

typedef struct counts {
    at_thinner *thinner;
    uint64_t    totals, usage[WORKERS + 2], links[WORKERS + 1]; /* by node; the evaluator is last */
} counts;

static size_t place_of(at_node node)
{
    return node == AT_NODE_EVALUATOR ? WORKERS + 1 : node;
}

static void count(void *self, const at_record *record, bool kept)
{
    counts *c = self;
    if (!kept) return;
    if (record->kind == AT_REC_TOTALS) c->totals++;
    if (record->kind == AT_REC_USAGE) c->usage[place_of(record->node)]++;
    if (record->kind == AT_REC_LINK) c->links[record->node]++;
}

static void put(void *self, const at_record *record)
{
    counts *c = self;
    at_thinner_put(c->thinner, record, count, c);
}

static at_err close_nothing(void *self, at_fail *fail)
{
    (void)self, (void)fail;
    return AT_OK;
}

/* A run whose folder has a table of this size already. */
static at_tally *begin(script *run, counts *c, const char *table, off_t size)
{
    char    path[400];
    at_sink sink;
    script_begin(run, WORKERS);
    run->info.usage = run->info.links = true;
    snprintf(path, sizeof path, "%s/%s", run->folder, table);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), size), 0);
    fclose(file);
    at_tally *tally = at_tally_new(&run->info, &sink);
    at_recorder_add(&run->recorder, sink);
    *c = (counts){.thinner = at_thinner_new(&(at_thinner_options){
                      .folder = run->folder, .limit = LIMIT, .tally = tally})};
    assert_non_null(c->thinner);
    at_recorder_add(&run->recorder,
                    (at_sink){.name = "count", .self = c, .put = put, .close = close_nothing});
    script_start(run);
    return tally;
}

static void end(script *run, counts *c, at_tally *tally)
{
    script_close(run);
    at_thinner_free(c->thinner);
    at_tally_free(tally);
    script_end(run);
}

static void measure(script *run)
{
    static const at_node nodes[] = {0, AT_NODE_EVALUATOR, 1, 2};
    at_usage             usage = {.user_ns = run->at};
    at_link_stats        link = {.host = "alpha"};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        usage.pid = 100 + nodes[i];
        script_put(run, (at_record){.kind = AT_REC_USAGE, .node = nodes[i], .usage = &usage});
    }
    at_link_name_set(link.address, "10.0.0.7:1");
    run->at += AT_MS(10); /* not at the same moment */
    for (at_node worker = 1; worker <= WORKERS; worker++)
        script_put(run, (at_record){.kind = AT_REC_LINK, .node = worker, .link = &link});
    run->at += AT_MS(990);
}

static void assert_measured(const counts *c, uint64_t least, uint64_t most)
{
    assert_in_range(c->usage[0], least, most);
    for (size_t i = 1; i < WORKERS + 2; i++) assert_int_equal(c->usage[i], c->usage[0]);
    for (size_t i = 1; i <= WORKERS; i++) assert_int_equal(c->links[i], c->usage[0]);
}

static void all_processes_and_connections_are_measured_in_the_same_rounds(void **state)
{
    (void)state;
    script    run;
    counts    c;
    at_tally *tally = begin(&run, &c, "master_stats.csv", LIMIT * 6 / 10);
    script_apply(&run, NULL, 0, 0, 0.1);
    for (int i = 0; i < ROUNDS; i++) measure(&run);
    assert_measured(&c, 50, ROUNDS / 20);
    end(&run, &c, tally);
}

static void a_hub_that_waits_for_workers_does_not_fill_the_disk(void **state)
{
    (void)state;
    script    run;
    counts    c;
    at_tally *tally = begin(&run, &c, "resource_stats.csv", LIMIT * 6 / 10);
    for (int i = 0; i < ROUNDS; i++) measure(&run);
    assert_measured(&c, 50, ROUNDS / 20);
    end(&run, &c, tally);
    tally = begin(&run, &c, "resource_stats.csv", LIMIT);
    for (int i = 0; i < ROUNDS; i++) measure(&run);
    assert_measured(&c, 0, 0);
    script_finish(&run, AT_END_SIGNAL);
    measure(&run); /* the totals before it do not have it */
    assert_measured(&c, 1, 1);
    end(&run, &c, tally);
}

static void below_half_of_the_limit_everything_is_recorded(void **state)
{
    (void)state;
    script    run;
    counts    c;
    at_tally *tally = begin(&run, &c, "master_stats.csv", LIMIT * 4 / 10);
    for (int i = 0; i < ROUNDS; i++) measure(&run);
    assert_measured(&c, ROUNDS, ROUNDS);
    assert_int_equal(c.totals, 0);
    end(&run, &c, tally);
}

/* A resumed run says at its start what its files may lack. */
static void every_table_that_is_there_counts(void **state)
{
    static const char *const names[] = {"master_stats.csv", "collect_stats.csv",
                                        "worker_stats.csv", "resource_stats.csv",
                                        "link_stats.csv",   "events.bin"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        script    run;
        counts    c;
        at_tally *tally = begin(&run, &c, names[i], LIMIT * 6 / 10);
        assert_int_equal(c.totals, 1);
        end(&run, &c, tally);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_processes_and_connections_are_measured_in_the_same_rounds),
        cmocka_unit_test(a_hub_that_waits_for_workers_does_not_fill_the_disk),
        cmocka_unit_test(below_half_of_the_limit_everything_is_recorded),
        cmocka_unit_test(every_table_that_is_there_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
