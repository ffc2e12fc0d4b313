/* The worker's loop over a scripted transport: whatever comes between any two micro-batches is seen
 * there, and nothing is lost, counted twice or waited for in vain. */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "pace/pace.h"
#include "world/core/driver.h"

enum { BATCH = 32, MICRO = 4, MICROS = BATCH / MICRO, WAITS_MAX = 1000, REPORTS_MAX = 64 };

/* A hub that does what a test says when so many micro-batches were computed. */
typedef struct fixture {
    at_plan          plan;
    at_world_context context;
    at_pace         *pace;
    at_driver        driver;
    _Atomic uint64_t drawn;
    /* What lies on the worker's fixture. */
    at_order order;
    bool     ordered, leaves;
    uint64_t version, fetched, installed;
    uint32_t refusals; /* sends that are not taken yet */
    at_order next;     /* the order that follows when the worker waits; samples_max 0: none */
    uint32_t news, waits;
    /* What came back. */
    at_report report[REPORTS_MAX];
    uint32_t  reports;
    float     params[1], gradient[1];
} fixture;

static uint32_t heard(void *self)
{
    return ((fixture *)self)->news;
}

/* Nothing sleeps here. A worker that would wait forever is ordered to leave, and the test
 * reports it. */
static void wait_for_news(void *self, uint32_t before, at_ns until)
{
    fixture *d = self;
    (void)before;
    (void)until;
    if (++d->waits >= WAITS_MAX) d->leaves = true;
    if (d->next.samples_max == 0) return;
    d->order = d->next;
    d->ordered = true;
    d->next = (at_order){0};
}

static bool leaves(void *self)
{
    return ((fixture *)self)->leaves;
}

static bool take_order(void *self, at_order *order)
{
    fixture *d = self;
    bool     ordered = d->ordered;
    *order = d->order;
    d->ordered = false;
    return ordered;
}

static uint64_t newest(void *self)
{
    return ((fixture *)self)->version;
}

static uint64_t fetch(void *self)
{
    fixture *d = self;
    return d->fetched = d->version;
}

static const float *install(void *self)
{
    fixture *d = self;
    d->installed = d->fetched;
    return d->params;
}

static float *gradient(void *self, uint32_t slot)
{
    (void)slot;
    return ((fixture *)self)->gradient;
}

static bool send_report(void *self, const at_report *report)
{
    fixture *d = self;
    if (d->refusals > 0) {
        d->refusals--;
        return false;
    }
    assert_true(d->reports < REPORTS_MAX);
    d->report[d->reports++] = *report;
    return true;
}

static void sit_down(fixture *d, const char *strategy, const char *newer)
{
    at_fail         fail = {0};
    at_plan_options o = {.strategy = strategy,
                         .newer = newer,
                         .workers = 2,
                         .batch = BATCH,
                         .micro_batch = MICRO,
                         .time_limit = "auto"};
    memset(d, 0, sizeof *d);
    if (at_plan_resolve(&o, &d->plan, &fail)) fail_msg("%s", fail.text);
    at_pace_options pace = {.model = "none", .scale = "1", .workers = 2, .rounds_per_epoch = 1};
    if (at_pace_new(&pace, &d->pace, &fail)) fail_msg("%s", fail.text);
    d->context = (at_world_context){.plan = &d->plan, .pace = d->pace, .seed = 1};
    at_driver_options options = {.context = &d->context,
                                 .transport = {.self = d,
                                               .heard = heard,
                                               .wait = wait_for_news,
                                               .leaves = leaves,
                                               .take_order = take_order,
                                               .newest = newest,
                                               .fetch = fetch,
                                               .install = install,
                                               .gradient = gradient,
                                               .send = send_report},
                                 .id = 1,
                                 .incarnation = 1,
                                 .slots = 2,
                                 .drawn = &d->drawn};
    at_driver_init(&d->driver, &options);
}

