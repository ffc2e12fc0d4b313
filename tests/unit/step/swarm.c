/* Thousands of random runs: random combinations of rules, workers that die, freeze, return and send
 * duplicates, delayed messages. The invariants of the hub must hold in all of them. A failing seed
 * is printed; SWARM_SEED=n runs that one alone, SWARM_SEEDS=n sets their number. */
#include "scenario_stage.h"
#include "step/snapshot.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { SEEDS = 2000, LIVES = 16, REPORTS = 1024 };

typedef enum fate_kind { FATE_NONE, FATE_SENT, FATE_RECEIVED, FATE_USED, FATE_DROPPED } fate_kind;

/* State of a report. Only the last REPORTS of an incarnation are kept. */
typedef struct fate {
    uint64_t  sequence;
    uint32_t  samples;
    fate_kind kind;
} fate;

/* The checker's own accounting, independent of the hub's memory. */
typedef struct ledger {
    fate     fates[STAGE_WORKERS + 1][LIVES][REPORTS];
    uint64_t used[STAGE_WORKERS + 1], dropped[STAGE_WORKERS + 1];
    uint64_t clock[STAGE_WORKERS + 1];    /* rounds, as release rule `bound` counts them */
    uint64_t received[STAGE_WORKERS + 1]; /* last report of this incarnation that reached the hub */
    uint32_t incarnation[STAGE_WORKERS + 1];
    bool     live[STAGE_WORKERS + 1];
    uint64_t steps, samples_used;
    at_piece added[16 * STAGE_WORKERS];
    uint32_t added_count;
    at_ns    closed_at;
} ledger;

/* Totals over all runs, to check that the random runs cover every case. */
typedef struct coverage {
    uint64_t ends[AT_END_COUNT], drops[AT_DROP_COUNT];
    uint64_t evictions, replacements, echoes, steps, saves, switches, complete;
} coverage;

static coverage covered;
static char     failing[128]; /* printed when an assertion aborts the process */

static void print_seed(int signal_number)
{
    (void)signal_number;
    if (write(STDERR_FILENO, failing, strlen(failing)) < 0) return;
}

/* ---- checks --------------------------------------------------------------------------------- */

static uint64_t slowest_clock(const ledger *b, at_node but)
{
    uint64_t slowest = UINT64_MAX;
    for (at_node id = 1; id <= STAGE_WORKERS; id++)
        if (b->live[id] && id != but && b->clock[id] < slowest) slowest = b->clock[id];
    return slowest;
}

/* No step closes without all --workers, nobody else can join, and no round is abandoned: every step
 * is made of one round of each, whoever is lost meanwhile. */
static bool needs_all(const stage *s)
{
    const at_plan *plan = s->hub->plan;
    bool           all = plan->workers_min == plan->workers && plan->workers_max == plan->workers;
    bool           finishes = strcmp(plan->newer->rule.name, "finish") == 0;
    return all && finishes && at_plan_waits_for_all(plan) && !s->plan.then;
}

static void check_order(const stage *s, const ledger *b, const at_action *send)
{
    const at_order *order = &send->as.order;
    assert_true(b->live[send->worker] || order->leave);
    if (order->leave) return;
    assert_true(order->version <= b->steps);
    assert_true(order->samples_max >= 1);
    if (s->hub->plan->work->timed) assert_true(order->samples_max <= s->hub->plan->cap);
    if (needs_all(s)) assert_int_equal(order->round, order->version);
    if (strcmp(s->hub->plan->release->rule.name, "bound") != 0) return;
    uint64_t slowest = slowest_clock(b, send->worker);
    if (slowest < b->clock[send->worker])
        assert_true(b->clock[send->worker] - slowest <=
                    (uint64_t)s->hub->plan->arg[AT_RELEASE][0].whole);
}

