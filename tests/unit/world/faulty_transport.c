/* Hub and workers over a transport that delays, reorders, repeats and loses messages and whose
 * workers die at any call, for every strategy: each run ends by itself, and every sample that was
 * drawn is used or dropped. A failing run prints its strategy and seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "pace/pace.h"
#include "step/hub.h"
#include "world/core/driver.h"

enum {
    WORKERS = 3,
    BATCH = 8,
    MICRO = 4,
    STEPS = 8,
    SEEDS = 60, /* per strategy */
    CALLS = 200,
    FAULTS_MAX = 10, /* per run: one without an end would not end */
    MESSAGES_MAX = 512,
    TURNS_MAX = 20000 /* more mean that the run hangs */
};

/* How at_driver_next is left other than by its end. */
typedef enum leave_kind { LEFT_RUNNING, LEFT_WAITING, LEFT_DEAD } leave_kind;

typedef enum message_kind { TO_HUB, TO_WORKER, NEW_PARAMS, JOIN } message_kind;

typedef struct message {
    message_kind kind;
    at_node      worker;
    uint32_t     incarnation; /* it is for this process, or from it */
    at_ns        due;
    uint64_t     number; /* orders: the newest one wins */
    uint64_t     version;
    at_order     order;
    at_report    report;
} message;

/* Over all runs of a test: did its faults really happen? */
typedef struct coverage {
    uint64_t dropped, repeated, overtaken, deaths, evictions, refused;
} coverage;

static coverage covered;

typedef struct worker {
    struct net      *net;
    at_driver        driver;
    _Atomic uint64_t drawn;
    jmp_buf          out;
    at_node          id;
    uint32_t         incarnation;
    bool             alive, waiting, leaves, ordered;
    at_order         order;
    uint64_t         newest_order, version;
    uint64_t         calls, dies_at; /* 0: does not die by count */
    float            params[1], gradient[1];
} worker;

typedef struct net {
    at_plan          plan;
    at_world_context context;
    at_pace         *pace;
    void            *memory;
    at_hub          *hub;
    at_out           out;
    at_ns            now, timer[AT_TIMER_COUNT];
    worker           worker[WORKERS];
    message          message[MESSAGES_MAX];
    size_t           messages;
    uint64_t         orders;
    at_rng           rng;
    double           drops, repeats, deaths, refuses; /* probabilities */
    at_ns            delay;                           /* mean; larger than gaps: reorders */
    uint32_t         faults;                          /* left */
    bool             finished;
    at_end           end;
} net;

/* ---- faults --------------------------------------------------------------------------------- */

static bool chance(net *n, double probability)
{
    return probability > 0 && at_rng_uniform(&n->rng) < probability;
}

static bool fault(net *n, double probability)
{
    bool happens = n->faults > 0 && chance(n, probability);
    n->faults -= happens;
    return happens;
}

/* Called by every function of the transport, and after every micro-batch. */
static void may_die(worker *w)
{
    w->calls++;
    if (w->calls != w->dies_at && !fault(w->net, w->net->deaths)) return;
    covered.deaths++;
    longjmp(w->out, LEFT_DEAD);
}

static void post(net *n, message m)
{
    m.due = n->now + 1 + (at_ns)(at_rng_uniform(&n->rng) * (double)n->delay);
    assert_true(n->messages + 2 < MESSAGES_MAX);
    bool lossy = m.kind == TO_HUB || m.kind == TO_WORKER;
    if (lossy && fault(n, n->drops)) {
        covered.dropped++;
        return;
    }
    n->message[n->messages++] = m;
    if (!lossy || !fault(n, n->repeats)) return;
    covered.repeated++;
    m.due += (at_ns)(at_rng_uniform(&n->rng) * (double)n->delay);
    n->message[n->messages++] = m;
}

/* ---- the worker's side: an at_transport ----------------------------------------------------- */

static uint32_t heard(void *self)
{
    may_die(self);
    return 0;
}

/* There is one thread: to wait means to let the others go on. The driver continues with another
 * call of at_driver_next. */
static void wait_for_news(void *self, uint32_t before, at_ns until)
{
    worker *w = self;
    (void)before;
    (void)until;
    may_die(w);
    longjmp(w->out, LEFT_WAITING);
}

static bool leaves(void *self)
{
    worker *w = self;
    may_die(w);
    return w->leaves;
}

static bool take_order(void *self, at_order *order)
{
    worker *w = self;
    may_die(w);
    bool ordered = w->ordered;
    *order = w->order;
    w->ordered = false;
    return ordered;
}

