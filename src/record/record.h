/* record.h - the record stream: everything that happens in a run, passed to all sinks.
 *
 * A run is fully described by the events that went into the hub and the actions that came out. So a
 * record is one event or one action, plus a few facts that only the world knows (a pid, how a
 * process ended, the learning rate). Every fact is recorded once; console, CSV files, event log,
 * workers.json and the tally behind result.json are all derived from the same stream.
 *
 *     at_recorder_put(&recorder, &record)  ─►  sink 1, sink 2, ..   (in order, unbuffered)
 *     at_recorder_close(&recorder, fail)       flushes and closes all; returns the first failure
 */
#ifndef AT_RECORD_RECORD_H
#define AT_RECORD_RECORD_H

#include "base/err.h"
#include "base/link_stats.h"
#include "base/time.h"
#include "base/usage.h"
#include "step/event.h"
#include "step/plan.h"
#include "step/snapshot.h"

/* A layer of the model, for drawing its graph. */
typedef struct at_run_layer {
    char     name[48], kind[16], detail[64];
    int32_t  from[2];  /* layers whose outputs it reads, or one of the two below */
    uint32_t shape[3]; /* channels, height, width of its output */
    uint64_t parameters;
} at_run_layer;
enum { AT_RUN_LAYER_SAMPLES = -1, AT_RUN_LAYER_NONE = -2 };

/* Description of a run, passed to every sink when it opens; must outlive the sinks. */
typedef struct at_run_info {
    const char          *folder; /* of the run, NULL: no files are written */
    const at_plan       *plan;
    const char          *world;   /* "local", "sim", "mpi" */
    const char          *command; /* as typed */
    const char          *model, *data;
    uint64_t             parameters;
    uint64_t             samples_epoch; /* training samples in the data set */
    uint64_t             seed;
    double               date;        /* start of the run, seconds since 1970 */
    bool                 progressive; /* show the progressive validation loss */
    bool                 usage;       /* resource usage is sampled: USAGE records will come */
    bool                 links;       /* workers may be on other machines: LINK records may come */
    const struct json_t *options;     /* every resolved option by name; NULL: unknown */
    const at_run_layer  *layers;      /* of the model, in order; NULL: none or unknown */
    uint32_t             layer_count;
    const at_snapshot   *resume; /* the snapshot it was resumed from; NULL: starts at step 0 */
} at_run_info;

typedef enum at_record_kind {
    AT_REC_EVENT,  /* went into the hub: `event` is set */
    AT_REC_ACTION, /* came out of the hub and was carried out: `action` is set */
    AT_REC_TEXT,   /* a message for the user: `text` is set */
    AT_REC_USAGE,  /* resource usage of a process so far: `usage` and `node` are set */
    AT_REC_LINK,   /* connection to a worker on another machine: `link` and `node` are set */
    AT_REC_TOTALS  /* in files only, after records were left out: `text` has the tally (JSON) */
} at_record_kind;

/* LIMIT: with more workers there is no workers.json and no row per worker in result.json. */
enum { AT_WORKERS_LISTED = 65536 };

/* The evaluator process in USAGE records, where 0 is the hub and 1 .. are workers. */
enum { AT_NODE_EVALUATOR = AT_WORKERS_MAX + 1 };

typedef struct at_record {
    at_record_kind   kind;
    at_ns            at;      /* since START */
    const at_event  *event;   /* borrowed until `put` returns; its `now` is the world's clock */
    const at_action *action;  /* borrowed until `put` returns */
    uint64_t         version; /* the hub's, before the event; staleness = version - work.version */
    int64_t          pid;     /* with JOINED */
    const char      *text;    /* with LOST: how it ended ("killed by signal 9"); with JOINED: its
                                host, NULL: this one; with TEXT and TOTALS */
    double           lr;      /* with APPLY */
    at_ns            took;    /* with APPLY: duration of the update; 0 in simulated time */
    uint64_t         count;   /* with EVALUATED: test samples */
    bool             final;   /* with EVALUATED: the evaluation after the last step */
    at_node          node;    /* with USAGE and LINK */
    const at_usage  *usage;   /* borrowed until `put` returns, as the next one */

    const at_link_stats *link;
} at_record;

/* A checkpoint was taken. Everything recorded before it must be on disk, since a resumed run
 * continues in the same files. */
static inline bool at_record_is_save(const at_record *record)
{
    return record->kind == AT_REC_ACTION && record->action->kind == AT_ACT_SAVE;
}

/* A consumer of records. `put` MUST NOT block for long; `close` returns the first error. */
typedef struct at_sink {
    const char *name;
    void       *self;
    bool        complete; /* gets the records that long runs leave out of their files, too */
    void (*put)(void *self, const at_record *record);
    at_err (*close)(void *self, at_fail *fail); /* releases self */
} at_sink;

enum { AT_SINKS_MAX = 12 };

typedef struct at_recorder {
    at_sink  sink[AT_SINKS_MAX];
    uint32_t count;
} at_recorder;

/* Adds a sink; the recorder closes it. */
void at_recorder_add(at_recorder *recorder, at_sink sink);

/* Passes the record to every sink. */
void at_recorder_put(const at_recorder *recorder, const at_record *record);

/* Closes all sinks, last one first, and returns the first failure (AT_ERR_IO: a full disk). */
at_err at_recorder_close(at_recorder *recorder, at_fail *fail);

#endif