static void check_weight(const stage *s, const at_piece *piece, uint64_t staleness)
{
    const char *stale = s->hub->plan->stale->rule.name;
    if (strcmp(stale, "drop") == 0)
        assert_true(staleness <= (uint64_t)s->hub->plan->arg[AT_STALE][0].whole);
    if (s->hub->plan->stale->correct)
        assert_true(staleness <= s->hub->plan->stale->versions(s->hub->plan));
    double expected = strcmp(stale, "scale") == 0 ? 1.0 / (1.0 + (double)staleness) : 1.0;
    assert_true(piece->weight == expected);
}

/* A report is used or dropped at most once, unchanged, and only if its sender was alive. */
static void set_fate(ledger *b, at_node worker, uint32_t life, uint64_t sequence, uint64_t samples,
                     fate_kind kind)
{
    fate *f = &b->fates[worker][life][sequence % REPORTS];
    assert_int_equal(f->sequence, sequence);
    assert_int_equal(f->kind, FATE_RECEIVED);
    assert_int_equal(f->samples, samples);
    f->kind = kind;
}

static void check_piece(const stage *s, ledger *b, const at_piece *piece)
{
    assert_true(piece->version <= b->steps); /* later versions do not exist */
    check_weight(s, piece, b->steps - piece->version);
    set_fate(b, piece->worker, piece->incarnation, piece->sequence, piece->samples, FATE_USED);
    b->used[piece->worker] += piece->samples;
}

/* Held gradients are listed in worker order, others in the order they were added. */
static void check_sequence(const stage *s, const ledger *b, const at_action *apply)
{
    const at_piece *pieces = apply->as.apply.pieces;
    assert_int_equal(apply->as.apply.folded, !s->hub->plan->release->holds);
    for (uint32_t i = 1; s->hub->plan->release->holds && i < apply->as.apply.count; i++)
        assert_true(pieces[i - 1].worker < pieces[i].worker);
    if (s->hub->plan->release->holds) return;
    assert_int_equal(apply->as.apply.count, b->added_count);
    for (uint32_t i = 0; i < b->added_count; i++) {
        assert_int_equal(pieces[i].worker, b->added[i].worker);
        assert_int_equal(pieces[i].sequence, b->added[i].sequence);
    }
}

static void check_gather(const stage *s, const ledger *b, const at_action *apply)
{
    const char *gather = s->hub->plan->gather->rule.name;
    uint32_t    count = apply->as.apply.count;
    bool        holds = s->hub->plan->release->holds;
    bool        drained = s->hub->draining; /* the rest of a step closes before a checkpoint */
    int64_t     argument = s->hub->plan->arg[AT_GATHER][0].whole; /* K or the period */
    bool        early = argument == AT_NEVER || count == 16 * s->hub->plan->workers_max || drained;
    if (holds && !drained) assert_true(s->hub->present >= s->hub->plan->workers_min);
    if (needs_all(s)) assert_int_equal(count, s->hub->plan->workers);
    covered.complete += needs_all(s) && count > 1;
    if (strcmp(gather, "any") == 0 && !holds && !drained) assert_int_equal(count, argument);
    bool never_held = s->hub->plan->workers_min <= 1; /* more may arrive while a step is held */
    if (strcmp(gather, "first") == 0 && holds && never_held)
        assert_true(count <= s->hub->plan->arg[AT_GATHER][0].last);
    if (early) return;
    if (strcmp(gather, "every") == 0) assert_true(s->now - b->closed_at >= argument);
}

static void check_apply(const stage *s, ledger *b, const at_action *apply)
{
    uint64_t samples = 0;
    assert_int_equal(apply->as.apply.step, b->steps + 1);
    assert_int_equal(apply->as.apply.samples_used, b->samples_used);
    assert_true(apply->as.apply.count >= 1);
    check_sequence(s, b, apply);
    check_gather(s, b, apply);
    for (uint32_t i = 0; i < apply->as.apply.count; i++) {
        check_piece(s, b, &apply->as.apply.pieces[i]);
        samples += apply->as.apply.pieces[i].samples;
    }
    assert_int_equal(apply->as.apply.samples, samples); /* the divisor is never weighted */
    b->samples_used += samples;
    b->added_count = 0;
    b->closed_at = s->now;
    b->steps++;
}

