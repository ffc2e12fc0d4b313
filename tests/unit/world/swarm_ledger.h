/* swarm_ledger.h - the accounting of swarm.c, which is independent of the hub's memory.
 *
 * It notes what each worker has sent, sees every event and action of the hub as a sink of its
 * recorder, and checks them: each report is used or dropped once and unchanged, versions grow by
 * one, and a step is the formula over exactly the gradients that its APPLY names.
 */
#ifndef AT_TESTS_UNIT_WORLD_SWARM_LEDGER_H
#define AT_TESTS_UNIT_WORLD_SWARM_LEDGER_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "count_logs.h"

#include "base/rng.h"
#include "record/record.h"
#include "step/snapshot.h"

enum {
    LEDGER_WORKERS = 6,
    LEDGER_PARAMS = 4,
    LEDGER_LIVES = 32,    /* incarnations of a worker, at one hub */
    LEDGER_REPORTS = 256, /* the last ones of an incarnation */
    LEDGER_SAVED = 512
};

typedef enum fate_kind { FATE_NONE, FATE_SENT, FATE_RECEIVED, FATE_USED, FATE_DROPPED } fate_kind;

/* A report and what became of it. */
typedef struct fate {
    uint64_t  sequence;
    uint32_t  samples;
    fate_kind kind;
    float     gradient[LEDGER_PARAMS];
} fate;

/* One of the checkpoints that were requested. */
typedef struct saved_state {
    uint64_t version, hash;
} saved_state;

typedef struct ledger {
    const at_plan *plan;
    const float   *w; /* the hub's parameters */
    bool           formula;
    fate           fates[LEDGER_WORKERS + 1][LEDGER_LIVES][LEDGER_REPORTS];
    uint64_t       used[LEDGER_WORKERS + 1], dropped[LEDGER_WORKERS + 1];
    uint64_t       received[LEDGER_WORKERS + 1]; /* last sequence of this incarnation */
    uint32_t       incarnation[LEDGER_WORKERS + 1];
    bool           live[LEDGER_WORKERS + 1];
    at_ns          ready_at[LEDGER_WORKERS + 1]; /* since then it waits for an order; AT_NEVER */
    uint64_t       ready_on[LEDGER_WORKERS + 1];
    uint64_t       steps, samples_used;
    float          before[LEDGER_PARAMS]; /* parameters of the last closed step */
    at_piece       added[16 * LEDGER_WORKERS];
    uint32_t       added_count;
    saved_state    saved[LEDGER_SAVED];
    uint32_t       saved_count;
    bool           asked_to_save; /* since the last look */
    uint64_t       evaluated;     /* step of the evaluation that is asked for; UINT64_MAX: none */
    uint64_t       checked;       /* steps whose formula was computed, over all runs */
    uint64_t       duplicates, drops[AT_DROP_COUNT];
} ledger;

/* ---- workers --------------------------------------------------------------------------------- */

static inline void ledger_sent(ledger *b, at_node worker, const at_report *report,
                               const float *gradient)
{
    assert_true(report->incarnation < LEDGER_LIVES);
    fate *f = &b->fates[worker][report->incarnation][report->sequence % LEDGER_REPORTS];
    assert_true(report->sequence > f->sequence); /* a sequence number is used once */
    *f = (fate){.sequence = report->sequence, .samples = report->work.samples, .kind = FATE_SENT};
    if (gradient) memcpy(f->gradient, gradient, sizeof f->gradient);
}

