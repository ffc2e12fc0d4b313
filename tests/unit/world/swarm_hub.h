/* swarm_hub.h - the hub of swarm.c: starts, serves its workers, saves, dies and is resumed. */
#ifndef AT_TESTS_UNIT_WORLD_SWARM_HUB_H
#define AT_TESTS_UNIT_WORLD_SWARM_HUB_H

#include "swarm_world.h"

static const char RUN[] = "run";

static inline at_ns hub_now(const world *s)
{
    return AT_SEC(1) + s->now + s->hub.clock_ahead;
}

/* ---- messages to workers --------------------------------------------------------------------- */

/* What a worker starts from: under gossip its own parameters, which the hub keeps for all, as in
 * shared memory. */
static inline const float *params_of(const hub_process *h, at_node id)
{
    return h->host.gossip ? h->own[id - 1] : h->w;
}

/* Orders, if any, behind the parameters of now. */
static inline void send_work(world *s, at_node id)
{
    hub_process *h = &s->hub;
    peer        *to = &h->peer[id];
    packet new;
    at_hub_message head = {
        .kind = AT_HUB_MESSAGE_WORK, .version = h->host.hub->version, .base = AT_VERSION_NONE};
    size_t params = PARAMS * sizeof(float);
    size_t size = AT_HUB_MESSAGE_HEAD + params + to->orders * AT_ORDER_MESSAGE;
    begin_packet(&new, s, id, false, PACKET_HUB, size);
    unsigned char *at = new.bytes + AT_FRAME_HEAD;
    at_hub_message_write(at, &head);
    memcpy(at + AT_HUB_MESSAGE_HEAD, params_of(h, id), params);
    at += AT_HUB_MESSAGE_HEAD + params;
    for (uint32_t i = 0; i < to->orders; i++, at += AT_ORDER_MESSAGE)
        at_order_message_write(at, &to->order[i]);
    to->orders = 0;
    to->wants = false;
    post(s, &new);
}

static inline void send_head(world *s, at_node id, const at_hub_message *head)
{
    packet new;
    size_t host = head->kind == AT_HUB_MESSAGE_WELCOME ? AT_HOST_NAME_SIZE : 0;
    begin_packet(&new, s, id, false, PACKET_HUB, AT_HUB_MESSAGE_HEAD + host);
    at_hub_message_write(new.bytes + AT_FRAME_HEAD, head);
    post(s, &new);
}

static void op_send(void *self, at_node worker, const at_order *order)
{
    peer *to = &((world *)self)->hub.peer[worker];
    assert_true(to->orders < ORDERS);
    to->order[to->orders++] = (at_order_message){.worker = worker, .order = *order};
}

static void op_flush(void *self)
{
    world *s = self;
    for (at_node id = 1; id <= s->plan.workers_max; id++)
        if (s->hub.peer[id].orders > 0) send_work(s, id);
}

static void op_evict(void *self, at_node worker)
{
    world *s = self;
    s->hub.peer[worker].evicted = true;
    covered.evictions++;
    covered.outdated += s->hub.host.hub->member[worker - 1].outdated >= AT_OUTDATED_MAX;
}

/* Under gossip the hub's vector is the mean of those who took part in the step, and no worker's
 * parameters are further apart than the disagreement says. */
static inline void check_mean(const world *s)
{
    const at_gossip *gossip = &s->hub.gossip;
    covered.gossip++;
    for (int p = 0; p < PARAMS; p++) {
        double   sum = 0;
        uint32_t count = 0;
        for (uint32_t i = 0; i < gossip->graph.nodes; i++) {
            if (!gossip->averaged[i]) continue;
            sum += (double)s->hub.own[i][p];
            count++;
        }
        assert_true(count > 0);
        if (!ledger_near(s->hub.w[p], sum / count))
            fail_msg("parameter %d is %g, the mean of the workers %g", p, (double)s->hub.w[p],
                     sum / count);
    }
}

static void op_publish(void *self, uint64_t version)
{
    (void)version;
    ((world *)self)->hub.cast = true;
    if (((world *)self)->hub.host.gossip) check_mean(self);
    covered.in_place += ((world *)self)->in_place;
}

