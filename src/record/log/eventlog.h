/* eventlog.h - events.bin: the complete, compact record of a run, read by replay and reports.
 *
 *     "ATEV"   format (4 bytes)   size of the info (4)   CRC-32C of the info (4)   info (JSON)
 *     size of the record (varint)   CRC-32C of the record (4)   record     .. and so on
 *
 * Fixed-size numbers are little-endian; codec.h describes the records. The head is written at once
 * and first. When a run or its machine dies, a log may end within its head or a record, or have
 * garbage there: such a torn end is left out, and everything before it is valid. A resumed run
 * writes a log of its own: events-2.bin, events-3.bin, ..
 *
 *     at_eventlog_open ─► at_eventlog_next until it returns no record ─► at_eventlog_close
 */
#ifndef AT_RECORD_LOG_EVENTLOG_H
#define AT_RECORD_LOG_EVENTLOG_H

#include "record/record.h"

enum { AT_EVENTLOG_FORMAT = 6, AT_EVENTLOG_NAME_SIZE = 32 };

typedef struct at_eventlog at_eventlog;

/* The file name of a log: events.bin for part 1, events-2.bin for the first resumed part, .. */
void at_eventlog_name(char name[AT_EVENTLOG_NAME_SIZE], uint32_t part);

/* Opens a log for reading. AT_ERR_MISSING when the file does not exist or its head is torn, so that
 * there is no record in it; AT_ERR_FORMAT when it is not an event log or of another version. */
at_err at_eventlog_open(const char *path, at_eventlog **log, at_fail *fail);

/* The run info as JSON, borrowed until close; at_run_info_plan extracts the plan. */
const char *at_eventlog_info(const at_eventlog *log);

/* The next record, borrowed until the next call; NULL at the end, which may be torn. When the log
 * has grown since, the next call continues there, with a record that was incomplete before, too.
 * Records with a
 * correct checksum that no run could have produced give AT_ERR_FORMAT with their position, so every
 * record returned is safe to pass to any sink. */
at_err at_eventlog_next(at_eventlog *log, const at_record **record, at_fail *fail);

/* Offset in the file of the end of the last record read. */
uint64_t at_eventlog_offset(const at_eventlog *log);

/* True when the end that was reached is torn: an incomplete record, or one that does not match its
 * checksum, after which nothing can be read. */
bool at_eventlog_truncated(const at_eventlog *log);

/* True when that end is damaged rather than incomplete: nothing will ever follow. */
bool at_eventlog_damaged(const at_eventlog *log);

/* True when the file has been removed since it was opened, as by a run that is resumed from before
 * it: what it has is not of the run any more. */
bool at_eventlog_is_removed(const at_eventlog *log);

/* A sentence about the torn end: which file, and where. */
void at_eventlog_torn(const at_eventlog *log, char *text, size_t size);

/* Accepts NULL. */
void at_eventlog_close(at_eventlog *log);

/* Receives progress while logs are read: bytes of the current one, and its size. */
typedef struct at_eventlog_progress {
    void (*report)(void *self, uint64_t done, uint64_t total); /* NULL: nobody wants to know */
    void *self;
} at_eventlog_progress;

/* For all logs that this process reads from now on. */
void at_eventlog_watch(at_eventlog_progress progress);

/* Called with each log, which stays the caller's. */
typedef at_err at_eventlog_visitor(void *self, at_eventlog *log, at_fail *fail);

/* Calls `visit` for all logs of a run folder in order, up to its first failure, which is returned,
 * or to a log with a torn head. AT_ERR_MISSING when the folder has no log. */
at_err at_eventlog_visit(const char *folder, at_eventlog_visitor *visit, void *self, at_fail *fail);

#endif