static void stand_up(fixture *d)
{
    at_pace_free(d->pace);
}

static void order(fixture *d, at_order given)
{
    d->order = given;
    d->order.position = AT_POSITION_OWN;
    if (d->order.samples_max == 0) d->order.samples_max = BATCH;
    if (d->order.time_limit == 0) d->order.time_limit = AT_NEVER;
    d->ordered = true;
    d->news++;
}

/* Computes `count` micro-batches; false: the driver ended before. */
static bool compute(fixture *d, uint32_t count)
{
    at_micro micro;
    for (uint32_t i = 0; i < count; i++) {
        if (!at_driver_next(&d->driver, &micro)) return false;
        assert_true(micro.draw.count >= 1 && micro.draw.count <= MICRO);
        assert_int_equal(micro.point.version, d->installed);
        at_driver_done(&d->driver, micro.draw.count, micro.draw.count);
    }
    return true;
}

static void compute_to_the_end(fixture *d)
{
    at_micro micro;
    while (at_driver_next(&d->driver, &micro))
        at_driver_done(&d->driver, micro.draw.count, micro.draw.count);
}

/* Everything drawn is in a report, and each report says what it holds. */
static void check_ledger(const fixture *d)
{
    uint64_t reported = 0;
    for (uint32_t i = 0; i < d->reports; i++) {
        const at_work *work = &d->report[i].work;
        assert_int_equal(d->report[i].sequence, i + 1);
        assert_int_equal(d->report[i].slot, (i + 1) % 2);
        if (!work->abandoned) assert_true(work->loss_sum == (double)work->samples);
        reported += work->samples;
    }
    assert_int_equal(reported, atomic_load(&d->drawn));
}

static void a_leave_between_any_two_micro_batches_ends_the_round_there(void **state)
{
    (void)state;
    for (uint32_t k = 1; k < MICROS; k++) {
        fixture d;
        sit_down(&d, "fmb", NULL);
        order(&d, (at_order){.round = 0});
        assert_true(compute(&d, k));
        d.leaves = true;
        compute_to_the_end(&d);
        assert_int_equal(d.reports, 1);
        assert_int_equal(d.report[0].work.samples, k * MICRO);
        assert_true(d.report[0].work.abandoned);
        check_ledger(&d);
        stand_up(&d);
    }
}

static void new_amounts_between_any_two_micro_batches_hold_from_the_next_round(void **state)
{
    (void)state;
    for (uint32_t k = 1; k < MICROS; k++) {
        fixture d;
        sit_down(&d, "async", NULL);
        order(&d, (at_order){.round = 0, .again = true});
        assert_true(compute(&d, k));
        order(&d, (at_order){.again = true, .samples_max = 2 * MICRO});
        assert_true(compute(&d, MICROS - k + 2 + 1)); /* the rest, a short one, and one more */
        assert_int_equal(d.report[0].work.samples, BATCH);
        assert_int_equal(d.report[1].work.samples, 2 * MICRO);
        assert_int_equal(d.report[1].work.round, 1);
        d.leaves = true;
        compute_to_the_end(&d);
        check_ledger(&d);
        stand_up(&d);
    }
}

static void a_pause_between_any_two_micro_batches_is_in_the_report_of_that_round(void **state)
{
    (void)state;
    for (uint32_t k = 1; k < MICROS; k++) {
        fixture d;
        sit_down(&d, "async", NULL);
        order(&d, (at_order){.round = 0, .again = true});
        assert_true(compute(&d, k));
        order(&d, (at_order){.pause = true});
        assert_true(compute(&d, MICROS - k));
        compute_to_the_end(&d); /* waits until it is ordered to leave */
        assert_int_equal(d.reports, 1);
        assert_false(d.report[0].again);
        assert_int_equal(d.waits, WAITS_MAX);
        check_ledger(&d);
        stand_up(&d);
    }
}

