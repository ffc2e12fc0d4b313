/* scenario_stage.h - a small simulated world: real hub and worker state machines, virtual time, no
 * floats.
 *
 *     stage s;
 *     stage_open(&s, &options);         resolves the plan; all workers join at 0
 *     stage_kill(&s, AT_MS(40), 2, AT_MS(10));
 *     stage_run(&s);                    until the hub finishes or no event is left
 *     stage_close(&s);
 *
 * Events are ordered by time, then by creation.
 */
#ifndef AT_TESTS_UNIT_STEP_SCENARIO_STAGE_H
#define AT_TESTS_UNIT_STEP_SCENARIO_STAGE_H

#include "actors.h"

/* ---- the hub -------------------------------------------------------------------------------- */

static inline cue *stage_send_worker(stage *s, at_ns at, at_node id, at_worker_event event)
{
    static cue unused;
    cue       *c = s->actor[id].alive ? stage_cue(s, at, CUE_WORKER, id) : &unused;
    c->to_worker = event;
    return c;
}

static inline void stage_evaluate(stage *s, uint64_t step)
{
    at_event done = {.kind = AT_EV_EVALUATED};
    done.as.evaluated.step = step;
    done.as.evaluated.at = s->now;
    done.as.evaluated.value[AT_METRIC_ACCURACY] = 0.1 * (double)step; /* steady progress */
    done.as.evaluated.value[AT_METRIC_LOSS] = 1.0 / (double)step;
    stage_send_hub(s, s->now + s->eval_ns, done);
}

static inline void stage_newer(stage *s, uint64_t version)
{
    at_worker_event newer = {.kind = AT_WORKER_NEWER, .version = version};
    for (at_node id = 1; s->newer_ns != AT_NEVER && id <= s->plan.workers_max; id++)
        stage_send_worker(s, s->now + stage_delay(s, s->newer_ns), id, newer)->version = version;
}

/* At the end of the run workers are no longer replaced. */
static inline void stage_evict(stage *s, const actor *a, at_node id)
{
    if (a->alive) stage_gone(s, id, s->hub->end == AT_END_RUNNING ? a->back_after : AT_NEVER);
}

static inline void stage_do_hub(stage *s, const at_action *action)
{
    at_worker_event message = {.kind = AT_WORKER_ORDER};
    switch (action->kind) {
    case AT_ACT_SEND:
        if (action->as.order.leave && s->actor[action->worker].deaf) break;
        message.order = action->as.order;
        if (message.order.leave) message.kind = AT_WORKER_LEAVE;
        s->actor[action->worker].notified_at = stage_after(s, s->actor[action->worker].notified_at);
        stage_send_worker(s, s->actor[action->worker].notified_at, action->worker, message);
        break;
    case AT_ACT_TIMER: s->timer_at[action->as.timer.timer] = action->as.timer.at; break;
    case AT_ACT_EVALUATE: stage_evaluate(s, action->as.evaluate.step); break;
    case AT_ACT_EVICT: stage_evict(s, &s->actor[action->worker], action->worker); break;
    case AT_ACT_FINISH:
        s->finished = true;
        s->end = action->as.finish.why;
        break;
    case AT_ACT_APPLY:
    case AT_ACT_ADD:
    case AT_ACT_DROP:
    case AT_ACT_SAVE:
    case AT_ACT_NOTICE: break;
    }
}

static inline void stage_feed_hub(stage *s, at_event event)
{
    event.now = s->now;
    if (s->saw_event) s->saw_event(s, &event);
    s->out.count = 0;
    at_hub_step(s->hub, &event, &s->out);
    uint64_t applied = 0;
    for (size_t i = 0; i < s->out.count; i++) {
        const at_action *action = &s->out.actions[i];
        if (s->saw_action) s->saw_action(s, action);
        stage_do_hub(s, action);
        if (action->kind == AT_ACT_APPLY) applied = action->as.apply.step;
    }
    if (applied == 0) return;
    stage_feed_hub(s, (at_event){.kind = AT_EV_APPLIED}); /* before anything else */
    stage_newer(s, applied);
}

