/* The table of laws, and what is common to all of them: finding the law, scaling, bounds. */
#include "pace/pace.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "pace/pace_kind.h"

static const double SLEEP_SECONDS_MAX = 365.25 * 24 * 3600; /* a heavy tail must not overflow */

const at_pace_law at_pace_laws[] = {
    {"none", "none", "no induced slowness", "1", &at_pace_speed},
    {"niagara", "niagara", "the published table: mean 1.00 s, sd 1.55 s",
     "0,0,.4;0,.4,.3;2,.3,.2;5,.3,.1", &at_pace_mix},
    {"cedar", "cedar", "the later, milder table: mean 0.071 s, sd 0.085 s",
     "0,0,.4;.05,.04,.3;.15,.03,.2;.25,.03,.1", &at_pace_mix},
    {"mix", "mix:MEAN,SD,WEIGHT;..", "a mixture of folded normals", NULL, &at_pace_mix},
    {"exp", "exp:SHIFT,MEAN", "shifted exponential", NULL, &at_pace_exp},
    {"pareto", "pareto:MIN,ALPHA", "a heavy tail", NULL, &at_pace_pareto},
    {"speed", "speed:F1,F2,..", "machines that compute F times as slowly, for good", NULL,
     &at_pace_speed},
    {"disturb", "disturb:P", "DBS: tasks that hit a worker and stay for some epochs", NULL,
     &at_pace_disturb},
    {"trace", "trace:FILE", "sleeps from a file: a line a round, a column a worker", NULL,
     &at_pace_trace},
};
const size_t at_pace_laws_count = sizeof at_pace_laws / sizeof *at_pace_laws;

struct at_pace {
    const at_pace_law *law;
    void              *self; /* what the law's kind made */
    double             scale;
    uint64_t           seed;
    uint32_t           workers;
    at_pace           *more; /* the laws behind a '+' */
};

static at_err refuse_name(const char *name, at_fail *fail)
{
    const char *names[sizeof at_pace_laws / sizeof *at_pace_laws];
    char        hint[sizeof fail->hint];
    at_text     text = at_text_in(hint, sizeof hint);
    for (size_t i = 0; i < at_pace_laws_count; i++) names[i] = at_pace_laws[i].name;
    const char *nearest = at_text_nearest(name, names, at_pace_laws_count);
    if (nearest) at_text_add(&text, "did you mean '%s'? ", nearest);
    at_text_add(&text, "known are");
    for (size_t i = 0; i < at_pace_laws_count; i++)
        at_text_add(&text, "%s %s", i ? "," : "", names[i]);
    return at_fail_set(fail, AT_ERR_USAGE, hint, "--straggler: there is no law '%.80s'", name);
}

static at_err find_law(const char *name, const at_pace_law **law, at_fail *fail)
{
    for (size_t i = 0; i < at_pace_laws_count; i++) {
        if (strcmp(at_pace_laws[i].name, name)) continue;
        *law = &at_pace_laws[i];
        return AT_OK;
    }
    return refuse_name(name, fail);
}

/* Has the law's kind parse the arguments, or the preset (a copy: it may be cut up). */
static at_err make_law(at_pace *pace, const at_pace_options *options, char *arguments,
                       at_fail *fail)
{
    const at_pace_law *law = pace->law;
    char               preset[128];
    if (law->preset && arguments)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "it takes no numbers");
    if (!law->preset && !arguments)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "what belongs behind the name is missing");
    if (law->preset) {
        assert(strlen(law->preset) < sizeof preset);
        snprintf(preset, sizeof preset, "%s", law->preset);
        arguments = preset;
    }
    return law->kind->create(options, arguments, &pace->self, fail);
}

/* Tells which law it was about, and how that is written. */
static at_err explain(const at_pace_law *law, const char *spelling, at_fail *fail)
{
    assert(fail->err);
    if (fail->err == AT_ERR_USAGE && !fail->hint[0])
        snprintf(fail->hint, sizeof fail->hint, "write --straggler '%s'", law->usage);
    return at_fail_wrap(fail, "--straggler %.100s", spelling);
}

static at_err parse_law(at_pace *pace, const at_pace_options *options, at_fail *fail)
{
    char *name = strdup(options->law);
    if (!name) return at_fail_memory(fail);
    char *arguments = strchr(name, ':');
    if (arguments) *arguments++ = '\0';
    at_err err = find_law(name, &pace->law, fail);
    if (!err && make_law(pace, options, arguments, fail))
        err = explain(pace->law, options->law, fail);
    free(name);
    return err;
}

