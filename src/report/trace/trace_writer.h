/* trace_writer.h - writes the JSON trace format of Perfetto and chrome://tracing.
 *
 *     at_trace_writer_open
 *       ─► at_trace_writer_row, _slice, _instant, _arrow ─► at_trace_writer_commit
 *
 * Times are nanoseconds since the start; the file has microseconds with three decimals. Texts may
 * contain any bytes; `args` is the inside of a JSON object, or NULL. Events beyond the given
 * maximum are only counted.
 */
#ifndef AT_REPORT_TRACE_TRACE_WRITER_H
#define AT_REPORT_TRACE_TRACE_WRITER_H

#include "base/err.h"
#include "base/text.h"
#include "base/time.h"
#include "record/log/append_file.h"

/* A row of the timeline. */
typedef struct at_trace_row {
    uint32_t process, thread;
} at_trace_row;

typedef struct at_trace_writer {
    at_append_file *file;
    char           *path, *temporary;
    uint64_t        events_max;
    at_ns           from;             /* events that ended before are neither written nor counted */
    uint64_t        written, omitted; /* events; names of rows do not count */
    at_ns           cut_at; /* end of the last slice before the first omission; AT_NEVER: no
                               omission */
    at_ns           end;    /* of all slices, written or not */
    uint64_t        arrows;
    bool            begun; /* at least one entry is written */
} at_trace_writer;

/* Opens a temporary file beside `path`. */
at_err at_trace_writer_open(at_trace_writer *out, const char *path, uint64_t events_max, at_ns from,
                            at_fail *fail);

/* Names a process, and a row of it; rows are shown in the order of their threads. */
void at_trace_writer_process(at_trace_writer *out, uint32_t process, const char *name);
void at_trace_writer_row(at_trace_writer *out, at_trace_row row, const char *name);

/* An event with a duration; `color` is one of the color names of chrome://tracing. Slices of a row
 * MUST NOT overlap. */
void at_trace_writer_slice(at_trace_writer *out, at_trace_row row, const char *name,
                           const char *color, at_ns begin, at_ns end, const char *args);

/* An event without a duration. */
void at_trace_writer_instant(at_trace_writer *out, at_trace_row row, const char *name, at_ns at,
                             const char *args);

/* Marks where events begin to be missing, if any are. */
void at_trace_writer_mark_cut(at_trace_writer *out, at_trace_row row, const char *name);

/* An arrow from within one slice to within another; MUST be written after both. */
void at_trace_writer_arrow(at_trace_writer *out, const char *name, at_trace_row from, at_ns from_at,
                           at_trace_row to, at_ns to_at);

/* Appends a quoted and escaped JSON string to args. */
void at_trace_writer_quote(at_text *args, const char *text);

/* Ends the list of events, adds `other` (a JSON object with metadata) and renames the file to its
 * final name. AT_ERR_IO, and then there is no file. */
at_err at_trace_writer_commit(at_trace_writer *out, const char *other, at_fail *fail);

/* Removes the temporary file. Accepts a zeroed or committed writer. */
void at_trace_writer_discard(at_trace_writer *out);

#endif
