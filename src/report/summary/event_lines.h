/* event_lines.h - the newest things worth a sentence: who came, who was lost, what was dropped;
 * inside the report layer only.
 *
 * Things of one kind that follow each other share a line ("workers 1 to 1000 joined"), so that the
 * lines of a large run is still read.
 */
#ifndef AT_REPORT_SUMMARY_EVENT_LINES_H
#define AT_REPORT_SUMMARY_EVENT_LINES_H

#include <jansson.h>
#include <stdint.h>

#include "record/record.h"

typedef struct at_event_lines at_event_lines;

/* Keeps the newest `lines` lines. NULL when there is no memory. */
at_event_lines *at_event_lines_new(uint32_t lines);
void            at_event_lines_free(at_event_lines *lines); /* accepts NULL */

/* Writes about the record if it is worth it. `serial` grows with every record. */
void at_event_lines_put(at_event_lines *lines, uint64_t serial, at_ns at, const at_record *record);

/* Lines that are new or have changed after serial `since`, oldest first:
 *
 *     [{"id": 3, "t": 1.25, "kind": "lost", "text": "worker 3 was lost: killed by signal 9"}, ..]
 *
 * A line that comes again has grown. */
json_t *at_event_lines_json(const at_event_lines *lines, uint64_t since);

#endif
