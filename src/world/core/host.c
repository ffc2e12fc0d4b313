#include "world/core/host.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "model_io/checkpoint.h"
#include "step/snapshot.h"
#include "world/process/signals.h"

enum { NONFINITE_SAID = 5 }; /* reports that are not finite, of which the user is told */

at_err at_host_init(at_host *host, const at_plan *plan, at_recorder *recorder, at_updater *updater,
                    at_evaluator *evaluator, const at_world_ops *ops, at_fail *fail)
{
    assert(recorder);
    assert(updater);
    assert(ops->send);
    assert(ops->evict);
    *host =
        (at_host){.recorder = recorder, .updater = updater, .evaluator = evaluator, .ops = *ops};
    size_t hub_size = at_hub_size(plan), actions = at_out_size(plan->workers_max);
    if (!at_arena_init(&host->arena, hub_size + actions * sizeof(at_action) + 128))
        return at_fail_set(fail, AT_ERR_FAILED, "use fewer workers",
                           "not enough memory for the state of %u workers", plan->workers_max);
    host->machine = at_hub_init(plan, at_arena_get(&host->arena, 1, hub_size), hub_size);
    host->hub = host->machine;
    host->out.actions = at_arena_get(&host->arena, actions, sizeof(at_action));
    host->out.size = actions;
    assert(host->out.actions);
    for (int i = 0; i < AT_TIMER_COUNT; i++) host->timer[i] = AT_NEVER;
    host->sampling.due = AT_NEVER;
    if (plan->workers_max > AT_WORKERS_LISTED) return AT_OK;
    host->exchanged = calloc(plan->workers_max, sizeof *host->exchanged);
    host->version_read = calloc(plan->workers_max, sizeof *host->version_read);
    return host->exchanged && host->version_read ? AT_OK : at_fail_memory(fail);
}

void at_host_deinit(at_host *host)
{
    at_arena_deinit(&host->arena);
    free(host->sampling.pid);
    free(host->last_state);
    free(host->exchanged);
    free(host->version_read);
    *host = (at_host){0};
}

/* ---- start ----------------------------------------------------------------------------------- */

at_err at_resume_params(const at_world_context *context, float *params, at_fail *fail)
{
    assert(params);
    const at_task *task = context->task;
    AT_TRY(task->init(task->self, params, context->seed, fail)); /* also sets the padding */
    return context->resume ? at_checkpoint_params(context->resume, task, params, fail) : AT_OK;
}

static at_err resume_moments(const at_world_context *context, at_updater *updater, at_fail *fail)
{
    assert(context->resume);
    size_t params = context->task->params;
    if (context->task->timing_only) return AT_OK;
    float *moment = calloc(params, sizeof *moment);
    if (!moment) return at_fail_memory(fail);
    at_err err = AT_OK;
    for (uint32_t i = 0; !err && i < context->learning->optim->states; i++) {
        at_updater_moment(updater, i, moment);
        err = at_checkpoint_moment(context->resume, context->task, i, moment, fail);
        if (!err) at_updater_set_moment(updater, i, moment);
    }
    free(moment);
    return err;
}

at_err at_resume_host(const at_world_context *context, at_host *host, at_fail *fail)
{
    assert(host->machine);
    assert(host->hub->version == 0);
    host->saver = context->saver;
    host->task = context->task;
    if (!context->resume) return AT_OK;
    if (!at_snapshot_valid(context->resume->snapshot, context->plan))
        return at_fail_set(fail, AT_ERR_FORMAT,
                           "delete this file to resume from an earlier checkpoint",
                           "%s: the saved state is inconsistent", context->resume->path);
    at_snapshot_restore(host->machine, context->resume->snapshot);
    host->traffic = (at_traffic){.to_workers = context->resume->snapshot->to_workers_bytes,
                                 .to_hub = context->resume->snapshot->to_hub_bytes};
    at_updater_resume(host->updater, host->hub->samples_used, host->hub->version);
    return resume_moments(context, host->updater, fail);
}

uint64_t at_resume_drawn(const at_host *host, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= host->hub->plan->workers_max);
    const at_member *member = &host->hub->member[worker - 1];
    return member->used + member->dropped;
}

/* ---- traffic --------------------------------------------------------------------------------- */

void at_host_count_sent(at_host *host, at_node worker, uint64_t bytes)
{
    assert(worker >= 1 && worker <= host->hub->plan->workers_max);
    host->traffic.to_workers += bytes;
    if (host->exchanged) host->exchanged[worker - 1].to_workers += bytes;
}