static void check_drop(ledger *b, const at_action *drop)
{
    assert_true(drop->as.drop.samples > 0);
    b->dropped[drop->worker] += drop->as.drop.samples;
    covered.drops[drop->as.drop.why]++;
    bool one = drop->as.drop.why == AT_DROP_STALE || drop->as.drop.why == AT_DROP_ABANDONED;
    if (one)
        set_fate(b, drop->worker, b->incarnation[drop->worker], drop->as.drop.sequence,
                 drop->as.drop.samples, FATE_DROPPED);
}

static void record_sent(ledger *b, at_node worker, const at_report *report)
{
    assert_true(report->incarnation < LIVES);
    fate *f = &b->fates[worker][report->incarnation][report->sequence % REPORTS];
    assert_true(report->sequence > f->sequence); /* a sequence number is used once */
    *f = (fate){report->sequence, report->work.samples, FATE_SENT};
}

/* A snapshot matches the accounting at the time of SAVE, and a hub can resume from it. */
static void check_save(const stage *s, const ledger *b, const at_action *save)
{
    const at_snapshot *snapshot = save->as.save.snapshot;
    size_t             size = at_hub_size(&s->plan);
    assert_true(s->plan.saves);
    assert_true(at_snapshot_valid(snapshot, &s->plan));
    assert_int_equal(snapshot->version, b->steps);
    assert_int_equal(snapshot->samples_used, b->samples_used);
    for (at_node id = 1; id <= s->plan.workers_max; id++) {
        const at_member_snapshot *member = &snapshot->member[id - 1];
        assert_int_equal(member->used, b->used[id]);
        assert_int_equal(member->dropped, b->dropped[id]);
        assert_true(member->used + member->dropped <= s->actor[id].drawn);
    }
    void *memory = aligned_alloc(64, (size + 63) / 64 * 64);
    assert_non_null(memory);
    memset(memory, 0, size);
    at_hub *hub = at_hub_init(&s->plan, memory, size);
    at_snapshot_restore(hub, snapshot);
    assert_int_equal(hub->version, snapshot->version);
    assert_int_equal(hub->trace, snapshot->trace);
    free(memory);
    covered.saves++;
}

/* While all workers are to wait, one that is waiting already would take any other order as the one
 * to start, so the last order of an event to a worker is to pause. */
static void check_pause(const stage *s, const at_action *send)
{
    const at_action *last = send;
    bool             few = s->hub->present < s->hub->plan->workers_min;
    if (s->hub->end != AT_END_RUNNING || !(s->hub->draining || (s->hub->assembled && few))) return;
    for (size_t i = 0; i < s->out.count; i++) {
        const at_action *action = &s->out.actions[i];
        if (action->kind == AT_ACT_SEND && action->worker == send->worker) last = action;
    }
    assert_true(last->as.order.pause);
}

static void check_worker(stage *s, at_node worker, const at_worker_action *action)
{
    if (action->kind == AT_WORKER_SEND) record_sent(s->watcher, worker, &action->report);
}

static void check_action(stage *s, const at_action *action)
{
    ledger *b = s->watcher;
    if (action->kind == AT_ACT_SEND) {
        check_order(s, b, action);
        check_pause(s, action);
    } else if (action->kind == AT_ACT_ADD) {
        assert_true(b->added_count < sizeof b->added / sizeof *b->added);
        b->added[b->added_count++] = action->as.add;
    } else if (action->kind == AT_ACT_APPLY) {
        check_apply(s, b, action);
    } else if (action->kind == AT_ACT_DROP) {
        check_drop(b, action);
    } else if (action->kind == AT_ACT_SAVE) {
        check_save(s, b, action);
    } else if (action->kind == AT_ACT_EVICT) {
        b->live[action->worker] = false;
        covered.evictions++;
    }
}

