/* Resources come as counters; what people look at are rates between two readings. */
#include <assert.h>
#include <math.h>

#include "report/summary/json_value.h"
#include "report/summary/run_summary_parts.h"

enum { POINTS = 400 };

static const at_ns shortest = AT_MS(100); /* processor time comes in steps of 10 ms */

static const char *const channel_name[AT_USAGE_CHANNELS] = {
#define X(id, text) [AT_USAGE_##id] = text,
    AT_USAGE_CHANNEL_MAP(X)
#undef X
};

/* The place of a process; NULL when there are too many. */
static at_process *find(at_run_summary *summary, at_node node)
{
    for (int i = 0; i < AT_RUN_SUMMARY_PROCESSES; i++) {
        at_process *p = &summary->process[i];
        if (p->series && p->node == node) return p;
        if (p->series) continue;
        p->series = at_downsampled_new(channel_name, AT_USAGE_CHANNELS, POINTS);
        p->node = node;
        return p->series ? p : NULL;
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

void at_run_summary_usage(at_run_summary *summary, at_node node, const at_usage *usage)
{
    at_process *p = find(summary, node);
    double      value[AT_USAGE_CHANNELS];
    if (!p) return;
    assert(p->last_at <= summary->at);
    bool same = p->last.pid == usage->pid && usage->pid != 0;
    if (same && summary->at - p->last_at < shortest) return;
    measure(p, usage, same ? at_seconds(summary->at - p->last_at) : 0, value);
    at_downsampled_add(p->series, summary->serial, at_seconds(summary->at), summary->step, value);
    p->last = *usage;
    p->last_at = summary->at;
    summary->usage_serial = summary->serial;
}

json_t *at_run_summary_usage_json(const at_run_summary *summary, uint64_t since)
{
    if (summary->usage_serial <= since) return NULL;
    json_t *processes = json_array();
    for (int i = 0; i < AT_RUN_SUMMARY_PROCESSES; i++) {
        const at_process *p = &summary->process[i];
        if (!p->series) continue;
        bool scorer = p->node == AT_NODE_EVALUATOR;
        json_array_append_new(
            processes,
            json_pack("{s:o, s:I, s:o}", "node",
                      scorer ? json_string("evaluator") : at_json_value_count(p->node), "pid",
                      (json_int_t)p->last.pid, "trend", at_downsampled_json(p->series, since)));
    }
    return processes;
}
