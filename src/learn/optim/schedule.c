#include "learn/optim/schedule.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* `parse` fills number[] from the text after the colon ("" without one); `rate` is the learning
 * rate after `used` samples. */
struct at_schedule_kind {
    const char *name;
    const char *usage;
    bool        needs_end; /* samples_end must be known */
    bool (*parse)(at_schedule *s, const char *args);
    double (*rate)(const at_schedule *s, double used);
};

enum { ARGS_MAX = 512, STAIRS_MAX = 1000 };

static const double PI = 3.14159265358979323846;

/* Where a warm-up begins, as a part of where it ends: a first step at rate 0 would be lost. */
static const double WARMUP_START = 0.01;

/* Copies text up to `end` into word; false when it does not fit. */
static bool copy_word(char *word, size_t size, const char *text, const char *end)
{
    size_t length = (size_t)(end - text);
    if (length >= size) return false;
    memcpy(word, text, length);
    word[length] = '\0';
    return true;
}

/* Numbers separated by commas, appended to s->number. */
static bool parse_numbers(at_schedule *s, const char *text, uint32_t count_max)
{
    assert(count_max <= sizeof s->number / sizeof *s->number);
    for (;;) {
        char        word[32];
        const char *end = text + strcspn(text, ",");
        if (s->number_count == count_max) return false;
        if (!copy_word(word, sizeof word, text, end)) return false;
        if (!at_text_real(word, &s->number[s->number_count++])) return false;
        if (!*end) return true;
        text = end + 1;
    }
}

/* 0 at the start or the end of the warm-up, 1 at samples_end and after it. */
static double progress(const at_schedule *s, double used)
{
    assert(s->samples_end > s->warmup);
    assert(used >= s->warmup);
    return used < s->samples_end ? (used - s->warmup) / (s->samples_end - s->warmup) : 1.0;
}

static bool parse_nothing(at_schedule *s, const char *args)
{
    assert(s->number_count == 0);
    return !*args;
}

static double rate_const(const at_schedule *s, double used)
{
    assert(used >= 0);
    return s->lr;
}

/* linear:END or linear:END,steps */
static bool parse_linear(at_schedule *s, const char *args)
{
    char        number[32];
    const char *end = args + strcspn(args, ",");
    s->by_steps = strcmp(end, ",steps") == 0;
    if (*end && !s->by_steps) return false;
    return copy_word(number, sizeof number, args, end) && parse_numbers(s, number, 1) &&
           s->number[0] >= 0;
}

static double rate_linear(const at_schedule *s, double used)
{
    assert(s->number_count == 1);
    double part = progress(s, used);
    return s->lr * (1.0 - part) + s->number[0] * part;
}

/* A number of samples, or of epochs with the suffix e, from text up to `end`; becomes number[0], in
 * samples. */
static bool parse_length(at_schedule *s, const char *text, const char *end)
{
    char   word[32];
    double unit = 1;
    assert(s->number_count == 0);
    if (!copy_word(word, sizeof word, text, end)) return false;
    size_t length = strlen(word);
    if (length && word[length - 1] == 'e') {
        word[length - 1] = '\0';
        unit = s->samples_epoch;
    }
    if (!parse_numbers(s, word, 1)) return false;
    s->number[0] *= unit;
    return s->number[0] > 0;
}

/* exp:EVERY,RATE */
static bool parse_exp(at_schedule *s, const char *args)
{
    const char *comma = strchr(args, ',');
    return comma && parse_length(s, args, comma) && parse_numbers(s, comma + 1, 2) &&
           s->number[1] > 0;
}

static double rate_exp(const at_schedule *s, double used)
{
    assert(s->number_count == 2);
    return s->lr * pow(s->number[1], floor(used / s->number[0]));
}

/* epochs:A:FACTOR or epochs:A,B,..:FACTOR; FACTOR is the last of number[]. */
static bool parse_epochs(at_schedule *s, const char *args)
{
    char        list[ARGS_MAX];
    const char *colon = strchr(args, ':');
    if (!colon || !copy_word(list, sizeof list, args, colon)) return false;
    if (!parse_numbers(s, list, AT_SCHEDULE_EPOCHS_MAX)) return false;
    for (uint32_t i = 0; i < s->number_count; i++)
        if (s->number[i] <= (i ? s->number[i - 1] : 0.0)) return false; /* must increase */
    return parse_numbers(s, colon + 1, s->number_count + 1) && s->number[s->number_count - 1] > 0;
}