static uint64_t newest(void *self)
{
    worker *w = self;
    may_die(w);
    return w->version;
}

static const float *install(void *self)
{
    worker *w = self;
    may_die(w);
    return w->params;
}

static float *gradient(void *self, uint32_t slot)
{
    worker *w = self;
    may_die(w);
    assert_true(slot < 2);
    return w->gradient;
}

/* It may die before or after the report is on its way. */
static bool send_report(void *self, const at_report *report)
{
    worker *w = self;
    may_die(w);
    if (chance(w->net, w->net->refuses)) {
        covered.refused++;
        return false;
    }
    post(w->net,
         (message){
             .kind = TO_HUB, .worker = w->id, .incarnation = w->incarnation, .report = *report});
    may_die(w);
    return true;
}

static void start_worker(net *n, worker *w)
{
    at_driver_options options = {.context = &n->context,
                                 .transport = {.self = w,
                                               .heard = heard,
                                               .wait = wait_for_news,
                                               .leaves = leaves,
                                               .take_order = take_order,
                                               .newest = newest,
                                               .fetch = newest,
                                               .install = install,
                                               .gradient = gradient,
                                               .send = send_report},
                                 .id = w->id,
                                 .incarnation = ++w->incarnation,
                                 .slots = 2,
                                 .sequence = n->hub->member[w->id - 1].sequence,
                                 .drawn = &w->drawn};
    at_driver_init(&w->driver, &options);
    w->alive = true;
    w->waiting = w->leaves = w->ordered = false;
    w->version = n->hub->version;
}

/* ---- the hub's side ------------------------------------------------------------------------- */

static void feed(net *n, at_event event);

static void lose(net *n, worker *w)
{
    at_event event = {.kind = AT_EV_LOST, .worker = w->id};
    event.as.lost.drawn = atomic_load(&w->drawn);
    event.as.lost.returns = n->hub->end == AT_END_RUNNING;
    w->alive = false;
    if (event.as.lost.returns) post(n, (message){.kind = JOIN, .worker = w->id});
    feed(n, event);
}

static void perform(net *n, const at_action *action, bool *applied, at_node *evicted)
{
    worker *w = action->worker > 0 ? &n->worker[action->worker - 1] : NULL;
    switch (action->kind) {
    case AT_ACT_SEND:
        post(n, (message){.kind = TO_WORKER,
                          .worker = w->id,
                          .incarnation = w->incarnation,
                          .number = ++n->orders,
                          .order = action->as.order});
        break;
    case AT_ACT_TIMER: n->timer[action->as.timer.timer] = action->as.timer.at; break;
    case AT_ACT_EVICT: *evicted = action->worker; break;
    case AT_ACT_APPLY: *applied = true; break;
    case AT_ACT_FINISH:
        n->finished = true;
        n->end = action->as.finish.why;
        break;
    case AT_ACT_EVALUATE:
    case AT_ACT_ADD:
    case AT_ACT_DROP:
    case AT_ACT_SAVE:
    case AT_ACT_NOTICE: break;
    }
}

static void feed(net *n, at_event event)
{
    bool    applied = false;
    at_node evicted[WORKERS] = {0};
    size_t  evictions = 0;
    event.now = n->now;
    n->out.count = 0;
    at_hub_step(n->hub, &event, &n->out);
    for (size_t i = 0; i < n->out.count; i++) {
        at_node gone = 0;
        perform(n, &n->out.actions[i], &applied, &gone);
        if (gone > 0) evicted[evictions++] = gone;
    }
    if (applied) {
        feed(n, (at_event){.kind = AT_EV_APPLIED});
        for (at_node id = 1; id <= WORKERS; id++)
            post(n, (message){.kind = NEW_PARAMS, .worker = id, .version = n->hub->version});
    }
    for (size_t i = 0; i < evictions; i++)
        if (n->worker[evicted[i] - 1].alive) {
            covered.evictions++;
            lose(n, &n->worker[evicted[i] - 1]);
        }
}

/* ---- the network ---------------------------------------------------------------------------- */

static void receive_order(worker *w, const message *m)
{
    bool old = m->number < w->newest_order, again = m->number == w->newest_order;
    if (!w->alive || m->incarnation != w->incarnation) return;
    covered.overtaken += old;
    if (old || again) return;
    w->newest_order = m->number;
    w->waiting = false;
    w->leaves = w->leaves || m->order.leave;
    if (m->order.leave) return;
    w->order = m->order;
    w->ordered = true;
    if (m->order.version != AT_VERSION_NONE && m->order.version > w->version)
        w->version = m->order.version;
}

