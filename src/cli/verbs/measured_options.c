#include "cli/verbs/measured_options.h"

#include <string.h>

at_err at_measured_options(const at_settings *settings, at_step_log_options *log, at_delays *delays,
                           at_fail *fail)
{
    static const struct {
        const char *name;
        double      seconds;
    } units[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"min", 60}};
    static const char *const words[] = {
        [AT_DELAYS_AUTO] = "auto", [AT_DELAYS_PAUSE] = "pause", [AT_DELAYS_SLOW] = "slow"};
    size_t unit = 0, word = 0;
    while (unit < sizeof units / sizeof *units && strcmp(units[unit].name, settings->unit)) unit++;
    while (word < sizeof words / sizeof *words && strcmp(words[word], settings->delays)) word++;
    if (unit == sizeof units / sizeof *units)
        return at_fail_set(fail, AT_ERR_USAGE, "use s, ms, us or min", "--unit: unknown unit '%s'",
                           settings->unit);
    if (word == sizeof words / sizeof *words)
        return at_fail_set(fail, AT_ERR_USAGE, "use auto, pause or slow",
                           "--delays: unknown value '%s'", settings->delays);
    *log = (at_step_log_options){.unit = units[unit].seconds, .normalised = settings->normalised};
    *delays = (at_delays)word;
    return AT_OK;
}
