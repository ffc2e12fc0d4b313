/* `anytime calibrate`: a config file that simulates a measured job. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "advise/fit.h"
#include "advise/measured.h"
#include "advise/predict.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/verbs/measured_options.h"
#include "cli/verbs/verbs.h"
#include "report/summary/json_value.h"

enum { STRAGGLER_SIZE = 1 << 20 };

/* Everything that is printed. */
typedef struct calibration {
    at_measured   measured;
    at_fit        fit;
    at_prediction replayed, fitted;
    char         *straggler;
    double        parameters, bandwidth;
} calibration;

static void close_calibration(calibration *c)
{
    at_measured_deinit(&c->measured);
    at_fit_deinit(&c->fit);
    free(c->straggler);
}

static at_err open_calibration(calibration *c, const at_parsed *parsed, at_fail *fail)
{
    at_step_log_options log;
    at_delays           delays;
    at_measured        *m = &c->measured;
    AT_TRY(at_measured_options(&parsed->settings, &log, &delays, fail));
    AT_TRY(at_measured_read(parsed->word, parsed->words, &log, m, fail));
    AT_TRY(at_fit_new(m, delays, &c->fit, fail));
    AT_TRY(at_predict_one(m, &c->fit, m->strategy, true, &c->replayed, fail));
    AT_TRY(at_predict_one(m, &c->fit, m->strategy, false, &c->fitted, fail));
    c->straggler = malloc(STRAGGLER_SIZE);
    if (!c->straggler) return at_fail_memory(fail);
    at_text text = at_text_in(c->straggler, STRAGGLER_SIZE);
    at_fit_straggler(&c->fit, m->log.workers, &text);
    if (text.full) return at_fail_set(fail, AT_ERR_FAILED, NULL, "too many workers to fit");
    c->parameters = m->parameters >= 1 ? m->parameters : 1e6;
    if (m->transfer_s > 0) c->bandwidth = c->parameters * sizeof(float) / m->transfer_s;
    return AT_OK;
}

static double percent(double value, double of)
{
    return 100 * (value / of - 1);
}

static void print_comments(const calibration *c)
{
    const at_measured *m = &c->measured;
    char               rate[40];
    if (*m->log.notes) at_print("# %s\n", m->log.notes);
    printf("# measured: %s, %u steps, %.4g s per step, slowest worker %.4g s, %s samples/s\n",
           m->strategy, m->log.steps, m->step_s, at_measured_slowest(m),
           at_text_show_number(rate, sizeof rate, m->rate));
    printf("# simulated with these settings: %.4g s per step (%+.1f %%), %s samples/s "
           "(%+.1f %%)\n",
           c->fitted.step_s, percent(c->fitted.step_s, m->step_s),
           at_text_show_number(rate, sizeof rate, c->fitted.rate),
           percent(c->fitted.rate, m->rate));
    printf("# simulated by repeating the log: %.4g s per step (%+.1f %%)\n", c->replayed.step_s,
           percent(c->replayed.step_s, m->step_s));
    printf("# long rounds are %s; correlation from round to round %.2f\n",
           c->fit.pauses ? "pauses" : "slow computing", c->fit.persistence);
    if (m->transfers > 0)
        printf("# one transfer: %.4g ms, the median of %llu waits\n", 1e3 * m->transfer_s,
               (unsigned long long)m->transfers);
    if (m->log.normalised) printf("# the log has no absolute scale: a mean round is 1 s\n");
}

static void print_config(const calibration *c)
{
    const at_measured *m = &c->measured;
    print_comments(c);
    printf("model = none:%.0f\n", c->parameters);
    printf("workers = %u\n", m->log.workers);
    printf("strategy = %s\n", m->strategy);
    printf("batch = %u\nmicro-batch = %u\n", m->batch, m->micro_batch);
    printf("sample-time = %.6gms\n", 1e3 * c->fit.sample_fitted_s);
    printf("straggler = %s\n", c->straggler);
    if (m->latency_s > 0) printf("latency = %.6gs\n", m->latency_s);
    if (c->bandwidth > 0) printf("bandwidth = %.4g\n", c->bandwidth);
    printf("steps = %u\n", m->log.steps);
}

static json_t *options_json(const calibration *c)
{
    const at_measured *m = &c->measured;
    json_t            *options = json_object();
    json_object_set_new(options, "model", json_sprintf("none:%.0f", c->parameters));
    json_object_set_new(options, "workers", json_integer(m->log.workers));
    json_object_set_new(options, "strategy", json_string(m->strategy));
    json_object_set_new(options, "batch", json_integer(m->batch));
    json_object_set_new(options, "micro-batch", json_integer(m->micro_batch));
    json_object_set_new(options, "sample-time",
                        json_sprintf("%.6gms", 1e3 * c->fit.sample_fitted_s));
    json_object_set_new(options, "straggler", json_string(c->straggler));
    json_object_set_new(options, "steps", json_integer(m->log.steps));
    if (m->latency_s > 0)
        json_object_set_new(options, "latency", json_sprintf("%.6gs", m->latency_s));
    if (c->bandwidth > 0) json_object_set_new(options, "bandwidth", at_json_number(c->bandwidth));
    return options;
}

static json_t *calibration_json(const calibration *c)
{
    const at_measured *m = &c->measured;
    return json_pack(
        "{s:o, s:{s:o, s:o, s:o}, s:{s:o, s:o}, s:{s:o, s:o}}", "options", options_json(c),
        "measured", "step_seconds", at_json_number(m->step_s), "slowest_seconds",
        at_json_number(at_measured_slowest(m)), "samples_per_second", at_json_number(m->rate),
        "simulated", "step_seconds", at_json_number(c->fitted.step_s), "samples_per_second",
        at_json_number(c->fitted.rate), "replayed", "step_seconds",
        at_json_number(c->replayed.step_s), "samples_per_second", at_json_number(c->replayed.rate));
}

at_err at_verb_calibrate(at_parsed *parsed, const char *command, at_fail *fail)
{
    calibration c = {0};
    (void)command;
    if (parsed->words == 0)
        return at_fail_set(fail, AT_ERR_USAGE, "for example: anytime calibrate runs/my-run",
                           "calibrate needs a run folder or a CSV file");
    at_err err = open_calibration(&c, parsed, fail);
    if (!err && parsed->settings.json)
        err = at_print_json_take(calibration_json(&c), fail);
    else if (!err)
        print_config(&c);
    close_calibration(&c);
    return err;
}
