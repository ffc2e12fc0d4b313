#include "base/err.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

at_err at_fail_set(at_fail *fail, at_err err, const char *hint, const char *format, ...)
{
    assert(err != AT_OK);
    if (!fail) return err;
    fail->err = err;
    va_list args;
    va_start(args, format);
    vsnprintf(fail->text, sizeof fail->text, format, args);
    va_end(args);
    snprintf(fail->hint, sizeof fail->hint, "%s", hint ? hint : "");
    at_text_remove_controls(fail->text);
    at_text_remove_controls(fail->hint);
    return err;
}

at_err at_fail_memory(at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_FAILED, NULL, "not enough memory");
}

at_err at_fail_memory_for(at_fail *fail, const char *format, ...)
{
    char    purpose[sizeof fail->text - 32];
    va_list args;
    va_start(args, format);
    vsnprintf(purpose, sizeof purpose, format, args);
    va_end(args);
    return at_fail_set(fail, AT_ERR_FAILED, NULL, "not enough memory %s", purpose);
}

at_err at_fail_wrap(at_fail *fail, const char *format, ...)
{
    assert(fail);
    assert(fail->err != AT_OK);
    char    context[sizeof fail->text];
    va_list args;
    va_start(args, format);
    vsnprintf(context, sizeof context, format, args);
    va_end(args);
    char joined[2 * sizeof fail->text + 2];
    snprintf(joined, sizeof joined, "%s: %s", context, fail->text);
    memcpy(fail->text, joined, sizeof fail->text - 1);
    fail->text[sizeof fail->text - 1] = '\0';
    at_text_remove_controls(fail->text);
    return fail->err;
}