static void an_order_after_a_pause_is_the_next_round(void **state)
{
    (void)state;
    fixture d;
    sit_down(&d, "async", NULL);
    order(&d, (at_order){.round = 0, .again = true});
    assert_true(compute(&d, 1));
    order(&d, (at_order){.pause = true});
    d.next = (at_order){.round = 1,
                        .again = true,
                        .samples_max = BATCH,
                        .time_limit = AT_NEVER,
                        .position = AT_POSITION_OWN};
    assert_true(compute(&d, MICROS - 1 + 1));
    d.leaves = true;
    compute_to_the_end(&d);
    assert_int_equal(d.report[1].work.round, 1);
    check_ledger(&d);
    stand_up(&d);
}

static void
newer_parameters_between_any_two_micro_batches_void_the_round_under_abandon(void **state)
{
    (void)state;
    for (uint32_t k = 1; k < MICROS; k++) {
        fixture d;
        sit_down(&d, "async", "abandon");
        order(&d, (at_order){.round = 0, .again = true});
        assert_true(compute(&d, k));
        d.version = 1;
        assert_true(compute(&d, 1)); /* of the next round, on the newer version */
        assert_int_equal(d.reports, 1);
        assert_true(d.report[0].work.abandoned);
        assert_int_equal(d.report[0].work.samples, k * MICRO);
        assert_int_equal(d.installed, 1);
        d.leaves = true;
        compute_to_the_end(&d);
        check_ledger(&d);
        stand_up(&d);
    }
}

static void newer_parameters_between_any_two_micro_batches_are_taken_under_refresh(void **state)
{
    (void)state;
    for (uint32_t k = 1; k < MICROS; k++) {
        fixture d;
        sit_down(&d, "async", "refresh");
        order(&d, (at_order){.round = 0, .again = true});
        assert_true(compute(&d, k));
        d.version = 7;
        assert_true(compute(&d, 1));
        assert_int_equal(d.installed, 7);
        assert_true(compute(&d, MICROS - k));          /* and the first of the next round */
        assert_int_equal(d.report[0].work.version, 0); /* of the first micro-batch */
        assert_int_equal(d.report[0].work.samples, BATCH);
        d.leaves = true;
        compute_to_the_end(&d);
        check_ledger(&d);
        stand_up(&d);
    }
}

static void newer_parameters_change_nothing_under_finish(void **state)
{
    (void)state;
    fixture d;
    sit_down(&d, "async", "finish");
    order(&d, (at_order){.round = 0, .again = true});
    assert_true(compute(&d, 2));
    d.version = 1;
    assert_true(compute(&d, MICROS - 2));
    assert_int_equal(d.installed, 0);
    assert_true(compute(&d, 1));
    assert_int_equal(d.installed, 1);
    assert_false(d.report[0].work.abandoned);
    d.leaves = true;
    compute_to_the_end(&d);
    check_ledger(&d);
    stand_up(&d);
}

static void a_report_that_is_not_taken_is_offered_again_and_orders_are_heard_meanwhile(void **state)
{
    (void)state;
    fixture d;
    sit_down(&d, "async", NULL);
    order(&d, (at_order){.round = 0, .again = true});
    d.refusals = 20;
    assert_true(compute(&d, MICROS));
    assert_int_equal(d.reports, 0);
    order(&d, (at_order){.again = true, .samples_max = MICRO});
    assert_true(compute(&d, 2));
    assert_int_equal(d.reports, 2);
    assert_int_equal(d.report[1].work.samples, MICRO);
    assert_true(d.waits >= 19); /* once it was offered without waiting */
    d.leaves = true;
    compute_to_the_end(&d);
    check_ledger(&d);
    stand_up(&d);
}

