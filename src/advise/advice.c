#include "advise/advice.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double WORTH = 1.02;  /* gains below this are not worth a change */
static const double ROOM = 1.03;   /* with less room than this nothing is */
static const double BEYOND = 1.05; /* how much better a strategy with staleness must be */
static const double NO_STALENESS = 0.01;
static const double ABOUT = 0.99;

void at_advice_deinit(at_advice *advice)
{
    at_measured_deinit(&advice->measured);
    at_fit_deinit(&advice->fit);
    *advice = (at_advice){0};
}

/* ---- the choice ------------------------------------------------------------------------------ */

/* The row with the largest gain among those that use no stale gradients. */
static uint32_t best_row(const at_predictions *all)
{
    uint32_t best = all->own;
    for (uint32_t i = 0; i < all->count; i++)
        if (all->row[i].staleness < NO_STALENESS && all->row[i].gain > all->row[best].gain)
            best = i;
    return best;
}

/* The row with the least staleness among those with about the largest gain of all. */
static uint32_t best_stale_row(const at_predictions *all)
{
    uint32_t best = all->own;
    double   most = 0;
    for (uint32_t i = 0; i < all->count; i++) most = fmax(most, all->row[i].gain);
    for (uint32_t i = 0; i < all->count; i++) {
        bool leads = all->row[i].gain >= ABOUT * most, led = all->row[best].gain >= ABOUT * most;
        if (leads && (!led || all->row[i].staleness < all->row[best].staleness)) best = i;
    }
    return best;
}

/* A synchronous strategy, because what staleness does to learning is not in a log. */
static uint32_t choose(const at_advice *a)
{
    uint32_t             best = best_row(&a->predictions);
    const at_prediction *p = &a->predictions.row[best];
    bool                 sure = p->low > 1 && p->gain >= WORTH;
    return sure && a->room >= ROOM ? best : a->predictions.own;
}

/* ---- sentences ------------------------------------------------------------------------------- */

static const char *key_name(const at_advice *a)
{
    return a->measured.log.by_time ? "time" : "step";
}

void at_advice_period(const at_advice *a, const at_slow_worker *slow, char *text, size_t size)
{
    const at_step_log *log = &a->measured.log;
    at_text            t = at_text_in(text, size);
    assert(slow->begin < slow->end && slow->end <= log->steps);
    at_text_add(&t, "%.2fx slower", slow->factor);
    bool from_start = slow->begin == 0, to_end = slow->end == log->steps;
    if (from_start && to_end)
        at_text_add(&t, " throughout");
    else if (to_end)
        at_text_add(&t, " since %s %.10g", key_name(a), log->key[slow->begin]);
    else
        at_text_add(&t, " from %s %.10g to %.10g", key_name(a), log->key[slow->begin],
                    log->key[slow->end - 1]);
}

static void say_slow(const at_advice *a, at_text *text)
{
    enum { NAMED_MAX = 4 };
    const at_slow_workers *slow = &a->slow;
    char                   period[120];
    if (slow->count == 0) return;
    at_text_add(text, "; your stragglers are %s",
                slow->count == 1 ? "one machine, " : "these machines: ");
    for (uint32_t i = 0; i < slow->count && i < NAMED_MAX; i++) {
        at_advice_period(a, &slow->worker[i], period, sizeof period);
        at_text_add(text, "%s%s (%s)", i ? ", " : "", a->measured.log.names[slow->worker[i].worker],
                    period);
    }
    if (slow->count > NAMED_MAX) at_text_add(text, " and %u more", slow->count - NAMED_MAX);
    at_text_add(text, ": replacing %s gives %.2fx", slow->count == 1 ? "it" : "them", slow->gain);
}

static void say_stale(const at_advice *a, at_text *text)
{
    const at_prediction *sync = &a->predictions.row[best_row(&a->predictions)];
    const at_prediction *best = &a->predictions.row[best_stale_row(&a->predictions)];
    if (best->gain < sync->gain * BEYOND || best->gain < WORTH) return;
    at_text_add(text,
                "; %s would give %.2fx, but with stale gradients (%.1f steps on average), whose "
                "effect on learning a log cannot tell",
                best->strategy, best->gain, best->staleness);
}

static void say_advice(at_advice *a)
{
    at_text               text = at_text_in(a->sentence, sizeof a->sentence);
    const at_predictions *all = &a->predictions;
    const at_prediction  *p = &all->row[best_row(all)];
    double                room = fmax(0, 100 * (a->room - 1));
    if (a->best != all->own)
        at_text_add(&text, "%s would give %.2fx [%.2f, %.2f]; at most %.0f %% can be gained here",
                    p->strategy, p->gain, p->low, p->high, room);
    else if (a->room < ROOM)
        at_text_add(&text,
                    "nothing to gain: the workers are about equally fast, and no strategy "
                    "can give more than %.1f %%",
                    room);
    else if (p->gain < WORTH)
        at_text_add(&text,
                    "nothing to gain by another strategy that uses no stale gradients: %s "
                    "is the best of them, and at most %.0f %% can be gained here",
                    all->row[all->own].strategy, room);
    else
        at_text_add(&text,
                    "nothing certain to gain: %s might give %.2fx [%.2f, %.2f]; a longer "
                    "log would tell",
                    p->strategy, p->gain, p->low, p->high);
    say_stale(a, &text);
    say_slow(a, &text);
}

