/* Parsing the arguments of straggler models. */
#include "pace/pace_model.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"

static at_err next_field(char **arguments, const char *what, const char **field, at_fail *fail)
{
    assert(arguments);
    *field = strsep(arguments, ",");
    if (*field && **field) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, NULL, "%s is missing", what);
}

at_err at_pace_parse_seconds(char **arguments, const char *what, double *seconds, at_fail *fail)
{
    assert(what && seconds);
    const char *field;
    at_ns       ns;
    AT_TRY(next_field(arguments, what, &field, fail));
    if (!at_text_duration(field, &ns))
        return at_fail_set(fail, AT_ERR_USAGE, NULL,
                           "%s is '%.40s'; expected a duration such as 0.2 or 200ms", what, field);
    *seconds = at_seconds(ns);
    return AT_OK;
}

at_err at_pace_parse_number(char **arguments, const char *what, double *number, at_fail *fail)
{
    assert(what && number);
    const char *field;
    AT_TRY(next_field(arguments, what, &field, fail));
    if (!at_text_real(field, number) || *number < 0)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "%s is '%.40s'; expected a number >= 0", what,
                           field);
    return AT_OK;
}

at_err at_pace_parse_end(char *arguments, at_fail *fail)
{
    if (!arguments) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, NULL, "too many arguments: '%.40s'", arguments);
}