static void an_order_that_comes_twice_gives_two_rounds_and_no_third(void **state)
{
    (void)state;
    fixture d;
    sit_down(&d, "fmb", NULL);
    order(&d, (at_order){.round = 0});
    assert_true(compute(&d, 3));
    order(&d, (at_order){.round = 0}); /* a duplicate that arrives during the round */
    assert_true(compute(&d, 2 * MICROS - 3));
    compute_to_the_end(&d);
    assert_int_equal(d.reports, 2);
    check_ledger(&d);
    stand_up(&d);
}

static void a_leave_before_the_first_order_leaves_at_once(void **state)
{
    (void)state;
    fixture  d;
    at_micro micro;
    sit_down(&d, "fmb", NULL);
    d.leaves = true;
    assert_false(at_driver_next(&d.driver, &micro));
    assert_int_equal(d.reports, 0);
    assert_int_equal(d.waits, 0);
    stand_up(&d);
}

/* ---- a seat: another program owns the loop -------------------------------------------------- */

static void a_loader_of_its_own_keeps_the_ledger_exact(void **state)
{
    (void)state;
    fixture  d;
    at_micro micro;
    uint32_t given = 0;
    sit_down(&d, "fmb", NULL);
    order(&d, (at_order){.round = 0});
    while (d.reports == 0 && at_driver_next(&d.driver, &micro)) {
        uint32_t samples = given % 2 ? 3 : 7; /* batches of a loader, not what was asked for */
        at_driver_done(&d.driver, samples, samples);
        given++;
    }
    assert_true(d.report[0].work.samples >= BATCH);
    assert_true(d.report[0].work.capped);
    d.leaves = true;
    compute_to_the_end(&d);
    check_ledger(&d);
    stand_up(&d);
}

/* ---- gossip: workers that average with their neighbors -------------------------------------- */

enum { RING = 3, GOSSIP_ROUNDS = 20 };

/* What one worker of the ring shows its neighbors: its value after each round. */
typedef struct gossip {
    fixture          fixture;
    struct gossip   *neighbor[2];
    float            value[GOSSIP_ROUNDS + 1];
    _Atomic uint32_t shown; /* rounds whose value is there */
    uint32_t         mixed;
} gossip;

/* A report is accepted when both neighbors have shown their values of this round; until then the
 * driver keeps hearing orders. */
static bool send_and_mix(void *self, const at_report *report)
{
    gossip  *g = self;
    uint32_t round = g->mixed;
    if (report->work.abandoned) return send_report(&g->fixture, report); /* it leaves */
    if (atomic_load(&g->shown) == round) {
        g->value[round] = g->fixture.params[0] - 0.1F * g->fixture.gradient[0];
        atomic_store(&g->shown, round + 1);
    }
    for (int i = 0; i < 2; i++)
        if (atomic_load(&g->neighbor[i]->shown) <= round) return false;
    float sum = g->value[round];
    for (int i = 0; i < 2; i++) sum += g->neighbor[i]->value[round];
    g->fixture.params[0] = sum / RING;
    g->fixture.version++;
    g->mixed++;
    g->fixture.leaves = g->mixed == GOSSIP_ROUNDS;
    return send_report(&g->fixture, report);
}

static void *gossip_main(void *self)
{
    gossip  *g = self;
    at_micro micro;
    while (at_driver_next(&g->fixture.driver, &micro)) {
        if (micro.first) *micro.gradient = 0;
        *micro.gradient += *micro.point.params / MICROS;
        at_driver_done(&g->fixture.driver, micro.draw.count, micro.draw.count);
    }
    return NULL;
}

static void wait_politely(void *self, uint32_t before, at_ns until)
{
    (void)self;
    (void)before;
    (void)until;
    sched_yield();
}