/* Later options replace earlier ones, so that what is changed can be appended: in `anytime run ..
 * -- PROGRAM ..` before the program. */
static void say_command(at_advice *a)
{
    char        folder[sizeof a->command];
    at_text     text = at_text_in(a->command, sizeof a->command);
    at_text     run = at_text_in(folder, sizeof folder);
    const char *strategy = a->predictions.row[a->best].strategy, *command = a->measured.command;
    if (a->best == a->predictions.own) return;
    if (command) {
        const char *program = strstr(command, " -- ");
        size_t      options = program ? (size_t)(program - command) : strlen(command);
        at_text_add(&run, "%s-%s", a->path, strategy);
        at_text_add(&text, "%.*s --strategy %s --run ", (int)options, command, strategy);
        at_text_add_word(&text, folder);
        at_text_add(&text, "%s", program ? program : "");
    } else
        at_text_add(&text, "anytime run -n %u --strategy %s -- python3 train.py",
                    a->measured.log.workers, strategy);
}

/* ---- notes ----------------------------------------------------------------------------------- */

static void note_delays(const at_advice *a, at_text *text)
{
    const at_fit *fit = &a->fit;
    if (fit->recorded) return;
    const char *how = a->options.delays != AT_DELAYS_AUTO ? "as --delays says" : "by their pattern";
    if (fit->pauses)
        at_text_add(text,
                    "Long rounds are taken as pauses (%s: correlation from round to round "
                    "%.2f).",
                    how, fit->persistence);
    else
        at_text_add(text,
                    "Long rounds are taken as slow computing (%s: correlation from round to "
                    "round %.2f).",
                    how, fit->persistence);
}

static void note_scale(const at_advice *a, at_text *text)
{
    const at_measured *m = &a->measured;
    if (m->log.normalised)
        at_text_add(text, "The log has no absolute scale: a second stands for a mean round.");
    else if (!m->command && m->step_s > 60)
        at_text_add(text, "Steps take %.0f s; if the times are milliseconds, give --unit ms.",
                    m->step_s);
}

static void note_samples(const at_advice *a, at_text *text)
{
    if (!a->measured.log.samples)
        at_text_add(text, "The log has no samples: a round counts as %d micro-batches.",
                    AT_MEASURED_MICRO_BATCHES);
}

static void note_link(const at_advice *a, at_text *text)
{
    const at_measured *m = &a->measured;
    if (!m->command && !m->log.when)
        at_text_add(text, "The log has no time stamps: messages are assumed to take no time.");
}

static void note_left_out(const at_advice *a, at_text *text)
{
    if (*a->predictions.left_out)
        at_text_add(text,
                    "Left out, because simulating them takes too long with so many workers: "
                    "%s.",
                    a->predictions.left_out);
}

static void note_fmb(const at_advice *a, at_text *text)
{
    if (!a->measured.command)
        at_text_add(text, "The job is taken to wait for all workers in every step (fmb), as DDP "
                          "does.");
}

static void note_log(const at_advice *a, at_text *text)
{
    at_text_add(text, "%s", a->measured.log.notes);
    while (text->used > 0 && text->bytes[text->used - 1] == ' ') text->bytes[--text->used] = '\0';
}

static void note_staleness(const at_advice *a, at_text *text)
{
    (void)a;
    at_text_add(text, "Gains are samples per second. What stale gradients and unequal batches do "
                      "to learning is unknown from a log; `anytime compare` measures it.");
}

const char *at_advice_note(const at_advice *advice, uint32_t index, char *buffer, size_t size)
{
    static void (*const notes[])(const at_advice *, at_text *) = {
        note_log, note_scale,    note_samples, note_link,
        note_fmb, note_left_out, note_delays,  note_staleness};
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
        at_text text = at_text_in(buffer, size);
        notes[i](advice, &text);
        if (*buffer && index-- == 0) return buffer;
    }
    return NULL;
}

double at_advice_cost(const at_advice *advice, const at_prediction *prediction)
{
    assert(advice->options.cost > 0);
    return 1e6 / prediction->rate / 3600 * advice->measured.log.workers * advice->options.cost;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static at_err advise(const char *const *paths, uint32_t count, at_advice *a, at_fail *fail)
{
    at_measured *m = &a->measured;
    AT_TRY(at_measured_read(paths, count, &a->options.log, m, fail));
    if (m->log.workers < 2)
        return at_fail_set(fail, AT_ERR_FORMAT, "give the rows of all workers",
                           "%s: there is only one worker, so nobody waits for another", paths[0]);
    AT_TRY(at_fit_new(m, a->options.delays, &a->fit, fail));
    AT_TRY(at_slow_workers_find(m, &a->slow, fail));
    a->ceiling = at_measured_ceiling(m);
    a->limit = a->ceiling * fmax(1, m->step_s / at_measured_slowest(m));
    AT_TRY(at_predict(m, &a->fit, a->limit, a->options.progress, &a->predictions, fail));
    const at_predictions *all = &a->predictions;
    a->room = a->limit * all->row[0].rate / all->row[all->own].rate;
    a->best = choose(a);
    say_advice(a);
    say_command(a);
    return AT_OK;
}

at_err at_advice_new(const char *const *paths, uint32_t count, const at_advice_options *options,
                     at_advice *advice, at_fail *fail)
{
    *advice = (at_advice){.options = *options, .path = paths[0]};
    at_err err = advise(paths, count, advice, fail);
    if (err) at_advice_deinit(advice);
    return err;
}
