/* Only time separates a frozen worker from a slow one. The lease adapts to the run: ten times the
 * longest recent round of any worker, plus a few seconds for a machine that is busy with other
 * things. The longest round decays slowly, so that one early pause does not lengthen leases for the
 * rest of the run. */
#include "step/lease.h"

#include <assert.h>

static const at_ns LEASE_FIRST =
    AT_SEC(60); /* before the first round ends: engines load, caches fill */
static const at_ns LEASE_BASE = AT_SEC(3);
static const at_ns LEASE_OTHERS =
    AT_SEC(10); /* instead of the base, for those whose first round takes longer than another's */
static const at_ns NOTICE_FIRST = AT_SEC(10);
static const at_ns NOTICE_BASE = AT_SEC(2);

enum {
    LEASE_FACTOR = 10,
    NOTICE_FACTOR = 3,
    DECAY_SHIFT = 10 /* the peak decays by 1/1024 per round */
};

/* If all workers were evicted before a step closed, the lease was too short for a round. It doubles
 * each time that happens, so a lease that is too short corrects itself. */
at_ns at_hub_lease(const at_hub *hub)
{
    uint32_t doublings = hub->evicted_since_step / hub->plan->workers;
    at_ns    lease = hub->plan->lease;
    if (lease == 0 && hub->round_ns_peak == 0) lease = LEASE_FIRST;
    if (lease == 0) lease = LEASE_BASE + LEASE_FACTOR * hub->round_ns_peak;
    for (; doublings > 0 && lease < AT_NEVER / 4; doublings--) lease *= 2;
    return lease;
}

static void set_timer(at_out *out, at_timer timer, at_ns at)
{
    assert(timer < AT_TIMER_COUNT);
    at_action *action = at_out_push(out, AT_ACT_TIMER);
    action->as.timer.timer = timer;
    action->as.timer.at = at;
}

/* The first orders were given when nobody knew how long a round takes. If no others follow, because
 * workers start by themselves or all wait for the last one, its lease would still be the first. */
static void shorten_first(at_hub *hub, at_ns now, at_out *out)
{
    at_ns due = now + LEASE_OTHERS + LEASE_FACTOR * hub->round_ns_peak;
    if (hub->plan->lease > 0 || hub->lease_at == AT_NEVER || hub->lease_at <= due + LEASE_BASE)
        return;
    hub->lease_at = due;
    set_timer(out, AT_TIMER_LEASE, due);
}

void at_lease_observe(at_hub *hub, at_ns began, at_ns now, at_out *out)
{
    at_ns duration = now - began;
    assert(duration >= 0);
    at_ns decayed = hub->round_ns_peak - (hub->round_ns_peak >> DECAY_SHIFT);
    hub->round_ns_peak = duration > decayed ? duration : decayed;
    if (hub->round_ns_peak == 0) hub->round_ns_peak = 1;
    assert(hub->round_ns_peak >= duration);
    shorten_first(hub, now, out);
}

/* One timer serves all workers: when it expires, all of them are checked. It is moved forward only
 * when leases have become much shorter, as they do after the first round. */
void at_lease_start(at_hub *hub, at_ns now, at_out *out)
{
    assert(now >= hub->opened_at);
    at_ns due = now + at_hub_lease(hub);
    if (hub->lease_at <= due + LEASE_BASE) return;
    if (hub->lease_at == AT_NEVER)
        set_timer(out, AT_TIMER_NOTICE, hub->opened_at + hub->notice_wait);
    hub->lease_at = due;
    set_timer(out, AT_TIMER_LEASE, due);
}

void at_lease_step_opened(at_hub *hub, at_ns now)
{
    assert(now >= hub->opened_at); /* steps open in order */
    hub->opened_at = now;
    hub->notice_wait = NOTICE_BASE + NOTICE_FACTOR * hub->round_ns_peak;
    assert(hub->notice_wait > 0);
}

static bool owes_report(const at_member *member)
{
    return member->state == AT_MEMBER_WORKING || member->state == AT_MEMBER_LEAVING;
}

static void evict(at_member *member, at_out *out)
{
    member->state = AT_MEMBER_EVICTED;
    at_action *action = at_out_push(out, AT_ACT_EVICT);
    action->worker = member->id;
    action->as.evict.outdated = member->outdated >= AT_OUTDATED_MAX;
}

/* A worker that never uses what it is sent could keep the run at one step for ever. If it is only
 * its connection that is slow, leases grow like those that were too short. */
void at_lease_count_outdated(at_hub *hub, at_member *member, bool outdated, at_out *out)
{
    member->outdated = outdated ? member->outdated + 1 : 0;
    bool here = member->state == AT_MEMBER_IDLE || member->state == AT_MEMBER_WORKING;
    if (member->outdated < AT_OUTDATED_MAX || !here || hub->end != AT_END_RUNNING) return;
    hub->evicted_since_step++;
    evict(member, out);
}

const char *at_hub_evicted_text(const at_hub *hub, at_node worker)
{
    assert(worker >= 1 && worker <= hub->plan->workers_max);
    return hub->member[worker - 1].outdated >= AT_OUTDATED_MAX
               ? "evicted, it did not use the parameters that it was sent"
               : "evicted, its lease expired";
}

void at_lease_on_timer(at_hub *hub, at_ns now, at_out *out)
{
    at_ns lease = at_hub_lease(hub), next = AT_NEVER;
    for (uint32_t i = 0; i < hub->plan->workers_max; i++) {
        at_member *member = &hub->member[i];
        if (!owes_report(member)) continue;
        if (now - member->since >= lease) {
            hub->evicted_since_step++;
            evict(member, out);
        } else if (member->since + lease < next) {
            next = member->since + lease;
        }
    }
    hub->lease_at = next;
    assert(next > now); /* whoever is overdue was evicted */
    set_timer(out, AT_TIMER_LEASE, next);
}

static at_node first_missing(const at_hub *hub)
{
    for (uint32_t i = 0; i < hub->plan->workers_max; i++)
        if (owes_report(&hub->member[i])) return hub->member[i].id;
    return 0;
}

void at_lease_on_notice(at_hub *hub, at_ns now, at_out *out)
{
    assert(now >= hub->opened_at);
    at_ns   open = now - hub->opened_at;
    at_node missing = first_missing(hub);
    /* How long a round takes is unknown until the first one has ended. */
    bool first = hub->round_ns_peak == 0 && open < NOTICE_FIRST;
    bool late = !first && open >= hub->notice_wait;
    if (late && missing > 0) {
        at_action *notice = at_out_push(out, AT_ACT_NOTICE);
        notice->worker = missing;
        notice->as.notice.waited = open;
        notice->as.notice.step = hub->version + 1;
    }
    if (late) hub->notice_wait = 2 * open; /* again when the wait has doubled */
    set_timer(out, AT_TIMER_NOTICE, first ? now + NOTICE_BASE : hub->opened_at + hub->notice_wait);
}
