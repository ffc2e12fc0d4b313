#include "record/log/record_validate.h"

#include <assert.h>

#include "record/tally.h"

/* 36 years: far from where sums and differences of times overflow. */
static const at_ns time_max = (at_ns)1 << 60;

static const char wrong_worker[] = "no such worker", wrong_time[] = "time out of range",
                  wrong_step[] = "step out of order",
                  wrong_sequence[] = "report without sequence number",
                  wrong_process[] = "no such process", wrong_count[] = "count out of range",
                  wrong_totals[] = "impossible totals";

static bool is_worker(at_node worker, uint32_t workers)
{
    assert(workers >= 1);
    return worker >= 1 && worker <= workers;
}

static bool is_duration(at_ns value)
{
    return value >= 0 && value <= time_max;
}

static bool is_time(at_ns value)
{
    return value >= -time_max && value <= time_max;
}

/* Timers may be set for longer than any run lasts. */
static bool is_timer(at_ns value)
{
    return value == AT_NEVER || (value >= -time_max && value <= 4 * time_max);
}

static const char *check_work(const at_work *work)
{
    bool valid = is_duration(work->compute_ns) && is_duration(work->sleep_ns) &&
                 is_time(work->overshoot_ns) && is_duration(work->idle_ns) &&
                 is_duration(work->install_ns) && is_duration(work->send_ns);
    return valid ? NULL : wrong_time;
}

static const char *check_event(const at_event *event, uint32_t workers)
{
    if (!is_time(event->now)) return wrong_time;
    switch (event->kind) {
    case AT_EV_JOINED:
        if (event->as.joined.incarnation < 1) return wrong_worker;
        return is_worker(event->worker, workers) ? NULL : wrong_worker;
    case AT_EV_LOST: return is_worker(event->worker, workers) ? NULL : wrong_worker;
    case AT_EV_MESSAGE:
        if (!is_worker(event->worker, workers)) return wrong_worker;
        if (event->as.report.sequence < 1) return wrong_sequence;
        return check_work(&event->as.report.work);
    case AT_EV_EVALUATED: return is_time(event->as.evaluated.at) ? NULL : wrong_time;
    case AT_EV_START:
    case AT_EV_APPLIED:
    case AT_EV_TIMER:
    case AT_EV_STOP: return NULL;
    }
    assert(!"unreachable");
    return NULL;
}

static const char *check_apply(const at_action *action, uint32_t workers)
{
    if (action->as.apply.step < 1) return wrong_step;
    if (!is_duration(action->as.apply.wait_ns)) return wrong_time;
    for (uint32_t i = 0; i < action->as.apply.count; i++) {
        const at_piece *piece = &action->as.apply.pieces[i];
        if (!is_worker(piece->worker, workers)) return wrong_worker;
        if (piece->version >= action->as.apply.step) return wrong_step;
    }
    return NULL;
}

static const char *check_action(const at_action *action, uint32_t workers)
{
    switch (action->kind) {
    case AT_ACT_SEND:
    case AT_ACT_DROP:
    case AT_ACT_EVICT: return is_worker(action->worker, workers) ? NULL : wrong_worker;
    case AT_ACT_ADD: return is_worker(action->as.add.worker, workers) ? NULL : wrong_worker;
    case AT_ACT_APPLY: return check_apply(action, workers);
    case AT_ACT_NOTICE: return action->worker <= workers ? NULL : wrong_worker;
    case AT_ACT_TIMER: return is_timer(action->as.timer.at) ? NULL : wrong_time;
    case AT_ACT_EVALUATE:
    case AT_ACT_SAVE:
    case AT_ACT_FINISH: return NULL;
    }
    assert(!"unreachable");
    return NULL;
}

static const char *check_usage(const at_record *record, uint32_t workers)
{
    const at_usage *usage = record->usage;
    if (record->node > workers && record->node != AT_NODE_EVALUATOR) return wrong_process;
    if (usage->pid <= 0) return wrong_process;
    return is_duration(usage->user_ns) && is_duration(usage->system_ns) ? NULL : wrong_time;
}

/* Counters that can be added up. */
static const char *check_link(const at_record *record, uint32_t workers)
{
    const at_link_stats *link = record->link;
    const uint64_t       most = UINT64_MAX >> 16;
    if (!is_worker(record->node, workers)) return wrong_worker;
    bool counts =
        link->sent_bytes <= most && link->received_bytes <= most && link->resent_packets <= most;
    if (!counts) return wrong_count;
    bool times = is_duration(link->round_trip_ns) && is_duration(link->round_trip_ns_min);
    return times ? NULL : wrong_time;
}

const char *at_record_validate(const at_record *record, at_ns before, uint32_t workers)
{
    assert(is_duration(before));
    if (record->kind == AT_REC_TEXT)
        return NULL; /* may have been written before START or after the end */
    if (record->at < before || !is_duration(record->at)) return wrong_time;
    if (record->kind == AT_REC_EVENT) return check_event(record->event, workers);
    if (record->kind == AT_REC_USAGE) return check_usage(record, workers);
    if (record->kind == AT_REC_LINK) return check_link(record, workers);
    if (record->kind == AT_REC_TOTALS)
        return at_tally_totals_valid(record->text, workers, record->at) ? NULL : wrong_totals;
    if (!is_duration(record->took)) return wrong_time;
    return check_action(record->action, workers);
}