static void op_score(void *self, at_score *score)
{
    const world *s = self;
    score->count = 1;
    for (int p = 0; p < PARAMS; p++) score->loss_sum += fabs((double)s->hub.w[p]);
}

/* In another process: its answer comes later, much later if it dies, or never. */
static inline void begin_evaluation(world *s)
{
    hub_process *h = &s->hub;
    uint64_t     step = s->ledger->evaluated;
    s->ledger->evaluated = UINT64_MAX;
    if (s->slow_scores == 0 || step == UINT64_MAX) return;
    assert_int_equal(h->evaluates_at, AT_NEVER); /* one at a time */
    assert_true(step <= h->host.hub->version);
    h->evaluation = (at_evaluation){.step = step, .at = hub_now(s)};
    op_score(s, &h->evaluation.score);
    h->evaluates_at = s->now + some(s, s->slow_scores);
    if (!fault(s, 0.1)) return;
    covered.evaluator_deaths++;
    h->evaluates_at += chance(s, 0.1) ? 10 * PATIENCE : some(s, AT_SEC(1));
}

static bool op_evaluation(void *self, at_evaluation *evaluation)
{
    world *s = self;
    if (s->hub.evaluates_at > s->now) return false;
    s->hub.evaluates_at = AT_NEVER;
    *evaluation = s->hub.evaluation;
    covered.evaluations++;
    return true;
}

static const float *op_gradient(void *self, at_node worker, uint32_t slot)
{
    assert_true(slot < 2);
    return ((world *)self)->hub.peer[worker].gradient[slot];
}

/* ---- events ---------------------------------------------------------------------------------- */

static inline void feed(world *s, at_event event);

/* What a process draws after its hub has died is in memory that the next hub does not have. */
static inline uint64_t drawn_by(const world *s, at_node id)
{
    const process *p = &s->process[id];
    bool           seen = s->shared && p->hub_born == s->hub_lives;
    return seen ? atomic_load(&p->drawn) : s->hub.peer[id].drawn;
}

/* The hub lets go of a worker. In shared memory its process is killed at once, so that it draws
 * nothing that nobody counts. */
static inline void lose(world *s, at_node id, bool for_good)
{
    peer    *from = &s->hub.peer[id];
    process *p = &s->process[id];
    bool     running = s->hub.host.hub->end == AT_END_RUNNING;
    at_event event = {.kind = AT_EV_LOST, .worker = id};
    bool     joined = from->joined;
    if (s->shared && p->up && p->connection == from->connection) {
        end_process(s, p);
        p->connects_at = s->now + some(s, AT_MS(30));
    }
    event.as.lost.drawn = drawn_by(s, id);
    event.as.lost.returns = running && !p->gone && !for_good && !s->finished;
    from->drawn = event.as.lost.drawn;
    from->connection = 0;
    from->joined = from->evicted = from->wants = false;
    from->orders = 0;
    if (joined || s->hub.host.hub->member[id - 1].expected) feed(s, event);
}

static inline void handle_evictions(world *s)
{
    for (at_node id = 1; id <= s->plan.workers_max; id++)
        if (s->hub.peer[id].evicted) {
            close_connection(s, id);
            lose(s, id, false);
        }
}

/* Newer parameters: to whom they interrupt, and to whom starts without an order. */
static inline void cast_params(world *s)
{
    const at_plan *plan = s->hub.host.hub->plan;
    bool           all = at_plan_interrupts(plan) || plan->release->self_starting;
    s->hub.cast = false;
    for (at_node id = 1; all && id <= s->plan.workers_max; id++)
        if (s->hub.peer[id].joined) send_work(s, id);
}

/* One event, unless the hub has died in the one before. */
static inline void feed(world *s, at_event event)
{
    hub_process *h = &s->hub;
    if (!h->up || disk.dead || h->host.finished) return;
    event.now = hub_now(s);
    uint64_t version = h->host.hub->version;
    at_host_event(&h->host, &event, NULL);
    covered.events++;
    assert_true(h->host.hub->version >= version && h->host.hub->version <= version + 1);
    assert_int_equal(h->host.hub->version, s->ledger->steps);
    if (s->ledger->asked_to_save && h->writes_at == AT_NEVER)
        h->writes_at = s->now + some(s, s->slow_disk);
    s->ledger->asked_to_save = false;
    begin_evaluation(s);
    if (h->host.finished) return;
    if (h->cast) cast_params(s);
    handle_evictions(s);
}

