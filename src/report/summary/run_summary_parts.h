/* run_summary_parts.h - what a summary holds; shared by the files of story.h only. */
#ifndef AT_REPORT_SUMMARY_RUN_SUMMARY_PARTS_H
#define AT_REPORT_SUMMARY_RUN_SUMMARY_PARTS_H

#include "report/plot/bins.h"
#include "report/summary/blame.h"
#include "report/summary/downsampled_series.h"
#include "report/summary/event_lines.h"
#include "report/summary/round_times.h"
#include "report/summary/run_summary.h"
#include "report/summary/timeline.h"

/* Channels of the table that has a line a step; names are part of the summary's JSON. */
#define AT_STEP_CHANNEL_MAP(X) \
    X(LOSS, "loss")            \
    X(LR, "lr")                \
    X(BATCH, "batch")          \
    X(SECONDS, "seconds") X(MESSAGES, "messages") X(STALENESS, "staleness") X(SAMPLES, "samples")
typedef enum at_step_channel {
#define X(id, text) AT_STEP_##id,
    AT_STEP_CHANNEL_MAP(X)
#undef X
        AT_STEP_CHANNELS
} at_step_channel;

/* Channels of the tables of resources: processors used, memory, and bytes a second; the network is
 * the machine's and only the hub tells it. */
#define AT_USAGE_CHANNEL_MAP(X) \
    X(CPU, "cpu")               \
    X(RSS, "rss")               \
    X(READ, "read")             \
    X(WRITE, "write") X(NET_IN, "net_in") X(NET_OUT, "net_out") X(LOOPBACK, "loopback")
typedef enum at_usage_channel {
#define X(id, text) AT_USAGE_##id,
    AT_USAGE_CHANNEL_MAP(X)
#undef X
        AT_USAGE_CHANNELS
} at_usage_channel;

/* What there are histograms of; names are part of the summary's JSON. */
#define AT_SAMPLED_MAP(X) \
    X(DELAY, "delay")     \
    X(COMPUTE, "compute") \
    X(SAMPLES, "samples") \
    X(STALENESS, "staleness") X(MESSAGES, "messages") X(WAIT, "wait") X(BATCH, "batch")
typedef enum at_sampled {
#define X(id, text) AT_SAMPLED_##id,
    AT_SAMPLED_MAP(X)
#undef X
        AT_SAMPLED_COUNT
} at_sampled;

enum {
    AT_RUN_SUMMARY_PROCESSES = 66
}; /* LIMIT: processes whose resources are kept: hub, evaluator, 64 */

/* Resources of one process. */
typedef struct at_process {
    at_downsampled *series; /* NULL: nothing is known of it yet */
    at_node         node;
    at_usage        last;
    at_ns           last_at;
} at_process;

typedef struct at_run_summary_worker {
    uint64_t serial;     /* of the newest record about it */
    at_ns    gone_since; /* AT_NEVER: it is here */
} at_run_summary_worker;

struct at_run_summary {
    char       *info_text;
    json_t     *info_json;
    at_plan     plan;
    at_run_info info;
    uint64_t    serial;
    at_ns       shift;    /* of the present log's times */
    at_ns       at;       /* of the newest record, shifted */
    bool        resuming; /* the next record is the first of another log */
    bool        detailed; /* it knows of workers, not only of steps */

    at_tally       *tally;
    at_sink         tally_sink;
    at_downsampled *steps, *tests;
    at_ns           opened; /* the open step, AT_NEVER before the first order */
    uint64_t        step;   /* the newest one */

    at_round_times        *placing;
    at_timeline           *timeline;
    at_blame              *blame;
    at_event_lines        *lines;
    at_run_summary_worker *worker; /* (plan.workers) */

    at_sample *sample; /* (AT_SAMPLED_COUNT) */
    json_t    *histograms;
    uint64_t   histograms_serial, histograms_count; /* when they were last made, of how much */

    at_process process[AT_RUN_SUMMARY_PROCESSES];
    uint64_t   usage_serial;
};

/* Takes in what a process has used (story_usage.c). */
void at_run_summary_usage(at_run_summary *summary, at_node node, const at_usage *usage);

/* Resources that have changed after serial `since`; NULL when there are none. */
json_t *at_run_summary_usage_json(const at_run_summary *summary, uint64_t since);

#endif
