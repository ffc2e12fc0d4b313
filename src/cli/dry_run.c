#include "cli/dry_run.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/machine.h"
#include "base/text.h"
#include "base/time.h"
#include "cli/output.h"
#include "report/summary/json_value.h"
#include "world/core/hints.h"

/* The first limit that is reached counts; time and targets cannot be known before. */
static double samples_of(const at_limits *limits, double step_samples)
{
    double samples = INFINITY;
    if (limits->samples > 0) samples = (double)limits->samples;
    if (limits->steps > 0) samples = fmin(samples, (double)limits->steps * step_samples);
    return isinf(samples) ? NAN : ceil(samples / step_samples) * step_samples;
}

at_err at_dry_run_estimate(const at_launch *launch, at_dry_estimate *e, at_fail *fail)
{
    const at_run_options *run = &launch->run;
    const at_plan        *plan = &run->plan;
    at_ns                 sample_time = run->sample_time;
    AT_TRY(at_run_preview_make(run, &e->preview, fail));
    bool computes = !launch->task.timing_only;
    if (computes && (sample_time == 0 || run->world->virtual_time))
        AT_TRY(at_run_measure(&launch->task, plan->micro_batch, &sample_time, fail));
    uint32_t at_once = plan->workers;
    if (run->world->virtual_time) at_once = 1;
    if (run->world->shares_memory && run->sample_time == 0 && at_once > e->preview.cores)
        at_once = e->preview.cores;
    e->step_samples = (double)plan->batch * plan->workers;
    e->samples = samples_of(&e->preview.limits, e->step_samples);
    e->sample_seconds = at_seconds(sample_time);
    e->seconds = computes ? e->samples * e->sample_seconds / at_once : NAN;
    return AT_OK;
}

static json_t *estimate_json(const at_launch *launch, const at_dry_estimate *e)
{
    const at_task *task = &launch->task;
    const at_plan *plan = &launch->run.plan;
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:i, s:i, s:o, s:o, s:o, s:o, s:o}",
                     "strategy", plan->strategy->name, "world", launch->run.world->name, "model",
                     task->model, "data", task->data, "parameters", (json_int_t)task->parameters,
                     "samples", (json_int_t)task->samples, "test_samples",
                     (json_int_t)task->test_samples, "batch", (json_int_t)plan->batch, "workers",
                     (int)plan->workers, "micro_batch", (int)plan->micro_batch, "steps",
                     at_json_number(e->samples / e->step_samples), "epochs",
                     at_json_number(e->samples / (double)task->samples), "memory_bytes",
                     at_json_number(e->preview.memory), "sample_seconds",
                     at_json_number(e->sample_seconds), "seconds", at_json_number(e->seconds));
}

static void print_limits(const at_dry_estimate *e, const at_task *task)
{
    const at_limits *limits = &e->preview.limits;
    printf("a step takes about %.0f samples", e->step_samples);
    if (task->samples > 0) printf(", an epoch %.1f steps", (double)task->samples / e->step_samples);
    double steps = e->samples / e->step_samples;
    if (!isnan(steps)) printf("; at most %.0f step%s", steps, steps == 1 ? "" : "s");
    if (!isnan(e->samples) && task->samples > 0)
        printf(" or %.3g epochs", e->samples / (double)task->samples);
    if (limits->time > 0) printf("; at most %.6g s", at_seconds(limits->time));
    if (limits->targets > 0) printf("; ends earlier when the target is reached");
    printf("\n");
}

static void print_estimate(const at_launch *launch, const at_dry_estimate *e)
{
    const at_task *task = &launch->task;
    const at_plan *plan = &launch->run.plan;
    double         available = (double)at_machine_memory().available;
    char           time[32];
    at_print("would train %s (%zu parameters) on %s (%llu training samples, %llu test samples)\n",
             task->model, task->parameters, task->data, (unsigned long long)task->samples,
             (unsigned long long)task->test_samples);
    printf("%s, %u workers (%s), --batch %u, --micro-batch %u\n", plan->strategy->name,
           plan->workers, launch->run.world->called, plan->batch, plan->micro_batch);
    print_limits(e, task);
    printf("memory: about %.1f MB on this machine besides the data", e->preview.memory / 1e6);
    if (available > 0) printf(" (%.1f GB are available)", available / 1e9);
    printf("\n");
    if (e->sample_seconds > 0) printf("a sample takes about %.3g us", e->sample_seconds * 1e6);
    if (!isnan(e->seconds))
        printf(", so computing takes at least %s",
               at_text_show_duration(time, sizeof time, AT_SEC(e->seconds)));
    printf("%snothing was written\n", e->sample_seconds > 0 ? "\n" : "");
}

/* A run would say the same. */
static void say(void *self, const char *text)
{
    (void)self;
    at_say("%s\n", text);
}

at_err at_dry_run(const at_launch *launch, const at_settings *settings, at_fail *fail)
{
    at_dry_estimate e = {0};
    assert(launch->run.task);
    AT_TRY(at_dry_run_estimate(launch, &e, fail));
    if (!settings->quiet) at_hints_before(&launch->run, &launch->run.plan, say, NULL);
    if (settings->json) return at_print_json_take(estimate_json(launch, &e), fail);
    print_estimate(launch, &e);
    return AT_OK;
}
