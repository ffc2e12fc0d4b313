/* run_summary_parts.h - the contents of a summary; shared by the run_summary*.c files only. */
#ifndef AT_REPORT_SUMMARY_RUN_SUMMARY_PARTS_H
#define AT_REPORT_SUMMARY_RUN_SUMMARY_PARTS_H

#include "report/plot/bins.h"
#include "report/summary/blame.h"
#include "report/summary/connections.h"
#include "report/summary/downsampled_series.h"
#include "report/summary/event_lines.h"
#include "report/summary/round_times.h"
#include "report/summary/run_summary.h"
#include "report/summary/timeline.h"

/* Channels of the per-step series; the names are JSON keys. */
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

/* Channels of the resource series of a process: CPU cores used, memory, and bytes per second. The
 * network channels cover the whole machine; only the hub reports them. */
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

/* Quantities whose distribution is kept for histograms; the names are JSON keys. */
#define AT_DISTRIBUTION_MAP(X) \
    X(DELAY, "delay")          \
    X(COMPUTE, "compute")      \
    X(SAMPLES, "samples")      \
    X(STALENESS, "staleness") X(MESSAGES, "messages") X(WAIT, "wait") X(BATCH, "batch")
typedef enum at_distribution {
#define X(id, text) AT_DISTRIBUTION_##id,
    AT_DISTRIBUTION_MAP(X)
#undef X
        AT_DISTRIBUTION_COUNT
} at_distribution;

/* LIMIT: processes whose resource usage is kept: hub, evaluator and 64 workers */
enum { AT_RUN_SUMMARY_PROCESSES = 66 };

typedef struct at_process_usage {
    at_downsampled *series; /* NULL: unused entry */
    at_node         node;
    at_usage        last;
    at_ns           last_at;
} at_process_usage;

typedef struct at_run_summary_worker {
    uint64_t serial;     /* of its newest record */
    at_ns    gone_since; /* AT_NEVER: present */
} at_run_summary_worker;

struct at_run_summary {
    json_t     *info_json;  /* header of the first log */
    at_plan     plan, then; /* `then`: that of plan.then */
    at_run_info info;
    uint64_t    serial;     /* records so far */
    at_ns       shift;      /* added to the times of the current log */
    at_ns       at;         /* time of the newest record, shifted */
    bool        resuming;   /* the next record is the first of another log */
    bool        detailed;   /* rounds of workers were recorded, not only steps */
    uint64_t    thinned_at; /* the first step after which records are missing, 0: none */
    char        note[AT_RUN_SUMMARY_NOTE];

    at_tally       *tally;
    at_sink         tally_sink;
    at_downsampled *steps, *tests;
    at_ns           opened; /* start of the open step; AT_NEVER before the first order */
    uint64_t        step;   /* newest step */

    at_round_times        *round_times;
    at_timeline           *timeline;
    at_blame              *blame;
    at_event_lines        *lines;
    at_connections        *connections;
    at_run_summary_worker *worker; /* (plan.workers_max) */

    at_reservoir *distribution; /* (AT_DISTRIBUTION_COUNT) */
    json_t       *histograms;
    uint64_t      histograms_serial, histograms_count; /* serial and values when last computed */

    at_process_usage process[AT_RUN_SUMMARY_PROCESSES];
    uint64_t         usage_serial;
};

#endif