static void deliver(net *n, const message *m)
{
    worker  *w = &n->worker[m->worker - 1];
    at_event event = {.kind = AT_EV_MESSAGE, .worker = m->worker};
    switch (m->kind) {
    case TO_WORKER: receive_order(w, m); break;
    case NEW_PARAMS:
        if (w->alive && m->version > w->version) {
            w->version = m->version;
            w->waiting = false;
        }
        break;
    case TO_HUB:
        event.as.report = m->report;
        feed(n, event);
        break;
    case JOIN:
        if (n->hub->end != AT_END_RUNNING) { /* it is not replaced any more */
            event.kind = AT_EV_LOST;
            event.as.lost.drawn = atomic_load(&w->drawn);
            event.as.lost.returns = false;
        } else {
            start_worker(n, w);
            event.kind = AT_EV_JOINED;
            event.as.joined.incarnation = w->incarnation;
        }
        feed(n, event);
        break;
    }
}

/* The next message or timer; false: there is none. */
static bool next_event(net *n)
{
    size_t first = 0;
    int    timer = 0;
    for (size_t i = 1; i < n->messages; i++)
        if (n->message[i].due < n->message[first].due) first = i;
    for (int t = 1; t < AT_TIMER_COUNT; t++)
        if (n->timer[t] < n->timer[timer]) timer = t;
    bool has_message = n->messages > 0 && n->message[first].due <= n->timer[timer];
    if (!has_message && n->timer[timer] == AT_NEVER) return false;
    at_ns at = has_message ? n->message[first].due : n->timer[timer];
    if (at > n->now) n->now = at;
    if (has_message) {
        message m = n->message[first];
        n->message[first] = n->message[--n->messages];
        deliver(n, &m);
    } else {
        n->timer[timer] = AT_NEVER;
        at_event event = {.kind = AT_EV_TIMER};
        event.as.timer = (at_timer)timer;
        feed(n, event);
    }
    return true;
}

/* One micro-batch of a worker, or as far as it comes. */
static void run_worker(net *n, worker *w)
{
    at_micro micro;
    switch ((leave_kind)setjmp(w->out)) {
    case LEFT_RUNNING:
        if (at_driver_next(&w->driver, &micro)) {
            assert_true(micro.draw.count >= 1 && micro.draw.count <= MICRO);
            may_die(w);
            at_driver_done(&w->driver, micro.draw.count, micro.draw.count);
        } else {
            lose(n, w); /* it left as ordered */
        }
        break;
    case LEFT_WAITING:
        w->waiting = !w->driver.sending;
        break; /* a refused report is offered again */
    case LEFT_DEAD: lose(n, w); break;
    }
}

static worker *pick_worker(net *n)
{
    uint64_t first = at_rng_below(&n->rng, WORKERS);
    for (uint64_t i = 0; i < WORKERS; i++) {
        worker *w = &n->worker[(first + i) % WORKERS];
        if (w->alive && !w->waiting) return w;
    }
    return NULL;
}

static void run(net *n, const char *name, uint64_t seed)
{
    feed(n, (at_event){.kind = AT_EV_START});
    for (at_node id = 1; id <= WORKERS; id++) post(n, (message){.kind = JOIN, .worker = id});
    for (int turn = 0; !n->finished; turn++) {
        worker *w = pick_worker(n);
        if (turn == TURNS_MAX) fail_msg("%s, seed %llu: hangs", name, (unsigned long long)seed);
        if (w && (chance(n, 0.5) || n->messages == 0))
            run_worker(n, w);
        else if (!next_event(n))
            fail_msg("%s, seed %llu: nothing happens any more", name, (unsigned long long)seed);
    }
    for (at_node id = 1; id <= WORKERS; id++) {
        const at_member *member = &n->hub->member[id - 1];
        assert_int_equal(atomic_load(&n->worker[id - 1].drawn), member->used + member->dropped);
    }
    assert_int_equal(n->end, AT_END_STEPS);
    assert_int_equal(n->hub->version, STEPS);
}

/* ---- runs ----------------------------------------------------------------------------------- */

