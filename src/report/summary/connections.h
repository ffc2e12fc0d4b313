/* connections.h - workers on other machines: how many are there, and how good their connections
 * are; inside the report layer only.
 *
 * Memory is bounded: curves are downsampled, and only the first 64 workers that connect have
 * curves of their own. Totals of each worker are those of the tally.
 */
#ifndef AT_REPORT_SUMMARY_CONNECTIONS_H
#define AT_REPORT_SUMMARY_CONNECTIONS_H

#include <jansson.h>

#include "record/record.h"
#include "record/tally.h"

typedef struct at_connections at_connections;

/* NULL when out of memory. */
at_connections *at_connections_new(uint32_t workers);
void            at_connections_free(at_connections *connections); /* accepts NULL */

/* Where in the run a record is. */
typedef struct at_moment {
    uint64_t serial, step;
    at_ns    at;
} at_moment;

/* Adds one record; those of other kinds are ignored. */
void at_connections_put(at_connections *connections, const at_moment *moment,
                        const at_record *record);

/* What has changed after serial `since`, for network.js; NULL: nothing, or no worker is on another
 * machine. `tally` has counted the same records. */
json_t *at_connections_json(const at_connections *connections, const at_tally *tally,
                            uint64_t since);

#endif
