#include "record/replay/event_text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

static const char *const event_name[] = {
    [AT_EV_START] = "START",     [AT_EV_JOINED] = "JOINED",   [AT_EV_LOST] = "LOST",
    [AT_EV_MESSAGE] = "MESSAGE", [AT_EV_APPLIED] = "APPLIED", [AT_EV_EVALUATED] = "EVALUATED",
    [AT_EV_TIMER] = "TIMER",     [AT_EV_STOP] = "STOP",
};
static const char *const action_name[] = {
    [AT_ACT_SEND] = "SEND",     [AT_ACT_TIMER] = "TIMER", [AT_ACT_ADD] = "ADD",
    [AT_ACT_APPLY] = "APPLY",   [AT_ACT_DROP] = "DROP",   [AT_ACT_EVALUATE] = "EVALUATE",
    [AT_ACT_SAVE] = "SAVE",     [AT_ACT_EVICT] = "EVICT", [AT_ACT_NOTICE] = "NOTICE",
    [AT_ACT_FINISH] = "FINISH",
};
static const char *const timer_name[AT_TIMER_COUNT] = {[AT_TIMER_LEASE] = "lease",
                                                       [AT_TIMER_NOTICE] = "notice",
                                                       [AT_TIMER_PERIOD] = "period",
                                                       [AT_TIMER_SAVE] = "save",
                                                       [AT_TIMER_JOIN] = "join"};

/* All digits, since two times may differ in the last one only. */
static void add_ns(at_text *out, at_ns value)
{
    if (value == AT_NEVER)
        at_text_add(out, "never");
    else
        at_text_add(out, "%.9fs", at_seconds(value));
}

static void add_time(at_text *out, at_ns value, at_ns started)
{
    add_ns(out, value == AT_NEVER ? AT_NEVER : value - started);
}

static void add_work(at_text *out, const at_work *work)
{
    at_text_add(
        out, "round %" PRIu64 " on version %" PRIu64 ", %u samples%s%s%s, loss %.17g, compute ",
        work->round, work->version, work->samples, work->abandoned ? ", abandoned" : "",
        work->capped ? ", capped" : "", work->overslept ? ", overslept" : "", work->loss_sum);
    add_ns(out, work->compute_ns);
    at_text_add(out, ", sleep ");
    add_ns(out, work->sleep_ns);
}

static void add_report(at_text *out, const at_report *report)
{
    at_text_add(out, ", process %u, report %" PRIu64 " in slot %u: ", report->incarnation,
                report->sequence, report->slot);
    add_work(out, &report->work);
}

static void add_evaluated(at_text *out, const at_event *event, at_ns started)
{
    at_text_add(out, " step %" PRIu64 " at ", event->as.evaluated.step);
    add_time(out, event->as.evaluated.at, started);
    const char *separator = ": ";
    for (int i = 0; i < AT_METRIC_COUNT; i++) {
        if (isnan(event->as.evaluated.value[i])) continue;
        at_text_add(out, "%s%s %.17g", separator, at_metric_name[i], event->as.evaluated.value[i]);
        separator = ", ";
    }
}

static void add_applied(at_text *out, const at_event *event)
{
    double step = event->as.applied.norm2_step, piece = event->as.applied.norm2_piece;
    if (step != 0 || piece != 0) at_text_add(out, ": squared norms %.17g, %.17g", step, piece);
}

void at_event_text(at_text *out, const at_event *event, at_ns started)
{
    assert(event->kind < sizeof event_name / sizeof *event_name);
    at_text_add(out, "%s", event_name[event->kind]);
    if (event->worker > 0) at_text_add(out, " worker %u", event->worker);
    switch (event->kind) {
    case AT_EV_JOINED: at_text_add(out, ", process %u", event->as.joined.incarnation); break;
    case AT_EV_LOST:
        at_text_add(out, ": %" PRIu64 " samples drawn, %s", event->as.lost.drawn,
                    event->as.lost.returns ? "will be replaced"
                    : event->as.lost.left  ? "has left"
                                           : "will not be replaced");
        break;
    case AT_EV_MESSAGE: add_report(out, &event->as.report); break;
    case AT_EV_APPLIED: add_applied(out, event); break;
    case AT_EV_EVALUATED: add_evaluated(out, event, started); break;
    case AT_EV_TIMER:
        assert(event->as.timer < AT_TIMER_COUNT);
        at_text_add(out, " %s", timer_name[event->as.timer]);
        break;
    case AT_EV_START:
    case AT_EV_STOP: break;
    }
}

