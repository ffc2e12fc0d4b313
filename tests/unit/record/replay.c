#include "record/replay/replay.h"

#include <fcntl.h>

#include "base/rng.h"
#include "record/sinks/sinks.h"
#include "script.h"
#include "step/hub.h"

enum { FACTS_MAX = 400, PIECES = 4, BATCH = 32 };

/* A record with everything it points to, so that it can be modified before it is written. */
typedef struct fact {
    at_record record;
    at_event  event;
    at_action action;
    at_piece  pieces[PIECES];
} fact;

/* A scripted run: events are fed to a real hub, and all records are kept. */
typedef struct recording {
    script    run;
    at_hub   *hub;
    void     *memory;
    at_out    out;
    at_ns     now;
    uint64_t  trace; /* at the end */
    fact      facts[FACTS_MAX];
    size_t    count;
    at_replay replay;
} recording;

static const at_ns clock_ahead = AT_SEC(7); /* of the world, relative to the run's */

static fact *keep(recording *s, at_record record)
{
    assert_true(s->count < FACTS_MAX);
    fact *f = &s->facts[s->count++];
    *f = (fact){.record = record};
    f->record.at = s->now;
    f->record.version = s->hub->version;
    return f;
}

static void keep_action(recording *s, const at_action *action)
{
    fact *f = keep(s, (at_record){.kind = AT_REC_ACTION});
    f->action = *action;
    if (action->kind != AT_ACT_APPLY) return;
    assert_in_range(action->as.apply.count, 1, PIECES);
    memcpy(f->pieces, action->as.apply.pieces, action->as.apply.count * sizeof *f->pieces);
    f->record.lr = 0.1; /* set by the world */
}

static void feed(recording *s, at_event event)
{
    bool applied = false;
    event.now = s->now + clock_ahead;
    keep(s, (at_record){.kind = AT_REC_EVENT})->event = event;
    s->out.count = 0;
    at_hub_step(s->hub, &event, &s->out);
    for (size_t i = 0; i < s->out.count; i++) {
        keep_action(s, &s->out.actions[i]);
        applied = applied || s->out.actions[i].kind == AT_ACT_APPLY;
    }
    if (applied) feed(s, (at_event){.kind = AT_EV_APPLIED});
    s->now += AT_MS(1);
}

static void begin(recording *s, at_plan_options options)
{
    at_fail fail = {0};
    options.limits.steps = options.limits.steps ? options.limits.steps : 3;
    options.batch = BATCH;
    memset(s, 0, sizeof *s);
    script_begin(&s->run, options.workers);
    if (at_plan_resolve(&options, &s->run.plan, &fail)) fail_msg("%s", fail.text);
    size_t size = at_hub_size(&s->run.plan), actions = at_out_size(options.workers);
    s->memory = aligned_alloc(64, (size + 63) / 64 * 64);
    assert_non_null(s->memory);
    memset(s->memory, 0, size);
    s->hub = at_hub_init(&s->run.plan, s->memory, size);
    s->out = (at_out){.actions = calloc(actions, sizeof(at_action)), .size = actions};
    assert_non_null(s->out.actions);
    feed(s, (at_event){.kind = AT_EV_START});
}

static void end(recording *s)
{
    script_end(&s->run);
    free(s->memory);
    free(s->out.actions);
}

static void join(recording *s, at_node worker, uint32_t incarnation)
{
    at_event event = {.kind = AT_EV_JOINED, .worker = worker};
    event.as.joined.incarnation = incarnation;
    feed(s, event);
}

/* The next report of a worker, on the given version. */
static void report(recording *s, at_node worker, uint64_t version)
{
    const at_member *member = &s->hub->member[worker - 1];
    at_event         event = {.kind = AT_EV_MESSAGE, .worker = worker};
    event.as.report.incarnation = member->incarnation;
    event.as.report.sequence = member->sequence + 1;
    event.as.report.work = (at_work){.round = member->rounds_ended,
                                     .version = version,
                                     .samples = BATCH,
                                     .loss_sum = 70.5,
                                     .compute_ns = AT_MS(1)};
    feed(s, event);
}

