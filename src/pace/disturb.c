/* The disturbance test of DBS: in each epoch, with probability P, a worker gets a background task
 * that costs it U{5..10} s per epoch, spread evenly over its rounds, for U{4..20} epochs. A new
 * task replaces the old one, so the last 20 epochs determine the state and no history is kept. */
#include "pace/pace_model.h"

#include <assert.h>
#include <stdlib.h>

enum { EPOCHS_MIN = 4, EPOCHS_MAX = 20, SECONDS_MIN = 5, SECONDS_MAX = 10 };

typedef struct disturb {
    double   probability;
    uint64_t rounds_per_epoch;
} disturb;

typedef struct task {
    uint64_t epochs; /* 0: no task */
    double   seconds;
} task;

static at_err create(const at_pace_options *options, char *arguments, void **self, at_fail *fail)
{
    assert(options->rounds_per_epoch >= 1);
    disturb *d = *self = calloc(1, sizeof *d);
    if (!d) return at_fail_memory(fail);
    d->rounds_per_epoch = options->rounds_per_epoch;
    AT_TRY(at_pace_parse_number(&arguments, "P", &d->probability, fail));
    if (d->probability > 1)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "P is %g; a probability is at most 1",
                           d->probability);
    return at_pace_parse_end(arguments, fail);
}

/* The task that starts in this epoch, if any; here streams are numbered by epoch. */
static task task_of_epoch(const disturb *d, const at_pace_draw *draw, uint64_t epoch)
{
    at_rng rng = at_rng_stream(draw->seed, draw->worker, AT_RNG_PURPOSE_PACE, epoch);
    if (at_rng_uniform(&rng) >= d->probability) return (task){0};
    double   seconds = SECONDS_MIN + (double)at_rng_below(&rng, SECONDS_MAX - SECONDS_MIN + 1);
    uint64_t epochs = EPOCHS_MIN + at_rng_below(&rng, EPOCHS_MAX - EPOCHS_MIN + 1);
    return (task){.epochs = epochs, .seconds = seconds};
}

static double draw_sleep(const void *self, const at_pace_draw *draw)
{
    const disturb *d = self;
    assert(d->rounds_per_epoch >= 1);
    uint64_t epoch = draw->round / d->rounds_per_epoch;
    for (uint64_t age = 0; age < EPOCHS_MAX && age <= epoch; age++) {
        task latest = task_of_epoch(d, draw, epoch - age);
        if (latest.epochs == 0) continue;
        return latest.epochs > age ? latest.seconds / (double)d->rounds_per_epoch : 0;
    }
    return 0;
}

/* The latest task has age a with probability P (1-P)^a, and is still active with a probability that
 * falls from 1 (a < 4) to 0 (a = 20). */
static double mean(const void *self)
{
    const disturb *d = self;
    double         slow = 0, latest = d->probability;
    for (int age = 0; age < EPOCHS_MAX; age++) {
        int    longer = EPOCHS_MAX - (age < EPOCHS_MIN ? EPOCHS_MIN - 1 : age);
        double lasts = (double)longer / (EPOCHS_MAX - EPOCHS_MIN + 1);
        slow += latest * lasts;
        latest *= 1 - d->probability;
    }
    assert(slow >= 0 && slow <= 1 + 1e-9);
    return slow * (SECONDS_MIN + SECONDS_MAX) / 2 / (double)d->rounds_per_epoch;
}

const at_pace_model at_pace_disturb = {.create = create, .sleep = draw_sleep, .mean = mean};
