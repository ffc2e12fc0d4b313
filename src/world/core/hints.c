#include "world/core/hints.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { HINT_SIZE = 512, PARTS = 8 }; /* micro-batches per round that a note suggests */

/* As far as the settings say: all workers compute on the same machine, or on simulated ones. */
static bool workers_are_equal(const at_run_options *o)
{
    bool steady = !o->straggler || strcmp(o->straggler, "none") == 0;
    bool here = o->world->shares_memory || o->world->virtual_time;
    return steady && o->comm_delay <= 0 && !o->faults && here;
}

/* Steps close while some workers still compute, whose work is then lost. */
static bool leaves_workers_out(const at_plan *plan)
{
    const at_gather_rule *gather = plan->gather;
    return gather->reports && plan->release->holds && gather->reports(plan) < plan->workers;
}

static void hint_at_whole_rounds(const at_plan *plan, at_hint_say *say, void *self)
{
    char     text[HINT_SIZE];
    uint32_t part = plan->batch / PARTS > 0 ? plan->batch / PARTS : 1;
    if (!plan->work->timed || plan->micro_batch < plan->batch) return;
    if (plan->batch == 1 && !plan->own_batches) return;
    if (plan->own_batches)
        snprintf(text, sizeof text,
                 "note: a round of %s can end only between batches of the program, and one of them "
                 "is the whole --batch, so slow workers compute as much as fast ones; use a larger "
                 "--batch, or smaller batches in the program",
                 plan->strategy->name);
    else
        snprintf(text, sizeof text,
                 "note: a round of %s can end only between micro-batches, and --micro-batch %u is "
                 "the whole --batch, so slow workers compute as much as fast ones; use "
                 "--micro-batch %u",
                 plan->strategy->name, plan->micro_batch, part);
    say(self, text);
}

static void hint_at_equal_workers(const at_run_options *o, const at_plan *plan, at_hint_say *say,
                                  void *self)
{
    char text[HINT_SIZE];
    if (plan->workers < 2 || !workers_are_equal(o)) return;
    if (leaves_workers_out(plan))
        snprintf(text, sizeof text,
                 "note: all workers are equally fast, so %s only discards what %u of %u workers "
                 "compute; use --strategy fmb, or slow some down with --straggler",
                 plan->strategy->name, plan->workers - plan->gather->reports(plan), plan->workers);
    else if (plan->work->timed && plan->gather->waits_for_all && o->world->virtual_time)
        snprintf(text, sizeof text,
                 "note: all simulated workers are equally fast, so %s gains nothing over fmb; slow "
                 "some down with --straggler",
                 plan->strategy->name);
    else
        return;
    say(self, text);
}

/* More than one pass over the data in each step is hardly what was meant. */
static void hint_at_large_batches(const at_task *task, const at_plan *plan, at_hint_say *say,
                                  void *self)
{
    char     text[HINT_SIZE];
    uint64_t step = (uint64_t)plan->batch * plan->workers, samples = task->samples;
    if (samples == 0 || step <= samples || task->timing_only) return;
    uint64_t fits = samples / plan->workers;
    snprintf(text, sizeof text,
             "note: a step takes %llu samples (%u workers, --batch %u), but the data has only "
             "%llu, so each is used more than once per step; use --batch %llu or less",
             (unsigned long long)step, plan->workers, plan->batch, (unsigned long long)samples,
             (unsigned long long)(fits > 0 ? fits : 1));
    say(self, text);
}

static void hint_at_data(const at_task *task, at_hint_say *say, void *self)
{
    char        text[HINT_SIZE];
    const char *line = task->notes ? task->notes : "";
    for (size_t length; *line; line += length + (line[length] == '\n')) {
        length = strcspn(line, "\n");
        snprintf(text, sizeof text, "note: %.*s", (int)length, line);
        say(self, text);
    }
}

void at_hints_before(const at_run_options *options, const at_plan *plan, at_hint_say *say,
                     void *self)
{
    assert(say);
    if (options->task) {
        hint_at_data(options->task, say, self);
        hint_at_large_batches(options->task, plan, say, self);
    }
    hint_at_whole_rounds(plan, say, self);
    hint_at_equal_workers(options, plan, say, self);
}

/* Whether any worker computed something else than --batch samples in some step. */
static bool sizes_changed(const at_plan *plan, const at_tally *tally)
{
    for (uint32_t i = 0; i < plan->workers; i++)
        if (tally->worker[i].samples_used != tally->step_count * plan->batch) return true;
    return tally->step_count == 0;
}

void at_hints_after(const at_plan *plan, const at_tally *tally, at_hint_say *say, void *self)
{
    char text[HINT_SIZE];
    assert(say);
    if (!plan->size->changes_samples || sizes_changed(plan, tally)) return;
    double epochs = (double)tally->samples_used /
                    (double)(plan->samples_epoch > 0 ? plan->samples_epoch : tally->samples_used);
    if (epochs < 1)
        snprintf(
            text, sizeof text,
            "note: %s never changed the batch, and the run ended after %.2g epochs; rules that "
            "decide after whole epochs need a longer run: use --epochs 2 or more",
            plan->strategy->name, epochs);
    else if (plan->batch_min == plan->batch_max)
        snprintf(text, sizeof text,
                 "note: %s never changed the batch, because its MIN and MAX are both %u; leave "
                 "room between them",
                 plan->strategy->name, plan->batch_max);
    else
        snprintf(text, sizeof text,
                 "note: %s never changed the batch in %.3g epochs, so the run was one of fmb; run "
                 "longer, or with unequal workers (--straggler)",
                 plan->strategy->name, epochs);
    say(self, text);
}
