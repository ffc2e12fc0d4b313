/* record_validate.h - could a run have made this record?
 *
 * State machines and sinks assert what they take for granted. A record from a file has to pass here
 * first, so that a damaged file is an error and never an assertion.
 */
#ifndef AT_RECORD_LOG_RECORD_VALIDATE_H
#define AT_RECORD_LOG_RECORD_VALIDATE_H

#include "record/record.h"

/* NULL when it could, else what is wrong with it ("a worker that is not there"). `before` is the
 * time of the event or action before this one; a sentence may have any time. */
const char *at_record_validate(const at_record *record, at_ns before, uint32_t workers);

#endif
