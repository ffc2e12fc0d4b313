/* snapshot_json.h - a hub snapshot (step/snapshot.h) as JSON, stored in checkpoints and at the head
 * of the event log of a resumed run. */
#ifndef AT_RECORD_LOG_SNAPSHOT_JSON_H
#define AT_RECORD_LOG_SNAPSHOT_JSON_H

#include <jansson.h>

#include "base/err.h"
#include "step/snapshot.h"

/* The snapshot as an object; NULL when there is no memory. */
json_t *at_snapshot_json(const at_snapshot *snapshot);

/* Reads a snapshot into new memory, to be released with free(). AT_ERR_FORMAT when it is
 * malformed. */
at_err at_snapshot_read(const json_t *object, at_snapshot **snapshot, at_fail *fail);

#endif