void at_host_count_received(at_host *host, at_node worker, uint64_t bytes)
{
    assert(worker >= 1 && worker <= host->hub->plan->workers_max);
    host->traffic.to_hub += bytes;
    if (host->exchanged) host->exchanged[worker - 1].to_hub += bytes;
}

/* Where workers own or update the parameters, nothing is handed over. */
static bool hands_over(const at_host *host)
{
    const at_mix_rule *mix = host->hub->plan->mix;
    bool               alone = mix->updates_by_workers || mix->updates_in_place;
    return host->version_read && !alone && !mix->owned_by_workers && !host->task->timing_only;
}

void at_host_count_shared(at_host *host, at_node worker, const at_work *work)
{
    assert(worker >= 1 && worker <= host->hub->plan->workers_max);
    if (!hands_over(host) || work->samples == 0) return;
    uint64_t  bytes = (uint64_t)at_task_message(host->task, work->samples);
    uint64_t *read = &host->version_read[worker - 1];
    bool      is_new = *read != work->version + 1;
    *read = work->version + 1;
    if (is_new || host->task->sparse) at_host_count_sent(host, worker, bytes);
    if (!work->abandoned) at_host_count_received(host, worker, bytes);
}

/* A copy for the result; NULL when there is none, or no memory for it. */
static at_traffic *copy_exchanged(const at_host *host)
{
    size_t      count = host->hub->plan->workers_max;
    at_traffic *copy = host->exchanged ? calloc(count, sizeof *copy) : NULL;
    if (copy) memcpy(copy, host->exchanged, count * sizeof *copy);
    return copy;
}

/* ---- time ------------------------------------------------------------------------------------ */

/* A stop is noticed before anything else is done with the clock, because the handler of SIGCONT
 * runs first. When it began is unknown: what passed since we last looked is discounted. It may have
 * begun after the clock was read, which is read again for that. */
at_ns at_host_now(at_host *host)
{
    at_ns now = at_clock_now();
    bool  continued = at_signals_continued();
    assert(!host->ops.virtual_time);
    if (continued) now = at_clock_now();
    assert(now >= host->seen);
    if (continued && host->seen > 0) host->stopped += now - host->seen;
    host->seen = now;
    return now - host->stopped;
}

void at_host_wait(at_host *host, at_bell *bell, uint32_t heard, uint32_t rings, at_ns until,
                  at_ns spin_ns)
{
    static const at_ns LATE = AT_SEC(1); /* beyond any delay of a busy machine */
    at_ns              before = at_host_now(host), seen = host->seen;
    at_ns              limit = until == AT_NEVER ? AT_NEVER : until + host->stopped;
    assert(rings >= 1);
    at_bell_wait(bell, heard, rings, AT_BELL_ALL, limit, spin_ns);
    at_ns after = at_host_now(host);
    bool  late = after - before > LATE && until != AT_NEVER && after - until > LATE;
    if (late) host->stopped += host->seen - seen;
}

/* For what is recorded after the end, when the run waits for no worker. */
static at_ns now_at_end(const at_host *host)
{
    assert(host->hub->finished);
    return at_clock_now() - host->stopped;
}

/* ---- record ---------------------------------------------------------------------------------- */

static void record_event(at_host *host, const at_event *event, const at_about *about)
{
    assert(event->now >= host->started);
    at_record record = {.kind = AT_REC_EVENT,
                        .at = event->now - host->started,
                        .event = event,
                        .version = host->hub->version};
    if (about) {
        record.pid = about->pid;
        record.text = about->text;
        record.count = about->count;
        record.final = about->final;
    }
    at_recorder_put(host->recorder, &record);
}

static void record_action(at_host *host, at_ns now, const at_action *action, double lr)
{
    assert(now >= host->started);
    at_record record = {.kind = AT_REC_ACTION,
                        .at = now - host->started,
                        .action = action,
                        .version = host->hub->version,
                        .lr = lr,
                        .took = action->kind == AT_ACT_APPLY ? host->took : 0};
    at_recorder_put(host->recorder, &record);
}

void at_host_say(at_host *host, at_ns now, const char *text)
{
    assert(text);
    at_record record = {.kind = AT_REC_TEXT, .at = now - host->started, .text = text};
    at_recorder_put(host->recorder, &record);
}

