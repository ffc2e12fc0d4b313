/* snapshot_json.h - an snapshot of the hub (step/snapshot.h) as JSON: in checkpoints, and at the
 * head of the event log of a run that was resumed. */
#ifndef AT_RECORD_LOG_SNAPSHOT_JSON_H
#define AT_RECORD_LOG_SNAPSHOT_JSON_H

#include <jansson.h>

#include "base/err.h"
#include "step/snapshot.h"

/* The object; NULL when there is no memory. */
json_t *at_snapshot_json(const at_snapshot *snapshot);

/* Reads one into new memory, to be given to free(). AT_ERR_FORMAT when it cannot be one. */
at_err at_snapshot_read(const json_t *object, at_snapshot **snapshot, at_fail *fail);

#endif
