#include "pace/pace.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "pace/pace_model.h"

static const double SLEEP_SECONDS_MAX = 365.25 * 24 * 3600; /* a heavy tail must not overflow */

typedef struct named_model {
    const char          *name;
    const char          *usage;
    const char          *preset; /* arguments of a model that takes none from the user */
    const at_pace_model *model;
} named_model;

static const named_model models[] = {
    {"none", "none", "1", &at_pace_speed},
    {"niagara", "niagara", "0,0,.4;0,.4,.3;2,.3,.2;5,.3,.1", /* mean 1.00 s, sd 1.55 s */
     &at_pace_mix},
    {"cedar", "cedar", "0,0,.4;.05,.04,.3;.15,.03,.2;.25,.03,.1", /* mean 0.071 s, sd 0.085 s */
     &at_pace_mix},
    {"mix", "mix:MEAN,SD,WEIGHT;..", NULL, &at_pace_mix},
    {"exp", "exp:SHIFT,MEAN", NULL, &at_pace_exp},
    {"pareto", "pareto:MIN,ALPHA", NULL, &at_pace_pareto},
    {"speed", "speed:F1,F2,..", NULL, &at_pace_speed},
    {"disturb", "disturb:P", NULL, &at_pace_disturb},
    {"trace", "trace:FILE", NULL, &at_pace_trace},
    {"burst", "burst:P,LENGTH,FACTOR", NULL, &at_pace_burst},
    {"vary", "vary:SD", NULL, &at_pace_vary},
};

enum { MODELS = sizeof models / sizeof *models };

struct at_pace {
    const named_model *named;
    void              *self; /* created by the model */
    double             scale;
    uint64_t           seed;
    uint32_t           workers;
    at_pace           *next; /* the models after a '+' */
};

const char *at_pace_model_name(size_t index)
{
    return index < MODELS ? models[index].name : NULL;
}

static at_err unknown_model(const char *name, at_fail *fail)
{
    const char *names[MODELS];
    char        shown[81];
    for (size_t i = 0; i < MODELS; i++) names[i] = models[i].name;
    snprintf(shown, sizeof shown, "%s", name);
    at_text_unknown("straggler model", shown, names, MODELS, fail);
    return at_fail_wrap(fail, "--straggler");
}

static at_err find_model(const char *name, const named_model **named, at_fail *fail)
{
    for (size_t i = 0; i < MODELS; i++) {
        if (strcmp(models[i].name, name)) continue;
        *named = &models[i];
        return AT_OK;
    }
    return unknown_model(name, fail);
}

/* Creates the model from the arguments, or from a copy of the preset, which create() may modify. */
static at_err create_model(at_pace *pace, const at_pace_options *options, char *arguments,
                           at_fail *fail)
{
    const named_model *named = pace->named;
    char               preset[128];
    if (named->preset && arguments)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "takes no arguments");
    if (!named->preset && !arguments)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "arguments are missing");
    if (named->preset) {
        assert(strlen(named->preset) < sizeof preset);
        snprintf(preset, sizeof preset, "%s", named->preset);
        arguments = preset;
    }
    return named->model->create(options, arguments, &pace->self, fail);
}

/* Adds the model and its usage to a failure. */
static at_err explain(const named_model *named, const char *text, at_fail *fail)
{
    assert(fail->err);
    if (fail->err == AT_ERR_USAGE && !fail->hint[0])
        snprintf(fail->hint, sizeof fail->hint, "write --straggler '%s'", named->usage);
    return at_fail_wrap(fail, "--straggler %.100s", text);
}

static at_err parse_model(at_pace *pace, const at_pace_options *options, at_fail *fail)
{
    char *name = strdup(options->model);
    if (!name) return at_fail_memory(fail);
    char *arguments = strchr(name, ':');
    if (arguments) *arguments++ = '\0';
    at_err err = find_model(name, &pace->named, fail);
    if (!err && create_model(pace, options, arguments, fail))
        err = explain(pace->named, options->model, fail);
    free(name);
    return err;
}

/* "20%": the factor that makes the model's mean 20 % of a round's mean compute time. */
static at_err scale_to_share(at_pace *pace, const at_pace_options *options, double share,
                             at_fail *fail)
{
    assert(pace->named->model->mean);
    double mean = pace->named->model->mean(pace->self);
    if (!(mean > 0))
        return at_fail_set(fail, AT_ERR_USAGE, "give --straggler-scale as a factor instead",
                           "--straggler-scale %.40s: the mean of %.100s is %s", options->scale,
                           options->model, mean == 0 ? "0" : "not finite");
    if (options->round_ns_mean <= 0)
        return at_fail_set(
            fail, AT_ERR_USAGE, "give --sample-time, or --straggler-scale as a factor",
            "--straggler-scale %.40s: the time of a round is not known in advance", options->scale);
    pace->scale = share * at_seconds(options->round_ns_mean) / mean;
    return AT_OK;
}

