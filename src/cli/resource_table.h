/* resource_table.h - what the processes of runs used: processor, memory, messages and disk.
 *
 * Processor, memory and disk come from the system; the bytes sent and received are parameters and
 * gradients as the hub counted them, in shared memory as well as over a network.
 */
#ifndef AT_CLI_RESOURCE_TABLE_H
#define AT_CLI_RESOURCE_TABLE_H

#include <jansson.h>
#include <stdbool.h>

#include "report/summary/table.h"

/* What the result.json of a run says: {"hub": {..}, "worker": {..}, "evaluator": {..}}, of workers
 * the mean. A process has cpu_seconds, cpu_share (of a core), peak_bytes, sent_bytes,
 * received_bytes, read_bytes and write_bytes; null is unknown. NULL when out of memory. */
json_t *at_resources_of(const json_t *result);

/* One row per process of the run with this result.json; of many workers only their mean. What is
 * known of no process has no column. NULL when out of memory. */
at_table *at_resource_table(const json_t *result);

/* Whether anything is known of an array of runs, each an object whose "resources" is what
 * at_resources_of gave. */
bool at_resources_known(const json_t *runs);

/* Such runs side by side, rows for hub, mean worker and evaluator of each label: means over its
 * array of repeated runs. `head` is the heading of the labels. NULL when out of memory. */
at_table *at_resources_table(const char *head, const char *const *label, const json_t *const *runs,
                             size_t count);

#endif
