/* eventlogs.h - all event logs of a run: events.bin, and one more each time it was resumed. */
#ifndef AT_RECORD_LOG_EVENTLOGS_H
#define AT_RECORD_LOG_EVENTLOGS_H

#include "record/log/eventlog.h"

/* Looks at one log, which is open and closed by the caller. */
typedef at_err at_eventlogs_look(void *self, at_eventlog *log, at_fail *fail);

/* Lets `look` see each log of the folder, in order; its first failure ends that and is returned.
 * AT_ERR_MISSING when there is none. */
at_err at_eventlog_visit(const char *folder, at_eventlogs_look *look, void *self, at_fail *fail);

#endif