static at_err parse_scale(at_pace *pace, const at_pace_options *options, at_fail *fail)
{
    assert(pace->named);
    const char *text = options->scale ? options->scale : "1";
    double      number;
    if (!at_text_real(text, &number) || number < 0)
        return at_fail_set(fail, AT_ERR_USAGE,
                           "give a factor such as 0.05, or a share of the round time such as 20%",
                           "--straggler-scale: '%.40s' is not a number >= 0", text);
    pace->scale = number;
    if (!strchr(text, '%') || !pace->named->model->sleep) return AT_OK;
    return scale_to_share(pace, options, number, fail);
}

static at_err new_model(const at_pace_options *options, at_pace **pace, at_fail *fail)
{
    at_pace *p = calloc(1, sizeof *p);
    if (!p) return at_fail_memory(fail);
    p->seed = options->seed;
    p->workers = options->workers;
    at_err err = parse_model(p, options, fail);
    if (!err) err = parse_scale(p, options, fail);
    if (err)
        at_pace_free(p);
    else
        *pace = p;
    return err;
}

/* Where the next model begins: after a '+' that is followed by a model name, so that file names and
 * exponents may contain a '+'. NULL: there is none. */
static char *next_model(char *text)
{
    while ((text = strchr(text, '+'))) {
        size_t length = strcspn(++text, ":+");
        for (size_t i = 0; i < MODELS; i++)
            if (strlen(models[i].name) == length && strncmp(models[i].name, text, length) == 0)
                return text;
    }
    return NULL;
}

static at_err new_models(at_pace_options *options, char *text, at_pace **pace, at_fail *fail)
{
    for (char *next; text; text = next) {
        next = next_model(text);
        if (next) next[-1] = '\0';
        options->model = text;
        AT_TRY(new_model(options, pace, fail));
        /* Draws of several models are independent; the first model draws as it would alone. */
        const at_pace_model *model = (*pace)->named->model;
        if (model->sleep || model->draws_factor) options->seed = at_rng_mix(options->seed + 1);
        pace = &(*pace)->next;
    }
    return AT_OK;
}

at_err at_pace_new(const at_pace_options *options, at_pace **pace, at_fail *fail)
{
    assert(options->model);
    assert(options->workers >= 1);
    at_fail ignored = {0};
    if (!fail) fail = &ignored;
    *pace = NULL;
    char *text = strdup(options->model);
    if (!text) return at_fail_memory(fail);
    at_pace_options part = *options;
    at_err          err = new_models(&part, text, pace, fail);
    if (err) {
        at_pace_free(*pace);
        *pace = NULL;
    }
    free(text);
    return err;
}

at_err at_pace_replay(const at_pace_rounds *rounds, at_pace **pace, at_fail *fail)
{
    static const named_model replay = {"replay", "", NULL, &at_pace_trace};
    assert(rounds->workers >= 1 && rounds->rounds >= 1);
    at_pace *p = calloc(1, sizeof *p);
    if (p) *p = (at_pace){.named = &replay, .scale = 1, .workers = rounds->workers};
    if (p) p->self = at_pace_trace_new(rounds);
    if (!p || !p->self) {
        at_pace_free(p);
        return at_fail_memory_for(fail, "to replay %u rounds", rounds->rounds);
    }
    *pace = p;
    return AT_OK;
}

void at_pace_free(at_pace *pace)
{
    if (!pace) return;
    at_pace_free(pace->next);
    free(pace->self);
    free(pace);
}

/* The sleep of one model of the sum. */
static at_ns sleep_of(const at_pace *pace, uint32_t worker, uint64_t round)
{
    if (!pace->named->model->sleep) return 0;
    at_pace_draw draw = {.seed = pace->seed, .worker = worker, .round = round};
    double       seconds = pace->named->model->sleep(pace->self, &draw);
    assert(seconds >= 0);
    if (pace->scale == 0) return 0; /* also when the draw is infinite */
    return (at_ns)llround(fmin(seconds * pace->scale, SLEEP_SECONDS_MAX) * 1e9);
}

at_ns at_pace_sleep(const at_pace *pace, uint32_t worker, uint64_t round)
{
    assert(worker >= 1 && worker <= pace->workers);
    const at_ns most = AT_SEC(SLEEP_SECONDS_MAX);
    at_ns       sum = 0;
    for (; pace && sum < most; pace = pace->next) sum += sleep_of(pace, worker, round);
    return sum < most ? sum : most;
}

double at_pace_factor(const at_pace *pace, uint32_t worker, uint64_t round)
{
    assert(worker >= 1 && worker <= pace->workers);
    double product = 1;
    for (; pace; pace = pace->next) {
        at_pace_draw draw = {.seed = pace->seed, .worker = worker, .round = round};
        if (pace->named->model->factor) product *= pace->named->model->factor(pace->self, &draw);
    }
    return product;
}

at_ns at_comm_delay(double sigma, uint64_t seed, uint32_t node, uint64_t message)
{
    assert(sigma >= 0);
    if (sigma == 0) return 0;
    at_rng rng = at_rng_stream(seed, node, AT_RNG_PURPOSE_NETWORK, message);
    return AT_SEC(fabs(at_rng_normal(&rng)) * sigma);
}