static void a_gossip_exchange_fits_behind_the_transport(void **state)
{
    (void)state;
    static gossip ring[RING];
    pthread_t     thread[RING];
    for (int i = 0; i < RING; i++) {
        gossip *g = &ring[i];
        sit_down(&g->fixture, "async", NULL);
        g->neighbor[0] = &ring[(i + 1) % RING];
        g->neighbor[1] = &ring[(i + 2) % RING];
        g->fixture.params[0] = (float)(3 * i);
        g->fixture.driver.options.transport.wait = wait_politely;
        g->fixture.driver.options.transport.send = send_and_mix;
        order(&g->fixture, (at_order){.round = 0, .again = true});
    }
    for (int i = 0; i < RING; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, gossip_main, &ring[i]), 0);
    for (int i = 0; i < RING; i++) pthread_join(thread[i], NULL);
    /* They agree after one exchange of all with all, and shrink together. */
    float expected = 3;
    for (int i = 0; i < GOSSIP_ROUNDS; i++) expected -= 0.1F * expected;
    for (int i = 0; i < RING; i++) {
        assert_true(fabsf(ring[i].fixture.params[0] - expected) < 1e-4F);
        assert_int_equal(ring[i].fixture.reports, GOSSIP_ROUNDS + 1); /* the last one is void */
        check_ledger(&ring[i].fixture);
        stand_up(&ring[i].fixture);
    }
}

/* ---- one turn at a time (seats) ------------------------------------------------------------- */

static bool never_interrupted(void *self)
{
    (void)self;
    return false;
}

/* Computes the rest of a round whose micro-batch is at hand; returns how its last turn ended. */
static at_driver_status compute_round(fixture *d)
{
    at_micro         micro;
    at_driver_status status = AT_DRIVER_MICRO;
    while (status == AT_DRIVER_MICRO) {
        at_driver_done(&d->driver, MICRO, 1);
        status = at_driver_turn(&d->driver, &micro, at_clock_now());
    }
    return status;
}

static void a_round_is_reported_only_when_the_caller_says_so(void **state)
{
    (void)state;
    fixture  d;
    at_micro micro;
    sit_down(&d, "fmb", NULL);
    d.driver.options.asks_to_report = true;
    d.driver.options.transport.interrupted = never_interrupted;
    assert_int_equal(at_driver_turn(&d.driver, &micro, at_clock_now()), AT_DRIVER_WAITING);
    order(&d, (at_order){0});
    assert_int_equal(at_driver_turn(&d.driver, &micro, at_clock_now()), AT_DRIVER_MICRO);
    assert_int_equal(compute_round(&d), AT_DRIVER_ROUND_OVER);
    assert_int_equal(at_driver_turn(&d.driver, &micro, at_clock_now()), AT_DRIVER_ROUND_OVER);
    assert_int_equal(d.reports, 0);
    at_driver_report(&d.driver);
    assert_int_equal(d.reports, 1);
    assert_int_equal(d.report[0].work.samples, BATCH);
    assert_int_equal(at_driver_turn(&d.driver, &micro, at_clock_now()), AT_DRIVER_WAITING);
    stand_up(&d);
}

static void a_micro_batch_that_is_never_computed_was_not_drawn(void **state)
{
    (void)state;
    fixture  d;
    at_micro micro;
    sit_down(&d, "fmb", NULL);
    d.driver.options.asks_to_report = true;
    d.driver.options.transport.interrupted = never_interrupted;
    order(&d, (at_order){0});
    assert_int_equal(at_driver_turn(&d.driver, &micro, at_clock_now()), AT_DRIVER_MICRO);
    assert_int_equal(d.drawn, MICRO);
    at_driver_return_micro(&d.driver);
    assert_int_equal(d.drawn, 0);
    stand_up(&d);
}

static void an_abandoned_round_ends_without_asking(void **state)
{
    (void)state;
    fixture  d;
    at_micro micro;
    sit_down(&d, "fmb", "abandon");
    d.driver.options.asks_to_report = true;
    d.driver.options.transport.interrupted = never_interrupted;
    order(&d, (at_order){0});
    assert_int_equal(at_driver_turn(&d.driver, &micro, at_clock_now()), AT_DRIVER_MICRO);
    d.version++;
    at_driver_done(&d.driver, MICRO, 1);
    assert_int_equal(at_driver_turn(&d.driver, &micro, at_clock_now()), AT_DRIVER_ABANDONED);
    assert_int_equal(d.reports, 1);
    assert_true(d.report[0].work.abandoned);
    stand_up(&d);
}