at_err at_host_watch(at_host *host, at_ns every, at_fail *fail)
{
    at_usage_sampling *sampling = &host->sampling;
    assert(every >= 0);
    assert(!sampling->pid);
    sampling->every = every;
    if (every == 0) return AT_OK;
    sampling->pid = calloc(host->hub->plan->workers_max, sizeof *sampling->pid);
    if (!sampling->pid) return at_fail_memory(fail);
    sampling->due = 0;
    return AT_OK;
}

void at_host_process(at_host *host, at_node worker, int64_t pid)
{
    assert(worker >= 1);
    assert(worker <= host->hub->plan->workers_max);
    if (host->sampling.every > 0) host->sampling.pid[worker - 1] = pid;
}

void at_host_usage(at_host *host, at_node node, const at_usage *usage, at_ns now)
{
    assert(usage->pid > 0);
    if (host->sampling.every == 0) return;
    at_record record = {.kind = AT_REC_USAGE,
                        .at = now - host->started,
                        .version = host->hub->version,
                        .node = node,
                        .usage = usage};
    at_recorder_put(host->recorder, &record);
}

void at_host_link(at_host *host, at_node worker, const at_link_stats *link, at_ns now)
{
    assert(worker >= 1 && worker <= host->hub->plan->workers_max);
    at_record record = {.kind = AT_REC_LINK,
                        .at = now - host->started,
                        .version = host->hub->version,
                        .node = worker,
                        .link = link};
    at_recorder_put(host->recorder, &record);
}

/* Network counters are those of the machine, so they are recorded once, with the hub. A process
 * that has just ended is skipped; its LOST event follows. */
static void sample_process(at_host *host, at_node node, int64_t pid, at_ns now)
{
    assert(pid > 0);
    at_usage usage;
    bool     runs = node == 0 ? at_usage_read(pid, &usage) : at_usage_read_process(pid, &usage);
    if (runs) at_host_usage(host, node, &usage, now);
}

static void sample_usage(at_host *host, at_ns now)
{
    at_usage_sampling *sampling = &host->sampling;
    int64_t            evaluator = at_evaluator_pid(host->evaluator);
    if (sampling->every == 0) return;
    assert(sampling->pid);
    sample_process(host, 0, getpid(), now);
    if (evaluator > 0) sample_process(host, AT_NODE_EVALUATOR, evaluator, now);
    for (uint32_t i = 0; i < host->hub->plan->workers_max; i++)
        if (sampling->pid[i] > 0) sample_process(host, i + 1, sampling->pid[i], now);
    sampling->due = now + sampling->every;
}

/* ---- actions --------------------------------------------------------------------------------- */

static at_evaluation score_at_once(at_host *host, uint64_t step, at_ns now)
{
    assert(host->ops.score);
    assert(step <= host->hub->version);
    at_evaluation evaluation = {.step = step, .at = now};
    host->ops.score(host->ops.self, &evaluation.score);
    if (host->gossip) at_gossip_score(host->gossip, &evaluation.score, true);
    return evaluation;
}

/* Averages over the graph as it is; describes it when it is another one than before. */
static double apply_gossip(at_host *host, const at_action *action, at_ns now)
{
    char text[200];
    bool changed = host->gossip->changed;
    if (host->gossip->note[0]) at_host_say(host, now, host->gossip->note);
    host->gossip->note[0] = '\0';
    if (changed) at_gossip_describe(host->gossip, text, sizeof text);
    if (changed) at_host_say(host, now, text);
    double lr = at_gossip_apply(host->gossip, action, &host->ops.gradients);
    return host->ops.mix ? host->ops.mix(host->ops.self, action) : lr;
}

static double apply(at_host *host, const at_action *action, at_ns now)
{
    assert(action->kind == AT_ACT_APPLY);
    assert(action->as.apply.step == host->hub->version + 1);
    at_world_ops *ops = &host->ops;
    at_ns         begin = ops->virtual_time ? 0 : at_clock_now();
    if (ops->change) ops->change(ops->self);
    double lr = host->gossip ? apply_gossip(host, action, now)
                             : at_updater_apply(host->updater, action, &ops->gradients);
    if (ops->publish) ops->publish(ops->self, action->as.apply.step);
    host->took = ops->virtual_time ? 0 : at_clock_now() - begin;
    assert(host->took >= 0);
    return lr;
}

/* Brings the hub's vector up to date; false: it stays that of an earlier step. */
static bool collect(at_host *host)
{
    return !host->ops.collect || host->ops.collect(host->ops.self);
}

