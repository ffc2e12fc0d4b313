/* schedule.h - learning-rate schedules: the rate as a function of the samples used so far.
 *
 * Syntax: const | linear:END | exp:EVERY,RATE (staircase; EVERY in samples, or in epochs with
 * the suffix e, as in exp:0.5e,0.96) | epochs:A:FACTOR (every A epochs) | epochs:A,B,..:FACTOR (at
 * these epochs) | cosine | stairs:COUNT,FACTOR (COUNT levels of equal length, the last one FACTOR
 * times lower than the first). linear, cosine and stairs end at samples_end.
 */
#ifndef AT_LEARN_OPTIM_SCHEDULE_H
#define AT_LEARN_OPTIM_SCHEDULE_H

#include <stdint.h>

#include "base/err.h"

enum { AT_SCHEDULE_EPOCHS_MAX = 32 };

typedef struct at_schedule_kind at_schedule_kind;

typedef struct at_schedule {
    const at_schedule_kind *kind;
    double                  lr; /* initial */
    double                  number[AT_SCHEDULE_EPOCHS_MAX + 2];
    uint32_t                number_count;
    double                  samples_epoch; /* samples in one epoch */
    double                  samples_end;   /* where linear, cosine and stairs end; 0: unknown */
} at_schedule;

/* Parses text. AT_ERR_USAGE with a hint when it is not a valid schedule, or needs an end and
 * samples_end is 0. */
at_err at_schedule_parse(const char *text, double lr, double samples_epoch, double samples_end,
                         at_schedule *schedule, at_fail *fail);

/* The learning rate after `samples_used` samples. */
double at_schedule_rate(const at_schedule *schedule, double samples_used);

#endif