static inline void stage_drain(stage *s)
{
    for (uint32_t i = 0; i < s->inbox_count && !s->finished; i++) stage_feed_hub(s, s->inbox[i]);
    s->inbox_count = 0;
    for (at_node id = 1; id <= s->plan.workers_max; id++) {
        at_worker_event sent = {.kind = AT_WORKER_SENT};
        if (s->actor[id].sent_waits) stage_send_worker(s, s->now, id, sent);
        s->actor[id].sent_waits = false;
    }
}

/* A patient hub is woken after as many reports as it asked for, or by any other event. */
static inline void stage_deliver_to_hub(stage *s, const at_event *event)
{
    bool report = event->kind == AT_EV_MESSAGE;
    if (s->patient && report) s->inbox[s->inbox_count++] = *event;
    if (s->patient && report && s->inbox_count < s->patience) return;
    stage_drain(s);
    if (!s->finished && !(s->patient && report)) stage_feed_hub(s, *event);
    if (!s->finished) s->patience = at_hub_wake_after(s->hub, s->now);
}

/* A worker may send a report while at most one earlier one is pending. */
static inline bool stage_slots_full(const stage *s, at_node id)
{
    uint32_t pending = 0;
    for (uint32_t i = 0; i < s->inbox_count; i++)
        pending += s->inbox[i].worker == id &&
                   s->inbox[i].as.report.incarnation == s->actor[id].incarnation;
    return pending >= 2;
}

/* ---- the loop ------------------------------------------------------------------------------- */

static inline bool cue_before(const cue *a, const cue *b)
{
    return a->at != b->at ? a->at < b->at : a->birth < b->birth;
}

/* The hub's next timer becomes a cue when no other event comes first. */
static inline bool stage_next(stage *s, cue *next)
{
    size_t first = 0;
    for (size_t i = 1; i < s->count; i++)
        if (cue_before(&s->pending[i], &s->pending[first])) first = i;
    at_timer timer = AT_TIMER_LEASE;
    for (int t = 0; t < AT_TIMER_COUNT; t++)
        if (s->timer_at[t] < s->timer_at[timer]) timer = (at_timer)t;
    bool only_notices = s->timer_at[AT_TIMER_LEASE] == AT_NEVER &&
                        s->timer_at[AT_TIMER_PERIOD] == AT_NEVER &&
                        s->timer_at[AT_TIMER_JOIN] == AT_NEVER;
    if (s->count == 0 && only_notices) return false;
    if (s->count > 0 && s->pending[first].at <= s->timer_at[timer]) {
        *next = s->pending[first];
        s->pending[first] = s->pending[--s->count];
        return true;
    }
    at_ns at = s->timer_at[timer] > s->now ? s->timer_at[timer] : s->now;
    *next = (cue){.at = at, .kind = CUE_TIMER, .event = {.kind = AT_EV_TIMER}};
    next->event.as.timer = timer;
    s->timer_at[timer] = AT_NEVER;
    return true;
}

