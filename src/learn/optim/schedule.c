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

/* 0 at the start, 1 at samples_end and after it. */
static double progress(const at_schedule *s, double used)
{
    assert(s->samples_end > 0);
    return used < s->samples_end ? used / s->samples_end : 1.0;
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

/* exp:EVERY,RATE; EVERY is converted to samples. */
static bool parse_exp(at_schedule *s, const char *args)
{
    char        every[32];
    const char *comma = strchr(args, ',');
    double      unit = 1;
    if (!comma || !copy_word(every, sizeof every, args, comma)) return false;
    size_t length = strlen(every);
    if (length && every[length - 1] == 'e') {
        every[length - 1] = '\0';
        unit = s->samples_epoch;
    }
    if (!parse_numbers(s, every, 1) || !parse_numbers(s, comma + 1, 2)) return false;
    s->number[0] *= unit;
    return s->number[0] > 0 && s->number[1] > 0;
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
    const double pi = 3.14159265358979323846;
    return s->lr * 0.5 * (1.0 + cos(pi * progress(s, used)));
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
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static at_err unknown_kind(const char *name, at_fail *fail)
{
    const char *names[KINDS];
    char        known[200];
    at_text     list = at_text_in(known, sizeof known);
    for (size_t i = 0; i < KINDS; i++) {
        names[i] = kinds[i].name;
        at_text_add(&list, "%s%s", i ? ", " : "schedules are ", kinds[i].usage);
    }
    const char *nearest = at_text_nearest(name, names, KINDS);
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

at_err at_schedule_parse(const char *text, double lr, double samples_epoch, double samples_end,
                         at_schedule *schedule, at_fail *fail)
{
    char        name[32], usage[64];
    const char *colon = strchr(text, ':');
    assert(samples_epoch > 0);
    assert(samples_end >= 0);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, ":"), text);
    const at_schedule_kind *kind = find(name);
    if (!kind) return unknown_kind(name, fail);

    *schedule = (at_schedule){
        .kind = kind, .lr = lr, .samples_epoch = samples_epoch, .samples_end = samples_end};
    snprintf(usage, sizeof usage, "write it as %s", kind->usage);
    if (!kind->parse(schedule, colon ? colon + 1 : ""))
        return at_fail_set(fail, AT_ERR_USAGE, usage,
                           "\"%s\" is not a valid learning-rate schedule", text);
    if (kind->needs_end && samples_end <= 0 && !schedule->by_steps)
        return at_fail_set(fail, AT_ERR_USAGE, "set it with --epochs or --samples",
                           "learning-rate schedule %s needs the length of the run", name);
    return AT_OK;
}

at_err at_schedule_set_steps(at_schedule *schedule, double steps, at_fail *fail)
{
    assert(steps >= 0);
    if (!schedule->by_steps) return AT_OK;
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

double at_schedule_rate(const at_schedule *schedule, double used)
{
    assert(schedule->kind);
    assert(used >= 0);
    return schedule->kind->rate(schedule, used);
}
