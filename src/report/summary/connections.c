#include "report/summary/connections.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/summary/downsampled_series.h"
#include "report/summary/json_value.h"

/* LIMIT: workers with curves of their own */
enum { LINKS_MAX = 64, POINTS = 400, PRESENT_POINTS = 1000 };

enum { ROUND_TRIP, SENT, RECEIVED, CHANNELS };
static const char *const channel_name[CHANNELS] = {
    [ROUND_TRIP] = "round_trip", [SENT] = "sent", [RECEIVED] = "received"};
static const char *const present_name[] = {"workers"};

typedef struct curves {
    at_downsampled *series; /* NULL: unused entry */
    at_node         worker;
    at_link_stats   last;
    at_ns           last_at;
} curves;

struct at_connections {
    uint32_t        workers, count; /* count: those that are there */
    bool           *present;
    at_downsampled *presence;
    curves          link[LINKS_MAX];
    uint64_t        serial; /* of the newest change; 0: no worker is on another machine */
};

at_connections *at_connections_new(uint32_t workers)
{
    at_connections *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->workers = workers;
    c->present = calloc(workers, sizeof *c->present);
    c->presence = at_downsampled_new(present_name, 1, PRESENT_POINTS);
    if (c->present && c->presence) return c;
    at_connections_free(c);
    return NULL;
}

void at_connections_free(at_connections *c)
{
    if (!c) return;
    for (int i = 0; i < LINKS_MAX; i++) at_downsampled_free(c->link[i].series);
    at_downsampled_free(c->presence);
    free(c->present);
    free(c);
}

/* ---- who is there ---------------------------------------------------------------------------- */

/* A step of the curve is two points. */
static void set_present(at_connections *c, const at_moment *m, at_node worker, bool present)
{
    assert(worker >= 1 && worker <= c->workers);
    double before = c->count;
    if (c->present[worker - 1] == present) return;
    c->present[worker - 1] = present;
    c->count += present ? 1 : -1u;
    double after = c->count;
    at_downsampled_add(c->presence, m->serial, at_seconds(m->at), m->step, &before);
    at_downsampled_add(c->presence, m->serial, at_seconds(m->at), m->step, &after);
    if (c->serial > 0) c->serial = m->serial;
}

/* ---- links ----------------------------------------------------------------------------------- */

/* The entry of a worker; NULL when there are too many. */
static curves *find_link(at_connections *c, at_node worker)
{
    for (int i = 0; i < LINKS_MAX; i++) {
        curves *it = &c->link[i];
        if (it->series && it->worker == worker) return it;
        if (it->series) continue;
        it->series = at_downsampled_new(channel_name, CHANNELS, POINTS);
        it->worker = worker;
        return it->series ? it : NULL;
    }
    return NULL;
}

static double rate(uint64_t before, uint64_t now, double seconds)
{
    return seconds > 0 && now >= before ? (double)(now - before) / seconds : NAN;
}

static void put_link(at_connections *c, const at_moment *m, at_node worker,
                     const at_link_stats *now)
{
    curves *it = find_link(c, worker);
    double  value[CHANNELS];
    c->serial = m->serial;
    if (!it) return;
    bool   same = strcmp(it->last.address, now->address) == 0;
    double seconds = same ? at_seconds(m->at - it->last_at) : 0;
    value[ROUND_TRIP] = now->round_trip_ns > 0 ? at_seconds(now->round_trip_ns) : NAN;
    value[SENT] = rate(it->last.sent_bytes, now->sent_bytes, seconds);
    value[RECEIVED] = rate(it->last.received_bytes, now->received_bytes, seconds);
    at_downsampled_add(it->series, m->serial, at_seconds(m->at), m->step, value);
    it->last = *now;
    it->last_at = m->at;
}

void at_connections_put(at_connections *c, const at_moment *m, const at_record *record)
{
    const at_event  *event = record->event;
    const at_action *action = record->action;
    if (record->kind == AT_REC_LINK) put_link(c, m, record->node, record->link);
    if (event && event->kind == AT_EV_JOINED) set_present(c, m, event->worker, true);
    if (event && event->kind == AT_EV_LOST) set_present(c, m, event->worker, false);
    if (action && action->kind == AT_ACT_EVICT) set_present(c, m, action->worker, false);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *time_json(at_ns time)
{
    return time > 0 ? at_json_seconds(time) : json_null();
}

static json_t *row_json(const at_tally *tally, at_node worker)
{
    const at_link_tally *totals = &tally->link[worker - 1];
    json_t              *row = json_object();
    json_object_set_new(row, "id", at_json_count(worker));
    json_object_set_new(row, "host", at_json_text(totals->last.host));
    json_object_set_new(row, "address", at_json_text(totals->last.address));
    json_object_set_new(row, "state", json_string(tally->worker[worker - 1].state));
    json_object_set_new(row, "joins", at_json_count(tally->worker[worker - 1].incarnations));
    json_object_set_new(row, "losses", at_json_count(totals->losses));
    json_object_set_new(row, "round_trip", time_json(totals->last.round_trip_ns));
    json_object_set_new(row, "round_trip_min", time_json(totals->round_trip_ns_min));
    json_object_set_new(row, "sent", at_json_count(totals->sent_bytes));
    json_object_set_new(row, "received", at_json_count(totals->received_bytes));
    json_object_set_new(row, "resent", at_json_count(totals->resent_packets));
    return row;
}

static json_t *trends_json(const at_connections *c, uint64_t since)
{
    json_t *trends = json_array();
    for (int i = 0; i < LINKS_MAX && c->link[i].series; i++)
        json_array_append_new(trends,
                              json_pack("{s:I, s:o}", "id", (json_int_t)c->link[i].worker, "trend",
                                        at_downsampled_json(c->link[i].series, since)));
    return trends;
}

json_t *at_connections_json(const at_connections *c, const at_tally *tally, uint64_t since)
{
    if (c->serial <= since || !tally->link) return NULL;
    json_t *rows = json_array();
    for (uint32_t i = 0; i < c->workers; i++)
        if (tally->link[i].last.address[0]) json_array_append_new(rows, row_json(tally, i + 1));
    return json_pack("{s:o, s:o, s:o}", "present", at_downsampled_json(c->presence, since), "links",
                     rows, "trends", trends_json(c, since));
}
