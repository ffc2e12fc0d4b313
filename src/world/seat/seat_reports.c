/* What seats have written: reports and evaluations. Their memory may hold anything, so nothing of
 * it is used before it was checked. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "message/message.h"
#include "world/core/nonfinite.h"
#include "world/seat/seat_world.h"

void at_seat_say(at_seat_world *w, at_node id, const char *text)
{
    char line[700];
    snprintf(line, sizeof line, "worker %u %s", id, text);
    at_host_say(&w->host, at_host_now(&w->host), line);
}

/* The numbers of the first seat's optimizer bind everybody. */
static void take_rates(at_seat_world *w, const at_seat_mail *mail)
{
    for (uint32_t i = 0; i < w->seats->spec.groups; i++) {
        at_seat_group group = mail->group[i];
        if (!at_seat_group_valid(w->torch.kind, &group)) continue;
        at_torch_group numbers = at_spec_group(&group);
        bool           fits = at_torch_states(w->torch.kind, &numbers, 1) <= w->torch.optim.states;
        if (fits) w->torch.group[i] = numbers; /* momentum cannot begin in the middle of a run */
    }
    w->learning.rate[w->learning.groups].schedule.lr = w->torch.group[0].lr; /* for the record */
}

/* A flag in memory of somebody else may have any value. One that is not 0 or 1 could be true and
 * false at the same time. */
static bool is_flag(const bool *flag)
{
    unsigned char byte;
    memcpy(&byte, flag, sizeof byte);
    return byte <= 1;
}

/* Flags that are some, and durations and rounds that can be added up; the rest is checked as for
 * reports that come over a network. */
static bool is_sane(const at_report *report)
{
    const at_work *work = &report->work;
    const bool    *flags[] = {&report->again, &work->abandoned, &work->capped, &work->overslept};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (!is_flag(flags[i])) return false;
    const at_ns most = AT_SEC((at_ns)1000000000);
    const at_ns times[] = {work->compute_ns, work->sleep_ns, work->idle_ns, work->install_ns,
                           work->send_ns};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i] < 0 || times[i] > most) return false;
    return work->overshoot_ns > -most && work->overshoot_ns < most &&
           work->round < AT_MESSAGE_COUNT_MAX;
}

static bool check_report(at_seat_world *w, at_node id, const at_report *report, at_fail *fail)
{
    const at_hub    *hub = w->host.hub;
    const at_member *member = &hub->member[id - 1];
    if (report->slot >= w->slots || !is_sane(report)) {
        at_fail_set(fail, AT_ERR_FORMAT, NULL, "its numbers are out of range");
        return false;
    }
    bool              empty = report->work.abandoned || report->work.samples == 0;
    bool              ours = w->seats->job != NULL; /* programs decide how much they compute */
    at_report_message message = {.report = *report,
                                 .drawn =
                                     atomic_load(&at_seat_chair_slot(&w->chair[id - 1])->drawn),
                                 .floats = empty ? 0 : w->floats};
    at_report_bounds  bounds = {.incarnation = member->incarnation,
                                .sequence = member->sequence,
                                .version = hub->version,
                                .samples_max =
                                   ours ? at_plan_samples_max(w->context->plan) : INT32_MAX,
                                .drawn = member->used + member->dropped,
                                .floats = w->floats,
                                .ends = hub->end != AT_END_RUNNING,
                                .again = at_plan_self_starts(w->context->plan)};
    return at_report_message_check(&message, &bounds, fail) == AT_OK;
}

/* A loss that is not a number ends a run, because training has diverged. One machine whose numbers
 * are wrong shall not do that: its report is refused, unless another worker has the same trouble
 * before a third one shows that the parameters are fine. */
static bool is_doubtful(at_seat_world *w, at_node id, const at_work *work)
{
    const at_guest *guest = w->chair[id - 1].guest;
    bool            known = w->doubted_id == 0 || w->doubted_id == id;
    if (work->abandoned || work->samples == 0) return false;
    if (isfinite(work->loss_sum)) {
        if (!known && work->version >= w->doubted_version) w->doubted_id = 0;
        return false;
    }
    bool alone = atomic_load(&at_seat_world_board(w)->present) <= 1;
    if (!guest->remote.link || alone || !known) return false;
    w->doubted_id = id;
    w->doubted_version = work->version;
    return true;
}

