/* codec_usage.h - how a record of kind USAGE looks as bytes. Internal to record/.
 *
 *     node   pid   user_ns   system_ns   eight counters, one more than they are: unknown is 0
 *
 * The numbers stand as they are: one record a second and process does not need to be shorter.
 */
#ifndef AT_RECORD_LOG_CODEC_USAGE_H
#define AT_RECORD_LOG_CODEC_USAGE_H

#include "record/log/wire.h"
#include "record/record.h"

/* Writes or reads node and usage. */
void at_codec_usage(at_wire *wire, at_node *node, at_usage *usage);

#endif