static void lose(recording *s, at_node worker, uint64_t drawn, bool returns)
{
    at_event event = {.kind = AT_EV_LOST, .worker = worker};
    event.as.lost.drawn = drawn;
    event.as.lost.returns = returns;
    feed(s, event);
}

/* All workers leave after the last step. */
static void leave(recording *s)
{
    for (at_node worker = 1; worker <= s->run.plan.workers_max; worker++) {
        const at_member *member = &s->hub->member[worker - 1];
        if (member->state != AT_MEMBER_AWAY) lose(s, worker, member->used + member->dropped, false);
    }
    assert_true(s->hub->finished);
    s->trace = s->hub->trace;
}

/* Three steps of two workers; in the second one a worker dies and is replaced. */
static void record_fmb(recording *s)
{
    begin(s, (at_plan_options){.strategy = "fmb", .workers = 2});
    join(s, 1, 1);
    join(s, 2, 1);
    report(s, 1, 0);
    report(s, 2, 0);
    report(s, 2, 1);
    lose(s, 1, 2 * BATCH, true);
    join(s, 1, 2);
    while (s->hub->end == AT_END_RUNNING)
        for (at_node worker = 1; worker <= 2; worker++)
            if (s->hub->member[worker - 1].state == AT_MEMBER_WORKING)
                report(s, worker, s->hub->version);
    leave(s);
}

/* Every report is a step; gradients of the second worker are older and have less weight. */
static void record_async(recording *s)
{
    begin(s, (at_plan_options){.strategy = "async", .stale = "scale", .workers = 2});
    join(s, 1, 1);
    join(s, 2, 1);
    report(s, 1, 0);
    report(s, 2, 0);
    report(s, 1, 1);
    leave(s);
}

/* The index of the n-th event or action of a kind. */
static size_t find_event(const recording *s, at_event_kind kind, int nth)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->facts[i].record.kind == AT_REC_EVENT && s->facts[i].event.kind == kind && --nth == 0)
            return i;
    fail_msg("no such event");
    return 0;
}

static size_t find_action(const recording *s, at_action_kind kind, int nth)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->facts[i].record.kind == AT_REC_ACTION && s->facts[i].action.kind == kind &&
            --nth == 0)
            return i;
    fail_msg("no such action");
    return 0;
}

/* The number of the event to which the fact at this index belongs. */
static uint64_t event_number(const recording *s, size_t place)
{
    uint64_t number = 0;
    for (size_t i = 0; i <= place; i++) number += s->facts[i].record.kind == AT_REC_EVENT;
    return number;
}

static void remove_fact(recording *s, size_t place)
{
    memmove(&s->facts[place], &s->facts[place + 1], (s->count - place - 1) * sizeof *s->facts);
    s->count--;
}

static void swap(recording *s, size_t a, size_t b)
{
    fact kept = s->facts[a];
    s->facts[a] = s->facts[b];
    s->facts[b] = kept;
}

static void write_log(recording *s)
{
    at_fail fail = {0};
    at_sink sink;
    if (at_sink_eventlog(&s->run.info, &sink, &fail)) fail_msg("%s", fail.text);
    for (size_t i = 0; i < s->count; i++) {
        fact *f = &s->facts[i];
        f->record.event = f->record.kind == AT_REC_EVENT ? &f->event : NULL;
        f->record.action = f->record.kind == AT_REC_ACTION ? &f->action : NULL;
        if (f->action.kind == AT_ACT_APPLY) f->action.as.apply.pieces = f->pieces;
        sink.put(sink.self, &f->record);
    }
    sink.put(sink.self, &(at_record){.kind = AT_REC_TEXT, .at = s->now, .text = "run ended"});
    if (sink.close(sink.self, &fail)) fail_msg("%s", fail.text);
}

