#include "record/progress.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PART_SIZE = 48 }; /* of a part of the progress line */

static const at_ns mark_every = 2000000000;

static double ratio(double part, double whole)
{
    return whole > 0 ? fmin(fmax(part / whole, 0), 1) : NAN;
}

/* All targets must be met, so the farthest one counts. */
static double targets_fraction(const at_run_progress *progress)
{
    assert(progress->info->plan->limits.targets <= AT_TARGETS_MAX);
    const at_limits *limits = &progress->info->plan->limits;
    double           least = 1;
    for (uint32_t i = 0; i < limits->targets; i++) {
        const at_target *target = &limits->target[i];
        double           value = progress->tally->test[target->metric];
        bool             is_loss = target->metric == AT_METRIC_LOSS;
        if (isnan(value)) return NAN;
        least = fmin(least, is_loss ? ratio(target->value, value) : ratio(value, target->value));
    }
    return least;
}

/* Since the first order, with the time that a resumed run had trained before. */
static at_ns trained_ns(const at_run_progress *progress)
{
    const at_snapshot *resume = progress->info->resume;
    at_ns              began = progress->tally->began_at, before = resume ? resume->elapsed : 0;
    if (!progress->stepped || began == AT_NEVER) return before;
    return before + progress->tally->applied_at - began;
}

/* Before the first step of a resumed run, these are those of its checkpoint. */
static uint64_t steps_of(const at_run_progress *progress)
{
    const at_snapshot *resume = progress->info->resume;
    return resume && !progress->stepped ? resume->version : progress->step;
}

static uint64_t samples_of(const at_run_progress *progress)
{
    const at_snapshot *resume = progress->info->resume;
    return resume && !progress->stepped ? resume->samples_used : progress->samples;
}

/* Progress toward a target is not linear, so targets count only when no other limit is set. */
at_goal at_run_progress_goal(const at_run_progress *progress, double *fraction)
{
    assert(fraction);
    const at_limits *limits = &progress->info->plan->limits;
    double           steps = ratio((double)steps_of(progress), (double)limits->steps);
    double           samples = ratio((double)samples_of(progress), (double)limits->samples);
    double           time = ratio((double)trained_ns(progress), (double)limits->time);
    double           most = fmax(fmax(steps, samples), time); /* fmax ignores NAN */
    *fraction = most;
    if (progress->reached) {
        *fraction = 1;
        return AT_GOAL_TARGETS;
    }
    if (steps == most) return AT_GOAL_STEPS;
    if (samples == most) return AT_GOAL_SAMPLES;
    if (time == most) return AT_GOAL_TIME;
    if (limits->targets == 0) return AT_GOAL_NONE;
    *fraction = targets_fraction(progress);
    return AT_GOAL_TARGETS;
}

static void begin(at_run_progress *progress, const at_record *record)
{
    assert(!progress->stepped);
    at_ns began = progress->tally->began_at;
    progress->stepped = true; /* before the goal: a resumed run has trained for some time */
    progress->step = record->action->as.apply.step - 1;
    progress->samples = record->action->as.apply.samples_used;
    at_run_progress_goal(progress, &progress->began);
    progress->mark[0].at = began == AT_NEVER ? record->at : began;
    progress->mark[0].samples = progress->samples;
    progress->mark[0].step = progress->step;
    progress->mark[1] = progress->mark[0];
}

/* A target is often reached long before the limit that progress is measured by. */
static void note_end(at_run_progress *progress, at_end why)
{
    if (why == AT_END_TARGET) progress->reached = true;
}

void at_run_progress_put(at_run_progress *progress, const at_record *record)
{
    if (record->kind != AT_REC_ACTION) return;
    if (record->action->kind == AT_ACT_FINISH) note_end(progress, record->action->as.finish.why);
    if (record->action->kind != AT_ACT_APPLY) return;
    assert(record->action->as.apply.step >= 1);
    if (!progress->stepped) begin(progress, record);
    progress->step = record->action->as.apply.step;
    progress->samples += record->action->as.apply.samples;
    progress->lr = record->lr;
    if (record->at - progress->mark[1].at < mark_every) return;
    progress->mark[0] = progress->mark[1];
    progress->mark[1] = (at_run_progress_mark){
        .at = record->at, .samples = progress->samples, .step = progress->step};
}

/* Used samples per second over the last few seconds, 0 when unknown. */
static double recent_speed(const at_run_progress *progress)
{
    if (!progress->stepped) return 0;
    double seconds = at_seconds(progress->tally->applied_at - progress->mark[0].at);
    assert(progress->samples >= progress->mark[0].samples);
    return seconds > 0 ? (double)(progress->samples - progress->mark[0].samples) / seconds : 0;
}