/* ---- messages from workers ------------------------------------------------------------------- */

static inline void welcome(world *s, at_node id, uint32_t connection)
{
    hub_process     *h = &s->hub;
    peer            *from = &h->peer[id];
    const at_member *member = &h->host.hub->member[id - 1];
    if (from->connection == connection) return; /* it says it twice */
    if (from->connection > 0 || from->joined) lose(s, id, false);
    if (!h->up || h->host.finished || disk.dead) return;
    from->connection = connection;
    if (h->host.hub->end != AT_END_RUNNING) {
        send_head(s, id, &(at_hub_message){.kind = AT_HUB_MESSAGE_BYE});
        from->connection = 0;
        if (member->expected) lose(s, id, true);
        return;
    }
    from->incarnation =
        (from->incarnation > member->incarnation ? from->incarnation : member->incarnation) + 1;
    from->sequence = member->sequence;
    from->drawn = from->counted =
        at_resume_drawn(&h->host, id) + at_hub_samples_held(h->host.hub, member);
    send_head(s, id,
              &(at_hub_message){.kind = AT_HUB_MESSAGE_WELCOME,
                                .incarnation = from->incarnation,
                                .sequence = member->sequence,
                                .drawn = from->drawn,
                                .redrawn = member->redrawn,
                                .pid = 1,
                                .born = s->hub_lives});
}

static inline void take_ready(world *s, at_node id)
{
    peer    *from = &s->hub.peer[id];
    at_event event = {.kind = AT_EV_JOINED, .worker = id};
    if (from->joined || s->hub.host.hub->member[id - 1].incarnation >= from->incarnation) return;
    from->joined = true;
    covered.joins++;
    event.as.joined.incarnation = from->incarnation;
    feed(s, event);
}

static inline void take_note(world *s, const packet *m)
{
    at_worker_note note;
    at_fail        fail = {0};
    peer          *from = &s->hub.peer[m->worker];
    if (at_worker_note_read(m->bytes + AT_FRAME_HEAD, m->size - AT_FRAME_HEAD, &note, &fail))
        fail_msg("%s", fail.text);
    if (note.kind == AT_WORKER_NOTE_HELLO) {
        if (m->connection == s->process[m->worker].connection) welcome(s, m->worker, m->connection);
        return;
    }
    if (m->connection != from->connection) return;
    if (note.kind == AT_WORKER_NOTE_READY) take_ready(s, m->worker);
    if (note.kind != AT_WORKER_NOTE_LEFT || !from->joined) return;
    if (note.drawn > from->drawn) from->drawn = note.drawn;
    lose(s, m->worker, true);
}

/* What an honest worker reports is never refused. Without the order of a stream a report may be an
 * old one, or of the worker's last life: the hub itself ignores it. */
static inline bool is_in_order(world *s, peer *from, const at_report_message *message)
{
    at_fail          fail = {0};
    const at_hub    *hub = s->hub.host.hub;
    at_report_bounds bounds = {.incarnation = from->incarnation,
                               .sequence = from->sequence,
                               .version = hub->version,
                               .samples_max =
                                   s->plan.own_batches ? INT32_MAX : at_plan_samples_max(&s->plan),
                               .drawn = from->counted,
                               .floats = PARAMS,
                               .ends = hub->end != AT_END_RUNNING,
                               .again = at_plan_self_starts(&s->plan)};
    bool             next = message->report.sequence == from->sequence + 1;
    if (!s->streams && !next) return message->report.sequence > from->sequence;
    if (at_report_message_check(message, &bounds, &fail)) fail_msg("%s", fail.text);
    return true;
}

