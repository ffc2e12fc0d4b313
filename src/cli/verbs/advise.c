/* `anytime advise`: which strategy would help a measured job, and by how much. */
#include "advise/advice.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/loading_progress.h"
#include "cli/output.h"
#include "cli/verbs/measured_options.h"
#include "cli/verbs/verbs.h"

static void add_row(at_table *table, const at_advice *a, const at_prediction *p)
{
    char rate[40];
    at_table_add(table, "%s", p->strategy);
    at_table_add(table, "%.4g", p->step_s);
    at_table_add(table, "%s", at_text_show_number(rate, sizeof rate, p->rate));
    at_table_add(table, "%.0f %%", 100 * p->useful);
    at_table_add(table, "%.2g", p->staleness);
    at_table_add(table, "%.2f [%.2f, %.2f]", p->gain, p->low, p->high);
    at_table_add(table, "%.2f", p->fitted_gain);
    if (a->options.cost > 0) at_table_add(table, "%.4g", at_advice_cost(a, p));
    at_table_add(table, "%s", p->settings);
}

static at_table *make_table(const at_advice *a)
{
    at_column columns[9] = {{"strategy", AT_ALIGN_LEFT}};
    size_t    count = 1;
    columns[count++] = (at_column){"step, s", AT_ALIGN_RIGHT};
    columns[count++] = (at_column){"samples/s", AT_ALIGN_RIGHT};
    columns[count++] = (at_column){"useful", AT_ALIGN_RIGHT};
    columns[count++] = (at_column){"staleness", AT_ALIGN_RIGHT};
    columns[count++] = (at_column){"gain", AT_ALIGN_RIGHT};
    columns[count++] = (at_column){"fitted", AT_ALIGN_RIGHT};
    if (a->options.cost > 0) columns[count++] = (at_column){"cost/million", AT_ALIGN_RIGHT};
    columns[count++] = (at_column){"set", AT_ALIGN_LEFT};
    at_table *table = at_table_new(columns, count);
    for (uint32_t i = 0; table && i < a->predictions.count; i++)
        add_row(table, a, &a->predictions.row[i]);
    return table;
}

static void print_measured(const at_advice *a)
{
    const at_measured *m = &a->measured;
    char               rate[40];
    printf("%u workers, %u steps, %u samples per round; %s: %.4g s per step, %s samples/s\n",
           m->log.workers, m->log.steps, m->batch, m->strategy, m->step_s,
           at_text_show_number(rate, sizeof rate, m->rate));
    printf(
        "ceiling: no strategy can give more than %.3fx the samples/s of fmb (mean of the slowest "
        "x mean of 1/time)",
        a->ceiling);
    if (a->limit > 1.005 * a->ceiling) printf(", or %.3fx without waiting for messages", a->limit);
    printf("\n\n");
}

static void print_slow(const at_advice *a)
{
    char period[120];
    for (uint32_t i = 0; i < a->slow.count; i++) {
        const at_slow_worker *slow = &a->slow.worker[i];
        at_advice_period(a, slow, period, sizeof period);
        at_print("%sworker %s: %s; replacing it gives %.2fx\n", i ? "" : "\n",
                 a->measured.log.names[slow->worker], period, slow->gain);
    }
}

static void print_notes(const at_advice *a)
{
    char        buffer[AT_STEP_LOG_NOTES_SIZE + 100];
    const char *note;
    for (uint32_t i = 0; (note = at_advice_note(a, i, buffer, sizeof buffer)); i++)
        at_print("%s%s\n", i ? "  " : "\nnotes:\n  ", note);
}

static at_err print_advice(const at_advice *a, at_fail *fail)
{
    print_measured(a);
    AT_TRY(at_print_table_take(make_table(a), fail));
    printf("[ ]: 95 %% intervals from %u resampled logs; fitted: the gain with speeds drawn from a "
           "model of the log\n",
           a->predictions.resampled);
    print_slow(a);
    print_notes(a);
    at_print("\nadvice: %s\n", a->sentence);
    if (*a->command) at_print("  %s\n", a->command);
    return AT_OK;
}

/* Predictions take longer than reading a log. */
static void advance(void *self, uint64_t done, uint64_t total)
{
    at_loading_line *line = self;
    line->doing = "simulating strategies for";
    at_load_progress_report(&line->loading, done, total);
}

at_err at_verb_advise(at_parsed *parsed, const char *command, at_fail *fail)
{
    const at_settings *s = &parsed->settings;
    at_advice_options  options = {.cost = s->cost > 0 ? s->cost : 0};
    at_advice          advice;
    (void)command;
    if (parsed->words == 0)
        return at_fail_set(fail, AT_ERR_USAGE, "for example: anytime advise runs/my-run",
                           "advise needs a run folder or a CSV file");
    AT_TRY(at_measured_options(s, &options.log, &options.delays, fail));
    at_loading_line line;
    at_loading_line_init(&line, parsed->word[0], s->quiet);
    at_loading_line_follow_logs(&line, 0, 1);
    options.progress = (at_predict_progress){.report = advance, .self = &line};
    at_err err = at_advice_new(parsed->word, parsed->words, &options, &advice, fail);
    at_loading_line_end(&line);
    if (err) return err;
    err = s->json ? at_print_json_take(at_advice_json(&advice), fail) : print_advice(&advice, fail);
    if (!err && s->html) err = at_advice_page(&advice, s->html, fail);
    if (!err && s->html && !s->json) at_print("page: %s\n", s->html);
    at_advice_deinit(&advice);
    return err;
}