/* A report is used or dropped at most once, unchanged, and only if its sender was alive. */
static inline fate *ledger_settle(ledger *b, at_node worker, uint32_t life, uint64_t sequence,
                                  uint64_t samples, fate_kind kind)
{
    fate *f = &b->fates[worker][life][sequence % LEDGER_REPORTS];
    assert_int_equal(f->sequence, sequence);
    assert_int_equal(f->kind, FATE_RECEIVED);
    assert_int_equal(f->samples, samples);
    f->kind = kind;
    return f;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static inline bool ledger_near(double a, double b)
{
    return (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-4 * (1 + fabs(a) + fabs(b));
}

/* w - lr (weight_1 G_1 + weight_2 G_2 + ..) / samples, over what the workers have sent. */
static inline void ledger_check_formula(ledger *b, const at_record *record, const double *sum)
{
    const at_action *apply = record->action;
    for (int p = 0; b->formula && p < LEDGER_PARAMS; p++) {
        double mean = sum[p] / (double)apply->as.apply.samples;
        double expected = (double)b->before[p] - record->lr * mean;
        if (!ledger_near(b->w[p], expected))
            fail_msg("step %llu: parameter %d is %g, the formula gives %g",
                     (unsigned long long)apply->as.apply.step, p, (double)b->w[p], expected);
    }
    b->checked += b->formula;
}

/* A gradient that is too old for the stale rule is not part of a step. */
static inline void ledger_check_age(const ledger *b, const at_piece *piece)
{
    const at_stale_rule *rule = b->plan->stale;
    assert_true(piece->version <= b->steps); /* later versions do not exist */
    assert_true(piece->weight >= 0 && piece->weight <= 1);
    if (strcmp(rule->rule.name, "drop") == 0 && !b->plan->then)
        assert_true(b->steps - piece->version <= (uint64_t)b->plan->arg[AT_STALE][0].whole);
}

static inline void ledger_apply(ledger *b, const at_record *record)
{
    const at_action *apply = record->action;
    uint64_t         samples = 0;
    double           sum[LEDGER_PARAMS] = {0};
    assert_int_equal(apply->as.apply.step, b->steps + 1);
    assert_int_equal(apply->as.apply.samples_used, b->samples_used);
    assert_true(apply->as.apply.count >= 1);
    if (apply->as.apply.folded) assert_int_equal(apply->as.apply.count, b->added_count);
    for (uint32_t i = 0; i < apply->as.apply.count; i++) {
        const at_piece *piece = &apply->as.apply.pieces[i];
        ledger_check_age(b, piece);
        const fate *f = ledger_settle(b, piece->worker, piece->incarnation, piece->sequence,
                                      piece->samples, FATE_USED);
        for (int p = 0; p < LEDGER_PARAMS; p++) sum[p] += piece->weight * (double)f->gradient[p];
        b->used[piece->worker] += piece->samples;
        samples += piece->samples;
    }
    assert_int_equal(apply->as.apply.samples, samples); /* the divisor is never weighted */
    ledger_check_formula(b, record, sum);
    memcpy(b->before, b->w, sizeof b->before);
    b->samples_used += samples;
    b->added_count = 0;
    b->steps++;
}

static inline void ledger_drop(ledger *b, const at_action *drop)
{
    at_drop why = drop->as.drop.why;
    bool    one = why == AT_DROP_STALE || why == AT_DROP_ABANDONED || why == AT_DROP_NONFINITE;
    assert_true(drop->as.drop.samples > 0);
    b->dropped[drop->worker] += drop->as.drop.samples;
    b->drops[why]++;
    if (one)
        ledger_settle(b, drop->worker, b->incarnation[drop->worker], drop->as.drop.sequence,
                      drop->as.drop.samples, FATE_DROPPED);
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

static inline uint64_t ledger_hash(const at_snapshot *snapshot, const float *params)
{
    uint64_t hash = at_rng_mix(snapshot->version + 1);
    for (uint32_t i = 0; i < snapshot->workers; i++) {
        hash = at_rng_mix(hash + snapshot->member[i].used);
        hash = at_rng_mix(hash + snapshot->member[i].dropped);
    }
    for (int p = 0; p < LEDGER_PARAMS; p++) {
        uint32_t bits;
        memcpy(&bits, &params[p], sizeof bits);
        hash = at_rng_mix(hash + bits);
    }
    return hash;
}

static inline bool ledger_has_saved(const ledger *b, saved_state state)
{
    for (uint32_t i = b->saved_count; i-- > 0;)
        if (b->saved[i].version == state.version && b->saved[i].hash == state.hash) return true;
    return false;
}

/* A snapshot matches the accounting at the time of SAVE. */
static inline void ledger_save(ledger *b, const at_action *save)
{
    const at_snapshot *snapshot = save->as.save.snapshot;
    assert_true(at_snapshot_valid(snapshot, b->plan));
    assert_int_equal(snapshot->version, b->steps);
    assert_int_equal(snapshot->samples_used, b->samples_used);
    for (at_node id = 1; id <= b->plan->workers_max; id++) {
        assert_int_equal(snapshot->member[id - 1].used, b->used[id]);
        assert_int_equal(snapshot->member[id - 1].dropped, b->dropped[id]);
    }
    saved_state state = {b->steps, ledger_hash(snapshot, b->w)};
    b->asked_to_save = true;
    if (ledger_has_saved(b, state)) return;
    assert_true(b->saved_count < LEDGER_SAVED);
    b->saved[b->saved_count++] = state;
}

/* A hub resumes from a state that was once requested to be saved, to the last bit. */
static inline void ledger_resume(ledger *b, const at_snapshot *snapshot, const float *params)
{
    saved_state state = {snapshot->version, ledger_hash(snapshot, params)};
    assert_true(ledger_has_saved(b, state));
    memset(b->fates, 0, sizeof b->fates);
    memset(b->live, 0, sizeof b->live);
    memset(b->received, 0, sizeof b->received);
    memset(b->incarnation, 0, sizeof b->incarnation);
    b->steps = snapshot->version;
    b->samples_used = snapshot->samples_used;
    b->added_count = 0;
    memcpy(b->before, params, sizeof b->before);
    for (uint32_t i = 0; i < snapshot->workers; i++) {
        b->used[i + 1] = snapshot->member[i].used;
        b->dropped[i + 1] = snapshot->member[i].dropped;
        b->ready_at[i + 1] = AT_NEVER;
    }
}

/* ---- the sink -------------------------------------------------------------------------------- */

static inline void ledger_event(ledger *b, const at_event *event)
{
    at_node id = event->worker;
    if (event->kind == AT_EV_JOINED) {
        b->live[id] = true;
        b->incarnation[id] = event->as.joined.incarnation;
        b->received[id] = 0;
        b->ready_at[id] = event->now;
        b->ready_on[id] = b->steps;
    } else if (event->kind == AT_EV_LOST) {
        b->live[id] = false;
        b->ready_at[id] = AT_NEVER;
    } else if (event->kind == AT_EV_MESSAGE) {
        const at_report *report = &event->as.report;
        bool             owed = b->live[id] && b->ready_at[id] == AT_NEVER; /* it was ordered */
        bool             fresh =
            owed && report->incarnation == b->incarnation[id] && report->sequence > b->received[id];
        b->duplicates += !fresh;
        if (!fresh) return;
        b->received[id] = report->sequence;
        b->fates[id][report->incarnation][report->sequence % LEDGER_REPORTS].kind = FATE_RECEIVED;
        b->ready_at[id] = report->again ? AT_NEVER : event->now;
        b->ready_on[id] = b->steps;
    }
}

static inline void ledger_action(ledger *b, const at_record *record)
{
    const at_action *action = record->action;
    if (action->kind == AT_ACT_SEND) {
        assert_true(b->live[action->worker] || action->as.order.leave);
        b->ready_at[action->worker] = AT_NEVER;
    } else if (action->kind == AT_ACT_ADD) {
        assert_true(b->added_count < sizeof b->added / sizeof *b->added);
        b->added[b->added_count++] = action->as.add;
    } else if (action->kind == AT_ACT_APPLY) {
        ledger_apply(b, record);
    } else if (action->kind == AT_ACT_DROP) {
        ledger_drop(b, action);
    } else if (action->kind == AT_ACT_SAVE) {
        ledger_save(b, action);
    } else if (action->kind == AT_ACT_EVALUATE) {
        b->evaluated = action->as.evaluate.step;
    } else if (action->kind == AT_ACT_EVICT) {
        b->live[action->worker] = false;
    }
}

static inline void ledger_put(void *self, const at_record *record)
{
    if (record->kind == AT_REC_EVENT) ledger_event(self, record->event);
    if (record->kind == AT_REC_ACTION) ledger_action(self, record);
}

static inline at_err ledger_close(void *self, at_fail *fail)
{
    (void)self;
    (void)fail;
    return AT_OK;
}

static inline at_sink ledger_sink(ledger *b)
{
    return (at_sink){.name = "ledger", .self = b, .put = ledger_put, .close = ledger_close};
}

/* Whoever reads the logs of a run counts its samples exactly, whatever they leave out. */
static inline void ledger_check_logs(const ledger *b, const char *folder)
{
    log_totals totals;
    uint64_t   dropped = 0;
    at_fail    fail = {0};
    for (at_node id = 1; id <= b->plan->workers_max; id++) dropped += b->dropped[id];
    if (count_logs(folder, &totals, &fail)) fail_msg("%s", fail.text);
    assert_int_equal(totals.used, b->samples_used);
    assert_int_equal(totals.dropped, dropped);
}

#endif