static inline void take_report(world *s, const packet *m)
{
    peer             *from = &s->hub.peer[m->worker];
    at_report_message message;
    at_fail           fail = {0};
    at_event          event = {.kind = AT_EV_MESSAGE, .worker = m->worker};
    const void       *bytes = m->bytes + AT_FRAME_HEAD;
    bool              present = m->connection == from->connection;
    bool              late = !s->streams && m->connection > s->hub.connections_before;
    if (!from->joined || (!present && !late)) return;
    if (at_report_message_read(bytes, m->size - AT_FRAME_HEAD, &message, &fail))
        fail_msg("%s", fail.text);
    bool fresh = present && is_in_order(s, from, &message);
    if (fresh) {
        from->sequence = message.report.sequence;
        from->counted += message.report.work.samples;
        if (message.drawn > from->drawn) from->drawn = message.drawn;
        if (message.floats > 0)
            memcpy(from->gradient[message.report.slot],
                   m->bytes + AT_FRAME_HEAD + AT_REPORT_MESSAGE_HEAD, sizeof from->gradient[0]);
    }
    event.as.report = message.report;
    covered.late += !present;
    feed(s, event);
    if (from->joined && fresh && message.report.again) send_work(s, m->worker);
}

static inline void deliver_to_hub(world *s, const packet *m, packet_kind kind)
{
    if (!s->hub.up || s->hub.host.finished) return;
    if (kind == PACKET_NOTE) take_note(s, m);
    if (kind == PACKET_REPORT) take_report(s, m);
    if (kind == PACKET_CLOSED && s->hub.peer[m->worker].connection == m->connection)
        lose(s, m->worker, false);
}

/* ---- start ----------------------------------------------------------------------------------- */

static void describe_run(void *self, json_t *state, at_ns at)
{
    json_object_set_new(state, "tally", at_tally_json(((world *)self)->hub.tally, at));
}

static inline at_err open_tables(const world *s, hub_process *h, bool gap, at_fail *fail)
{
    at_recorder        tables = {0};
    at_sink            sink;
    at_thinner_options thins = {
        .folder = RUN, .limit = s->record_limit, .tally = h->tally, .gap = gap};
    at_thinner *thinner = at_thinner_new(&thins);
    at_err      err = at_sink_csv(&h->info, true, &sink, fail);
    if (!err) at_recorder_add(&tables, sink);
    if (!err) err = at_sink_eventlog(&h->info, &sink, fail);
    if (!err) at_recorder_add(&tables, sink);
    if (!err) err = at_sink_buffered(&tables, &h->recorder, thinner, &sink, fail);
    if (!err) {
        at_recorder_add(&h->recorder, sink);
        return AT_OK;
    }
    at_thinner_free(thinner);
    at_recorder_close(&tables, NULL);
    return err;
}

static inline at_err open_records(world *s, at_fail *fail)
{
    hub_process       *h = &s->hub;
    at_sink            sink;
    bool               gap = false;
    const at_snapshot *last = h->resume.snapshot;
    h->info = (at_run_info){.folder = RUN,
                            .plan = &s->plan,
                            .world = "test",
                            .command = "",
                            .model = "test",
                            .data = "test",
                            .parameters = PARAMS,
                            .samples_epoch = s->plan.samples_epoch,
                            .resume = last};
    if (last) AT_TRY(at_rewind_tables(RUN, last->version, last->clock, fail));
    if (last) AT_TRY(at_rewind_logs(RUN, last->version, last->clock, &gap, fail));
    covered.thinned += gap && s->record_limit < UINT64_MAX;
    at_recorder_add(&h->recorder, ledger_sink(s->ledger));
    h->tally = at_tally_new(&h->info, &sink);
    assert_non_null(h->tally);
    at_recorder_add(&h->recorder, sink);
    AT_TRY(at_file_make_folder(RUN, fail));
    at_append_file_reserve(4096);
    AT_TRY(at_sink_workers(&h->info, &sink, fail));
    at_recorder_add(&h->recorder, sink);
    AT_TRY(open_tables(s, h, gap, fail));
    return last ? at_tally_resume(h->tally, json_object_get(h->resume.state, "tally"), fail)
                : AT_OK;
}

