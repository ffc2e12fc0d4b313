/* trace_writer.h - a trace as Perfetto and chrome://tracing read it, event by event.
 *
 *     at_trace_writer_open ─► at_trace_writer_row, _slice, _instant, _arrow ─►
 * at_trace_writer_close
 *
 * Times are nanoseconds since the start; the file has microseconds with three decimals. Texts may
 * hold any bytes; `args` is the inside of a JSON object, or NULL. No more than a given number of
 * events is written; what comes after is only counted.
 */
#ifndef AT_REPORT_TRACE_TRACE_WRITER_H
#define AT_REPORT_TRACE_TRACE_WRITER_H

#include "base/err.h"
#include "base/text.h"
#include "base/time.h"
#include "record/log/append_file.h"

/* A line of the picture. */
typedef struct at_trace_row {
    uint32_t process, thread;
} at_trace_row;

typedef struct at_trace_writer {
    at_append_file *spool;
    char           *path, *temporary;
    uint64_t        events_max;
    at_ns           from;             /* what ended before is neither written nor counted */
    uint64_t        written, omitted; /* events; names of rows do not count */
    at_ns           cut_at; /* end of the last slice that was written before the first omission;
                                   AT_NEVER: nothing was omitted */
    at_ns           end;    /* of all slices, written or not */
    uint64_t        arrows;
    bool            begun;
} at_trace_writer;

/* Opens a temporary file beside `path`. */
at_err at_trace_writer_open(at_trace_writer *out, const char *path, uint64_t events_max, at_ns from,
                            at_fail *fail);

/* Names a process, and a row of it; rows are shown in the order of their threads. */
void at_trace_writer_process(at_trace_writer *out, uint32_t process, const char *name);
void at_trace_writer_row(at_trace_writer *out, at_trace_row row, const char *name);

/* Something that lasts; colour is one of the names that chrome://tracing knows. Slices of a row
 * MUST NOT overlap. */
void at_trace_writer_slice(at_trace_writer *out, at_trace_row row, const char *name,
                           const char *colour, at_ns begin, at_ns end, const char *args);

/* Something that happens at once. */
void at_trace_writer_instant(at_trace_writer *out, at_trace_row row, const char *name, at_ns at,
                             const char *args);

/* Marks where events begin to be missing, if any are. */
void at_trace_writer_mark_cut(at_trace_writer *out, at_trace_row row, const char *name);

/* An arrow from within a slice to within another; MUST come after both. */
void at_trace_writer_arrow(at_trace_writer *out, const char *name, at_trace_row from, at_ns from_at,
                           at_trace_row to, at_ns to_at);

/* Adds a text to args with what JSON wants escaped; quotes included. */
void at_trace_writer_quote(at_text *args, const char *text);

/* Ends the list of events, adds `other` (a JSON object, facts about the trace) and gives the file
 * its name. AT_ERR_IO, and then there is no file. */
at_err at_trace_writer_commit(at_trace_writer *out, const char *other, at_fail *fail);

/* Removes what was written. Accepts a zeroed or committed one. */
void at_trace_writer_discard(at_trace_writer *out);

#endif