static at_err try_replay(recording *s, at_fail *fail)
{
    *fail = (at_fail){0};
    return at_replay_run(s->run.folder, &s->replay, fail);
}

/* Writes the recording and replays it. */
static const at_difference *replay(recording *s)
{
    at_fail fail;
    write_log(s);
    if (try_replay(s, &fail)) fail_msg("%s", fail.text);
    return &s->replay.difference;
}

static void assert_found(const at_difference *d, uint64_t event, const char *recorded,
                         const char *replayed)
{
    assert_true(d->found);
    assert_string_equal(d->log, "events.bin");
    assert_int_equal(d->event, event);
    if (!strstr(d->recorded, recorded)) fail_msg("recorded: %s, not %s", d->recorded, recorded);
    if (!strstr(d->replayed, replayed)) fail_msg("replayed: %s, not %s", d->replayed, replayed);
    assert_string_not_equal(d->recorded, d->replayed);
}

/* ---- unmodified recordings ----------------------------------------------------------------- */

static void an_unmodified_recording_replays(void **state)
{
    (void)state;
    void (*const record[])(recording *) = {record_fmb, record_async};
    for (size_t i = 0; i < sizeof record / sizeof *record; i++) {
        static recording s;
        record[i](&s);
        size_t count = s.count;
        assert_false(replay(&s)->found);
        assert_int_equal(s.replay.events + s.replay.actions, count);
        assert_int_equal(s.replay.steps, 3);
        assert_int_equal(s.replay.samples_used, s.hub->samples_used);
        assert_int_equal(s.replay.samples_dropped, s.hub->samples_dropped);
        assert_int_equal(s.replay.trace, s.trace);
        assert_true(s.replay.complete);
        assert_false(s.replay.compared);
        end(&s);
    }
}

static void a_truncated_log_agrees_up_to_the_cut(void **state)
{
    (void)state;
    static recording s;
    char             path[64];
    at_fail          fail;
    record_fmb(&s);
    assert_false(replay(&s)->found);
    snprintf(path, sizeof path, "%s/events.bin", s.run.folder);
    unsigned char *bytes;
    size_t         size;
    assert_int_equal(at_file_read(path, 1 << 20, &bytes, &size, &fail), AT_OK);
    size_t head = 16u + (size_t)(bytes[8] | bytes[9] << 8);
    size_t text = 21; /* the last record is a text, which is not replayed */
    for (size_t cut = size - text; cut-- > head;) { /* shorter and shorter */
        assert_int_equal(truncate(path, (off_t)cut), 0);
        assert_int_equal(try_replay(&s, &fail), AT_OK);
        assert_false(s.replay.difference.found);
        assert_false(s.replay.complete);
    }
    free(bytes);
    end(&s);
}

static void all_logs_of_a_folder_are_replayed(void **state)
{
    (void)state;
    static recording s;
    record_fmb(&s);
    size_t count = s.count;
    write_log(&s); /* events.bin; the next one is events-2.bin */
    assert_false(replay(&s)->found);
    assert_int_equal(s.replay.logs, 2);
    assert_int_equal(s.replay.events + s.replay.actions, 2 * count);
    assert_int_equal(s.replay.steps, 3); /* of the last one, which does not continue the first */
    s.facts[find_event(&s, AT_EV_MESSAGE, 1)].event.as.report.work.samples++;
    const at_difference *d = replay(&s);
    assert_true(d->found);
    assert_string_equal(d->log, "events-3.bin");
    end(&s);
}

/* ---- modified recordings ------------------------------------------------------------------- */

