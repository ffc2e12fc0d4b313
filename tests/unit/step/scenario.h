/* scenario.h - runs a scenario, logs what the machines do and compares the log as a whole.
 *
 *     [  40] hub > apply step 1: worker 1 (32), worker 2 (32), 64 samples
 *
 * Times are milliseconds. `world` lines are events from outside, such as a lost worker.
 */
#ifndef AT_TESTS_UNIT_STEP_SCENARIO_H
#define AT_TESTS_UNIT_STEP_SCENARIO_H

#include <stdio.h>

#include "base/text.h"
#include "scenario_stage.h"

typedef struct transcript {
    at_text text;
    bool    workers; /* log workers too */
    bool    micros;  /* and each micro-batch */
    bool    timers;  /* log the timers of the hub */
    char    bytes[32768];
} transcript;

static inline void transcript_open(transcript *t)
{
    memset(t, 0, sizeof *t);
    t->text = at_text_in(t->bytes, sizeof t->bytes);
}

static inline void log_time(transcript *t, at_ns now, at_node node)
{
    at_text_add(&t->text, "[%4lld] ", (long long)(now / 1000000));
    if (node == 0)
        at_text_add(&t->text, "hub > ");
    else
        at_text_add(&t->text, "%u > ", node);
}

static inline void log_order(transcript *t, at_node worker, const at_order *order)
{
    if (order->leave) {
        at_text_add(&t->text, "leave, worker %u\n", worker);
        return;
    }
    at_text_add(&t->text, "order worker %u: round %llu on version %llu, ", worker,
                (unsigned long long)order->round, (unsigned long long)order->version);
    if (order->time_limit != AT_NEVER)
        at_text_add(&t->text, "%.0f ms or ", 1e3 * at_seconds(order->time_limit));
    at_text_add(&t->text, "%u samples", order->samples_max);
    if (order->position != AT_POSITION_OWN)
        at_text_add(&t->text, " from %llu", (unsigned long long)order->position);
    at_text_add(&t->text, "%s\n", order->again ? ", repeating" : "");
}

/* Version and weight only where they are unusual. */
static inline void log_piece(transcript *t, const at_piece *piece, uint64_t version)
{
    at_text_add(&t->text, "worker %u (%u", piece->worker, piece->samples);
    if (piece->version != version)
        at_text_add(&t->text, " of version %llu", (unsigned long long)piece->version);
    if (piece->weight < 1) at_text_add(&t->text, ", weight %.3g", piece->weight);
    at_text_add(&t->text, ")");
}

static inline void log_apply(transcript *t, const at_action *action)
{
    at_text_add(&t->text, "apply step %llu: ", (unsigned long long)action->as.apply.step);
    for (uint32_t i = 0; i < action->as.apply.count; i++) {
        log_piece(t, &action->as.apply.pieces[i], action->as.apply.step - 1);
        at_text_add(&t->text, ", ");
    }
    at_text_add(&t->text, "%llu samples%s\n", (unsigned long long)action->as.apply.samples,
                action->as.apply.folded ? ", already added" : "");
}

static inline void log_timer(transcript *t, const at_action *action)
{
    static const char *const name[] = {"lease", "notice", "period", "save", "join"};
    const char              *timer = name[action->as.timer.timer];
    if (action->as.timer.at == AT_NEVER)
        at_text_add(&t->text, "cancel %s timer\n", timer);
    else
        at_text_add(&t->text, "set %s timer to %lld\n", timer,
                    (long long)(action->as.timer.at / 1000000));
}

static inline void log_report(transcript *t, const at_report *report)
{
    at_text_add(&t->text, "send %llu: %u samples of version %llu, slot %u%s\n",
                (unsigned long long)report->sequence, report->work.samples,
                (unsigned long long)report->work.version, report->slot,
                report->work.abandoned ? ", void" : "");
}

static inline void log_drop(transcript *t, const at_action *action)
{
    at_text_add(&t->text, "drop %llu samples of worker %u: %s\n",
                (unsigned long long)action->as.drop.samples, action->worker,
                at_drop_name[action->as.drop.why]);
}

/* An action of a worker. Micro-batches are logged only in tests about them. */
static inline void log_worker(transcript *t, at_ns now, const at_worker *worker,
                              const at_worker_action *action)
{
    if (action->kind == AT_WORKER_MICRO && !t->micros) return;
    log_time(t, now, worker->id);
    switch (action->kind) {
    case AT_WORKER_INSTALL: at_text_add(&t->text, "install\n"); break;
    case AT_WORKER_SLEEP:
        at_text_add(&t->text, "compute round %llu: %u samples",
                    (unsigned long long)worker->work.round, worker->cut.samples_max);
        if (worker->deadline != AT_NEVER)
            at_text_add(&t->text, " until %lld", (long long)(worker->deadline / 1000000));
        at_text_add(&t->text, "\n");
        break;
    case AT_WORKER_MICRO: at_text_add(&t->text, "compute %u samples\n", action->samples); break;
    case AT_WORKER_ABANDON: at_text_add(&t->text, "abandon\n"); break;
    case AT_WORKER_SEND: log_report(t, &action->report); break;
    case AT_WORKER_FINISH: at_text_add(&t->text, "finish\n"); break;
    case AT_WORKER_WAIT: at_text_add(&t->text, "wait\n"); break;
    }
}

