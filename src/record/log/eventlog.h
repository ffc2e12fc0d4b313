/* eventlog.h - events.bin: a whole run, compact; what replay and reports read.
 *
 *     "ATEV"   format (4 bytes)   size of the info (4 bytes)   info (JSON)   record, record, ..
 *
 * Fixed-size numbers have their lowest byte first; codec.h tells how a record looks. A file may end
 * within a record (the run was killed): what stands before that is good. A resumed run writes a log
 * of its own: events-2.bin, events-3.bin, ..
 *
 *     at_eventlog_open ─► at_eventlog_next until it gives no record ─► at_eventlog_close
 */
#ifndef AT_RECORD_LOG_EVENTLOG_H
#define AT_RECORD_LOG_EVENTLOG_H

#include "record/record.h"

enum { AT_EVENTLOG_FORMAT = 4 };

typedef struct at_eventlog at_eventlog;

/* Opens a log for reading. AT_ERR_MISSING when there is none, AT_ERR_FORMAT when it is not one or
 * is of a format we do not know. */
at_err at_eventlog_open(const char *path, at_eventlog **log, at_fail *fail);

/* The run's info as JSON, borrowed until close; at_run_info_plan makes a plan of it. */
const char *at_eventlog_info(const at_eventlog *log);

/* The next record, borrowed until the next call; NULL at the end. Bytes that cannot be, and records
 * that no run could have made, give AT_ERR_FORMAT and tell where they are; so what comes out of
 * here may be shown to any sink. */
at_err at_eventlog_next(at_eventlog *log, const at_record **record, at_fail *fail);

/* Reads on where the log ended so far, for a run that still goes on: after at_eventlog_next gave no
 * record, it gives those that were written since, the one that was cut included. To be called once,
 * before the first record is read. */
void at_eventlog_follow(at_eventlog *log);

/* Bytes of the file up to the end of the last record that was read. */
uint64_t at_eventlog_offset(const at_eventlog *log);

/* The file ended within a record. */
bool at_eventlog_truncated(const at_eventlog *log);

/* Accepts NULL. */
void at_eventlog_close(at_eventlog *log);

#endif