/* ---- message delays -------------------------------------------------------------------------- */

static at_ns virtual_now;

static at_ns virtual_clock(void)
{
    return virtual_now;
}

static void wait_virtually(void *self, uint32_t before, at_ns until)
{
    if (until != AT_NEVER) virtual_now = until;
    wait_for_news(self, before, until);
}

static void sit_down_far_away(fixture *d, const char *strategy)
{
    virtual_now = AT_SEC(1);
    at_clock_use(virtual_clock);
    sit_down(d, strategy, NULL);
    d->context.comm_delay = 1;
    d->driver.options.transport.wait = wait_virtually;
}

/* A gradient of older parameters would be dropped, and behind a barrier nobody would start over. */
static void an_order_behind_a_barrier_overtakes_parameters_on_their_way(void **state)
{
    (void)state;
    fixture d, barrier;
    sit_down(&barrier, "fmb", NULL);
    sit_down_far_away(&d, "async");
    d.plan.then = &barrier.plan;
    order(&d, (at_order){.round = 0, .again = true});
    assert_true(compute(&d, MICROS - 1));
    d.version = 1;
    assert_true(compute(&d, 2)); /* the last one, and one of the next round */
    assert_int_equal(d.installed, 0);
    assert_int_equal(d.fetched, 1); /* on its way */
    d.version = 5;
    order(&d, (at_order){.pause = true});
    assert_true(compute(&d, 1));
    virtual_now += AT_SEC(60); /* the pause arrives */
    assert_true(compute(&d, MICROS - 2));
    d.next = (at_order){.round = 2,
                        .version = 5,
                        .then = true,
                        .samples_max = BATCH,
                        .time_limit = AT_NEVER,
                        .position = AT_POSITION_OWN};
    assert_true(compute(&d, 1));
    assert_int_equal(d.reports, 2);
    assert_int_equal(d.installed, 5);
    d.leaves = true;
    compute_to_the_end(&d);
    check_ledger(&d);
    stand_up(&d);
    stand_up(&barrier);
    at_clock_use(NULL);
}

/* ---- gradients that are sent while they are computed ---------------------------------------- */

enum { FLOATS = 60, TRAINED = 50, LAYER = 10 };

/* A model of five layers and some statistics. */
typedef struct early_fixture {
    fixture           fixture; /* first: the transport's self */
    at_task           task;
    at_gradient_watch watch;
    float             gradient[FLOATS];
    size_t            told[64];
    uint32_t          tellings;
    int               bad; /* place that becomes infinite in the last micro-batch; -1: none */
} early_fixture;

static early_fixture early_;

static void watch_early(void *self, at_gradient_watch watch)
{
    ((early_fixture *)self)->watch = watch;
}

/* Overwrites or adds ones, layer by layer from the last one. */
static double gradient_early(void *self, float *g, bool first, at_point point, const at_draw *draw)
{
    early_fixture *e = self;
    (void)point;
    for (size_t from = TRAINED; from > 0;) {
        from -= LAYER;
        for (size_t i = from; i < from + LAYER; i++) {
            g[i] = (first ? 0 : g[i]) + (float)draw->count;
            if (e->watch.final && (int)i == e->bad) g[i] = INFINITY;
        }
        if (e->watch.final) e->watch.final(e->watch.self, from);
    }
    for (size_t i = TRAINED; i < FLOATS; i++) g[i] = (int)i == e->bad ? NAN : 1;
    return draw->count;
}

static float *slot_early(void *self, uint32_t slot)
{
    (void)slot;
    return ((early_fixture *)self)->gradient;
}