static inline at_err open_host(world *s, at_fail *fail)
{
    hub_process     *h = &s->hub;
    at_world_ops     ops = {.self = s,
                            .virtual_time = true,
                            .send = op_send,
                            .flush = op_flush,
                            .evict = op_evict,
                            .publish = op_publish,
                            .score = s->slow_scores > 0 ? NULL : op_score,
                            .evaluation = s->slow_scores > 0 ? op_evaluation : NULL,
                            .gradients = {s, op_gradient}};
    at_saver_options saver = {.task = &s->task,
                              .learning = &s->learning,
                              .workers = s->plan.workers_max,
                              .run = RUN,
                              .describe = describe_run,
                              .own_vectors = at_gossip_vectors(&s->plan, &s->learning),
                              .self = s};
    AT_TRY(at_saver_open(&saver, &h->saver, fail));
    s->context.saver = h->saver;
    s->context.resume = h->resume.snapshot ? &h->resume : NULL;
    AT_TRY(at_resume_params(&s->context, h->w, fail));
    AT_TRY(at_host_init(&h->host, &s->plan, &h->recorder, &h->updater, NULL, &ops, fail));
    AT_TRY(at_updater_init(&h->updater, &s->learning, h->w, PARAMS, h->host.hub->pieces_max, fail));
    if (s->plan.mix->owned_by_workers) {
        AT_TRY(at_gossip_init(&h->gossip, &s->context, h->w, h->own[0], STRIDE, fail));
        h->host.gossip = &h->gossip;
    }
    return at_resume_host(&s->context, &h->host, fail);
}

/* Of those who start a run again, some do so with another number of workers. */
static inline void change_workers(world *s)
{
    at_plan_options o = s->options;
    at_plan         plan, then, *now = &s->plan;
    if (s->numbered == s->hub_lives || s->in_place) return;
    s->numbered = s->hub_lives;
    if (!chance(s, 0.3)) return;
    o.workers = 1 + (uint32_t)at_rng_below(&s->rng, now->workers_max);
    o.workers_max = now->workers_max;
    if (o.workers_min > o.workers) o.workers_min = o.workers;
    if (at_plan_resolve(&o, &plan, NULL)) return;
    if (now->then && at_switch_resolve(&o, s->switch_to, &plan, &then, NULL)) return;
    plan.saves = now->saves;
    plan.save_steps = now->save_steps;
    plan.save_time = now->save_time;
    plan.samples_epoch = now->samples_epoch;
    plan.open = now->open;
    plan.own_batches = now->own_batches;
    plan.drawn_extra = now->drawn_extra;
    plan.then = now->then;
    s->plan = plan;
    if (plan.then) s->then = then;
    if (plan.then) at_switch_share(&s->plan, &s->then);
    covered.renumbered++;
}

static inline at_err open_hub(world *s, at_fail *fail)
{
    hub_process *h = &s->hub;
    change_workers(s);
    *h = (hub_process){.writes_at = AT_NEVER,
                       .starts_at = AT_NEVER,
                       .evaluates_at = AT_NEVER,
                       .clock_ahead = h->clock_ahead,
                       .connections_before = s->connections};
    s->ledger->w = h->w;
    s->ledger->evaluated = UINT64_MAX;
    if (s->hub_lives > 0) AT_TRY(at_checkpoint_open(RUN, &h->resume, fail));
    AT_TRY(open_records(s, fail));
    return open_host(s, fail);
}

/* Releases what a hub has in memory; a dead disk takes nothing of it. */
static inline at_err close_hub(world *s, at_fail *fail)
{
    hub_process *h = &s->hub;
    at_saver_close(h->saver);
    at_err err = at_recorder_close(&h->recorder, fail);
    at_updater_deinit(&h->updater);
    at_gossip_deinit(&h->gossip);
    h->gossip = (at_gossip){0};
    at_host_deinit(&h->host);
    at_tally_free(h->tally);
    at_checkpoint_close(&h->resume);
    h->saver = NULL;
    h->tally = NULL;
    h->up = false;
    h->writes_at = AT_NEVER;
    return err;
}

/* A hub that does not find what was confirmed has lost it, unless the disk lies or rots. */
static inline void check_resumed(world *s)
{
    hub_process       *h = &s->hub;
    bool               honest = !disk.lies && !s->rotten && disk.read_errors == 0;
    const at_snapshot *snapshot = h->resume.snapshot;
    if (!snapshot) return;
    assert_int_equal(h->host.hub->trace, snapshot->trace);
    assert_int_equal(h->host.hub->dealt, snapshot->dealt);
    assert_int_equal(h->host.hub->samples_dropped, snapshot->samples_dropped);
    ledger_resume(s->ledger, h->resume.snapshot, h->w);
    if (honest && s->acknowledged != UINT64_MAX)
        assert_true(h->resume.snapshot->version >= s->acknowledged);
    covered.resumed++;
}

