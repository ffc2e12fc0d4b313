#include "record/roster.h"

#include <assert.h>
#include <stdio.h>

const char at_state_starting[] = "starting", at_state_working[] = "working",
           at_state_finished[] = "finished", at_state_lost[] = "lost",
           at_state_evicted[] = "evicted";

void at_roster_init(at_place *place, uint32_t workers)
{
    assert(workers <= AT_WORKERS_MAX);
    for (uint32_t i = 0; i < workers; i++) place[i] = (at_place){.state = at_state_starting};
}

static at_place *find(at_place *place, uint32_t workers, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= workers);
    return &place[worker - 1];
}

static bool move(at_place *place, const char *state)
{
    assert(place->state);
    bool changed = place->state != state;
    place->state = state;
    return changed;
}

static bool lose(at_place *place)
{
    assert(place->state);
    bool expected = place->state == at_state_finished || place->state == at_state_evicted;
    return !expected && move(place, at_state_lost);
}

static bool finish_all(at_place *place, uint32_t workers)
{
    assert(workers >= 1);
    bool changed = false;
    for (uint32_t i = 0; i < workers; i++)
        if (place[i].state == at_state_working) changed = move(&place[i], at_state_finished);
    return changed;
}

static bool follow_event(at_place *place, uint32_t workers, const at_record *record)
{
    const at_event *event = record->event;
    if (event->kind == AT_EV_LOST) return lose(find(place, workers, event->worker));
    if (event->kind != AT_EV_JOINED) return false;
    at_place *joined = find(place, workers, event->worker);
    *joined = (at_place){
        .pid = record->pid,
        .incarnation = event->as.joined.incarnation,
        .state = at_state_working,
    };
    if (record->text) snprintf(joined->host, sizeof joined->host, "%s", record->text);
    return true;
}

static bool follow_action(at_place *place, uint32_t workers, const at_action *action)
{
    if (action->kind == AT_ACT_FINISH) return finish_all(place, workers);
    if (action->kind == AT_ACT_EVICT)
        return move(find(place, workers, action->worker), at_state_evicted);
    if (action->kind != AT_ACT_SEND || !action->as.order.leave) return false;
    return move(find(place, workers, action->worker), at_state_finished);
}

bool at_roster_put(at_place *place, uint32_t workers, const at_record *record)
{
    assert(record);
    if (record->kind == AT_REC_EVENT) return follow_event(place, workers, record);
    if (record->kind == AT_REC_ACTION) return follow_action(place, workers, record->action);
    return false;
}
