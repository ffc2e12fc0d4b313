/* record_validate.h - checks whether a record read from a file could come from a real run.
 *
 * State machines and sinks assert their preconditions. Records from a file are checked here first,
 * so that a damaged file is reported as an error and never trips an assertion.
 */
#ifndef AT_RECORD_LOG_RECORD_VALIDATE_H
#define AT_RECORD_LOG_RECORD_VALIDATE_H

#include "record/record.h"

/* NULL when the record is valid, else what is wrong with it ("no such worker"). `before` is the
 * time of the previous event or action; a text may have any time. */
const char *at_record_validate(const at_record *record, at_ns before, uint32_t workers);

#endif
