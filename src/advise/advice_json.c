/* The advice as JSON. */
#include <assert.h>
#include <math.h>

#include "advise/advice.h"
#include "report/summary/json_value.h"

static json_t *strategy_json(const at_advice *a, const at_prediction *p)
{
    json_t *row = json_pack("{s:s, s:{s:o, s:o, s:o}, s:o, s:o}", "strategy", p->strategy, "gain",
                            "mean", at_json_number(p->gain), "low", at_json_number(p->low), "high",
                            at_json_number(p->high), "step_seconds", at_json_number(p->step_s),
                            "samples_per_second", at_json_number(p->rate));
    json_object_set_new(row, "fitted_gain", at_json_number(p->fitted_gain));
    json_object_set_new(row, "mean_batch", at_json_number(p->batch));
    json_object_set_new(row, "useful_fraction", at_json_number(p->useful));
    json_object_set_new(row, "staleness", at_json_number(p->staleness));
    json_object_set_new(row, "settings", at_json_text(p->settings));
    if (a->options.cost > 0)
        json_object_set_new(row, "cost_per_million_samples", at_json_number(at_advice_cost(a, p)));
    return row;
}

static json_t *slow_json(const at_advice *a, const at_slow_worker *slow)
{
    const at_step_log *log = &a->measured.log;
    json_t            *row = json_object();
    bool               to_end = slow->end == log->steps;
    assert(slow->begin < log->steps);
    json_object_set_new(row, "worker", at_json_text(log->names[slow->worker]));
    json_object_set_new(row, "since", at_json_number(log->key[slow->begin]));
    json_object_set_new(row, "until",
                        to_end ? json_null() : at_json_number(log->key[slow->end - 1]));
    json_object_set_new(row, "since_row", at_json_count(slow->begin + 1));
    json_object_set_new(row, "factor", at_json_number(slow->factor));
    json_object_set_new(row, "gain_if_replaced", at_json_number(slow->gain));
    return row;
}

static json_t *log_json(const at_advice *a)
{
    const at_measured *m = &a->measured;
    return json_pack("{s:o, s:i, s:i, s:s, s:i, s:o, s:o, s:b}", "path", at_json_text(a->path),
                     "workers", (int)m->log.workers, "steps", (int)m->log.steps, "strategy",
                     m->strategy, "batch", (int)m->batch, "step_seconds", at_json_number(m->step_s),
                     "samples_per_second", at_json_number(m->rate), "normalised",
                     (int)m->log.normalised);
}

static json_t *pace_json(const at_advice *a)
{
    const at_fit *fit = &a->fit;
    json_t       *speeds = json_array();
    for (uint32_t i = 0; i < a->measured.log.workers; i++)
        json_array_append_new(speeds, at_json_number(fit->speed[i]));
    json_t *pace = json_pack(
        "{s:o, s:o, s:s, s:o}", "sample_seconds", at_json_number(fit->sample_s), "speed", speeds,
        "delays", fit->pauses ? "pause" : "slow", "persistence", at_json_number(fit->persistence));
    json_object_set_new(pace, "latency_seconds", at_json_number(a->measured.latency_s));
    json_object_set_new(pace, "transfer_seconds", at_json_number(a->measured.transfer_s));
    return pace;
}

json_t *at_advice_json(const at_advice *a)
{
    char        buffer[AT_STEP_LOG_NOTES_SIZE + 100];
    const char *note;
    json_t     *root = json_object(), *strategies = json_array(), *slow = json_array(),
           *notes = json_array();
    for (uint32_t i = 0; i < a->predictions.count; i++)
        json_array_append_new(strategies, strategy_json(a, &a->predictions.row[i]));
    for (uint32_t i = 0; i < a->slow.count; i++)
        json_array_append_new(slow, slow_json(a, &a->slow.worker[i]));
    for (uint32_t i = 0; (note = at_advice_note(a, i, buffer, sizeof buffer)); i++)
        json_array_append_new(notes, at_json_text(note));
    json_object_set_new(root, "ceiling", at_json_number(a->ceiling));
    json_object_set_new(root, "strategies", strategies);
    json_object_set_new(root, "advice", at_json_text(a->sentence));
    json_object_set_new(root, "command", at_json_text(a->command));
    json_object_set_new(root, "log", log_json(a));
    json_object_set_new(root, "pace", pace_json(a));
    json_object_set_new(root, "resampled", json_integer(a->predictions.resampled));
    json_object_set_new(root, "slow_workers", slow);
    if (json_object_set_new(root, "notes", notes)) return json_decref(root), NULL;
    return root;
}