static void record_received(ledger *b, at_node worker, const at_report *report)
{
    b->received[worker] = report->sequence;
    b->fates[worker][report->incarnation][report->sequence % REPORTS].kind = FATE_RECEIVED;
}

static void record_event(stage *s, const at_event *event)
{
    ledger *b = s->watcher;
    at_node id = event->worker;
    if (event->kind == AT_EV_JOINED) {
        uint64_t slowest = slowest_clock(b, id);
        if (slowest != UINT64_MAX) b->clock[id] = slowest;
        b->live[id] = true;
        b->incarnation[id] = event->as.joined.incarnation;
        b->received[id] = 0;
        covered.replacements += b->incarnation[id] > 1;
    } else if (event->kind == AT_EV_LOST) {
        b->live[id] = false;
    } else if (event->kind == AT_EV_MESSAGE) {
        bool fresh = b->live[id] && event->as.report.incarnation == b->incarnation[id] &&
                     event->as.report.sequence > b->received[id];
        if (fresh)
            record_received(b, id, &event->as.report);
        else
            covered.echoes++;
        b->clock[id] += fresh;
    }
}

/* ---- a random run --------------------------------------------------------------------------- */

#define PICK(rng, ...)      \
    ((const char *const[]){ \
        __VA_ARGS__})[at_rng_below(rng, sizeof(const char *[]){__VA_ARGS__} / sizeof(char *))]

static bool chance(at_rng *rng, double p)
{
    return at_rng_uniform(rng) < p;
}

static at_plan_options random_options(at_rng *rng)
{
    at_plan_options o = {
        .strategy = at_strategies[at_rng_below(rng, at_strategies_count)].name,
        .gather = PICK(rng, NULL, "all", "first:1", "first:2", "first", "any:1", "any:2", "any:5",
                       "any", "every:30ms", "every:200ms", "quorum", "quorum:1,10ms",
                       "quorum:2,80ms", "first:1-"),
        .release = PICK(rng, NULL, "barrier", "free", "bound:0", "bound:1", "bound:3"),
        .newer = PICK(rng, NULL, "finish", "abandon", "refresh"),
        .stale = PICK(rng, NULL, "use", "drop", "scale", "drop:1", "drop:3", "compensate:0.1",
                      "compensate:0.1,versions=2"),
        .time_limit = PICK(rng, NULL, "auto", "20ms", "70ms"),
        .work = PICK(rng, NULL, ":cut=nearest", ":cut=after", NULL, NULL, "local", "local:40ms"),
        .workers = 1 + (uint32_t)at_rng_below(rng, 8),
        .batch = 1 + (uint32_t)at_rng_below(rng, 96),
        .deal_global = chance(rng, 0.2),
        .lease = chance(rng, 0.5) ? AT_MS(900) : 0,
        .eval_steps = at_rng_below(rng, 5),
        .eval_samples = at_rng_below(rng, 400),
        .limits = {.steps = 1 + at_rng_below(rng, 60)},
    };
    o.micro_batch = 1 + (uint32_t)at_rng_below(rng, o.batch);
    o.workers_min = chance(rng, 0.3) ? 1 + (uint32_t)at_rng_below(rng, o.workers) : 0;
    o.workers_max = o.workers + (uint32_t)at_rng_below(rng, 4);
    if (chance(rng, 0.1)) { /* nobody can be missed */
        o.workers_min = o.workers_max = o.workers;
        o.gather = "all";
        o.release = "barrier";
        o.newer = "finish";
    }
    o.join_timeout = AT_MS(300);
    if (chance(rng, 0.2)) o.limits.samples = 1 + at_rng_below(rng, 4000);
    o.limits.epochs = chance(rng, 0.5);
    if (chance(rng, 0.2)) o.limits.time = AT_MS(500);
    if (chance(rng, 0.2)) o.limits.target[o.limits.targets++].value = 0.7;
    return o;
}