static void open_net(net *n, const char *strategy, uint64_t seed)
{
    at_fail         fail = {0};
    at_plan_options o = {.strategy = strategy,
                         .workers = WORKERS,
                         .batch = BATCH,
                         .micro_batch = MICRO,
                         .time_limit = "auto",
                         .join_timeout = AT_SEC(60),
                         .limits = {.steps = STEPS}};
    at_pace_options pace = {
        .model = "none", .scale = "1", .workers = WORKERS, .rounds_per_epoch = 1};
    memset(n, 0, sizeof *n);
    if (at_plan_resolve(&o, &n->plan, &fail)) fail_msg("%s: %s", strategy, fail.text);
    n->plan.saves = true;
    n->plan.save_steps = 3;
    if (at_pace_new(&pace, &n->pace, &fail)) fail_msg("%s", fail.text);
    n->context = (at_world_context){.plan = &n->plan, .pace = n->pace, .seed = 1};
    size_t size = (at_hub_size(&n->plan) + 63) / 64 * 64;
    n->memory = aligned_alloc(64, size);
    assert_non_null(n->memory);
    memset(n->memory, 0, size);
    n->hub = at_hub_init(&n->plan, n->memory, size);
    n->out.size = at_out_size(n->plan.workers_max);
    n->out.actions = calloc(n->out.size, sizeof *n->out.actions);
    assert_non_null(n->out.actions);
    for (int t = 0; t < AT_TIMER_COUNT; t++) n->timer[t] = AT_NEVER;
    for (at_node id = 1; id <= WORKERS; id++) {
        n->worker[id - 1].net = n;
        n->worker[id - 1].id = id;
    }
    n->rng = at_rng_stream(seed, 0, AT_RNG_PURPOSE_PACE, 0);
    n->delay = AT_MS(1);
}

static void close_net(net *n)
{
    at_pace_free(n->pace);
    free(n->out.actions);
    free(n->memory);
}

/* Runs every strategy with each seed; `set` chooses the faults. */
static void run_all(void (*set)(net *n))
{
    static net n;
    covered = (coverage){0};
    for (size_t s = 0; s < at_strategies_count; s++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            open_net(&n, at_strategies[s].name, seed);
            n.faults = FAULTS_MAX;
            set(&n);
            run(&n, at_strategies[s].name, seed);
            close_net(&n);
        }
}

static void set_delays(net *n)
{
    n->delay = AT_MS(50);
    n->refuses = 0.3;
}

static void set_repeats(net *n)
{
    n->delay = AT_MS(20);
    n->repeats = 0.2;
}

static void set_drops(net *n)
{
    n->delay = AT_MS(5);
    n->drops = 0.1;
}

static void set_deaths(net *n)
{
    n->delay = AT_MS(5);
    n->deaths = 0.02;
}

static void set_everything(net *n)
{
    n->delay = AT_MS(20);
    n->refuses = 0.1;
    n->repeats = n->drops = 0.05;
    n->deaths = 0.01;
}

static void late_and_reordered_messages_keep_the_ledger_exact(void **state)
{
    (void)state;
    run_all(set_delays);
    assert_true(covered.overtaken > 0 && covered.refused > 0);
}

static void repeated_messages_count_once(void **state)
{
    (void)state;
    run_all(set_repeats);
    assert_true(covered.repeated > 0);
}

static void a_worker_whose_messages_are_lost_is_evicted_and_replaced(void **state)
{
    (void)state;
    run_all(set_drops);
    assert_true(covered.dropped > 0 && covered.evictions > 0);
}

static void workers_may_die_at_random(void **state)
{
    (void)state;
    run_all(set_deaths);
    assert_true(covered.deaths > 0);
}

static void all_faults_together_keep_the_ledger_exact(void **state)
{
    (void)state;
    run_all(set_everything);
    assert_true(covered.dropped > 0 && covered.repeated > 0 && covered.deaths > 0);
}

/* The n-th call of a worker is its last. */
static void a_worker_may_die_at_each_of_its_calls(void **state)
{
    (void)state;
    static net n;
    for (size_t s = 0; s < at_strategies_count; s++) {
        covered = (coverage){0};
        for (uint64_t call = 1; call <= CALLS; call++) {
            open_net(&n, at_strategies[s].name, 1);
            n.worker[1].dies_at = call;
            run(&n, at_strategies[s].name, call);
            close_net(&n);
        }
        assert_true(covered.deaths > CALLS / 10); /* a run ends before the last of them */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_and_reordered_messages_keep_the_ledger_exact),
        cmocka_unit_test(repeated_messages_count_once),
        cmocka_unit_test(a_worker_whose_messages_are_lost_is_evicted_and_replaced),
        cmocka_unit_test(workers_may_die_at_random),
        cmocka_unit_test(all_faults_together_keep_the_ledger_exact),
        cmocka_unit_test(a_worker_may_die_at_each_of_its_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