static bool accepts(at_seat_world *w, at_node id, const at_report *report, at_fail *fail)
{
    if (!check_report(w, id, report, fail)) return false;
    if (!is_doubtful(w, id, &report->work)) return true;
    at_fail_set(fail, AT_ERR_FORMAT, NULL, "its loss is not a number");
    return false;
}

static void deliver(at_seat_world *w, at_node id, const at_report *report)
{
    at_seat_chair *c = &w->chair[id - 1];
    at_event       event = {.kind = AT_EV_MESSAGE, .worker = id, .now = at_host_now(&w->host)};
    at_fail        fail = {0};
    char           text[sizeof fail.text + 40];
    if (w->host.finished || c->evicted) return;
    if (!accepts(w, id, report, &fail)) {
        snprintf(text, sizeof text, "sent a bad report: %s", fail.text);
        at_seat_say(w, id, text);
        c->nonsense = true;
        at_seat_evict(w, id);
        return;
    }
    event.as.report = *report;
    event.as.report.work.nonfinite = 0; /* what a seat says of itself is worth nothing */
    at_nonfinite_look(w->context->task, w->context->plan,
                      at_seat_slot_gradient(&c->file, w->floats, report->slot),
                      &event.as.report.work);
    w->round_ns += (report->work.sleep_ns + report->work.compute_ns - w->round_ns) / 4;
    if (c->guest->remote.link) {
        at_host_count_received(&w->host, id, c->guest->remote.received - c->received);
        c->received = c->guest->remote.received;
    } else {
        at_host_count_shared(&w->host, id, &report->work);
    }
    if (!c->reported && event.now - c->joined > w->first_ns) w->first_ns = event.now - c->joined;
    c->reported = true;
    c->grace = 0;
    if (c->child >= 0) at_seat_children_well(w->seats->children, (uint32_t)c->child);
    at_host_event(&w->host, &event, NULL);
}

/* As in world/local: `taken` allows the seat to overwrite the gradient. The counters of the seat
 * are its own to spoil, so at most as many reports are read as it may have outstanding. */
void at_seat_read_reports(at_seat_world *w, at_node id)
{
    at_seat_chair *c = &w->chair[id - 1];
    at_seat_slot  *slot = at_seat_chair_slot(c);
    bool           holds = w->context->plan->release->holds;
    for (int n = 0; n < AT_SEAT_GRADIENTS && c->taken < atomic_load(&slot->sent); n++) {
        const at_seat_mail *mail = &slot->mail[c->taken % AT_SEAT_GRADIENTS];
        at_report           report = mail->report;
        at_seat_save_if_due(w); /* what it handed over before this report, which may end the step */
        if (id == w->seats->first_id && w->learning.torch) take_rates(w, mail);
        c->taken++;
        if (holds) atomic_store(&slot->taken, c->taken);
        deliver(w, id, &report);
        if (holds) continue;
        atomic_store(&slot->taken, c->taken);
        w->cast_mask |= at_bell_mask(id);
        at_seat_flush(w);
    }
}

static void tell_score(at_seat_world *w, const at_seat_score *score)
{
    at_event event = {.kind = AT_EV_EVALUATED, .now = at_host_now(&w->host)};
    event.as.evaluated.step =
        score->version <= w->host.hub->version ? score->version : w->host.hub->version;
    event.as.evaluated.at = event.now;
    for (int i = 0; i < AT_METRIC_COUNT; i++) event.as.evaluated.value[i] = NAN;
    event.as.evaluated.value[AT_METRIC_ACCURACY] = score->accuracy;
    event.as.evaluated.value[AT_METRIC_LOSS] = score->loss;
    at_host_event(&w->host, &event, &(at_about){.count = 1});
}

void at_seat_read_scores(at_seat_world *w, at_node id)
{
    at_seat_chair *c = &w->chair[id - 1];
    at_seat_slot  *slot = at_seat_chair_slot(c);
    for (int n = 0; n < AT_SEAT_SCORES && c->scores < atomic_load(&slot->scores_sent); n++) {
        at_seat_score score = slot->score[c->scores % AT_SEAT_SCORES];
        c->scores++;
        atomic_store(&slot->scores_taken, c->scores);
        bool known = isfinite(score.accuracy) || isfinite(score.loss);
        if (!isfinite(score.accuracy)) score.accuracy = NAN;
        if (!isfinite(score.loss)) score.loss = NAN;
        if (known && id == w->seats->first_id && !w->host.finished) tell_score(w, &score);
    }
}