static void a_changed_sample_count_is_found_where_the_step_closes(void **state)
{
    (void)state;
    static recording s;
    record_fmb(&s);
    size_t apply = find_action(&s, AT_ACT_APPLY, 1);
    s.facts[find_event(&s, AT_EV_MESSAGE, 1)].event.as.report.work.samples++;
    const at_difference *d = replay(&s);
    assert_found(d, event_number(&s, apply), "APPLY step 1: 64 samples", "APPLY step 1: 65 ");
    assert_non_null(strstr(d->line, "MESSAGE worker 2, process 1, report 1"));
    assert_int_equal(d->action, 1);
    assert_int_equal(d->at, s.facts[apply].record.at);
    end(&s);
}

static void a_changed_count_of_one_gradient_is_found_and_the_gradient_named(void **state)
{
    (void)state;
    static recording s;
    record_fmb(&s);
    size_t apply = find_action(&s, AT_ACT_APPLY, 1);
    s.facts[apply].pieces[1].samples = 7;
    assert_found(replay(&s), event_number(&s, apply), "gradient 2: worker 2, process 1, report 1",
                 "32 samples on version 0, weight 1");
    assert_non_null(strstr(s.replay.difference.recorded, "7 samples on version 0"));
    end(&s);
}

static void a_changed_weight_is_found(void **state)
{
    (void)state;
    static recording s;
    record_async(&s);
    size_t add = find_action(&s, AT_ACT_ADD, 2);
    assert_true(s.facts[add].action.as.add.weight == 0.5);
    s.facts[add].action.as.add.weight = 0.75;
    assert_found(replay(&s), event_number(&s, add), "ADD worker 2", "weight 0.5");
    assert_non_null(strstr(s.replay.difference.recorded, "weight 0.75"));
    end(&s);

    record_async(&s);
    size_t apply = find_action(&s, AT_ACT_APPLY, 2);
    s.facts[apply].pieces[0].weight = 1;
    assert_found(replay(&s), event_number(&s, apply), "weight 1", "weight 0.5");
    assert_int_equal(s.replay.difference.action, 2);
    end(&s);
}

static void a_removed_event_is_found_at_its_actions(void **state)
{
    (void)state;
    static recording s;
    record_fmb(&s);
    size_t   closing = find_event(&s, AT_EV_MESSAGE, 2);
    uint64_t before = event_number(&s, closing) - 1;
    remove_fact(&s, closing);
    assert_found(replay(&s), before, "APPLY step 1", "no further action");
    end(&s);
}

static void a_removed_event_without_actions_is_found_at_its_consequence(void **state)
{
    (void)state;
    static recording s;
    record_fmb(&s);
    remove_fact(&s, find_event(&s, AT_EV_MESSAGE, 3)); /* the first one sets the lease */
    uint64_t closing = event_number(&s, find_event(&s, AT_EV_LOST, 1));
    assert_found(replay(&s), closing, "APPLY step 2", "no further action");
    end(&s);
}

static void a_removed_applied_event_is_found(void **state)
{
    (void)state;
    static recording s;
    record_fmb(&s);
    size_t place = find_event(&s, AT_EV_APPLIED, 1);
    remove_fact(&s, place);
    while (s.facts[place].record.kind == AT_REC_ACTION)
        remove_fact(&s, place); /* and its actions */
    assert_found(replay(&s), event_number(&s, place), "MESSAGE worker 2",
                 "impossible event: APPLIED must follow an APPLY");
    assert_int_equal(s.replay.difference.action, 0);
    end(&s);
}

static void a_removed_action_is_found(void **state)
{
    (void)state;
    static recording s;
    record_fmb(&s);
    size_t apply = find_action(&s, AT_ACT_APPLY, 2);
    remove_fact(&s, apply);
    assert_found(replay(&s), event_number(&s, apply - 1), "no further action", "APPLY step 2");
    end(&s);
}

