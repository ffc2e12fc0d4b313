/* tfevents.h - a TensorBoard event file: checksummed records, each one protobuf message.
 *
 *     size (8 bytes)   its checksum (4)   message (tensorboard.proto)   its checksum (4)
 *
 * Numbers are little-endian. After the file is open only at_tfevents_text and at_tfevents_graph may
 * allocate.
 */
#ifndef AT_RECORD_SINKS_TFEVENTS_H
#define AT_RECORD_SINKS_TFEVENTS_H

#include "base/err.h"
#include "base/time.h"
#include "record/histogram.h"
#include "record/record.h"

typedef struct at_tfevents at_tfevents;

/* Creates the folder and in it a new file events.out.tfevents.DATE.HOST, which begins with the
 * format version. `date` (seconds since 1970) is time 0 of the events. */
at_err at_tfevents_open(const char *folder, double date, at_tfevents **file, at_fail *fail);

/* Writes the rest and releases; AT_ERR_IO as at_append_file_close. Accepts NULL. */
at_err at_tfevents_close(at_tfevents *file, at_fail *fail);

/* Marks a restart at this step: TensorBoard then ignores this and later steps in older files of the
 * folder. */
void at_tfevents_restart(at_tfevents *file, at_ns at, uint64_t step);

/* A named value. */
typedef struct at_tfevents_scalar {
    const char *tag;
    double      value;
} at_tfevents_scalar;

enum { AT_TFEVENTS_SCALARS = 16 }; /* most in one event */

/* Writes the scalars in one event; nothing when count is 0. */
void at_tfevents_scalars(at_tfevents *file, at_ns at, uint64_t step,
                         const at_tfevents_scalar *scalars, size_t count);

/* Writes a histogram with all values multiplied by `unit`; nothing when it is empty. */
void at_tfevents_histogram(at_tfevents *file, at_ns at, uint64_t step, const char *tag,
                           const at_histogram *histogram, double unit);

/* Writes a text in Markdown. */
at_err at_tfevents_text(at_tfevents *file, const char *tag, const char *text, at_fail *fail);

/* Writes the graph of a model: samples, layers, loss. */
at_err at_tfevents_graph(at_tfevents *file, const at_run_layer *layers, size_t count,
                         at_fail *fail);

#endif