static void add_order(at_text *out, const at_order *order)
{
    if (order->leave) {
        at_text_add(out, ": leave");
        return;
    }
    at_text_add(out, ": round %" PRIu64 " on version %" PRIu64 ", at most %u samples", order->round,
                order->version, order->samples_max);
    if (order->time_limit != AT_NEVER) {
        at_text_add(out, " or ");
        add_ns(out, order->time_limit);
    }
    if (order->position != AT_POSITION_OWN)
        at_text_add(out, ", from position %" PRIu64, order->position);
    if (order->again) at_text_add(out, ", then continue without orders");
}

void at_piece_text(at_text *out, const at_piece *piece)
{
    at_text_add(out,
                "worker %u, process %u, report %" PRIu64
                " in slot %u: %u samples on version %" PRIu64 ", weight %.17g",
                piece->worker, piece->incarnation, piece->sequence, piece->slot, piece->samples,
                piece->version, piece->weight);
}

static void add_apply(at_text *out, const at_action *action)
{
    at_text_add(out,
                " step %" PRIu64 ": %" PRIu64 " samples of %u gradients%s, %" PRIu64
                " used before, loss %.17g, learning rate x %.17g, open for ",
                action->as.apply.step, action->as.apply.samples, action->as.apply.count,
                action->as.apply.folded ? " (added before)" : "", action->as.apply.samples_used,
                action->as.apply.loss_sum, action->as.apply.lr_factor);
    add_ns(out, action->as.apply.wait_ns);
}

static void add_drop(at_text *out, const at_action *action)
{
    assert(action->as.drop.why < AT_DROP_COUNT);
    at_text_add(out, ": %" PRIu64 " samples of report %" PRIu64 " on version %" PRIu64 ", %s",
                action->as.drop.samples, action->as.drop.sequence, action->as.drop.version,
                at_drop_name[action->as.drop.why]);
}

static void add_timer(at_text *out, const at_action *action, at_ns started)
{
    assert(action->as.timer.timer < AT_TIMER_COUNT);
    at_text_add(out, " %s at ", timer_name[action->as.timer.timer]);
    add_time(out, action->as.timer.at, started);
}

void at_action_text(at_text *out, const at_action *action, at_ns started)
{
    assert(action->kind < sizeof action_name / sizeof *action_name);
    at_text_add(out, "%s", action_name[action->kind]);
    if (action->worker > 0) at_text_add(out, " worker %u", action->worker);
    switch (action->kind) {
    case AT_ACT_SEND: add_order(out, &action->as.order); break;
    case AT_ACT_TIMER: add_timer(out, action, started); break;
    case AT_ACT_ADD:
        at_text_add(out, " ");
        at_piece_text(out, &action->as.add);
        break;
    case AT_ACT_APPLY: add_apply(out, action); break;
    case AT_ACT_DROP: add_drop(out, action); break;
    case AT_ACT_SAVE: at_text_add(out, " step %" PRIu64, action->as.save.step); break;
    case AT_ACT_EVALUATE: at_text_add(out, " step %" PRIu64, action->as.evaluate.step); break;
    case AT_ACT_NOTICE:
        at_text_add(out, ": step %" PRIu64 " open for ", action->as.notice.step);
        add_ns(out, action->as.notice.waited);
        break;
    case AT_ACT_FINISH:
        assert(action->as.finish.why < AT_END_COUNT);
        at_text_add(out, ": %s", at_end_name[action->as.finish.why]);
        break;
    case AT_ACT_EVICT: break;
    }
}