/* Seconds per step over the last few seconds, 0 when unknown. */
static double recent_step(const at_run_progress *progress)
{
    if (!progress->stepped || progress->step <= progress->mark[0].step) return 0;
    double seconds = at_seconds(progress->tally->applied_at - progress->mark[0].at);
    return fmax(seconds, 0) / (double)(progress->step - progress->mark[0].step);
}

/* 12.5, 4201, 123k, 1.23M. */
static const char *show_count(char *buffer, size_t size, double value)
{
    assert(value >= 0);
    if (value < 99.95)
        snprintf(buffer, size, "%.3g", value);
    else if (value < 99999.5)
        snprintf(buffer, size, "%.0f", value);
    else if (value < 999500)
        snprintf(buffer, size, "%.0fk", value / 1e3);
    else
        snprintf(buffer, size, value < 99.95e6 ? "%.2fM" : "%.0fM", value / 1e6);
    return buffer;
}

/* 0.412, 2.300; very small and very large values with an exponent. */
static const char *show_value(char *buffer, size_t size, double value)
{
    double amount = fabs(value);
    bool   is_plain = amount == 0 || (amount >= 0.001 && amount < 10000) || isnan(value);
    snprintf(buffer, size, is_plain ? "%.3f" : "%.2e", value);
    return buffer;
}

/* Appends a part after two spaces. Once a part does not fit, no further one is added. */
static void add_part(at_text *text, int *columns_left, const char *part)
{
    assert(*part);
    assert(*columns_left >= 0);
    int width = (int)strlen(part) + (text->used > 0 ? 2 : 0);
    if (width > *columns_left) *columns_left = 0;
    if (*columns_left == 0) return;
    at_text_add(text, text->used > 0 ? "  %s" : "%s", part);
    *columns_left -= width;
}

static void show_step(const at_run_progress *progress, char *part, size_t size)
{
    uint64_t limit = progress->info->plan->limits.steps;
    at_text  text = at_text_in(part, size);
    at_text_add(&text, "step %llu", (unsigned long long)steps_of(progress));
    if (limit > 0) at_text_add(&text, "/%llu", (unsigned long long)limit);
}

/* Progress in the unit of the goal, unless that is steps. */
static void show_goal(const at_run_progress *progress, at_goal goal, char *part, size_t size)
{
    const at_limits *limits = &progress->info->plan->limits;
    double           epoch = (double)progress->info->samples_epoch;
    char             done[16], whole[16];
    *part = '\0';
    if (goal == AT_GOAL_SAMPLES && limits->epochs && epoch > 0)
        snprintf(part, size, "epoch %.2f/%g", (double)samples_of(progress) / epoch,
                 (double)limits->samples / epoch);
    else if (goal == AT_GOAL_SAMPLES)
        snprintf(part, size, "sample %s/%s",
                 show_count(done, sizeof done, (double)samples_of(progress)),
                 show_count(whole, sizeof whole, (double)limits->samples));
    else if (goal == AT_GOAL_TIME)
        snprintf(part, size, "time %s/%s",
                 at_text_show_duration(done, sizeof done, trained_ns(progress)),
                 at_text_show_duration(whole, sizeof whole, limits->time));
}

/* A metric, with its target if there is one. */
static void show_metric(const at_run_progress *progress, at_metric metric, char *part, size_t size)
{
    assert(!isnan(progress->tally->test[metric]));
    static const char *const names[AT_METRIC_COUNT] = {"accuracy",
                                                       "test loss",
                                                       "AUC",
                                                       "top-5",
                                                       "R2",
                                                       "worst accuracy",
                                                       "worst loss",
                                                       "disagreement",
                                                       "train loss",
                                                       "least train loss",
                                                       "largest train loss",
                                                       "train loss of the mean"};
    const at_limits         *limits = &progress->info->plan->limits;
    char                     value[16];
    at_text                  text = at_text_in(part, size);
    at_text_add(&text, "%s %s", names[metric],
                show_value(value, sizeof value, progress->tally->test[metric]));
    for (uint32_t i = 0; i < limits->targets; i++)
        if (limits->target[i].metric == metric) at_text_add(&text, "/%g", limits->target[i].value);
}

static bool has_target(const at_run_progress *progress, at_metric metric)
{
    const at_limits *limits = &progress->info->plan->limits;
    for (uint32_t i = 0; i < limits->targets; i++)
        if (limits->target[i].metric == metric) return true;
    return false;
}

static bool is_virtual(const at_run_progress *progress)
{
    const char *world = progress->info->world;
    return world && strcmp(world, "sim") == 0;
}