static inline void log_action(transcript *t, at_ns now, const at_action *action)
{
    bool join = action->kind == AT_ACT_TIMER && action->as.timer.timer == AT_TIMER_JOIN;
    if (action->kind == AT_ACT_TIMER && (!t->timers || join)) return;
    log_time(t, now, 0);
    switch (action->kind) {
    case AT_ACT_SEND: log_order(t, action->worker, &action->as.order); break;
    case AT_ACT_TIMER: log_timer(t, action); break;
    case AT_ACT_ADD:
        at_text_add(&t->text, "add ");
        log_piece(t, &action->as.add, UINT64_MAX);
        at_text_add(&t->text, "\n");
        break;
    case AT_ACT_APPLY: log_apply(t, action); break;
    case AT_ACT_DROP: log_drop(t, action); break;
    case AT_ACT_EVALUATE:
        at_text_add(&t->text, "evaluate step %llu\n", (unsigned long long)action->as.evaluate.step);
        break;
    case AT_ACT_SAVE:
        at_text_add(&t->text, "save step %llu\n", (unsigned long long)action->as.save.step);
        break;
    case AT_ACT_EVICT: at_text_add(&t->text, "evict worker %u\n", action->worker); break;
    case AT_ACT_NOTICE:
        at_text_add(&t->text, "notice: step %llu waits for worker %u for %lld ms\n",
                    (unsigned long long)action->as.notice.step, action->worker,
                    (long long)(action->as.notice.waited / 1000000));
        break;
    case AT_ACT_FINISH:
        at_text_add(&t->text, "finish: %s\n", at_end_name[action->as.finish.why]);
        break;
    }
}

static inline void log_world(transcript *t, const at_event *event, const char *what)
{
    at_text_add(&t->text, "[%4lld] world > %s", (long long)(event->now / 1000000), what);
}

/* Joins and losses, as the hub receives them. */
static inline void log_event(transcript *t, const at_event *event)
{
    if (event->kind == AT_EV_JOINED && event->as.joined.incarnation > 1) {
        log_world(t, event, "");
        at_text_add(&t->text, "worker %u joins, incarnation %u\n", event->worker,
                    event->as.joined.incarnation);
    } else if (event->kind == AT_EV_LOST) {
        log_world(t, event, "");
        at_text_add(&t->text, "worker %u is gone, drew %llu%s\n", event->worker,
                    (unsigned long long)event->as.lost.drawn,
                    event->as.lost.returns ? ", will be replaced" : "");
    } else if (event->kind == AT_EV_STOP) {
        log_world(t, event, "stop\n");
    }
}

static inline void transcript_saw_action(stage *s, const at_action *action)
{
    log_action(s->watcher, s->now, action);
}

static inline void transcript_saw_worker(stage *s, at_node worker, const at_worker_action *action)
{
    transcript *t = s->watcher;
    if (t->workers) log_worker(t, s->now, &s->actor[worker].machine, action);
}

static inline void transcript_saw_event(stage *s, const at_event *event)
{
    log_event(s->watcher, event);
}

/* On a difference fails with the common part, both versions of the first different line, and the
 * rest of the log. */
static inline void transcript_compare(const transcript *t, const char *expected)
{
    assert_false(t->text.full);
    const char *log = t->bytes, *line = log;
    size_t      same = 0;
    while (log[same] && log[same] == expected[same]) {
        if (log[same++] == '\n') line = log + same;
    }
    if (!log[same] && !expected[same]) return;
    const char *wanted = expected + (line - log);
    fprintf(stderr, "%.*s", (int)(line - log), log);
    fprintf(stderr, "- %.*s   <- expected\n", (int)strcspn(wanted, "\n"), wanted);
    fprintf(stderr, "+ %.*s   <- actual\n", (int)strcspn(line, "\n"), line);
    fprintf(stderr, "followed by\n%s", strchr(line, '\n') ? strchr(line, '\n') + 1 : "");
    fail_msg("the log differs");
}

/* Runs the scenario to its end and compares the log; checks the sample accounting. */
static inline void transcript_play(stage *s, transcript *t, const char *expected)
{
    s->watcher = t;
    s->saw_action = transcript_saw_action;
    s->saw_worker = transcript_saw_worker;
    s->saw_event = transcript_saw_event;
    stage_run(s);
    if (s->stalled) at_text_add(&t->text, "[%4lld] stalled\n", (long long)(s->now / 1000000));
    transcript_compare(t, expected);
    for (at_node id = 1; id <= s->plan.workers_max; id++) {
        const at_member *member = &s->hub->member[id - 1];
        assert_int_equal(s->actor[id].drawn, member->used + member->dropped);
    }
}

/* ---- common beginning and end of scenarios -------------------------------------------------- */

static stage      stage_;
static transcript transcript_;

static inline at_plan_options fmb(uint32_t workers, uint64_t steps)
{
    return (at_plan_options){
        .strategy = "fmb", .workers = workers, .batch = 32, .limits = {.steps = steps}};
}

static inline stage *set(at_plan_options options)
{
    transcript_open(&transcript_);
    stage_open(&stage_, &options);
    return &stage_;
}

/* fmb with some rules replaced; NULL keeps its own. */
static inline stage *compose(at_plan_options rules, uint32_t workers, uint64_t steps)
{
    at_plan_options o = fmb(workers, steps);
    o.gather = rules.gather;
    o.release = rules.release;
    o.newer = rules.newer;
    o.stale = rules.stale;
    o.micro_batch = 8;
    return set(o);
}

static inline void play(const char *expected)
{
    transcript_play(&stage_, &transcript_, expected);
    stage_close(&stage_);
}

#endif
