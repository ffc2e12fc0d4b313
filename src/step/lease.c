/* Nothing tells a frozen worker from a slow one but time. How much time is learnt: a lease is ten
 * times the longest round lately, of any worker, and some seconds more for a machine that is busy
 * with other things. The longest round is forgotten slowly, so that one pause early in a run does
 * not make the hub patient for ever. */
#include "step/lease.h"

#include <assert.h>

static const at_ns LEASE_FIRST = AT_SEC(60); /* before any round ended: engines load, caches fill */
static const at_ns LEASE_BASE = AT_SEC(3);
static const at_ns NOTICE_FIRST = AT_SEC(10);
static const at_ns NOTICE_BASE = AT_SEC(2);

enum {
    LEASE_FACTOR = 10,
    NOTICE_FACTOR = 3,
    FORGET_SHIFT = 10 /* a round forgets 1/1024 of the peak */
};

/* When everybody has been evicted and still no step was closed, the lease was too short for what
 * there is to do: it doubles, as often as needed. So a lease can be wrong, but not for ever. */
at_ns at_hub_lease(const at_hub *hub)
{
    uint32_t doublings = hub->evicted_since_step / hub->plan->workers;
    at_ns    lease = hub->plan->lease;
    if (lease == 0 && hub->round_ns_peak == 0) lease = LEASE_FIRST;
    if (lease == 0) lease = LEASE_BASE + LEASE_FACTOR * hub->round_ns_peak;
    for (; doublings > 0 && lease < AT_NEVER / 4; doublings--) lease *= 2;
    return lease;
}

void at_lease_round(at_hub *hub, at_ns turn)
{
    assert(turn >= 0);
    at_ns faded = hub->round_ns_peak - (hub->round_ns_peak >> FORGET_SHIFT);
    hub->round_ns_peak = turn > faded ? turn : faded;
    if (hub->round_ns_peak == 0) hub->round_ns_peak = 1;
}

static void ask(at_out *out, at_timer timer, at_ns at)
{
    at_action *action = at_out_push(out, AT_ACT_TIMER);
    action->as.timer.timer = timer;
    action->as.timer.at = at;
}

/* A timer that runs looks at everybody when it ends. It is put forward only when leases have become
 * much shorter, as they do when the first round has ended. */
void at_lease_member(at_hub *hub, at_ns now, at_out *out)
{
    at_ns due = now + at_hub_lease(hub);
    if (hub->lease_at <= due + LEASE_BASE) return;
    if (hub->lease_at == AT_NEVER) ask(out, AT_TIMER_NOTICE, hub->opened_at + hub->notice_wait);
    hub->lease_at = due;
    ask(out, AT_TIMER_LEASE, due);
}

void at_lease_open(at_hub *hub, at_ns now)
{
    hub->opened_at = now;
    hub->notice_wait = NOTICE_BASE + NOTICE_FACTOR * hub->round_ns_peak;
}

static bool owes_something(const at_member *member)
{
    return member->state == AT_MEMBER_WORKING || member->state == AT_MEMBER_LEAVING;
}

void at_lease_expired(at_hub *hub, at_ns now, at_out *out)
{
    at_ns lease = at_hub_lease(hub), next = AT_NEVER;
    for (uint32_t i = 0; i < hub->plan->workers; i++) {
        at_member *member = &hub->member[i];
        if (!owes_something(member)) continue;
        if (now - member->since >= lease) {
            member->state = AT_MEMBER_EVICTED;
            hub->evicted_since_step++;
            at_out_push(out, AT_ACT_EVICT)->worker = member->id;
        } else if (member->since + lease < next) {
            next = member->since + lease;
        }
    }
    hub->lease_at = next;
    ask(out, AT_TIMER_LEASE, next);
}

static at_node first_missing(const at_hub *hub)
{
    for (uint32_t i = 0; i < hub->plan->workers; i++)
        if (owes_something(&hub->member[i])) return hub->member[i].id;
    return 0;
}

void at_lease_notice(at_hub *hub, at_ns now, at_out *out)
{
    at_ns   open = now - hub->opened_at;
    at_node missing = first_missing(hub);
    /* Nobody knows how long a round takes before the first one has ended. */
    bool first = hub->round_ns_peak == 0 && open < NOTICE_FIRST;
    bool late = !first && open >= hub->notice_wait;
    if (late && missing > 0) {
        at_action *notice = at_out_push(out, AT_ACT_NOTICE);
        notice->worker = missing;
        notice->as.notice.waited = open;
        notice->as.notice.step = hub->version + 1;
    }
    if (late) hub->notice_wait = 2 * open; /* once more when it has become twice as long */
    ask(out, AT_TIMER_NOTICE, first ? now + NOTICE_BASE : hub->opened_at + hub->notice_wait);
}
