/* Resources come as counters; what people look at are rates between two readings. */
#include <assert.h>
#include <math.h>

#include "report/story_parts.h"
#include "report/value.h"

enum { POINTS = 400 };

static const at_ns shortest = AT_MS(100); /* processor time comes in steps of 10 ms */

static const char *const channel_name[AT_USAGE_CHANNELS] = {
#define X(id, text) [AT_USAGE_##id] = text,
    AT_USAGE_CHANNEL_MAP(X)
#undef X
};

/* The place of a process; NULL when there are too many. */
static at_process *find(at_story *story, at_node node)
{
    for (int i = 0; i < AT_STORY_PROCESSES; i++) {
        at_process *p = &story->process[i];
        if (p->trend && p->node == node) return p;
        if (p->trend) continue;
        p->trend = at_trend_new(channel_name, AT_USAGE_CHANNELS, POINTS);
        p->node = node;
        return p->trend ? p : NULL;
    }
    return NULL;
}

/* A counter's growth a second; NAN when it is not known. */
static double rate(uint64_t before, uint64_t now, double seconds)
{
    bool known = before != AT_USAGE_UNKNOWN && now != AT_USAGE_UNKNOWN && now >= before;
    return known && seconds > 0 ? (double)(now - before) / seconds : NAN;
}

static void measure(const at_process *p, const at_usage *now, double seconds, double *value)
{
    const at_usage *before = &p->last;
    assert(seconds >= 0);
    at_ns cpu = at_usage_cpu(now) - at_usage_cpu(before);
    value[AT_USAGE_CPU] = seconds > 0 && cpu >= 0 ? at_seconds(cpu) / seconds : NAN;
    bool here = now->rss_bytes != AT_USAGE_UNKNOWN && now->rss_bytes > 0; /* it has not ended */
    value[AT_USAGE_RSS] = here ? (double)now->rss_bytes : NAN;
    value[AT_USAGE_READ] = rate(before->read_bytes, now->read_bytes, seconds);
    value[AT_USAGE_WRITE] = rate(before->write_bytes, now->write_bytes, seconds);
    value[AT_USAGE_NET_IN] = rate(before->net_in_bytes, now->net_in_bytes, seconds);
    value[AT_USAGE_NET_OUT] = rate(before->net_out_bytes, now->net_out_bytes, seconds);
    value[AT_USAGE_LOOPBACK] = rate(before->loopback_bytes, now->loopback_bytes, seconds);
}

void at_story_usage(at_story *story, at_node node, const at_usage *usage)
{
    at_process *p = find(story, node);
    double      value[AT_USAGE_CHANNELS];
    if (!p) return;
    assert(p->last_at <= story->at);
    bool same = p->last.pid == usage->pid && usage->pid != 0;
    if (same && story->at - p->last_at < shortest) return;
    measure(p, usage, same ? at_seconds(story->at - p->last_at) : 0, value);
    at_trend_add(p->trend, story->serial, at_seconds(story->at), story->step, value);
    p->last = *usage;
    p->last_at = story->at;
    story->usage_serial = story->serial;
}

json_t *at_story_usage_json(const at_story *story, uint64_t since)
{
    if (story->usage_serial <= since) return NULL;
    json_t *processes = json_array();
    for (int i = 0; i < AT_STORY_PROCESSES; i++) {
        const at_process *p = &story->process[i];
        if (!p->trend) continue;
        bool scorer = p->node == AT_NODE_EVALUATOR;
        json_array_append_new(
            processes, json_pack("{s:o, s:I, s:o}", "node",
                                 scorer ? json_string("evaluator") : at_value_count(p->node), "pid",
                                 (json_int_t)p->last.pid, "trend", at_trend_json(p->trend, since)));
    }
    return processes;
}