/* A start that fails says why. It is tried again while the disk has faults; what is refused for
 * good must not have been promised. */
static inline void start_failed(world *s, at_err err, const at_fail *why)
{
    at_fail ignored;
    assert_true(why->text[0]);
    bool died = disk.dead;
    disk_kill();
    close_hub(s, &ignored);
    disk_revive();
    if (died && s->cut_power) disk_cut((disk_loss)at_rng_below(&s->rng, DISK_LOSS_COUNT));
    bool faulty = s->now < s->calm_at || died;
    bool lost = err == AT_ERR_MISSING || err == AT_ERR_FORMAT;
    if (lost && !faulty) {
        if (s->acknowledged != UINT64_MAX && !disk.lies && !s->rotten)
            fail_msg("what was saved is gone: %s", why->text);
        s->refused = true;
        covered.refused++;
        return;
    }
    if (!faulty) fail_msg("%s", why->text);
    covered.retries++;
    s->hub.starts_at = s->now + some(s, AT_MS(300));
}

static inline void start_hub(world *s)
{
    at_fail fail = {0};
    at_err  err = open_hub(s, &fail);
    if (!err && disk.dead) err = at_fail_set(&fail, AT_ERR_IO, NULL, "killed at the start");
    if (err) {
        start_failed(s, err, &fail);
        return;
    }
    check_resumed(s);
    if (s->hub_lives == 0) memcpy(s->ledger->before, s->hub.w, sizeof s->ledger->before);
    s->hub_lives++;
    s->hub.up = true;
    for (at_node id = 1; id <= s->plan.workers_max; id++) {
        s->hub.peer[id].drawn = at_resume_drawn(&s->hub.host, id);
        if (!s->process[id].driving) atomic_store(&s->process[id].drawn, s->hub.peer[id].drawn);
    }
    feed(s, (at_event){.kind = AT_EV_START});
}

/* ---- death ----------------------------------------------------------------------------------- */

/* That of a machine that has just started, or of another one: it may be an earlier time. */
static inline void restart_clock(world *s)
{
    at_ns before = hub_now(s);
    s->hub.clock_ahead = (at_ns)at_rng_below(&s->rng, AT_SEC(100)) - s->now;
    covered.clocks_back += hub_now(s) < before;
}

/* What it sent since `birth` was never sent: it had died before. */
static inline void kill_hub(world *s, uint64_t birth)
{
    at_fail ignored;
    size_t  left = 0;
    covered.hub_deaths++;
    disk_kill();
    for (size_t i = 0; i < s->packets; i++)
        if (s->packet[i].to_hub || s->packet[i].birth < birth) s->packet[left++] = s->packet[i];
    s->packets = left;
    for (at_node id = 1; id <= s->plan.workers_max; id++) {
        process *p = &s->process[id];
        if (s->in_place && p->up)
            kill_process(s, p, some(s, AT_MS(100)));
        else if (p->connection > 0)
            close_connection(s, id);
    }
    close_hub(s, &ignored);
    if (s->cut_power) {
        covered.power_cuts++;
        disk_cut((disk_loss)at_rng_below(&s->rng, DISK_LOSS_COUNT));
    }
    disk_revive();
    if (s->cut_power || chance(s, 0.2)) restart_clock(s);
    s->hub_dies = s->cut_power = false;
    s->hub.starts_at = s->now + some(s, AT_MS(400));
}

/* ---- saver ----------------------------------------------------------------------------------- */

static inline void run_saver(world *s)
{
    hub_process *h = &s->hub;
    bool         dies = !s->hub_dies && fault(s, s->saver_dies);
    h->writes_at = AT_NEVER;
    if (dies) disk_kill_at(1 + at_rng_below(&s->rng, 12));
    at_saver_write(h->saver);
    covered.saves++;
    if (!dies) return;
    covered.saver_deaths += disk.dead;
    if (disk.dead) disk_revive();
    disk.kill_at = 0;
}

static inline void note_acknowledged(world *s)
{
    uint64_t newest_saved = s->hub.saver ? at_saver_newest(s->hub.saver) : UINT64_MAX;
    if (newest_saved != UINT64_MAX && !disk.dead) s->acknowledged = newest_saved;
}

#endif