static void show_time(const char *word, double ns, char *part, size_t size)
{
    char text[16];
    if (ns < 59.5e9)
        snprintf(part, size, "%s %.0fs", word, ns / 1e9);
    else if (ns < 1e18)
        snprintf(part, size, "%s %s", word, at_text_show_duration(text, sizeof text, (at_ns)ns));
}

/* What is left of a time limit is known. Otherwise it is estimated from the average speed since the
 * start, or since the run was resumed. */
static void show_eta(const at_run_progress *progress, at_goal goal, double fraction, at_ns elapsed,
                     char *part, size_t size)
{
    assert(elapsed >= 0);
    double gained = fraction - (isnan(progress->began) ? 0 : progress->began);
    bool   is_known = goal == AT_GOAL_TIME && !is_virtual(progress);
    *part = '\0';
    if (goal == AT_GOAL_TARGETS || goal == AT_GOAL_NONE || fraction >= 1) return;
    if (is_known)
        show_time("ETA", (double)(progress->info->plan->limits.time - trained_ns(progress)), part,
                  size);
    else if (gained > 0 && progress->stepped)
        show_time("ETA", (double)elapsed * (1 - fraction) / gained, part, size);
}

static void add_elapsed(const at_run_progress *progress, at_goal goal, at_ns elapsed, int *columns,
                        at_text *text)
{
    char part[PART_SIZE];
    bool is_shown = goal == AT_GOAL_TIME && !is_virtual(progress); /* as "time 3s/30s" */
    if (is_shown || elapsed < AT_SEC(0.5)) return;
    show_time("elapsed", (double)elapsed, part, sizeof part);
    add_part(text, columns, part);
}

static void add_position(const at_run_progress *progress, at_goal goal, double fraction,
                         int *columns, at_text *text)
{
    char part[PART_SIZE];
    show_goal(progress, goal, part, sizeof part);
    if (*part) add_part(text, columns, part);
    if (progress->reached) {
        add_part(text, columns, "target reached");
    } else if (!isnan(fraction)) {
        snprintf(part, sizeof part, "%.0f%%", floor(100 * fraction + 1e-9));
        add_part(text, columns, part);
    }
}

static void add_quality(const at_run_progress *progress, int *columns, at_text *text)
{
    char   part[PART_SIZE], number[16];
    double mean = at_tally_progressive(progress->tally);
    if (!isnan(progress->tally->loss_recent)) {
        show_value(number, sizeof number, progress->tally->loss_recent);
        snprintf(part, sizeof part, "loss %s", number);
        add_part(text, columns, part);
    }
    if (progress->info->progressive && !isnan(mean)) {
        snprintf(part, sizeof part, "progressive loss %s", show_value(number, sizeof number, mean));
        add_part(text, columns, part);
    }
    for (int i = 0; i < AT_METRIC_TRAIN_LOSS; i++) {
        bool is_shown = i != AT_METRIC_LOSS || has_target(progress, AT_METRIC_LOSS);
        if (!is_shown || isnan(progress->tally->test[i])) continue;
        show_metric(progress, (at_metric)i, part, sizeof part);
        add_part(text, columns, part);
    }
}

static void add_speed(const at_run_progress *progress, int *columns, at_text *text)
{
    char   part[PART_SIZE], number[16];
    double speed = recent_speed(progress), step = recent_step(progress);
    if (speed > 0) {
        snprintf(part, sizeof part, "%s samples/s", show_count(number, sizeof number, speed));
        add_part(text, columns, part);
    }
    if (step > 0) {
        at_text_show_duration(number, sizeof number, (at_ns)(step * 1e9));
        snprintf(part, sizeof part, "%s/step", number);
        add_part(text, columns, part);
    }
    if (progress->lr > 0) {
        snprintf(part, sizeof part, "lr %.3g", progress->lr);
        add_part(text, columns, part);
    }
}

/* What matters most comes first, because narrow windows cut off the rest; only the time left keeps
 * its place whatever stands between it and the step. */
void at_run_progress_show(const at_run_progress *progress, at_ns elapsed, int columns,
                          at_text *text)
{
    char    eta[PART_SIZE], step[PART_SIZE];
    double  fraction;
    at_goal goal = at_run_progress_goal(progress, &fraction);
    assert(text->used == 0);
    show_step(progress, step, sizeof step);
    add_part(text, &columns, step);
    show_eta(progress, goal, fraction, elapsed, eta, sizeof eta);
    int room = *eta ? (int)strlen(eta) + 2 : 0;
    if (room > columns) room = 0;
    columns -= room;
    add_position(progress, goal, fraction, &columns, text);
    add_elapsed(progress, goal, elapsed, &columns, text);
    columns += room;
    if (*eta) add_part(text, &columns, eta);
    add_quality(progress, &columns, text);
    add_speed(progress, &columns, text);
}
