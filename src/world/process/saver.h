/* saver.h - writes checkpoints beside the training, in a process of its own at idle priority.
 *
 *     hub: at_saver_save ── copies floats, rings ──► saver: plain order, seal, fsync, rename
 *
 * The hub is held up for one copy of the parameters and of the optimiser's state. A checkpoint that
 * is due while the last one is still being written is skipped, unless it is the first or the last.
 */
#ifndef AT_WORLD_PROCESS_SAVER_H
#define AT_WORLD_PROCESS_SAVER_H

#include <jansson.h>

#include "base/err.h"
#include "step/snapshot.h"
#include "task/task.h"
#include "world/core/update.h"

typedef struct at_saver at_saver;

typedef struct at_saver_options {
    const at_task     *task;
    const at_learning *learning;
    uint32_t           workers;
    const char        *run; /* its folder; the saver makes RUN/checkpoint */
    /* Adds what else the run wants to find again to the state (see checkpoint.h); `at` is the time
     * since START. */
    void (*describe)(void *self, json_t *state, at_ns at);
    void *self;
    bool  patient; /* never skip one: in virtual time waiting costs nothing */
} at_saver_options;

/* Forks the saver. Options are copied, what they point to is borrowed. */
at_err at_saver_open(const at_saver_options *options, at_saver **saver, at_fail *fail);

/* Takes a snapshot and has it written. `last` ones, and the one of step 0, are there when this
 * returns. */
void at_saver_save(at_saver *saver, const at_updater *updater, const at_snapshot *snapshot,
                   bool last);

/* What went wrong since the last call, as a sentence; NULL when nothing did. */
const char *at_saver_trouble(at_saver *saver);

/* Step of the newest checkpoint that is written; UINT64_MAX before the first. */
uint64_t at_saver_newest(const at_saver *saver);

/* Waits for what is being written, then ends the process; accepts NULL. */
void at_saver_close(at_saver *saver);

#endif
