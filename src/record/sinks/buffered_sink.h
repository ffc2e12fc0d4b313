/* buffered_sink.h - a sink that buffers records and passes them on in batches.
 *
 *     put ─► buffer ─ full, 50 ms old, a save, a text, the end ─► put of every inner sink
 *
 * Between two steps the workers evict the hub's caches, so each call of a sink begins with cache
 * misses; twenty steps at once cost half as much as one by one. Buffered records are lost when the
 * process is killed, as is up to one second in the buffers of the sinks themselves.
 */
#ifndef AT_RECORD_SINKS_BUFFERED_SINK_H
#define AT_RECORD_SINKS_BUFFERED_SINK_H

#include "record/log/thinner.h"
#include "record/record.h"

/* Takes over the sinks of `inner` and empties it. When a file of theirs cannot be written, `outer`
 * gets a text record about it at once; it MUST outlive the sink, NULL: nobody is told. Takes over
 * the thinner, too, which decides what sinks get that are not `complete`; NULL: everything.
 * AT_ERR_FAILED when there is no memory; then `inner` is still the caller's. */
at_err at_sink_buffered(at_recorder *inner, at_recorder *outer, at_thinner *thinner, at_sink *sink,
                        at_fail *fail);

#endif
