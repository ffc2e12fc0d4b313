/* buffered_sink.h - a sink that keeps records for a moment and shows them to others many at a time.
 *
 *     put ─► buffer ─ full, 50 ms old, a save, a sentence, the end ─► put of every sink behind it
 *
 * Between two steps of a hub its caches belong to the workers, so that everything a sink touches
 * has to be fetched anew; twenty steps at once cost half as much as one by one. What is kept here
 * is lost when the process is killed, as is what the sinks' own buffers hold, for up to a second.
 */
#ifndef AT_RECORD_SINKS_BUFFERED_SINK_H
#define AT_RECORD_SINKS_BUFFERED_SINK_H

#include "record/record.h"

/* Takes over what is in `behind` and empties it. AT_ERR_FAILED when there is no memory; then
 * `behind` is still the caller's. */
at_err at_sink_buffered(at_recorder *behind, at_sink *sink, at_fail *fail);

#endif