static bool has_vectors(at_host *host, at_saver_input *input)
{
    *input = (at_saver_input){
        .updater = host->updater, .params = host->updater->w, .gossip = host->gossip};
    return !host->ops.vectors || host->ops.vectors(host->ops.self, input);
}

/* While the hub waits for a slow disk it hears nobody, and orders that belong to the same event are
 * not sent yet. Everybody gets a whole lease after that. */
static void excuse(at_host *host, at_ns began)
{
    static const at_ns SLOW = AT_MS(500);
    if (host->ops.virtual_time || at_clock_now() - began < SLOW) return;
    host->leases_from = at_host_now(host) + at_hub_lease(host->hub);
}

static void save_now(at_host *host, const at_action *action)
{
    assert(action->kind == AT_ACT_SAVE);
    assert(action->as.save.step == host->hub->version);
    at_snapshot *snapshot = host->machine->snapshot;
    if (!host->saver || !collect(host)) return;
    if (host->ops.describe) host->ops.describe(host->ops.self, snapshot);
    if (!host->saver) return; /* `describe` has found that no complete checkpoint is possible */
    snapshot->to_workers_bytes = host->traffic.to_workers;
    snapshot->to_hub_bytes = host->traffic.to_hub;
    at_saver_input input;
    if (has_vectors(host, &input))
        at_saver_save(host->saver, &input, snapshot, action->as.save.last);
    else if (action->as.save.last)
        host->last_state = at_saver_state(host->saver, snapshot);
}

static void say_unsaved(at_host *host, at_ns now)
{
    const char *trouble = host->saver ? at_saver_trouble(host->saver) : NULL;
    if (trouble) at_host_say(host, now, trouble);
}

/* In virtual time nothing else may be due for long: each save says how the one before has ended. */
static void save(at_host *host, const at_action *action, at_ns now)
{
    at_ns began = host->ops.virtual_time ? 0 : at_clock_now();
    save_now(host, action);
    say_unsaved(host, now);
    excuse(host, began);
}

void at_host_save(at_host *host, at_ns now)
{
    at_ns          began = at_clock_now();
    at_saver_input input;
    bool           last = host->hub->end != AT_END_RUNNING;
    if (!host->saver || (last && !host->last_state) || !has_vectors(host, &input)) return;
    if (!last) at_snapshot_take(host->machine->snapshot, host->hub, now);
    input.state = host->last_state;
    at_saver_save(host->saver, &input, host->machine->snapshot, last);
    free(host->last_state);
    host->last_state = NULL;
    excuse(host, began);
}

/* Performs one action; returns the learning rate of an APPLY, 0 otherwise. */
static double perform(at_host *host, const at_action *action, at_ns now)
{
    assert(action->worker <= host->hub->plan->workers_max);
    at_world_ops *ops = &host->ops;
    switch (action->kind) {
    case AT_ACT_SEND: ops->send(ops->self, action->worker, &action->as.order); break;
    case AT_ACT_EVICT: ops->evict(ops->self, action->worker); break;
    case AT_ACT_TIMER: host->timer[action->as.timer.timer] = action->as.timer.at; break;
    case AT_ACT_ADD: at_updater_add(host->updater, &action->as.add, &ops->gradients); break;
    case AT_ACT_APPLY: return apply(host, action, now);
    case AT_ACT_EVALUATE:
        if (host->ops.score) {
            host->evaluation = score_at_once(host, action->as.evaluate.step, now);
            host->scored = true;
        } else if (host->evaluator) {
            (void)collect(host); /* false: no worker is left, and the run ends */
            at_evaluator_begin(host->evaluator, host->updater->w, action->as.evaluate.step, now);
        }
        break;
    case AT_ACT_FINISH: host->finished = true; break;
    case AT_ACT_SAVE: save(host, action, now); break;
    case AT_ACT_DROP:
    case AT_ACT_NOTICE: break; /* only recorded */
    }
    return 0;
}

/* ---- events and timers ----------------------------------------------------------------------- */

/* Feeds one event; true when an update was made, of which the hub is informed next. */
static bool feed(at_host *host, const at_event *event, const at_about *about)
{
    bool     applied = false;
    uint64_t version = host->hub->version;
    record_event(host, event, about);
    host->out.count = 0;
    at_hub_step(host->machine, event, &host->out);
    assert(host->hub->version == version + (event->kind == AT_EV_APPLIED));
    for (size_t i = 0; i < host->out.count; i++) {
        const at_action *action = &host->out.actions[i];
        double           lr = perform(host, action, event->now);
        record_action(host, event->now, action, lr);
        applied = applied || action->kind == AT_ACT_APPLY;
    }
    return applied;
}