static void random_saves(at_plan *plan, at_rng *rng)
{
    plan->saves = chance(rng, 0.5);
    if (chance(rng, 0.6)) plan->save_steps = 1 + at_rng_below(rng, 12);
    if (chance(rng, 0.3)) plan->save_time = AT_MS(40);
}

static at_ns random_delay(stage *s, at_ns mean)
{
    return (at_ns)(-log(1 - at_rng_uniform(&s->rng)) * (double)mean);
}

static at_ns random_sleep(const stage *s, at_node worker, uint64_t round)
{
    (void)s;
    at_rng rng = at_rng_stream(7, worker, AT_RNG_PURPOSE_PACE, round);
    return chance(&rng, 0.2) ? (at_ns)(at_rng_uniform(&rng) * AT_MS(100)) : 0;
}

static at_ns random_moment(at_rng *rng)
{
    return AT_MS(2000 * at_rng_uniform(rng));
}

static void randomize(stage *s, at_rng *rng)
{
    s->rng = *rng;
    s->delay = chance(rng, 0.8) ? random_delay : NULL;
    s->sleep = chance(rng, 0.5) ? random_sleep : NULL;
    s->latency = (at_ns)at_rng_below(rng, 3) * AT_MS(10);
    s->send_ns = (at_ns)at_rng_below(rng, 3) * AT_MS(2);
    s->newer_ns = (at_ns)at_rng_below(rng, 3) * AT_MS(2);
    s->eval_ns = (at_ns)at_rng_below(rng, 3) * AT_MS(40);
    s->echo = chance(rng, 0.2);
    s->patient = chance(rng, 0.5);
    s->old_notices = chance(rng, 0.2);
    s->halvings = chance(rng, 0.3) ? 0.2 : 0;
    if (chance(rng, 0.05)) s->nan_version = at_rng_below(rng, 30);
    for (at_node id = 1; id <= s->plan.workers_max; id++) {
        actor *a = &s->actor[id];
        a->sample_ns = AT_US(200) + (at_ns)(at_rng_uniform(rng) * AT_MS(2));
        a->deaf = chance(rng, 0.03);
        a->back_after = chance(rng, 0.7) ? AT_MS(30) : AT_NEVER;
    }
    s->plan.open = chance(rng, 0.3);
    for (at_node id = s->plan.workers + 1; id <= s->plan.workers_max; id++)
        stage_cue(s, random_moment(rng), CUE_BACK, id);
    double trouble = chance(rng, 0.3) ? 0 : 4 * at_rng_uniform(rng);
    while (chance(rng, trouble / (1 + trouble))) {
        at_node id = 1 + (at_node)at_rng_below(rng, s->plan.workers_max);
        at_ns   span = (at_ns)at_rng_below(rng, 3) * AT_MS(150);
        bool    for_good = chance(rng, 0.3);
        if (chance(rng, 0.6))
            stage_kill(s, random_moment(rng), id, for_good ? AT_NEVER : span);
        else
            stage_freeze(s, random_moment(rng), id, for_good ? AT_NEVER : 20 * span);
        if (chance(rng, 0.1)) s->actor[id].stillborn = 1 + (uint32_t)at_rng_below(rng, 2);
    }
    if (chance(rng, 0.2)) stage_stop(s, random_moment(rng));
}

static void check_end(const stage *s, const ledger *b)
{
    assert_false(s->stalled);
    assert_true(s->finished);
    assert_int_not_equal(s->end, AT_END_RUNNING);
    covered.ends[s->end]++;
    covered.steps += b->steps;
    for (at_node id = 1; id <= s->plan.workers_max; id++) {
        const at_member *member = &s->hub->member[id - 1];
        assert_false(s->actor[id].alive); /* the hub finishes when all are gone */
        assert_int_equal(s->actor[id].drawn, b->used[id] + b->dropped[id]);
        assert_int_equal(member->used, b->used[id]);
        assert_int_equal(member->dropped, b->dropped[id]);
    }
}