static void an_added_action_is_found(void **state)
{
    (void)state;
    static recording s;
    record_fmb(&s);
    size_t first = find_event(&s, AT_EV_MESSAGE, 1);
    memmove(&s.facts[first + 1], &s.facts[first], (s.count - first) * sizeof *s.facts);
    s.count++;
    s.facts[first] = s.facts[find_action(&s, AT_ACT_FINISH, 1)];
    s.facts[first].record.at = s.facts[first - 1].record.at;
    assert_found(replay(&s), event_number(&s, first - 1), "FINISH: steps", "no further action");
    end(&s);
}

static void swapped_actions_are_found_at_the_first_of_them(void **state)
{
    (void)state;
    static recording s;
    record_fmb(&s);
    size_t   last = find_action(&s, AT_ACT_SEND, 2);
    size_t   first = find_action(&s, AT_ACT_SEND, 1);
    uint64_t number = event_number(&s, first);
    assert_int_equal(event_number(&s, last), number);
    swap(&s, first, last);
    assert_found(replay(&s), number, "SEND worker 2: round 0", "SEND worker 1: round 0");
    end(&s);
}

static void times_and_versions_are_compared(void **state)
{
    (void)state;
    static recording s;
    record_fmb(&s);
    size_t apply = find_action(&s, AT_ACT_APPLY, 2);
    s.facts[apply].action.as.apply.wait_ns++;
    assert_found(replay(&s), event_number(&s, apply), "APPLY step 2", "APPLY step 2");
    end(&s);

    record_fmb(&s);
    s.facts[apply].record.version++;
    assert_found(replay(&s), event_number(&s, apply), "APPLY step 2", "the same except for its");
    end(&s);

    record_fmb(&s);
    size_t place = find_event(&s, AT_EV_MESSAGE, 3);
    s.facts[place].event.now++;
    assert_found(replay(&s), event_number(&s, place), "MESSAGE worker 2", "invalid time");
    end(&s);
}

/* The hub asserts what worlds guarantee; events from a file must be checked before. */
static void impossible_events_are_refused(void **state)
{
    (void)state;
    static recording s;
    record_fmb(&s);
    size_t place = find_event(&s, AT_EV_JOINED, 3);
    s.facts[place].event.as.joined.incarnation = 1;
    assert_found(replay(&s), event_number(&s, place), "JOINED worker 1", "was present before");
    end(&s);

    record_fmb(&s);
    s.facts[place].event.worker = 2;
    assert_found(replay(&s), event_number(&s, place), "JOINED worker 2", "already present");
    end(&s);

    record_fmb(&s);
    place = find_event(&s, AT_EV_LOST, 1);
    s.facts[place].event.as.lost.drawn = 1;
    assert_found(replay(&s), event_number(&s, place), "LOST worker 1: 1 samples",
                 "than the worker drew");
    end(&s);

    record_fmb(&s);
    place = find_event(&s, AT_EV_MESSAGE, 3);
    s.facts[place].event.as.report.work.version = 2;
    assert_found(replay(&s), event_number(&s, place), "MESSAGE", "does not exist yet");
    end(&s);

    record_fmb(&s);
    s.facts[place].event.as.report.work.samples = 0;
    assert_found(replay(&s), event_number(&s, place), "MESSAGE", "without samples");
    end(&s);

    record_fmb(&s);
    remove_fact(&s, 0);
    while (s.facts[0].record.kind == AT_REC_ACTION) remove_fact(&s, 0);
    assert_found(replay(&s), 1, "JOINED worker 1", "START must be the first event");
    end(&s);

    record_fmb(&s);
    s.facts[0].event.now = -1;
    assert_found(replay(&s), 1, "START", "invalid time");
    end(&s);
}

/* ---- random damage ------------------------------------------------------------------------- */