static double rate_epochs(const at_schedule *s, double used)
{
    assert(s->number_count > 1);
    uint32_t count = s->number_count - 1;
    double   epoch = used / s->samples_epoch, factor = s->number[count], passed = 0;
    if (count == 1)
        passed = floor(epoch / s->number[0]);
    else
        while (passed < count && epoch >= s->number[(size_t)passed]) passed++;
    return s->lr * pow(factor, passed);
}

static double rate_cosine(const at_schedule *s, double used)
{
    return s->lr * 0.5 * (1.0 + cos(PI * progress(s, used)));
}

/* one-cycle or one-cycle:PEAK,START,END, as PyTorch's OneCycleLR */
static bool parse_one_cycle(at_schedule *s, const char *args)
{
    static const double defaults[] = {0.3, 25, 1e4};
    if (*args && !parse_numbers(s, args, 3)) return false;
    while (s->number_count < 3) {
        s->number[s->number_count] = defaults[s->number_count];
        s->number_count++;
    }
    return s->number[0] > 0 && s->number[0] < 1 && s->number[1] >= 1 && s->number[2] >= 1;
}

/* From one rate to another along half a cosine. */
static double ease(double from, double to, double part)
{
    assert(part >= 0 && part <= 1);
    return to + (from - to) * 0.5 * (1.0 + cos(PI * part));
}

static double rate_one_cycle(const at_schedule *s, double used)
{
    assert(s->number_count == 3);
    double part = progress(s, used), peak = s->number[0];
    double start = s->lr / s->number[1], end = start / s->number[2];
    return part < peak ? ease(start, s->lr, part / peak)
                       : ease(s->lr, end, (part - peak) / (1 - peak));
}

/* stairs:COUNT,FACTOR */
static bool parse_stairs(at_schedule *s, const char *args)
{
    return parse_numbers(s, args, 2) && s->number_count == 2 && s->number[0] >= 2 &&
           s->number[0] <= STAIRS_MAX && floor(s->number[0]) == s->number[0] && s->number[1] > 0;
}

static double rate_stairs(const at_schedule *s, double used)
{
    double count = s->number[0], passed = floor(progress(s, used) * count);
    assert(count >= 2);
    if (passed > count - 1) passed = count - 1;
    return s->lr * pow(s->number[1], -passed / (count - 1));
}

static const at_schedule_kind kinds[] = {
    {"const", "const", false, parse_nothing, rate_const},
    {"linear", "linear:END[,steps]", true, parse_linear, rate_linear},
    {"exp", "exp:EVERY,RATE", false, parse_exp, rate_exp},
    {"epochs", "epochs:A,B,..:FACTOR", false, parse_epochs, rate_epochs},
    {"cosine", "cosine", true, parse_nothing, rate_cosine},
    {"stairs", "stairs:COUNT,FACTOR", true, parse_stairs, rate_stairs},
    {"one-cycle", "one-cycle[:PEAK,START,END]", true, parse_one_cycle, rate_one_cycle},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* A prefix of any of them. */
static const char WARMUP[] = "warmup", WARMUP_USAGE[] = "warmup:LENGTH[+SCHEDULE]";

const char *at_schedule_name(size_t index)
{
    if (index == KINDS) return WARMUP;
    return index < KINDS ? kinds[index].name : NULL;
}

static at_err unknown_kind(const char *name, at_fail *fail)
{
    const char *names[KINDS + 1] = {WARMUP};
    char        known[250];
    at_text     list = at_text_in(known, sizeof known);
    at_text_add(&list, "schedules are %s", WARMUP_USAGE);
    for (size_t i = 0; i < KINDS; i++) {
        names[i + 1] = kinds[i].name;
        at_text_add(&list, ", %s", kinds[i].usage);
    }
    const char *nearest = at_text_nearest(name, names, KINDS + 1);
    if (!nearest)
        return at_fail_set(fail, AT_ERR_USAGE, known, "unknown learning-rate schedule \"%s\"",
                           name);
    return at_fail_set(fail, AT_ERR_USAGE, known,
                       "unknown learning-rate schedule \"%s\"; did you mean %s?", name, nearest);
}

static const at_schedule_kind *find(const char *name)
{
    for (size_t i = 0; i < KINDS; i++)
        if (!strcmp(kinds[i].name, name)) return &kinds[i];
    return NULL;
}

/* One of the kinds, without a warm-up. */
static at_err parse_kind(const char *text, at_schedule *s, at_fail *fail)
{
    char        name[32], usage[64];
    const char *colon = strchr(text, ':');
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, ":"), text);
    s->kind = find(name);
    if (!s->kind) return unknown_kind(name, fail);
    snprintf(usage, sizeof usage, "write it as %s", s->kind->usage);
    if (!s->kind->parse(s, colon ? colon + 1 : ""))
        return at_fail_set(fail, AT_ERR_USAGE, usage,
                           "\"%s\" is not a valid learning-rate schedule", text);
    if (s->kind->needs_end && s->samples_end <= 0 && !s->by_steps)
        return at_fail_set(fail, AT_ERR_USAGE, "set it with --epochs or --samples",
                           "learning-rate schedule %s needs the length of the run", name);
    if (s->kind->needs_end && s->warmup > 0 && s->warmup >= s->samples_end)
        return at_fail_set(fail, AT_ERR_USAGE, "use a shorter warm-up or a longer run",
                           "a warm-up of %g samples leaves nothing for schedule %s: the run has %g",
                           s->warmup, name, s->samples_end);
    return AT_OK;
}

