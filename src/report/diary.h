/* diary.h - the newest things worth a sentence: who came, who was lost, what was dropped; inside
 * the report layer only.
 *
 * Things of one kind that follow each other share a line ("workers 1 to 1000 joined"), so that the
 * diary of a large run is still read.
 */
#ifndef AT_REPORT_DIARY_H
#define AT_REPORT_DIARY_H

#include <jansson.h>
#include <stdint.h>

#include "record/record.h"

typedef struct at_diary at_diary;

/* Keeps the newest `lines` lines. NULL when there is no memory. */
at_diary *at_diary_new(uint32_t lines);
void      at_diary_free(at_diary *diary); /* accepts NULL */

/* Writes about the record if it is worth it. `serial` grows with every record. */
void at_diary_put(at_diary *diary, uint64_t serial, at_ns at, const at_record *record);

/* Lines that are new or have changed after serial `since`, oldest first:
 *
 *     [{"id": 3, "t": 1.25, "kind": "lost", "text": "worker 3 was lost: killed by signal 9"}, ..]
 *
 * A line that comes again has grown. */
json_t *at_diary_json(const at_diary *diary, uint64_t since);

#endif
