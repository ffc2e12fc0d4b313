#include "cli/plots.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

at_err at_plots_check(const char *plots, at_fail *fail)
{
    static const char *const known[] = {"all", "few", "none"};
    assert(plots);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(plots, known[i]) == 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "use all, few or none", "--plots cannot be '%s'", plots);
}

at_err at_plots_write(const char *plots, at_panel_options options, char *names, size_t size,
                      at_fail *fail)
{
    assert(size > 0);
    at_fail failed = {0};
    *names = '\0';
    if (strcmp(plots, "none") == 0) return AT_OK;
    options.all = strcmp(plots, "all") == 0;
    if (!at_panels_write(&options, names, size, &failed)) return AT_OK;
    if (failed.err == AT_ERR_IO || failed.err == AT_ERR_FORMAT) return *fail = failed, failed.err;
    fprintf(stderr, "anytime: warning: plots are missing: %s\n", failed.text);
    if (*failed.hint) fprintf(stderr, "  hint: %s\n", failed.hint);
    return AT_OK;
}