at_err at_schedule_set_steps(at_schedule *schedule, double steps, at_fail *fail)
{
    assert(steps >= 0);
    if (!schedule->by_steps) return AT_OK;
    if (schedule->warmup > 0)
        return at_fail_set(fail, AT_ERR_USAGE, "leave one of them out",
                           "a warm-up counts samples, and learning-rate schedule %s:..,steps does "
                           "not",
                           schedule->kind->name);
    schedule->samples_end = steps;
    if (steps > 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "set it with --steps",
                       "learning-rate schedule %s:..,steps needs the number of steps of the run",
                       schedule->kind->name);
}

double at_schedule_now(const at_schedule *schedule, double samples_used, double steps_done)
{
    assert(steps_done >= 0);
    return at_schedule_rate(schedule, schedule->by_steps ? steps_done : samples_used);
}

/* warmup:LENGTH or warmup:LENGTH+SCHEDULE. Sets *rest to the schedule, also without a warm-up. */
static at_err parse_warmup(const char *text, at_schedule *s, const char **rest, at_fail *fail)
{
    size_t prefix = strlen(WARMUP);
    *rest = text;
    if (strncmp(text, WARMUP, prefix) != 0 || (text[prefix] && text[prefix] != ':')) return AT_OK;
    const char *length = text + prefix + (text[prefix] == ':');
    /* 1e+3 is a number, 5e+cosine a length and a schedule */
    const char *plus = strchr(length, '+');
    while (plus && plus[1] >= '0' && plus[1] <= '9') plus = strchr(plus + 1, '+');
    if (!parse_length(s, length, plus ? plus : length + strlen(length)))
        return at_fail_set(fail, AT_ERR_USAGE,
                           "write it as warmup:LENGTH or warmup:LENGTH+SCHEDULE, with LENGTH in "
                           "samples (5000) or epochs (2e)",
                           "\"%s\" is not a valid learning-rate schedule", text);
    s->warmup = s->number[0];
    s->number_count = 0;
    *rest = plus ? plus + 1 : "const";
    return AT_OK;
}

at_err at_schedule_parse(const char *text, double lr, double samples_epoch, double samples_end,
                         at_schedule *schedule, at_fail *fail)
{
    const char *rest;
    assert(samples_epoch > 0);
    assert(samples_end >= 0);
    *schedule = (at_schedule){.lr = lr, .samples_epoch = samples_epoch, .samples_end = samples_end};
    AT_TRY(parse_warmup(text, schedule, &rest, fail));
    return parse_kind(rest, schedule, fail);
}

double at_schedule_rate(const at_schedule *s, double samples_used)
{
    assert(s->kind);
    assert(samples_used >= 0);
    if (samples_used >= s->warmup) return s->kind->rate(s, samples_used);
    double part = samples_used / s->warmup;
    return s->kind->rate(s, s->warmup) * (WARMUP_START + (1 - WARMUP_START) * part);
}