static void deliver_evaluation(at_host *host, const at_evaluation *evaluation, at_ns now,
                               bool final);

/* Keeps track of whose parameters are averaged. */
static void follow_gossip(at_gossip *gossip, const at_event *event)
{
    assert(gossip->graph.nodes > 0);
    if (event->kind == AT_EV_JOINED) at_gossip_join(gossip, event->worker);
    if (event->kind == AT_EV_LOST) at_gossip_lose(gossip, event->worker);
}

/* For the sentence that ends a run without workers. */
static void note_lost(at_host *host, const at_event *event, const at_about *about)
{
    assert(event->worker >= 1);
    if (about && about->text)
        snprintf(host->last_lost, sizeof host->last_lost, "worker %u %s", event->worker,
                 about->text);
}

/* Says which worker sent what; not each time, because a run may be full of them. */
static void note_nonfinite(at_host *host, const at_event *event)
{
    const at_plan *plan = host->hub->plan;
    const at_work *work = &event->as.report.work;
    assert(event->kind == AT_EV_MESSAGE);
    if (host->hub->end != AT_END_RUNNING || plan->nonfinite == AT_NONFINITE_IGNORE) return;
    at_nonfinite_describe(host->task, event->worker, host->hub->version + 1, work, host->nonfinite);
    host->nonfinite_count++;
    if (plan->nonfinite != AT_NONFINITE_SKIP || host->nonfinite_count > NONFINITE_SAID) return;
    char        text[AT_NONFINITE_TEXT + 60];
    const char *more =
        host->nonfinite_count == NONFINITE_SAID ? "; no more of these are shown" : "";
    snprintf(text, sizeof text, "%s, and is skipped%s", host->nonfinite, more);
    at_host_say(host, event->now, text);
}

void at_host_event(at_host *host, const at_event *event, const at_about *about)
{
    assert(event->kind != AT_EV_APPLIED); /* said here, after an update */
    if (event->kind == AT_EV_START) {
        host->started = event->now - host->hub->clock_before;
        host->updater->wants_norms = host->hub->plan->size->wants_norms;
    }
    if (event->kind == AT_EV_LOST) note_lost(host, event, about);
    if (event->kind == AT_EV_MESSAGE && at_nonfinite_any(&event->as.report.work))
        note_nonfinite(host, event);
    if (host->gossip) follow_gossip(host->gossip, event);
    bool applied = feed(host, event, about);
    if (applied) {
        at_event done = {.kind = AT_EV_APPLIED, .now = event->now};
        done.as.applied.norm2_step = host->updater->norm2_step;
        done.as.applied.norm2_piece = host->updater->norm2_piece;
        applied = feed(host, &done, NULL);
        assert(!applied);
    }
    if (host->ops.flush) host->ops.flush(host->ops.self);
    if (!host->scored) return;
    host->scored = false;
    deliver_evaluation(host, &host->evaluation, event->now, false);
}

static void deliver_evaluation(at_host *host, const at_evaluation *evaluation, at_ns now,
                               bool final)
{
    at_event event = {.kind = AT_EV_EVALUATED, .now = now};
    event.as.evaluated.step = evaluation->step;
    event.as.evaluated.at = evaluation->at;
    at_score_metrics(event.as.evaluated.value, &evaluation->score);
    if (host->gossip) /* as of the newest step: the evaluator knows only the mean model */
        event.as.evaluated.value[AT_METRIC_DISAGREEMENT] = host->gossip->disagreement;
    at_host_event(host, &event, &(at_about){.count = evaluation->score.count, .final = final});
}

at_ns at_host_due(const at_host *host)
{
    at_ns due = host->sampling.due;
    at_ns evaluator = host->ops.virtual_time ? AT_NEVER : at_evaluator_due(host->evaluator);
    if (evaluator != AT_NEVER) evaluator -= host->stopped;
    if (evaluator < due) due = evaluator;
    for (int i = 0; i < AT_TIMER_COUNT; i++)
        if (host->timer[i] < due) due = host->timer[i];
    return due;
}

void at_host_reap(at_host *host, at_ns now)
{
    assert(host->hub);
    const char *text = at_evaluator_reap(host->evaluator);
    if (text) at_host_say(host, now, text);
}