/* False when the drawn rules do not work together. */
static bool run_seed(uint64_t seed, uint64_t *trace)
{
    at_rng          rng = at_rng_stream(seed, 0, AT_RNG_PURPOSE_TEST, 0);
    at_plan_options options = random_options(&rng);
    const char *switch_to = PICK(&rng, NULL, NULL, NULL, "async@step=5", "fmb@step=3", "amb@step=9",
                                 "backup:1@time=70ms", "ringmaster:1@loss=0.4", "quorum@step=2",
                                 "ssp:1@loss=0.9", "batch-sync:2@time=0.2", "dbs@step=4");
    at_plan     plan, then;
    if (at_plan_resolve(&options, &plan, NULL)) return false;
    if (switch_to && at_switch_resolve(&options, switch_to, &plan, &then, NULL)) switch_to = NULL;
    stage  *s = calloc(1, sizeof *s);
    ledger *b = calloc(1, sizeof *b);
    assert_non_null(s);
    assert_non_null(b);
    stage_open_switching(s, &options, switch_to);
    random_saves(&s->plan, &rng);
    randomize(s, &rng);
    s->watcher = b;
    s->saw_action = check_action;
    s->saw_worker = check_worker;
    s->saw_event = record_event;
    stage_run(s);
    check_end(s, b);
    covered.switches += s->hub->switched;
    *trace = s->hub->trace;
    stage_close(s);
    free(b);
    free(s);
    return true;
}

static void assert_all_covered(uint64_t runs)
{
    for (int end = AT_END_RUNNING + 1; end < AT_END_COUNT; end++)
        if (covered.ends[end] == 0 && end != AT_END_LOST && end != AT_END_LEFT) /* by worlds only */
            fail_msg("no run ended by %s", at_end_name[end]);
    for (int why = 0; why < AT_DROP_COUNT; why++)
        if (covered.drops[why] == 0) fail_msg("no samples were %s", at_drop_name[why]);
    assert_true(covered.evictions > runs / 20);
    assert_true(covered.replacements > runs / 10);
    assert_true(covered.echoes > runs);
    assert_true(covered.steps > 5 * runs);
    assert_true(covered.saves > runs);
    assert_true(covered.switches > runs / 10);
    assert_true(covered.complete > runs / 100);
}

static uint64_t number_from(const char *variable, uint64_t fallback)
{
    return getenv(variable) ? strtoull(getenv(variable), NULL, 10) : fallback;
}

static void invariants_hold_in_random_runs(void **state)
{
    (void)state;
    signal(SIGABRT, print_seed);
    uint64_t first = number_from("SWARM_SEED", 0), accepted = 0;
    uint64_t count = getenv("SWARM_SEED") ? 1 : number_from("SWARM_SEEDS", SEEDS);
    for (uint64_t seed = first; seed < first + count; seed++) {
        snprintf(failing, sizeof failing, "seed %llu fails; SWARM_SEED=%llu runs it alone\n",
                 (unsigned long long)seed, (unsigned long long)seed);
        uint64_t trace = 0, again = 0;
        if (!run_seed(seed, &trace)) continue;
        run_seed(seed, &again);
        assert_int_equal(trace, again); /* the same seed gives the same run */
        accepted++;
    }
    failing[0] = '\0';
    if (count < SEEDS) return;
    assert_true(accepted > count / 5);
    assert_all_covered(2 * accepted);
}

/* cmocka leaves a failed test by longjmp, so the seed is printed in the teardown. */
static int print_failing_seed(void **state)
{
    (void)state;
    if (failing[0]) print_error("%s", failing);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(invariants_hold_in_random_runs, print_failing_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