/* What is told was final: the sums of all micro-batches of the round. */
static void final_early(void *self, size_t from)
{
    early_fixture *e = self;
    assert_true(e->tellings < sizeof e->told / sizeof *e->told);
    e->told[e->tellings++] = from;
    for (size_t i = from; i < TRAINED && e->bad < 0; i++)
        assert_true(e->gradient[i] == (float)BATCH);
}

static void leave_after_report(void *self, uint32_t before, at_ns until)
{
    early_fixture *e = self;
    (void)before;
    (void)until;
    if (e->fixture.reports > 0) e->fixture.leaves = true;
}

/* A round of all micro-batches with this bad number; returns the report. */
static const at_report *run_early(int bad)
{
    early_fixture *e = &early_;
    memset(e, 0, sizeof *e);
    sit_down(&e->fixture, "fmb", NULL);
    e->bad = bad;
    e->task = (at_task){.self = e,
                        .params = FLOATS,
                        .trained = TRAINED,
                        .gradient = gradient_early,
                        .watch = watch_early};
    e->fixture.context.task = &e->task;
    e->fixture.driver.options.transport.gradient = slot_early;
    e->fixture.driver.options.transport.final = final_early;
    e->fixture.driver.options.transport.wait = leave_after_report;
    order(&e->fixture, (at_order){.round = 0});
    at_driver_run(&e->fixture.driver, NULL);
    assert_int_equal(e->fixture.reports, 1);
    assert_null(e->watch.final);
    stand_up(&e->fixture);
    return &e->fixture.report[0];
}

static void what_is_final_of_the_last_micro_batch_is_told_layer_by_layer(void **state)
{
    (void)state;
    const at_report *report = run_early(-1);
    assert_int_equal(report->work.samples, BATCH);
    assert_int_equal(report->work.nonfinite, 0);
    assert_int_equal(early_.tellings, TRAINED / LAYER);
    for (uint32_t i = 0; i < early_.tellings; i++)
        assert_int_equal(early_.told[i], TRAINED - (i + 1) * LAYER);
}

static void a_number_that_is_not_finite_is_found_before_it_is_sent(void **state)
{
    (void)state;
    for (int bad = 0; bad < FLOATS; bad += 7)
        assert_int_equal(run_early(bad)->work.nonfinite, bad + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leave_between_any_two_micro_batches_ends_the_round_there),
        cmocka_unit_test(new_amounts_between_any_two_micro_batches_hold_from_the_next_round),
        cmocka_unit_test(a_pause_between_any_two_micro_batches_is_in_the_report_of_that_round),
        cmocka_unit_test(an_order_after_a_pause_is_the_next_round),
        cmocka_unit_test(
            newer_parameters_between_any_two_micro_batches_void_the_round_under_abandon),
        cmocka_unit_test(newer_parameters_between_any_two_micro_batches_are_taken_under_refresh),
        cmocka_unit_test(newer_parameters_change_nothing_under_finish),
        cmocka_unit_test(
            a_report_that_is_not_taken_is_offered_again_and_orders_are_heard_meanwhile),
        cmocka_unit_test(an_order_that_comes_twice_gives_two_rounds_and_no_third),
        cmocka_unit_test(a_leave_before_the_first_order_leaves_at_once),
        cmocka_unit_test(a_loader_of_its_own_keeps_the_ledger_exact),
        cmocka_unit_test(a_gossip_exchange_fits_behind_the_transport),
        cmocka_unit_test(a_round_is_reported_only_when_the_caller_says_so),
        cmocka_unit_test(a_micro_batch_that_is_never_computed_was_not_drawn),
        cmocka_unit_test(an_abandoned_round_ends_without_asking),
        cmocka_unit_test(an_order_behind_a_barrier_overtakes_parameters_on_their_way),
        cmocka_unit_test(what_is_final_of_the_last_micro_batch_is_told_layer_by_layer),
        cmocka_unit_test(a_number_that_is_not_finite_is_found_before_it_is_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