static void poll_evaluator(at_host *host, at_ns now)
{
    assert(!host->ops.virtual_time || !host->evaluator);
    const char *text = at_evaluator_poll(host->evaluator, at_clock_now());
    if (text) at_host_say(host, now, text);
}

static void poll_saver(at_host *host, at_ns now)
{
    assert(host->hub);
    if (at_signals_save()) host->timer[AT_TIMER_SAVE] = now;
    say_unsaved(host, now);
}

void at_host_poll(at_host *host, at_ns now)
{
    at_ns        *lease = &host->timer[AT_TIMER_LEASE];
    at_evaluation evaluation;
    if (*lease < host->leases_from) *lease = host->leases_from;
    poll_saver(host, now);
    if (host->sampling.due <= now) sample_usage(host, now);
    if (host->evaluator) poll_evaluator(host, now);
    bool scored = host->ops.evaluation ? host->ops.evaluation(host->ops.self, &evaluation)
                                       : at_evaluator_take(host->evaluator, &evaluation);
    if (scored) deliver_evaluation(host, &evaluation, now, false);
    for (int i = 0; i < AT_TIMER_COUNT && !host->finished; i++) {
        if (host->timer[i] > now) continue;
        host->timer[i] = AT_NEVER;
        at_event event = {.kind = AT_EV_TIMER, .now = now, .as.timer = (at_timer)i};
        at_host_event(host, &event, NULL);
    }
}

/* ---- end ------------------------------------------------------------------------------------- */

static void final_score_by_evaluator(at_host *host, at_ns last_apply)
{
    at_evaluation evaluation;
    assert(host->evaluator);
    if (at_evaluator_busy(host->evaluator)) {
        if (at_evaluator_wait(host->evaluator, &evaluation))
            deliver_evaluation(host, &evaluation, now_at_end(host), false);
        else
            at_evaluator_drop(host->evaluator);
    }
    at_evaluator_begin(host->evaluator, host->updater->w, host->hub->version, last_apply);
    if (at_evaluator_wait(host->evaluator, &evaluation))
        deliver_evaluation(host, &evaluation, now_at_end(host), true);
    else
        at_host_say(host, now_at_end(host),
                    "the final evaluation was aborted: it made no progress");
}

static void say_skipped(at_host *host)
{
    const at_hub *hub = host->hub;
    char          text[160];
    assert(hub->evaluations_skipped <= hub->evaluations_due);
    /* Who asked for no particular step and no target misses nothing; result.json has the count. */
    bool wanted = hub->plan->eval_steps > 0 || hub->plan->limits.targets > 0;
    if (hub->evaluations_skipped == 0 || !wanted) return;
    snprintf(text, sizeof text,
             "%llu of %llu evaluations were skipped because the previous one was still running",
             (unsigned long long)hub->evaluations_skipped,
             (unsigned long long)hub->evaluations_due);
    at_host_say(host, now_at_end(host), text);
}

void at_host_final_score(at_host *host)
{
    assert(host->hub->finished);
    at_ns last_apply = host->hub->version > 0 ? host->hub->applied_at : host->started;
    sample_usage(host, now_at_end(host));
    if (host->evaluator) say_skipped(host);
    if (host->evaluator) final_score_by_evaluator(host, last_apply);
    if (host->evaluator) sample_usage(host, now_at_end(host)); /* scoring uses resources, too */
    if (!host->ops.score) return;
    at_evaluation evaluation = score_at_once(host, host->hub->version, last_apply);
    deliver_evaluation(host, &evaluation, host->hub->ended_at, true);
}

void at_host_outcome(const at_host *host, at_outcome *outcome)
{
    const at_hub *hub = host->hub;
    assert(hub->finished);
    *outcome = (at_outcome){.version = hub->version,
                            .trace = hub->trace,
                            .first_order = host->ops.virtual_time || hub->began_at == AT_NEVER
                                               ? AT_NEVER
                                               : hub->began_at + hub->elapsed_before,
                            .end = hub->end,
                            .traffic = host->traffic,
                            .exchanged = copy_exchanged(host),
                            .switched = hub->switched,
                            .switched_at = hub->switched_at,
                            .evaluations_skipped = hub->evaluations_skipped};
    memcpy(outcome->last_lost, host->last_lost, sizeof outcome->last_lost);
    memcpy(outcome->nonfinite, host->nonfinite, sizeof outcome->nonfinite);
    for (int i = 0; i < AT_TARGETS_MAX; i++) outcome->target[i] = hub->target[i];
}