static inline void stage_play(stage *s, cue *c)
{
    actor *a = &s->actor[c->worker];
    bool   to_worker = c->kind == CUE_WORKER || c->kind == CUE_MICRO || c->kind == CUE_AWAKE;
    if (to_worker && (!a->alive || c->life != a->life)) return;
    bool old_news = !s->old_notices && c->kind == CUE_WORKER &&
                    c->to_worker.kind == AT_WORKER_NEWER && c->version <= a->installed;
    if (old_news) return;
    if (to_worker && a->frozen_until > s->now) { /* delivered when it wakes up */
        if (a->frozen_until == AT_NEVER) return;
        c->at = a->frozen_until;
        s->pending[s->count++] = *c;
        return;
    }
    switch (c->kind) {
    case CUE_HUB:
    case CUE_TIMER: stage_deliver_to_hub(s, &c->event); break;
    case CUE_WORKER:
        a->sent_waits = c->to_worker.kind == AT_WORKER_SENT && stage_slots_full(s, c->worker);
        if (!a->sent_waits) stage_feed_worker(s, c->worker, c->to_worker);
        break;
    case CUE_AWAKE: /* unless the sleep was abandoned */
        if (a->machine.state == AT_WORKER_SLEEPING && a->machine.work.round == c->round)
            stage_feed_worker(s, c->worker, stage_event(s, AT_WORKER_AWAKE));
        break;
    case CUE_MICRO:
        c->to_worker = stage_event(s, AT_WORKER_MICRO_DONE);
        c->to_worker.samples = a->machine.micro;
        c->to_worker.took = a->machine.micro * a->sample_ns;
        stage_feed_worker(s, c->worker, c->to_worker);
        break;
    case CUE_KILL:
        if (a->alive) stage_gone(s, c->worker, c->span);
        break;
    case CUE_BACK:
        if (a->stillborn == 0 || a->incarnation < a->lives)
            stage_join(s, c->worker);
        else
            stage_gone(s, c->worker, --a->stillborn > 0 ? c->span : AT_NEVER);
        break;
    case CUE_FREEZE:
        if (c->span == AT_NEVER)
            a->frozen_until = AT_NEVER;
        else if (a->frozen_until < s->now + c->span)
            a->frozen_until = s->now + c->span;
        break;
    }
}

static inline void stage_run(stage *s)
{
    if (s->plan.then) at_switch_share(&s->plan, &s->then); /* a test may have changed the plan */
    cue next;
    while (!s->finished && !s->stalled) {
        bool more = stage_next(s, &next) && s->events < STAGE_EVENTS_MAX;
        s->stalled = !more;
        if (!more) break;
        assert_true(next.at >= s->now);
        s->now = next.at;
        s->events++;
        stage_play(s, &next);
    }
}

/* `switch_to` is as in --switch, or NULL. */
static inline void stage_open_switching(stage *s, const at_plan_options *options,
                                        const char *switch_to)
{
    memset(s, 0, sizeof *s);
    at_fail fail = {0};
    if (at_plan_resolve(options, &s->plan, &fail)) fail_msg("%s (%s)", fail.text, fail.hint);
    if (switch_to && at_switch_resolve(options, switch_to, &s->plan, &s->then, &fail))
        fail_msg("%s (%s)", fail.text, fail.hint);
    assert_true(s->plan.workers_max <= STAGE_WORKERS);
    size_t size = (at_hub_size(&s->plan) + 63) / 64 * 64;
    s->memory = aligned_alloc(64, size);
    assert_non_null(s->memory);
    memset(s->memory, 0, size);
    s->hub = at_hub_init(&s->plan, s->memory, size);
    s->out.size = at_out_size(s->plan.workers_max);
    s->out.actions = calloc(s->out.size, sizeof *s->out.actions);
    assert_non_null(s->out.actions);
    s->nan_version = AT_VERSION_NONE;
    for (int t = 0; t < AT_TIMER_COUNT; t++) s->timer_at[t] = AT_NEVER;
    stage_send_hub(s, 0, (at_event){.kind = AT_EV_START});
    for (at_node id = 1; id <= s->plan.workers_max; id++) {
        s->actor[id].sample_ns = AT_MS(1);
        s->actor[id].back_after = AT_NEVER;
        if (id <= s->plan.workers) stage_cue(s, 0, CUE_BACK, id);
    }
}

static inline void stage_open(stage *s, const at_plan_options *options)
{
    stage_open_switching(s, options, NULL);
}

/* Keeps the hub's targets for later checks. */
static inline void stage_close(stage *s)
{
    memcpy(s->target, s->hub->target, sizeof s->target);
    free(s->out.actions);
    free(s->memory);
}

#endif
