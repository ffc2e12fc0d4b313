/* schedule.h - learning-rate schedules: the rate as a function of the samples used so far, or of
 * the steps done.
 *
 * Syntax: const | linear:END | linear:END,steps | exp:EVERY,RATE (staircase; EVERY in samples, or
 * in epochs with the suffix e, as in exp:0.5e,0.96) | epochs:A:FACTOR (every A epochs) |
 * epochs:A,B,..:FACTOR (at these epochs) | cosine | stairs:COUNT,FACTOR (COUNT levels of equal
 * length, the last one FACTOR times lower than the first) | one-cycle:PEAK,START,END (PyTorch's
 * OneCycleLR: lr is reached after the part PEAK of the run, by default 0.3, from lr / START, by
 * default 25; then it falls to 1 / END of where it began, by default 1e4). linear, cosine, stairs
 * and one-cycle end at samples_end. linear:END,steps counts steps, whatever their sizes, and ends
 * with the last one.
 *
 * warmup:LENGTH+SCHEDULE rises evenly over LENGTH (in samples or, with the suffix e, epochs) from
 * 1 % of the rate with which SCHEDULE continues. Schedules that end at samples_end begin there;
 * those that count samples or epochs count them from the start of the run.
 */
#ifndef AT_LEARN_OPTIM_SCHEDULE_H
#define AT_LEARN_OPTIM_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
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
    double                  samples_end;   /* of the run; 0: unknown */
    bool                    by_steps;      /* counts steps: samples_end is a number of steps */
    double                  warmup;        /* in samples; 0: none */
} at_schedule;

/* Parses text. AT_ERR_USAGE with a hint when it is not a valid schedule, or needs an end and
 * samples_end is 0. */
at_err at_schedule_parse(const char *text, double lr, double samples_epoch, double samples_end,
                         at_schedule *schedule, at_fail *fail);

/* Sets the number of steps of the run, 0: unknown; no effect on schedules that count samples.
 * AT_ERR_USAGE when one that counts steps has no end. */
at_err at_schedule_set_steps(at_schedule *schedule, double steps, at_fail *fail);

/* The learning rate after so many samples, used in so many steps. */
double at_schedule_now(const at_schedule *schedule, double samples_used, double steps_done);

/* The learning rate after `used` samples, or steps if it counts them. */
double at_schedule_rate(const at_schedule *schedule, double used);

/* Names of schedules; NULL after the last one. */
const char *at_schedule_name(size_t index);

#endif
