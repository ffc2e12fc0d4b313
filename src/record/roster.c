#include "record/roster.h"

#include <assert.h>

const char at_state_absent[] = "not joined", at_state_starting[] = "starting",
           at_state_working[] = "working", at_state_finished[] = "finished",
           at_state_lost[] = "lost", at_state_evicted[] = "evicted";

void at_roster_init(at_worker_status *roster, uint32_t workers, uint32_t expected)
{
    assert(workers <= AT_WORKERS_MAX);
    assert(expected <= workers);
    for (uint32_t i = 0; i < workers; i++)
        roster[i] = (at_worker_status){.state = i < expected ? at_state_starting : at_state_absent};
}

static at_worker_status *find(at_worker_status *roster, uint32_t workers, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= workers);
    return &roster[worker - 1];
}

static bool set_state(at_worker_status *status, const char *state)
{
    assert(status->state);
    bool changed = status->state != state;
    status->state = state;
    return changed;
}

static bool lose(at_worker_status *status)
{
    assert(status->state);
    bool expected = status->state == at_state_finished || status->state == at_state_evicted;
    return !expected && set_state(status, at_state_lost);
}

static bool finish_all(at_worker_status *roster, uint32_t workers)
{
    assert(workers >= 1);
    bool changed = false;
    for (uint32_t i = 0; i < workers; i++)
        if (roster[i].state == at_state_working) changed = set_state(&roster[i], at_state_finished);
    return changed;
}

static bool follow_event(at_worker_status *roster, uint32_t workers, const at_record *record)
{
    const at_event *event = record->event;
    if (event->kind == AT_EV_LOST) return lose(find(roster, workers, event->worker));
    if (event->kind != AT_EV_JOINED) return false;
    at_worker_status *joined = find(roster, workers, event->worker);
    *joined = (at_worker_status){
        .pid = record->pid,
        .incarnation = event->as.joined.incarnation,
        .state = at_state_working,
    };
    return true;
}

static bool follow_action(at_worker_status *roster, uint32_t workers, const at_action *action)
{
    if (action->kind == AT_ACT_FINISH) return finish_all(roster, workers);
    if (action->kind == AT_ACT_EVICT)
        return set_state(find(roster, workers, action->worker), at_state_evicted);
    if (action->kind != AT_ACT_SEND || !action->as.order.leave) return false;
    return set_state(find(roster, workers, action->worker), at_state_finished);
}

bool at_roster_put(at_worker_status *roster, uint32_t workers, const at_record *record)
{
    assert(record);
    if (record->kind == AT_REC_EVENT) return follow_event(roster, workers, record);
    if (record->kind == AT_REC_ACTION) return follow_action(roster, workers, record->action);
    return false;
}
