/* tfevents.h - a file of TensorBoard events: records with checksums, each of them one message.
 *
 *     size (8 bytes)   its checksum (4)   message (tensorboard.proto)   its checksum (4)
 *
 * Numbers have their lowest byte first. Everything is appended through a spool; after the file is
 * open only at_tfevents_text and at_tfevents_graph may allocate.
 */
#ifndef AT_RECORD_SINKS_TFEVENTS_H
#define AT_RECORD_SINKS_TFEVENTS_H

#include "base/err.h"
#include "base/time.h"
#include "record/histogram.h"
#include "record/record.h"

typedef struct at_tfevents at_tfevents;

/* Makes the folder and in it a new file events.out.tfevents.DATE.HOST, which begins with the
 * version of its format. `date` (seconds since 1970) is time 0 of what follows. */
at_err at_tfevents_open(const char *folder, double date, at_tfevents **file, at_fail *fail);

/* Writes out the rest and releases; AT_ERR_IO as at_append_file_close. Accepts NULL. */
at_err at_tfevents_close(at_tfevents *file, at_fail *fail);

/* The run starts at this step, and what other files of the folder say of it or later ones is void.
 */
void at_tfevents_restart(at_tfevents *file, at_ns at, uint64_t step);

/* A number by name. */
typedef struct at_tfevents_scalar {
    const char *tag;
    double      value;
} at_tfevents_scalar;

enum { AT_TFEVENTS_SCALARS = 16 }; /* in one event */

/* Numbers of one moment, at most AT_TFEVENTS_SCALARS; none: nothing is written. */
void at_tfevents_scalars(at_tfevents *file, at_ns at, uint64_t step,
                         const at_tfevents_scalar *scalars, size_t count);

/* How values are spread; they are `unit` times what the histogram counted. An empty one is not
 * written. */
void at_tfevents_histogram(at_tfevents *file, at_ns at, uint64_t step, const char *tag,
                           const at_histogram *histogram, double unit);

/* A text in Markdown. */
at_err at_tfevents_text(at_tfevents *file, const char *tag, const char *text, at_fail *fail);

struct Tb__Event; /* tensorboard.pb-c.h */

/* Any event, with its time set to `at`. Fails only for lack of memory, and only for large ones. */
at_err at_tfevents_put(at_tfevents *file, at_ns at, struct Tb__Event *event, at_fail *fail);

/* A net, layer by layer, between samples and loss. */
at_err at_tfevents_graph(at_tfevents *file, const at_run_layer *layers, size_t count,
                         at_fail *fail);

#endif
