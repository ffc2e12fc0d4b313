#include "cli/output.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/token.h"
#include "world/process/signals.h"

enum { DIGITS = 9 };

/* ---- texts --------------------------------------------------------------------------------- */

static void print_clean(FILE *file, const char *format, va_list args)
{
    char *text;
    if (vasprintf(&text, format, args) < 0) {
        fputs("anytime: not enough memory to print a text\n", stderr);
        return;
    }
    at_text_remove_controls(text);
    fputs(text, file); /* main checks stdout for errors at the end */
    free(text);
}

void at_print(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_clean(stdout, format, args);
    va_end(args);
}

void at_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_clean(stderr, format, args);
    va_end(args);
}

/* ---- JSON and tables ----------------------------------------------------------------------- */

/* Jansson escapes only those below the blank. */
static void print_escaped(const char *json)
{
    for (const unsigned char *c = (const unsigned char *)json; *c; c++) {
        bool is_wide = *c == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f;
        if (is_wide) c++;
        if (is_wide || *c == 0x7f)
            printf("\\u%04x", *c);
        else
            putchar(*c);
    }
    putchar('\n');
}

at_err at_print_json(const json_t *document, at_fail *fail)
{
    char *text = json_dumps(document, JSON_INDENT(2) | JSON_REAL_PRECISION(DIGITS));
    if (!text)
        return at_fail_set(fail, AT_ERR_FAILED, "does it contain a name that is not UTF-8?",
                           "the result cannot be written as JSON");
    print_escaped(text);
    free(text);
    return AT_OK;
}

at_err at_print_json_take(json_t *document, at_fail *fail)
{
    at_err err = at_print_json(document, fail);
    json_decref(document);
    return err;
}

static double real_at(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* Programs with their own loop may report only some of the numbers. */
void at_print_test(const json_t *test)
{
    bool          regression = json_is_number(json_object_get(test, "r2"));
    bool          loss = json_is_number(json_object_get(test, "loss"));
    const json_t *count = json_object_get(test, "count");
    printf("test:");
    if (loss) printf(regression ? " loss %.4g" : " loss %.4f", real_at(test, "loss"));
    if (json_is_number(json_object_get(test, "accuracy")))
        printf("%s accuracy %.4f", loss ? "," : "", real_at(test, "accuracy"));
    if (regression) printf(", RMSE %.4g, R2 %.4f", real_at(test, "rmse"), real_at(test, "r2"));
    if (json_object_get(test, "auc")) printf(", AUC %.4f", real_at(test, "auc"));
    if (json_object_get(test, "top5")) printf(", top-5 %.4f", real_at(test, "top5"));
    if (json_is_integer(count)) printf(" on %lld samples", (long long)json_integer_value(count));
    printf("\n");
}

at_err at_print_table_take(at_table *table, at_fail *fail)
{
    if (!table) return at_fail_memory_for(fail, "for a table");
    at_fail failed = {0};
    at_err  err = at_table_print(table, stdout, &failed);
    at_table_free(table);
    if (!err || err == AT_ERR_IO) return AT_OK; /* main checks stdout at the end */
    *fail = failed;
    return err;
}

/* ---- plots --------------------------------------------------------------------------------- */

at_err at_plots_check(const char *plots, at_fail *fail)
{
    static const char *const known[] = {"all", "few", "none"};
    assert(plots);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(plots, known[i]) == 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "use all, few or none", "--plots: unknown value '%s'",
                       plots);
}

void at_plots_warn(const at_fail *failed)
{
    fprintf(stderr, "anytime: warning: plots are missing: %s\n", failed->text);
    if (*failed->hint) fprintf(stderr, "  hint: %s\n", failed->hint);
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
    at_plots_warn(&failed);
    return AT_OK;
}

#define STOPPING "stopping after the current micro-batch; again: at once"

void at_announce_stop(bool quiet)
{
    const char *text = isatty(STDERR_FILENO) ? "\r" STOPPING : "anytime: " STOPPING "\n";
    at_signals_notice(quiet ? NULL : text);
}

void at_warn_exposed_token(const char *path)
{
    if (!path || !at_token_is_exposed(path)) return;
    at_say("anytime: warning: other users of this machine can read the token in %s\n"
           "  hint: chmod 600 %s, and make a new token if they may have done so\n",
           path, path);
}
