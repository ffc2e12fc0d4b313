/* event_lines.h - the newest notable events of a run as sentences: joins, losses, drops; inside the
 * report layer only.
 *
 * Consecutive events of one kind share a line ("workers 1 to 1000 joined"), which keeps the list
 * readable for large runs.
 */
#ifndef AT_REPORT_SUMMARY_EVENT_LINES_H
#define AT_REPORT_SUMMARY_EVENT_LINES_H

#include <jansson.h>
#include <stdint.h>

#include "record/record.h"

typedef struct at_event_lines at_event_lines;

/* Keeps the newest `lines` lines. NULL when out of memory. */
at_event_lines *at_event_lines_new(uint32_t lines);
void            at_event_lines_free(at_event_lines *lines); /* accepts NULL */

/* Adds a line for the record if it is notable. `serial` increases with every record. */
void at_event_lines_put(at_event_lines *lines, uint64_t serial, at_ns at, const at_record *record);

/* Lines that are new or have changed after serial `since`, oldest first:
 *
 *     [{"id": 3, "t": 1.25, "kind": "lost", "text": "worker 3 was lost: killed by signal 9"}, ..]
 *
 * A line whose id has been sent before replaces the earlier one. */
json_t *at_event_lines_json(const at_event_lines *lines, uint64_t since);

#endif
