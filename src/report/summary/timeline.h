/* timeline.h - worker activity over time, as a grid of cells; inside the report layer only.
 *
 *     worker 1  │ c c c s c c w c c ..        one row per worker, one column per time interval;
 *     worker 2  │ s s c c c c c w c ..        a cell holds the time spent on each activity
 *
 * When the run outgrows the columns, pairs of columns are merged. Beyond AT_TIMELINE_ROWS workers,
 * neighbors share a row. The rest of a cell is waiting time.
 */
#ifndef AT_REPORT_SUMMARY_TIMELINE_H
#define AT_REPORT_SUMMARY_TIMELINE_H

#include <jansson.h>
#include <stdint.h>

#include "record/record.h"

enum { AT_TIMELINE_ROWS = 1000 };

/* The names are JSON keys. */
#define AT_ACTIVITY_MAP(X) X(COMPUTE, "compute") X(SLEEP, "sleep") X(SEND, "send") X(GONE, "gone")
typedef enum at_activity {
#define X(id, text) AT_ACTIVITY_##id,
    AT_ACTIVITY_MAP(X)
#undef X
        AT_ACTIVITY_COUNT
} at_activity;

typedef struct at_timeline at_timeline;

/* Room for about `cells` cells. NULL when out of memory. */
at_timeline *at_timeline_new(uint32_t workers, uint32_t cells);
void         at_timeline_free(at_timeline *timeline); /* accepts NULL */

/* Adds an activity from `begin` to `end`, times since the start. `serial` never decreases. */
void at_timeline_add(at_timeline *timeline, uint64_t serial, at_node worker, at_activity activity,
                     at_ns begin, at_ns end);

/* A round of `samples` samples ended at `end`. */
void at_timeline_round(at_timeline *timeline, uint64_t serial, at_node worker, at_ns end,
                       uint32_t samples);

/* The columns that have changed after serial `since`:
 *
 *     {"width": 0.002, "from": 12, "columns": 40, "top": 64,
 *      "rows": [{"first": 1, "last": 1, "compute": "zzk..", "batch": "a0b0.."}, ..]}
 *
 * The share of an activity is one base-64 digit ("0-9A-Za-z-_"), 63 meaning all of the cell. A mean
 * batch is two digits, 4095 meaning `top`. Keys whose digits are all 0 are left out. A client keeps
 * its first `from` columns if they have the same width and top, otherwise none. */
json_t *at_timeline_json(const at_timeline *timeline, uint64_t since);

#endif
