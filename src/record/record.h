/* record.h - one typed stream of facts, many sinks.
 *
 * A run is what went into the hub's state machine and what came out of it; so a record is one event
 * or one action, with the few facts that only the world knows beside it (a pid, how a process
 * ended, the learning rate). Every fact is recorded once; console, CSV files, event log,
 * workers.json and the tally behind result.json are renderings of the same stream.
 *
 *     at_recorder_put(&recorder, &record)  ─►  sink 1, sink 2, ..   (in order, unbuffered)
 *     at_recorder_close(&recorder, fail)       flushes and closes all; tells the first failure
 */
#ifndef AT_RECORD_RECORD_H
#define AT_RECORD_RECORD_H

#include "base/err.h"
#include "base/time.h"
#include "base/usage.h"
#include "step/event.h"
#include "step/plan.h"
#include "step/snapshot.h"

/* A layer of what is learnt, for pictures of the net. */
typedef struct at_run_layer {
    char     name[48], kind[16], detail[64];
    int32_t  from[2];  /* layers whose outputs it reads, or one of the two below */
    uint32_t shape[3]; /* channels, height, width of its output */
    uint64_t parameters;
} at_run_layer;
enum { AT_RUN_LAYER_SAMPLES = -1, AT_RUN_LAYER_NONE = -2 };

/* What a run is, told to every sink when it opens; borrowed for the life of the sinks. */
typedef struct at_run_info {
    const char          *folder; /* of the run, NULL: writes no files */
    const at_plan       *plan;
    const char          *world;   /* "local", "sim" */
    const char          *command; /* as typed */
    const char          *model, *data;
    uint64_t             parameters;
    uint64_t             samples_epoch; /* training samples in the set */
    uint64_t             seed;
    double               date;        /* seconds since 1970 at the start */
    bool                 progressive; /* people expect to see the progressive validation loss */
    bool                 usage;       /* USAGE records will come */
    uint32_t             hubs;        /* that share the updates; 0 and 1: one */
    const struct json_t *options;     /* every resolved option by name; NULL: not known */
    const at_run_layer  *layers;      /* of the net, in order; NULL: it has none, or not known */
    uint32_t             layer_count;
    const at_snapshot   *resume; /* where it goes on; NULL: it begins at step 0 */
} at_run_info;

typedef enum at_record_kind {
    AT_REC_EVENT,  /* went into the hub: `event` is set */
    AT_REC_ACTION, /* came out of the hub and was done: `action` is set */
    AT_REC_TEXT,   /* a sentence for people: `text` is set */
    AT_REC_USAGE   /* what a process has taken so far: `usage` and `node` are set */
} at_record_kind;

/* In records of kind USAGE beside 0, the hub, and the workers: the process that scores. */
enum { AT_NODE_EVALUATOR = AT_WORKERS_MAX + 1 };

typedef struct at_record {
    at_record_kind   kind;
    at_ns            at;      /* since the run's START */
    const at_event  *event;   /* borrowed until the sink returns; its `now` is the world's clock */
    const at_action *action;  /* borrowed until the sink returns */
    uint64_t         version; /* the hub's, before the event; staleness = version - work.version */
    int64_t          pid;     /* with JOINED */
    const char      *text;    /* with LOST: how it ended ("killed by signal 9"); with JOINED: on
                                which machine, NULL: on this one; with SAY */
    double           lr;      /* with APPLY */
    at_ns            took;    /* with APPLY: how long the update took; 0 in virtual time */
    uint64_t         count;   /* with EVALUATED: test samples */
    bool             final;   /* with EVALUATED: the evaluation after the last step */
    at_node          node;    /* with USAGE: whose */
    const at_usage  *usage;   /* borrowed until the sink returns */
} at_record;

/* A checkpoint was taken: whoever goes on from it wants to find what came before on the disk. */
static inline bool at_record_is_save(const at_record *record)
{
    return record->kind == AT_REC_ACTION && record->action->kind == AT_ACT_SAVE;
}

/* One rendering. `put` MUST NOT block for long; an error is kept and told by `close`. */
typedef struct at_sink {
    const char *name;
    void       *self;
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

/* Shows the record to every sink. */
void at_recorder_put(const at_recorder *recorder, const at_record *record);

/* Closes all sinks, last one first, and returns the first failure (AT_ERR_IO: a full disk). */
at_err at_recorder_close(at_recorder *recorder, at_fail *fail);

#endif
