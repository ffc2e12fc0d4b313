/* saver.h - writes checkpoints in a separate process at idle priority.
 *
 *     hub: at_saver_save ── copies floats, rings ──► saver: plain order, checksum, fsync, rename
 *
 * The hub waits only for one copy of the parameters and of the optimizer state; under gossip, of
 * those of every worker. A checkpoint that
 * is due while the previous one is still being written is skipped, unless it is the first or last.
 */
#ifndef AT_WORLD_PROCESS_SAVER_H
#define AT_WORLD_PROCESS_SAVER_H

#include <jansson.h>

#include "base/err.h"
#include "base/time.h"
#include "model_io/checkpoint.h"
#include "step/snapshot.h"
#include "task/task.h"
#include "world/core/gossip.h"
#include "world/core/update.h"

typedef struct at_saver at_saver;

#define AT_SAVER_PATIENCE AT_SEC(20)

typedef struct at_saver_options {
    const at_task     *task;
    const at_learning *learning;
    uint32_t           workers;
    uint32_t           own_vectors; /* of each worker under gossip; 0: they have none */
    const char        *run;         /* run folder; the saver creates RUN/checkpoint */
    /* Adds further fields of the run to the state (see checkpoint.h); `at` is the time since
     * START. */
    void (*describe)(void *self, json_t *state, at_ns at);
    /* Says why the hub waits, or that a checkpoint was given up. Optional. */
    void (*say)(void *self, const char *text);
    void  *self;
    bool   patient;    /* never skip a checkpoint: in virtual time waiting costs nothing */
    size_t extra_size; /* most bytes of at_saver_input.extra, which take memory when written */
} at_saver_options;

/* What is saved beside the snapshot. */
typedef struct at_saver_input {
    const at_updater           *updater; /* its optimizer state */
    const float                *params;
    const at_gossip            *gossip; /* its workers' own vectors; NULL: they have none */
    const at_checkpoint_vector *extra;  /* further vectors */
    uint32_t                    extras;
    const char                 *state; /* of at_saver_state; NULL: the present one */
} at_saver_input;

/* Forks the saver, unless at_saver_write is to be called. Options are copied; what they point to is
 * borrowed. */
at_err at_saver_open(const at_saver_options *options, at_saver **saver, at_fail *fail);

/* Where files are not those of the operating system (disk.h), another process could not write them:
 * then there is none, and this writes the checkpoint that was requested, if any. It is also written
 * when the saver would be awaited. */
void at_saver_write(at_saver *saver);

/* Copies the state and requests a checkpoint of it. Returns after the file is written only for the
 * `last` one and for step 0, and then waits no longer than AT_SAVER_PATIENCE and a second per 4 MB:
 * a disk that does not answer must not hold up the end. Older checkpoints stay good. */
void at_saver_save(at_saver *saver, const at_saver_input *input, const at_snapshot *snapshot,
                   bool last);

/* The state of the run as text, for an at_saver_save that must wait; the caller frees it. NULL: out
 * of memory. */
char *at_saver_state(const at_saver *saver, const at_snapshot *snapshot);

/* A sentence about what went wrong since the last call; NULL: nothing. */
const char *at_saver_trouble(at_saver *saver);

/* Step of the newest checkpoint written; UINT64_MAX before the first. */
uint64_t at_saver_newest(const at_saver *saver);

/* Waits for the checkpoint being written, as long as at_saver_save does, then ends the process;
 * accepts NULL. */
void at_saver_close(at_saver *saver);

#endif