static void tamper(recording *s, at_rng *rng)
{
    size_t a = at_rng_below(rng, (uint32_t)s->count), b = at_rng_below(rng, (uint32_t)s->count);
    fact  *f = &s->facts[a];
    switch (at_rng_below(rng, 6)) {
    case 0: remove_fact(s, a); break;
    case 1: swap(s, a, b); break;
    case 2: s->facts[a] = s->facts[b]; break;
    case 3: f->event.kind = (at_event_kind)at_rng_below(rng, AT_EV_STOP + 1); break;
    case 4: f->event.worker = f->action.worker = 1 + (at_node)at_rng_below(rng, 2); break;
    case 5: {
        unsigned char byte = (unsigned char)at_rng_below(rng, 4);
        memcpy((char *)&f->event.as + at_rng_below(rng, sizeof(at_work)), &byte, 1);
        break;
    }
    }
    for (size_t i = 1; i < s->count; i++) { /* the reader refuses decreasing times */
        fact *g = &s->facts[i];
        if (g->record.at < s->facts[i - 1].record.at) g->record.at = s->facts[i - 1].record.at;
        g->event.now = g->record.at + clock_ahead;
    }
}

/* Restores values that C does not allow in a bool or an enum. */
static void sanitize(recording *s)
{
    for (size_t i = 0; i < s->count; i++) {
        fact *f = &s->facts[i];
        if (f->record.kind != AT_REC_EVENT) continue;
        if (f->event.kind == AT_EV_TIMER) f->event.as.timer = AT_TIMER_LEASE;
        if (f->event.kind == AT_EV_LOST) f->event.as.lost.returns = false;
        if (f->event.kind != AT_EV_MESSAGE) continue;
        at_work *work = &f->event.as.report.work;
        work->abandoned = work->capped = work->overslept = false;
    }
}

static void no_modified_recording_crashes_the_replay(void **state)
{
    (void)state;
    static recording s;
    uint32_t         found = 0, refused = 0, rounds = 600;
    for (uint32_t i = 0; i < rounds; i++) {
        at_rng rng = at_rng_stream(1, i, AT_RNG_PURPOSE_TEST, 0);
        (i % 2 ? record_fmb : record_async)(&s);
        for (uint32_t j = 0; j <= i % 3; j++) tamper(&s, &rng);
        sanitize(&s);
        at_fail fail;
        write_log(&s);
        at_err err = try_replay(&s, &fail);
        if (err) assert_int_equal(err, AT_ERR_FORMAT);
        refused += err != AT_OK;
        found += !err && s.replay.difference.found;
        end(&s);
    }
    assert_true(found + refused > rounds / 2);
}

static void overwrite(const char *path, size_t place, unsigned char byte)
{
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)place), 1);
    close(fd);
}

/* Any byte of the file, including the header with the plan. */
static void no_modified_byte_crashes_the_replay(void **state)
{
    (void)state;
    static recording s;
    char             path[64];
    unsigned char   *bytes;
    size_t           size;
    at_fail          fail;
    record_async(&s);
    write_log(&s);
    snprintf(path, sizeof path, "%s/events.bin", s.run.folder);
    assert_int_equal(at_file_read(path, 1 << 20, &bytes, &size, &fail), AT_OK);
    for (size_t i = 0; i < 2 * size; i++) {
        at_rng        rng = at_rng_stream(2, i, AT_RNG_PURPOSE_TEST, 0);
        size_t        place = i % size;
        unsigned char byte =
            (unsigned char)(i < size ? at_rng_below(&rng, 256) : '0' + at_rng_below(&rng, 10));
        overwrite(path, place, byte);
        at_err err = try_replay(&s, &fail);
        if (err && err != AT_ERR_MISSING) /* of a torn head */
            assert_int_equal(err, AT_ERR_FORMAT);
        overwrite(path, place, bytes[place]);
    }
    free(bytes);
    end(&s);
}

/* ---- the run folder ------------------------------------------------------------------------ */

static void write_result(const recording *s, const char *text)
{
    char    path[64];
    at_fail fail;
    snprintf(path, sizeof path, "%s/result.json", s->run.folder);
    assert_int_equal(at_file_write(path, text, strlen(text), &fail), AT_OK);
}