/* "20%": the factor that makes the law's mean 20 % of a round's mean compute time. */
static at_err scale_to_share(at_pace *pace, const at_pace_options *options, double share,
                             at_fail *fail)
{
    assert(pace->law->kind->mean);
    double mean = pace->law->kind->mean(pace->self);
    if (!(mean > 0))
        return at_fail_set(fail, AT_ERR_USAGE, "give --straggler-scale as a factor instead",
                           "--straggler-scale %.40s: the mean of %.100s is %s", options->scale,
                           options->law, mean == 0 ? "0" : "not finite");
    if (options->round_ns_mean <= 0)
        return at_fail_set(
            fail, AT_ERR_USAGE, "give --sample-time, or --straggler-scale as a factor",
            "--straggler-scale %.40s: the time of a round is not known beforehand", options->scale);
    pace->scale = share * at_seconds(options->round_ns_mean) / mean;
    return AT_OK;
}

static at_err parse_scale(at_pace *pace, const at_pace_options *options, at_fail *fail)
{
    assert(pace->law);
    const char *text = options->scale ? options->scale : "1";
    double      number;
    if (!at_text_real(text, &number) || number < 0)
        return at_fail_set(fail, AT_ERR_USAGE,
                           "give a factor such as 0.05, or a share of a round's time such as 20%",
                           "--straggler-scale: '%.40s' is not a number >= 0", text);
    pace->scale = number;
    if (!strchr(text, '%') || !pace->law->kind->sleep) return AT_OK;
    return scale_to_share(pace, options, number, fail);
}

static at_err new_law(const at_pace_options *options, at_pace **pace, at_fail *fail)
{
    at_pace *p = calloc(1, sizeof *p);
    if (!p) return at_fail_memory(fail);
    p->seed = options->seed;
    p->workers = options->workers;
    at_err err = parse_law(p, options, fail);
    if (!err) err = parse_scale(p, options, fail);
    if (err)
        at_pace_free(p);
    else
        *pace = p;
    return err;
}

/* Where another law begins: a '+' with the name of one behind it, so that a file may have a '+' in
 * its name and a number one in its exponent. NULL: nowhere. */
static char *next_law(char *text)
{
    while ((text = strchr(text, '+'))) {
        size_t length = strcspn(++text, ":+");
        for (size_t i = 0; i < at_pace_laws_count; i++)
            if (strlen(at_pace_laws[i].name) == length &&
                strncmp(at_pace_laws[i].name, text, length) == 0)
                return text;
    }
    return NULL;
}

static at_err new_laws(at_pace_options *options, char *text, at_pace **pace, at_fail *fail)
{
    for (char *next; text; text = next) {
        next = next_law(text);
        if (next) next[-1] = '\0';
        options->law = text;
        AT_TRY(new_law(options, pace, fail));
        /* Sleeps that are added up are independent; the first one is what it would be alone. */
        if ((*pace)->law->kind->sleep) options->seed = at_rng_mix(options->seed + 1);
        pace = &(*pace)->more;
    }
    return AT_OK;
}

at_err at_pace_new(const at_pace_options *options, at_pace **pace, at_fail *fail)
{
    assert(options->law);
    assert(options->workers >= 1);
    at_fail unheard = {0};
    if (!fail) fail = &unheard;
    *pace = NULL;
    char *text = strdup(options->law);
    if (!text) return at_fail_memory(fail);
    at_pace_options part = *options;
    at_err          err = new_laws(&part, text, pace, fail);
    if (err) {
        at_pace_free(*pace);
        *pace = NULL;
    }
    free(text);
    return err;
}

void at_pace_free(at_pace *pace)
{
    if (!pace) return;
    at_pace_free(pace->more);
    free(pace->self);
    free(pace);
}

/* The sleep of one law of the sum. */
static at_ns sleep_of(const at_pace *pace, uint32_t worker, uint64_t round)
{
    if (!pace->law->kind->sleep) return 0;
    at_pace_moment moment = {.seed = pace->seed, .worker = worker, .round = round};
    double         seconds = pace->law->kind->sleep(pace->self, &moment);
    assert(seconds >= 0);
    if (pace->scale == 0) return 0; /* also when the draw is infinite */
    return (at_ns)llround(fmin(seconds * pace->scale, SLEEP_SECONDS_MAX) * 1e9);
}

at_ns at_pace_sleep(const at_pace *pace, uint32_t worker, uint64_t round)
{
    assert(worker >= 1 && worker <= pace->workers);
    at_ns sum = 0;
    for (; pace; pace = pace->more) sum += sleep_of(pace, worker, round);
    return sum;
}

double at_pace_factor(const at_pace *pace, uint32_t worker)
{
    assert(worker >= 1 && worker <= pace->workers);
    double product = 1;
    for (; pace; pace = pace->more)
        if (pace->law->kind->factor) product *= pace->law->kind->factor(pace->self, worker);
    return product;
}

double at_pace_mean_seconds(const at_pace *pace)
{
    assert(pace);
    double sum = 0;
    for (; pace; pace = pace->more)
        if (pace->law->kind->mean) sum += pace->law->kind->mean(pace->self) * pace->scale;
    return sum;
}
