/* timeline.h - what every worker did when, in cells; inside the report layer only.
 *
 *     worker 1  │ c c c s c c w c c ..        a row a worker, a column a stretch of time;
 *     worker 2  │ s s c c c c c w c ..        a cell: how much of it was computed, slept, ..
 *
 * When the run outgrows its columns, two become one. Past AT_TIMELINE_ROWS workers, neighbours
 * share a row. What is left of a cell the worker waited.
 */
#ifndef AT_REPORT_SUMMARY_TIMELINE_H
#define AT_REPORT_SUMMARY_TIMELINE_H

#include <jansson.h>
#include <stdint.h>

#include "record/record.h"

enum { AT_TIMELINE_ROWS = 1000 };

/* What a worker can be seen doing; names are part of the summary's JSON. */
#define AT_ACTIVITY_MAP(X) X(COMPUTE, "compute") X(SLEEP, "sleep") X(SEND, "send") X(GONE, "gone")
typedef enum at_activity {
#define X(id, text) AT_ACTIVITY_##id,
    AT_ACTIVITY_MAP(X)
#undef X
        AT_ACTIVITY_COUNT
} at_activity;

typedef struct at_timeline at_timeline;

/* Room for about `cells` cells. NULL when there is no memory. */
at_timeline *at_timeline_new(uint32_t workers, uint32_t cells);
void         at_timeline_free(at_timeline *timeline); /* accepts NULL */

/* The worker did this from `begin` to `end`, times since the start. `serial` never falls. */
void at_timeline_add(at_timeline *timeline, uint64_t serial, at_node worker, at_activity doing,
                     at_ns begin, at_ns end);

/* A round of so many samples ended at `end`. */
void at_timeline_round(at_timeline *timeline, uint64_t serial, at_node worker, at_ns end,
                       uint32_t samples);

/* The columns that have changed after serial `since`:
 *
 *     {"width": 0.002, "from": 12, "columns": 40, "top": 64,
 *      "rows": [{"first": 1, "last": 1, "compute": "zzk..", "batch": "a0b0.."}, ..]}
 *
 * A share is one digit, 0 to 63, of "0-9A-Za-z-_"; a mean batch is two, of 4095 that mean `top`.
 * What no cell of a row has is left out. A client keeps the first `from` columns that it has, if
 * they have the same width and top, else none. */
json_t *at_timeline_json(const at_timeline *timeline, uint64_t since);

#endif