static void totals_are_compared_with_the_result(void **state)
{
    (void)state;
    static recording s;
    at_fail          fail;
    char             text[300], trace[17];
    static const struct {
        int         steps, used, dropped, trace;
        at_err      err;
        const char *message;
    } cases[] = {
        {0, 0, 0, 0, AT_OK, ""},
        {1, 0, 0, 0, AT_ERR_FAILED, "has steps 4, the replay gives 3"},
        {0, 1, 0, 0, AT_ERR_FAILED, "samples.used"},
        {0, 0, 1, 0, AT_ERR_FAILED, "samples.dropped"},
        {0, 0, 0, 1, AT_ERR_FAILED, "trace_hash"},
    };
    record_fmb(&s);
    write_log(&s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(trace, sizeof trace, "%016llx",
                 (unsigned long long)s.trace + (unsigned)cases[i].trace);
        snprintf(text, sizeof text,
                 "{\"steps\": %d, \"samples\": {\"used\": %d, \"dropped\": %d}, "
                 "\"trace_hash\": \"%s\"}",
                 3 + cases[i].steps, (int)s.hub->samples_used + cases[i].used,
                 (int)s.hub->samples_dropped + cases[i].dropped, trace);
        write_result(&s, text);
        assert_int_equal(try_replay(&s, &fail), cases[i].err);
        assert_int_equal(s.replay.compared, cases[i].err == AT_OK);
        if (!strstr(fail.text, cases[i].message)) fail_msg("%s", fail.text);
    }
    write_result(&s, "{\"steps\": ");
    assert_int_equal(try_replay(&s, &fail), AT_ERR_FORMAT);
    write_result(&s, "{}");
    assert_int_equal(try_replay(&s, &fail), AT_ERR_FORMAT);
    end(&s);
}

static void a_missing_log_and_a_missing_run_are_distinguished(void **state)
{
    (void)state;
    static recording s;
    at_fail          fail;
    record_fmb(&s);
    assert_int_equal(try_replay(&s, &fail), AT_ERR_MISSING);
    assert_non_null(strstr(fail.text, "no event log (events.bin)"));
    write_result(&s, "{\"options\": {\"record\": \"steps\"}}");
    assert_int_equal(try_replay(&s, &fail), AT_ERR_MISSING);
    assert_non_null(strstr(fail.text, "--record steps"));
    assert_non_null(strstr(fail.hint, "--record full"));
    end(&s);
    assert_int_equal(try_replay(&s, &fail), AT_ERR_MISSING);
    assert_non_null(strstr(fail.text, "no such run folder"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unmodified_recording_replays),
        cmocka_unit_test(a_truncated_log_agrees_up_to_the_cut),
        cmocka_unit_test(all_logs_of_a_folder_are_replayed),
        cmocka_unit_test(a_changed_sample_count_is_found_where_the_step_closes),
        cmocka_unit_test(a_changed_count_of_one_gradient_is_found_and_the_gradient_named),
        cmocka_unit_test(a_changed_weight_is_found),
        cmocka_unit_test(a_removed_event_is_found_at_its_actions),
        cmocka_unit_test(a_removed_event_without_actions_is_found_at_its_consequence),
        cmocka_unit_test(a_removed_applied_event_is_found),
        cmocka_unit_test(a_removed_action_is_found),
        cmocka_unit_test(an_added_action_is_found),
        cmocka_unit_test(swapped_actions_are_found_at_the_first_of_them),
        cmocka_unit_test(times_and_versions_are_compared),
        cmocka_unit_test(impossible_events_are_refused),
        cmocka_unit_test(no_modified_recording_crashes_the_replay),
        cmocka_unit_test(no_modified_byte_crashes_the_replay),
        cmocka_unit_test(totals_are_compared_with_the_result),
        cmocka_unit_test(a_missing_log_and_a_missing_run_are_distinguished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
